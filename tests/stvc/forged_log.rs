//! Last lines of the operation log that stvc did not write, each with a correct checksum. Later
//! commands work in every case, and recovery writes no file that a timeline of the store cannot
//! have.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use stvc::internals::rules::{Code, Finding};
use stvc::internals::store::{RefName, Store};
use stvc::progress::NoProgress;
use stvc::verbs::snapshot::{self, SnapshotResult, TimelineResult};

use crate::common::{A, Sandbox, assert_no_panic, assert_valid, chat, copy_folder, message};

/// Encodes a record with its checksum.
fn line(record: &Value) -> Vec<u8> {
    let mut text = record.to_string().into_bytes();
    text.pop();
    let check = blake3::hash(&text).to_hex();
    [&text[..], b",\"check\":\"", &check.as_bytes()[..16], b"\"}\n"].concat()
}

/// A library with a store of two snapshots, and a valid next record of the log.
struct Forgery {
    sandbox: Sandbox,
    record: Value,
    head: String,
    former: String,
    blob: String,
    tree: String,
}

impl Forgery {
    fn new() -> Self {
        let mut sandbox = Sandbox::empty();
        sandbox.write("worlds/Harbour.json", r#"{"entries":{}}"#);
        sandbox.write("secrets.json", "{\"key\":\"secret\"}");
        sandbox.write("characters/Mira.png", "no picture");
        sandbox.write(A, chat("a", 3, Some("Harbour")));
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
        sandbox.append(A, &message("a", 3));
        sandbox.stvc(&["snapshot"]).exits(0);
        let id = |name: &str| sandbox.git(&["rev-parse", name]).trim().to_owned();
        let branch = "refs/heads/chats/Mira/a";
        let (head, former) = (id(branch), id(&format!("{branch}~1")));
        let blob = id(&format!("{head}:chat/header.json"));
        let tree = id(&format!("{head}^{{tree}}"));
        let record = json!({
            "number": 3,
            "time": "2026-11-15T01:46:40Z",
            "command": ["stvc", "restore"],
            "refs": [{ "ref": branch, "before": head, "after": former }],
            "files": [{ "path": "worlds/New.json", "before": null, "after": { "blob": blob } }],
        });
        Self { sandbox, record, head, former, blob, tree }
    }

    fn with(&self, edit: impl FnOnce(&mut Value)) -> Value {
        let mut record = self.record.clone();
        edit(&mut record);
        record
    }

    /// Returns the record without refs and with this file.
    fn file(&self, path: &str) -> Value {
        self.with(|record| {
            record["refs"] = json!([]);
            record["files"][0]["path"] = path.into();
        })
    }

    /// Returns the record with this ref and without files.
    fn reference(&self, name: &str, before: Value, after: Value) -> Value {
        self.with(|record| {
            record["refs"] = json!([{ "ref": name, "before": before, "after": after }]);
            record["files"] = json!([]);
        })
    }

    /// Copies the library and appends this line to its log.
    fn copy(&self, text: &[u8]) -> Sandbox {
        let mut sandbox = Sandbox::empty();
        sandbox.wait(120);
        copy_folder(&self.sandbox.library(), &sandbox.library());
        let log = sandbox.store().join("stvc/operations.jsonl");
        fs::write(&log, [fs::read(&log).unwrap(), text.to_vec()].concat()).unwrap();
        sandbox
    }

    /// Asserts that with the line `text` later commands work, nothing else is written, and the line
    /// is kept. Returns the findings.
    fn survives(&self, what: &str, text: &[u8]) -> Vec<Finding> {
        self.survives_in(&self.copy(text), what, text)
    }

    fn survives_in(&self, sandbox: &Sandbox, what: &str, text: &[u8]) -> Vec<Finding> {
        let before = outside_places(sandbox);
        sandbox.append(A, &message("a", 4));
        let first = snapshot(sandbox, what);
        let set_aside = first.iter().find(|found| found.code == Code::OperationSetAside);
        assert!(set_aside.is_none_or(|finding| finding.remedy.is_some()), "{what}");
        sandbox.append(A, &message("a", 5));
        let second = snapshot(sandbox, what);
        assert!(second.is_empty(), "{what}: {second:?}");
        let store = Store::open(&sandbox.store()).unwrap();
        let branch = RefName::branch(["chats", "Mira", "a"]);
        let head = store.reader().commit(store.ref_target(&branch).unwrap().unwrap()).unwrap();
        let messages = sandbox.read(A).split(|byte| *byte == b'\n').count() - 1;
        assert_eq!(head.trailer("Stvc-Messages"), Some(messages.to_string().as_str()), "{what}");
        assert_eq!(outside_places(sandbox), before, "{what}");
        let has = |name: &str| {
            let kept = fs::read(sandbox.store().join("stvc").join(name)).unwrap_or_default();
            kept.windows(text.len()).any(|window| window == text)
        };
        let places = [has("operations.jsonl"), has("operations-set-aside.jsonl")];
        assert_eq!(places, [set_aside.is_none(), set_aside.is_some()], "{what}: where the line is");
        first
    }
}

/// Takes a snapshot, which must succeed. Returns the findings.
fn snapshot(sandbox: &Sandbox, what: &str) -> Vec<Finding> {
    let workspace = sandbox.workspace();
    let report = snapshot::snapshot(&workspace, &snapshot::Options::default(), &mut NoProgress);
    let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
    // A link to another part of the library is reported and not stored.
    let is_link =
        |timeline: &TimelineResult| sandbox.path(timeline.timeline.file().as_str()).is_symlink();
    let taken = |timeline: &TimelineResult| {
        is_link(timeline)
            || matches!(timeline.result, SnapshotResult::New(..) | SnapshotResult::Unchanged(..))
    };
    assert!(report.timelines.iter().all(taken), "{what}");
    workspace.take_notices()
}

/// Asserts that other commands work and that git finds no problem.
#[track_caller]
fn assert_commands_work(sandbox: &Sandbox) {
    for arguments in [
        &["snapshot"][..],
        &["operations"],
        &["status"],
        &["tag", "after", "Mira/a"],
        &["undo"],
        &["gc"],
    ] {
        assert_no_panic(sandbox.stvc(arguments)).exits(0);
    }
    assert_valid(sandbox);
}

/// Reads all files and links around the library that no timeline can have.
fn outside_places(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    let places = ["chats", "group chats", "groups", "worlds", "characters", "User Avatars"];
    let mut places: Vec<_> =
        places.iter().map(|folder| format!("default-user/{folder}/")).collect();
    places.extend(["default-user/user/images/".into(), "default-user/user/files/".into()]);
    let mut found = BTreeMap::new();
    let mut open = vec![String::new()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(sandbox.folder().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}{}", entry.file_name().to_str().unwrap());
            let inside = format!("{path}/");
            let kind = entry.file_type().unwrap();
            if inside.contains("/.stvc/") || (places.contains(&inside) && !kind.is_symlink()) {
                continue;
            }
            match kind {
                kind if kind.is_dir() => open.push(inside),
                kind if kind.is_file() => drop(found.insert(path, fs::read(entry.path()).unwrap())),
                _ => drop(found.insert(path, Vec::new())),
            }
        }
    }
    found
}

#[track_caller]
fn is_set_aside(what: &str, found: &[Finding]) {
    assert!(found.iter().any(|found| found.code == Code::OperationSetAside), "{what}: {found:?}");
}

/// Values of every type, and numbers at the limits of their ranges.
fn values() -> Vec<Value> {
    let mut values = vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(1_u64 << 53),
        json!((1_u64 << 53) - 1),
        json!(1_u64 << 52),
        json!(u64::MAX),
        json!("x"),
        json!(""),
        json!([]),
        json!([[]]),
        json!([7]),
        json!([u64::MAX]),
        json!([1, 2]),
        json!({}),
        json!({ "blob": 7 }),
        json!({ "mood": "x" }),
    ];
    values.push(json!("0".repeat(40)));
    values
}

#[test]
fn commands_survive_any_value_in_the_last_log_record() {
    let forgery = Forgery::new();
    let places = [
        "/number",
        "/time",
        "/command",
        "/refs",
        "/refs/0",
        "/refs/0/ref",
        "/refs/0/before",
        "/refs/0/after",
        "/files",
        "/files/0",
        "/files/0/path",
        "/files/0/before",
        "/files/0/after",
        "/files/0/after/blob",
        "/undoes",
        "/finishes",
        "/library",
        "/summary",
        "/unfinished",
        "/automatic",
        "/later",
    ];
    for place in places {
        let (parent, key) = place.rsplit_once('/').unwrap();
        let edited = |value: Option<Value>| {
            forgery.with(|record| match record.pointer_mut(parent).unwrap() {
                Value::Array(items) => match value {
                    Some(value) => items[0] = value,
                    None => items.clear(),
                },
                object => {
                    let object = object.as_object_mut().unwrap();
                    match value {
                        Some(value) => drop(object.insert(key.to_owned(), value)),
                        None => drop(object.remove(key)),
                    }
                }
            })
        };
        let missing = edited(None);
        forgery.survives(&format!("no {place}"), &line(&missing));
        for value in values() {
            let what = format!("{place}: {value}");
            forgery.survives(&what, &line(&edited(Some(value))));
        }
    }
}

#[test]
fn recovery_writes_only_files_that_a_timeline_can_have() {
    let forgery = Forgery::new();
    let long = format!("worlds/{}.json", "x".repeat(300));
    let paths = [
        "",
        "/",
        ".",
        "..",
        "../x",
        "../default-user/chats/Mira/x.jsonl",
        "/etc/stvc",
        "//x",
        "secrets.json",
        "config.yaml",
        "settings.json",
        "settings.json/x",
        "x",
        "x.jsonl",
        "chats",
        "chats/x.jsonl",
        "chats/Mira",
        "chats/Mira/",
        "chats/Mira/x",
        "chats/Mira/x.json",
        "chats/Mira/x/y.jsonl",
        "chats//x.jsonl",
        "chats/Mira/a.jsonl/x.jsonl",
        "chats/../secrets.json",
        "group chats/x",
        "group chats/x/y.jsonl",
        "groups/x",
        "groups/x.yaml",
        "worlds",
        "worlds/",
        "worlds/../../x",
        "worlds/../secrets.json",
        "worlds/a/b.json",
        "worlds\\..\\..\\x",
        "worlds/..\\..\\x.json",
        "worlds/a\0b.json",
        &long,
        "characters/x",
        "characters/x.json",
        "characters/Mira/x.png",
        "User Avatars",
        "User Avatars/a/b.png",
        "user/images",
        "user/images/",
        "user/images/../../secrets.json",
        "user/files/../../secrets.json",
        "user/x",
        "user/workflows/x.json",
        "backups/x.jsonl",
        "thumbnails/x.png",
        "extensions/evil/index.js",
        "OpenAI Settings/x.json",
        ".stvc/config",
        ".stvc/stvc/format",
        "C:x",
        "C:\\x",
        "c:/x",
        "NUL",
        "CON",
        "com1.txt",
        "chats/Mira/a.jsonl:stream",
    ];
    for path in paths {
        is_set_aside(path, &forgery.survives(path, &line(&forgery.file(path))));
        let gone = forgery.with(|record| {
            record["refs"] = json!([]);
            record["files"][0] =
                json!({ "path": path, "before": { "blob": forgery.blob }, "after": null });
        });
        forgery.survives(&format!("{path} goes"), &line(&gone));
    }
    assert_commands_work(&forgery.copy(&line(&forgery.file("secrets.json"))));
    // Possible paths are written.
    for path in [
        "chats/Mira/x.jsonl",
        "group chats/x.jsonl",
        "groups/x.json",
        "worlds/x.json",
        "characters/x.png",
        "User Avatars/x.png",
        "user/images/Mira/x.png",
        "user/files/x.txt",
    ] {
        let text = line(&forgery.file(path));
        let sandbox = forgery.copy(&text);
        assert_no_panic(sandbox.stvc(&["snapshot"])).exits(0);
        assert_eq!(sandbox.read(path), header(&forgery), "{path}");
        forgery.survives(path, &text);
    }
}

fn header(forgery: &Forgery) -> Vec<u8> {
    forgery.sandbox.git(&["cat-file", "blob", &forgery.blob]).into_bytes()
}

#[test]
fn recovery_writes_settings_only_if_configured() {
    let forgery = Forgery::new();
    let text = line(&forgery.with(|record| {
        record["refs"] = json!([]);
        record["files"][0]["path"] = "settings.json".into();
    }));
    let sandbox = forgery.copy(b"");
    fs::remove_file(sandbox.path("settings.json")).unwrap();
    fs::write(sandbox.store().join("stvc/config.toml"), "[include]\nsettings = true\n").unwrap();
    let log = sandbox.store().join("stvc/operations.jsonl");
    fs::write(&log, [fs::read(&log).unwrap(), text.clone()].concat()).unwrap();
    assert_no_panic(sandbox.stvc(&["snapshot"])).exits(0);
    assert_eq!(sandbox.read("settings.json"), header(&forgery));
    let other = forgery.copy(&text);
    fs::remove_file(other.path("settings.json")).unwrap();
    assert_no_panic(other.stvc(&["snapshot"])).exits(0);
    assert!(!other.path("settings.json").exists());
}

#[test]
#[cfg(unix)]
fn recovery_never_writes_through_a_link() {
    use std::os::unix::fs::symlink;
    let forgery = Forgery::new();
    for (folder, target, path) in [
        ("User Avatars", "..", "User Avatars/evil"),
        ("User Avatars", ".", "User Avatars/evil"),
        ("chats/Ivo", "../backups", "chats/Ivo/x.jsonl"),
        ("user/images", "/tmp", "user/images/stvc-evil"),
        ("worlds/x.json", "../secrets.json", "worlds/x.json"),
        ("worlds/x.json", "nowhere", "worlds/x.json"),
    ] {
        let text = line(&forgery.file(path));
        let sandbox = forgery.copy(&text);
        let link = sandbox.path(folder);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        fs::create_dir_all(sandbox.path("backups")).unwrap();
        symlink(target, &link).unwrap();
        let what = format!("{path} by {folder} -> {target}");
        is_set_aside(&what, &forgery.survives_in(&sandbox, &what, &text));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "{what}");
    }
}

#[test]
fn commands_survive_any_ref_or_object_in_the_last_log_record() {
    let forgery = Forgery::new();
    let ids = [
        json!(null),
        json!(forgery.head),
        json!(forgery.former),
        json!(forgery.blob),
        json!(forgery.tree),
        json!("0".repeat(40)),
        json!("1234567890".repeat(4)),
        json!(forgery.head.to_uppercase()),
    ];
    let long = format!("refs/heads/{}", "x".repeat(300));
    let deep = format!("refs/heads/{}x", "y/".repeat(3000));
    let kept = format!("refs/stvc/kept/{}", forgery.former);
    let names = [
        "refs/heads/chats/Mira/a",
        "refs/heads/chats/Mira/a/b",
        "refs/heads/chats/Mira",
        "refs/heads/chats",
        "refs/heads/x",
        "refs/tags/x",
        "refs/tags/x/y",
        "refs/stvc/kept/x",
        "refs/stvc/x",
        "refs/remotes/x/y",
        "refs/x",
        "refs/heads",
        "HEAD",
        "config",
        "refs/heads/../../config",
        &kept,
        &long,
        &deep,
    ];
    for name in names {
        for before in [json!(null), json!(forgery.head)] {
            for after in &ids {
                let record = forgery.reference(name, before.clone(), after.clone());
                forgery.survives(&format!("{name}: {before} {after}"), &line(&record));
            }
        }
    }
    for before in &ids {
        for after in &ids {
            for kind in ["blob", "snapshot"] {
                let of = |id: &Value| match id {
                    Value::Null => Value::Null,
                    id => json!({ kind: id }),
                };
                for path in ["worlds/New.json", A] {
                    let record = forgery.with(|record| {
                        record["files"][0] =
                            json!({ "path": path, "before": of(before), "after": of(after) });
                    });
                    let what = format!("{path}: {kind} {before} {after}");
                    forgery.survives(&what, &line(&record));
                }
            }
        }
    }
    for name in ["refs/heads/chats/Mira", "refs/remotes/x/y", "refs/heads/x"] {
        let record = forgery.reference(name, Value::Null, json!(forgery.blob));
        let sandbox = forgery.copy(&line(&record));
        assert_commands_work(&sandbox);
    }
    let twice = forgery.with(|record| {
        let first = record["refs"][0].clone();
        record["refs"].as_array_mut().unwrap().push(first);
        let first = record["files"][0].clone();
        record["files"].as_array_mut().unwrap().push(first);
    });
    forgery.survives("all twice", &line(&twice));
}

#[test]
fn invalid_log_lines_are_skipped() {
    let forgery = Forgery::new();
    let records = [
        json!({}),
        json!({ "finished": 7 }),
        json!({ "finished": -1 }),
        json!({ "finished": "x" }),
        json!({ "finished": u64::MAX }),
        json!({ "mood": "sunny" }),
    ];
    for record in records {
        forgery.survives(&record.to_string(), &line(&record));
    }
    let text = line(&forgery.record);
    let mut wrong = text.clone();
    let digit = wrong.len() - 5;
    wrong[digit] ^= 1;
    forgery.survives("a wrong checksum", &wrong);
}

/// An operation that was really interrupted is finished, although a forged one follows.
#[test]
fn valid_operation_is_finished_when_a_forged_one_follows() {
    let forgery = Forgery::new();
    let real = forgery.with(|record| {
        record["refs"] = json!([]);
        record["files"][0]["path"] = "worlds/Real.json".into();
    });
    let mut forged = forgery.file("secrets.json");
    forged["number"] = 4.into();
    forged["unfinished"] = json!([1, 2, 3, 99]);
    let text = [line(&real), line(&forged)].concat();
    let sandbox = forgery.copy(&text);
    let found = snapshot(&sandbox, "the first");
    let codes: Vec<_> = found.iter().map(|found| found.code).collect();
    assert_eq!(codes, [Code::OperationSetAside, Code::OperationFinished]);
    assert_eq!(sandbox.read("worlds/Real.json"), header(&forgery));
    assert_eq!(sandbox.read("secrets.json"), b"{\"key\":\"secret\"}");
    assert!(snapshot(&sandbox, "the second").is_empty());
    assert_commands_work(&sandbox);
}

#[test]
fn erase_deletes_the_file_of_rejected_log_lines() {
    let forgery = Forgery::new();
    let sandbox = forgery.copy(&line(&forgery.file("secrets.json")));
    assert_no_panic(sandbox.stvc(&["snapshot"])).exits(0);
    let aside = sandbox.store().join("stvc/operations-set-aside.jsonl");
    assert!(aside.exists());
    fs::remove_file(sandbox.path(A)).unwrap();
    assert_no_panic(sandbox.stvc(&["erase", "Mira/a", "--yes"])).exits(0);
    assert!(!aside.exists());
}

/// This also applies to a finished operation.
#[test]
fn undo_writes_only_files_that_a_timeline_can_have() {
    let forgery = Forgery::new();
    for path in ["secrets.json", "config.yaml", "extensions/evil/index.js"] {
        let record = forgery.with(|record| {
            record["refs"] = json!([]);
            record["files"][0] =
                json!({ "path": path, "before": { "blob": forgery.blob }, "after": null });
        });
        let text = [line(&record), line(&json!({ "finished": 3 }))].concat();
        let sandbox = forgery.copy(&text);
        if path == "secrets.json" {
            fs::remove_file(sandbox.path(path)).unwrap();
        }
        let answer = assert_no_panic(sandbox.stvc(&["undo", "3"])).exits(1);
        assert!(answer.stderr.contains(path), "{}", answer.stderr);
        assert!(!sandbox.path(path).exists(), "{path}");
    }
}
