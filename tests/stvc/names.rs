//! Names of every kind: each chat, lorebook and tag keeps its exact name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use stvc::internals::st::{LibraryPath, must_be_a_name_here};
use stvc::verbs::tag;

use crate::common::{Sandbox, assert_same, skip_on_this_machine};

/// Fragile names: spaces of all kinds at the ends, escapes and lookalikes, line breaks, device
/// names, lengths.
fn odd_names() -> Vec<String> {
    let plain = [
        "abc",
        "abc\u{3000}",
        "\u{3000}abc",
        "\u{3000}",
        "\u{3000}\u{3000}",
        "abc\u{a0}",
        "abc\u{2028}",
        "a\u{2028}b\u{2029}c",
        "abc\u{85}",
        "\u{85}",
        "abc\u{1680}\u{2003}\u{202f}\u{205f}",
        "abc\u{feff}",
        "\u{feff}abc",
        "abc ",
        " abc",
        " ",
        "  ",
        "a  b",
        "tab\t",
        "line\nbreak",
        "\r",
        "\u{1}\u{1b}[31m",
        "\u{7f}",
        "%",
        "%%",
        "%41",
        "A",
        "%2",
        "%E3%80%80",
        "abc%E3%80%80",
        "%-",
        "100%",
        "#",
        "@",
        "@{1}",
        "~1",
        "x~1",
        "^",
        "[",
        "?",
        "*",
        ":",
        "\"",
        "'",
        "|",
        "<>",
        "-",
        "--all",
        ".hidden",
        "...",
        "a..b",
        "dot.",
        "x.lock",
        "x.LOCK",
        "x.jsonl",
        "HEAD",
        "CON",
        "con .txt",
        "COM¹",
        "LPT³.x",
        "CONIN$",
        "nul",
        "é",
        "e\u{301}",
        "が",
        "か\u{3099}",
        "ﬁ",
        "ß",
        "雪",
        "🦊",
        "👩\u{200d}👧",
        "\u{200b}",
        "\u{200e}",
        "\u{202e}abc",
        "\u{fffd}",
        "\u{e000}",
        "\u{10ffff}",
        "\u{ad}",
        "Key: value",
        "Stvc-Content: 0",
        "true",
        "null",
        "0",
    ];
    let mut names: Vec<String> = plain.into_iter().map(str::to_owned).collect();
    // A file name has at most 255 bytes, including `.jsonl`.
    names.push("a".repeat(249));
    names.push(format!("{}b", "a".repeat(248)));
    names.push("雪".repeat(83));
    names.push("🦊".repeat(62));
    names.push("%".repeat(249));
    names.push("\u{3000}".repeat(83));
    names
}

/// Keeps the names that this system can represent and distinguish.
fn only_here(names: Vec<String>) -> Vec<String> {
    let mut folded = BTreeSet::new();
    let is_here = |name: &String| {
        let folder = LibraryPath::parse(&format!("chats/{name}/chat.jsonl"));
        folder.is_ok_and(|path| must_be_a_name_here(&path).is_ok())
    };
    names
        .into_iter()
        .filter(is_here)
        .filter(|name| !cfg!(windows) || folded.insert(name.to_lowercase()))
        .collect()
}

/// Lorebooks may have longer names: SillyTavern cuts the file name at 255 bytes, including the
/// extension.
fn odd_book_names() -> Vec<String> {
    let mut names = odd_names();
    names.push("w".repeat(252));
    names.push("値".repeat(300));
    only_here(names)
}

/// Creates chats with all these names, and folders and group chats with many of them.
fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    let mut listed = Vec::new();
    for (n, name) in only_here(odd_names()).into_iter().enumerate() {
        let main_chat = serde_json::to_string(&name).unwrap();
        let header = format!(r#"{{"chat_metadata":{{"main_chat":{main_chat}}}}}"#);
        let chat = |what: &str| format!("{header}\n{{\"name\":\"A\",\"mes\":\"{what} {n}\"}}");
        sandbox.write(&format!("chats/Mira/{name}.jsonl"), chat("solo"));
        if n % 3 == 0 {
            sandbox.write(&format!("chats/{name}/chat.jsonl"), chat("folder"));
            sandbox.write(&format!("group chats/{name}.jsonl"), chat("group"));
            listed.push(name);
        }
    }
    let group = serde_json::json!({ "id": "1", "chats": listed });
    sandbox.write("groups/1.json", serde_json::to_vec(&group).unwrap());
    sandbox
}

fn chats(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let chat = |(path, _): &(&String, &Vec<u8>)| path.ends_with(".jsonl");
    files.iter().filter(chat).map(|(path, bytes)| (path.clone(), bytes.clone())).collect()
}

#[test]
fn every_chat_is_restored_under_its_own_name() {
    let sandbox = library();
    let before = chats(&sandbox.files());
    let names: BTreeSet<_> =
        before.keys().map(|path| path.strip_suffix(".jsonl").unwrap().to_owned()).collect();
    sandbox.stvc(&["snapshot"]).exits(0);
    let logged = sandbox.json(&["log"]).exits(0).chat_lines("snapshot");
    assert_eq!(logged.len(), names.len());
    let timelines = logged.iter().map(|line| line["timeline"].as_str().unwrap().to_owned());
    assert_eq!(timelines.collect::<BTreeSet<_>>(), names);
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);
    // A second snapshot is empty: each chat is recognized by its name.
    let status = sandbox.json(&["status"]).exits(0);
    let states = status.of_type("timeline");
    assert!(states.iter().all(|line| line["state"] == "unchanged"), "{states:?}");
    assert_eq!(status.chat_lines("timeline").len(), names.len());

    let backup = sandbox.folder().join("all.stvc");
    let backup = backup.to_str().unwrap();
    sandbox.stvc(&["backup", backup]).exits(0);
    sandbox.stvc(&["check", backup]).exits(0);
    let elsewhere = Sandbox::empty();
    elsewhere.stvc(&["import", backup]).exits(0);
    elsewhere.stvc(&["restore", "--all"]).exits(0);
    assert_same(&chats(&elsewhere.files()), &before);
    let again = elsewhere.json(&["log"]).exits(0).chat_lines("snapshot");
    assert_eq!(again.len(), names.len());
}

#[test]
fn grown_chats_with_unusual_names_get_one_new_snapshot_each() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    for path in chats(&sandbox.files()).keys() {
        sandbox.append(path, r#"{"name":"A","mes":"and on"}"#);
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    let logged = sandbox.json(&["log"]).exits(0).chat_lines("snapshot");
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for line in &logged {
        *count.entry(line["timeline"].as_str().unwrap()).or_default() += 1;
    }
    assert!(count.values().all(|count| *count == 2), "{count:?}");
}

/// The name of a lorebook and the keys of its entries.
#[test]
fn lorebooks_and_entries_with_unusual_names_are_restored() {
    let sandbox = Sandbox::empty();
    for (n, name) in odd_book_names().into_iter().enumerate() {
        let text = serde_json::to_string(&name).unwrap();
        let key = |end: &str| serde_json::to_string(&format!("{name}{end}")).unwrap();
        let entries: Vec<_> = ["", ".json", "\u{3000}", "."]
            .map(|end| format!("{}: {{\"uid\":{n},\"content\":{}}}", key(end), key(end)))
            .into();
        // A lone surrogate is not valid text, but a valid key.
        let lone = format!("\"con.\\ud83d{n}\": {{}}");
        let book = format!("{{\"entries\": {{ {}, {lone} }} }}", entries.join(", "));
        let file = stvc::internals::st::lorebook_path(&name);
        let header = format!(r#"{{"chat_metadata":{{"world_info":{text}}}}}"#);
        sandbox.write(&format!("chats/Mira/{n}.jsonl"), format!("{header}\n{{\"mes\":\"{n}\"}}"));
        // Several names may map to one file, and some to none.
        if let Some(file) = file.filter(|file| !sandbox.path(file.as_str()).exists()) {
            sandbox.write(file.as_str(), book);
        }
    }
    let before = sandbox.files();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);
    let backup = sandbox.folder().join("all.stvc");
    sandbox.stvc(&["backup", backup.to_str().unwrap()]).exits(0);
    let elsewhere = Sandbox::empty();
    elsewhere.stvc(&["import", backup.to_str().unwrap()]).exits(0);
    elsewhere.stvc(&["restore", "--all"]).exits(0);
    assert_same(&elsewhere.files(), &before);
}

#[test]
fn tags_with_unusual_names_are_restored() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/a.jsonl", "{\"chat_metadata\":{}}\n{\"mes\":\"a\"}");
    sandbox.stvc(&["snapshot"]).exits(0);
    let id = sandbox.snapshot_ids().remove(0);
    let mut given = BTreeSet::new();
    for name in odd_names() {
        if name.trim().is_empty() || name.starts_with("--") {
            continue;
        }
        let wish = tag::Options::Add { name: name.clone(), snapshot: id.clone(), lead: false };
        match tag::tag(&sandbox.workspace(), &wish) {
            Ok(_) => drop(given.insert(name)),
            Err(error) => {
                // Only names that are too long for a ref or that have another meaning.
                let reasons = ["too long", "a chat has this name", "~N", "a snapshot id"];
                let words = error.to_string();
                assert!(reasons.iter().any(|reason| words.contains(reason)), "{name:?}: {words}");
            }
        }
    }
    for name in ["\u{3000}typed\u{85}", "%typed"] {
        sandbox.stvc(&["tag", "--", name, &id]).exits(0);
        given.insert(name.to_owned());
    }
    let listed = |sandbox: &Sandbox| -> BTreeSet<_> {
        let tags = sandbox.json(&["tag"]).exits(0).of_type("tag");
        tags.iter().map(|line| line["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(&sandbox), given);
    assert!(given.len() > 70);
    for name in ["abc\u{3000}", "%41", "abc\u{85}", "COM¹"] {
        sandbox.stvc(&["show", name]).exits(0);
    }
    let backup = sandbox.folder().join("all.stvc");
    sandbox.stvc(&["backup", backup.to_str().unwrap()]).exits(0);
    let elsewhere = Sandbox::empty();
    elsewhere.stvc(&["import", backup.to_str().unwrap()]).exits(0);
    assert_eq!(listed(&elsewhere), given);
}

/// The invalid file is reported, and the others are stored.
#[test]
fn file_that_cannot_be_a_timeline_does_not_block_others() {
    let sandbox = Sandbox::empty();
    let chat = "{\"chat_metadata\":{}}\n{\"mes\":\"a\"}";
    sandbox.write("chats/Mira/good.jsonl", chat);
    sandbox.write("chats/Mira/.jsonl", chat);
    sandbox.write("group chats/..jsonl", chat);
    if cfg!(unix) {
        sandbox.write("chats/Mira/back\\slash.jsonl", chat);
    }
    let answer = sandbox.json(&["snapshot"]).exits(3);
    let found: Vec<_> = answer.of_type("finding");
    let subjects: Vec<_> = found.iter().map(|line| line["subject"].as_str().unwrap()).collect();
    assert!(subjects.contains(&"chats/Mira/.jsonl"), "{subjects:?}");
    assert!(subjects.contains(&"group chats/..jsonl"), "{subjects:?}");
    assert!(!cfg!(unix) || subjects.contains(&"chats/Mira/back\\slash.jsonl"), "{subjects:?}");
    assert_eq!(answer.of_type("snapshot").len(), 1);
    assert_eq!(sandbox.snapshot_ids().len(), 1);
}

/// The commit names the timeline, not the branch.
#[test]
fn branch_renamed_by_git_keeps_its_timeline() {
    let mut sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/a.jsonl", "{\"chat_metadata\":{}}\n{\"mes\":\"a\"}");
    sandbox.write("chats/Mira/b.jsonl", "{\"chat_metadata\":{}}\n{\"mes\":\"b\"}");
    sandbox.stvc(&["snapshot"]).exits(0);
    // One branch with a name of no timeline, and one with another timeline's name.
    sandbox.git(&["branch", "-m", "chats/Mira/a", "mine"]);
    sandbox.git(&["branch", "-m", "chats/Mira/b", "chats/Mira/a"]);
    let heads = |sandbox: &Sandbox| -> BTreeMap<String, String> {
        let lines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
        let text =
            |line: &serde_json::Value, key: &str| line[key].as_str().unwrap_or("").to_owned();
        lines.iter().map(|line| (text(line, "timeline"), text(line, "head"))).collect()
    };
    let ids: BTreeMap<String, String> = sandbox
        .json(&["log"])
        .exits(0)
        .of_type("snapshot")
        .iter()
        .map(|line| (line["timeline"].to_string(), line["id"].to_string()))
        .collect();
    assert_eq!(ids.len(), 2);
    sandbox.wait(60);
    sandbox.append("chats/Mira/a.jsonl", "{\"mes\":\"more\"}");
    sandbox.append("chats/Mira/b.jsonl", "{\"mes\":\"more\"}");
    sandbox.stvc(&["snapshot"]).exits(0);
    let logged = sandbox.json(&["log"]).exits(0).of_type("snapshot");
    assert_eq!(logged.len(), 4);
    for line in &logged[..2] {
        // Each new snapshot has the right parent.
        let parent = format!("\"{}\"", line["parents"][0].as_str().unwrap());
        assert_eq!(ids[&line["timeline"].to_string()], parent);
    }
    let now = heads(&sandbox);
    assert_eq!(now["chats/Mira/a"], sandbox.git(&["rev-parse", "chats/Mira/a"]).trim());
    assert_eq!(now["chats/Mira/b"], sandbox.git(&["rev-parse", "chats/Mira/b"]).trim());
    assert_eq!(now.len(), 2);
    sandbox.stvc(&["check"]).exits(0);
}

/// Creates timelines, folders and tags that differ only in case or normalisation.
fn twins(sandbox: &Sandbox) -> BTreeSet<String> {
    let names = ["chats/Mira/abc", "chats/Mira/ABC", "chats/MIRA/abc", "chats/Mira/é"];
    let names = names.into_iter().chain(["chats/Mira/e\u{301}", "group chats/Ä", "group chats/ä"]);
    names
        .map(|name| {
            let chat = format!("{{\"chat_metadata\":{{}}}}\n{{\"mes\":\"{name}\"}}");
            sandbox.write(&format!("{name}.jsonl"), chat);
            name.to_owned()
        })
        .collect()
}

/// Asserts the invariants of such a library.
fn assert_twins_distinct(sandbox: &mut Sandbox, store: &std::path::Path) {
    let path = store.to_str().unwrap().to_owned();
    let run = |sandbox: &Sandbox, arguments: &[&str]| {
        sandbox.json(&[&["--store", path.as_str()], arguments].concat()).exits(0)
    };
    let names = twins(sandbox);
    run(sandbox, &["snapshot"]);
    for round in 2..4 {
        sandbox.wait(60);
        for name in &names {
            sandbox.append(&format!("{name}.jsonl"), "{\"mes\":\"more\"}");
        }
        run(sandbox, &["snapshot"]);
        let timelines = run(sandbox, &["timelines"]).of_type("timeline");
        let counts: BTreeMap<_, _> = timelines
            .iter()
            .map(|line| (line["timeline"].as_str().unwrap().to_owned(), &line["snapshots"]))
            .collect();
        assert_eq!(counts.keys().cloned().collect::<BTreeSet<_>>(), names);
        assert!(counts.values().all(|count| **count == round), "{counts:?}");
    }
    run(sandbox, &["tag", "Part", "chats/Mira/abc"]);
    run(sandbox, &["tag", "part", "chats/Mira/ABC"]);
    assert_eq!(run(sandbox, &["tag"]).of_type("tag").len(), 2);
    run(sandbox, &["tag", "--delete", "Part"]);
    assert_eq!(run(sandbox, &["tag"]).of_type("tag")[0]["name"], "part");
    run(sandbox, &["undo"]);
    assert_eq!(run(sandbox, &["tag"]).of_type("tag").len(), 2);
    run(sandbox, &["gc"]);
    run(sandbox, &["check"]);
    let status = run(sandbox, &["status"]).of_type("timeline");
    assert!(status.iter().all(|line| line["state"] == "unchanged"), "{status:?}");
    let git = |arguments: &[&str]| crate::common::git(store, arguments);
    git(&["fsck", "--strict"]);
    let refs = git(&["for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags"]);
    let refs = String::from_utf8(refs).unwrap();
    assert_eq!(refs.lines().count(), names.len() + 2, "{refs}");
}

#[test]
fn names_differing_in_case_or_normalization_stay_separate() {
    if cfg!(windows) {
        return skip_on_this_machine("its files have no such names");
    }
    let mut sandbox = Sandbox::empty();
    let store = sandbox.store();
    assert_twins_distinct(&mut sandbox, &store);
}

/// `HEAD` may name it too.
#[test]
fn git_shows_a_branch_whose_name_ends_in_a_space() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/\u{3000}.jsonl", "{\"chat_metadata\":{}}\n{\"mes\":\"a\"}");
    sandbox.stvc(&["snapshot"]).exits(0);
    let check = sandbox.json(&["check"]).exits(0);
    assert_eq!(check.of_type("finding"), Vec::<serde_json::Value>::new());
    assert_eq!(sandbox.git(&["log", "--format=%H"]).trim(), sandbox.snapshot_ids()[0]);
}

/// The store assumes a case-insensitive file system: refs that are not plain are in `packed-refs`.
#[cfg(unix)]
#[test]
fn branches_are_packed_on_case_insensitive_file_systems() {
    let mut sandbox = Sandbox::empty();
    sandbox.stvc(&["init"]).exits(0);
    let store = sandbox.store();
    std::os::unix::fs::symlink("objects", store.join("OBJECTS")).unwrap();
    assert_twins_distinct(&mut sandbox, &store);
    let files = crate::common::files(&store.join("refs"));
    let is_plain = |name: &String| name.is_ascii() && *name == name.to_ascii_lowercase();
    assert!(files.keys().all(is_plain), "{:?}", files.keys());

    // A loose ref that git wrote counts, and is packed by the next change.
    let id = sandbox.git(&["rev-parse", "refs/heads/chats/Mira/abc~1"]);
    sandbox.git(&["update-ref", "refs/heads/chats/Mira/abc", id.trim()]);
    let head = |sandbox: &Sandbox| {
        let lines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
        let line = lines.into_iter().find(|line| line["timeline"] == "chats/Mira/abc").unwrap();
        line["head"].as_str().unwrap().to_owned()
    };
    assert_eq!(head(&sandbox), id.trim());
    sandbox.stvc(&["snapshot"]).exits(0);
    assert_eq!(head(&sandbox), sandbox.git(&["rev-parse", "refs/heads/chats/Mira/abc"]).trim());
    assert_ne!(head(&sandbox), id.trim());
    assert!(!store.join("refs/heads/chats/Mira/abc").exists());
}

/// On a real file system, if `STVC_FOLDING_DIR` names a folder on a case-insensitive one.
#[test]
fn nothing_is_lost_on_a_case_insensitive_file_system() {
    let Some(folder) = std::env::var_os("STVC_FOLDING_DIR") else {
        skip_on_this_machine("STVC_FOLDING_DIR names no folder on a file system without case");
        return;
    };
    let folder = tempfile::tempdir_in(folder).unwrap();
    fs::write(folder.path().join("a"), "").unwrap();
    assert!(folder.path().join("A").exists(), "STVC_FOLDING_DIR is on a file system with case");
    let mut sandbox = Sandbox::empty();
    assert_twins_distinct(&mut sandbox, &folder.path().join("store"));
}

#[test]
fn tag_that_looks_like_an_id_moment_or_chat_name_is_refused() {
    let mut sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    let ids = sandbox.snapshot_ids();
    let chat = "The Tide Office — part 1 (雨)";
    for bad in [
        &ids[1][..8],
        "cafe",
        "back~2",
        "back~",
        chat,
        &format!("Mira Voss/{chat}"),
        &chat.to_uppercase(),
    ] {
        let answer = sandbox.stvc(&["tag", bad, &ids[0]]).exits(2);
        assert!(answer.stderr.contains("invalid tag"), "{bad}: {}", answer.stderr);
        sandbox.stvc(&["snapshot", "Tide Office", "--tag", bad]).exits(2);
    }
    // A tag in use is not moved without `--move`.
    sandbox.stvc(&["tag", "here", &ids[0]]).exits(0);
    let refused = sandbox.stvc(&["tag", "here", &ids[1]]).exits(1);
    assert!(refused.stderr.contains("stvc tag here SNAPSHOT --move"), "{}", refused.stderr);
    sandbox.stvc(&["tag", "here", &ids[1], "--move"]).exits(0);
    assert_eq!(
        sandbox.json(&["show", "here"]).exits(0).of_type("snapshot")[0]["id"],
        ids[1].as_str()
    );
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(
        sandbox.json(&["show", "here"]).exits(0).of_type("snapshot")[0]["id"],
        ids[0].as_str()
    );

    // A tag that git created with an ambiguous name is not preferred.
    sandbox.wait(60);
    let old = ids.iter().find(|id| !id.starts_with(&ids[1][..6])).unwrap();
    sandbox.git(&["tag", &ids[1][..6], old]);
    let answer = sandbox.json(&["show", &ids[1][..6]]).exits(1);
    let candidates = answer.of_type("error")[0]["candidates"].as_array().unwrap().clone();
    assert_eq!(candidates.len(), 2, "{candidates:?}");
    for candidate in candidates {
        let id = candidate.as_str().unwrap().split(' ').next().unwrap().to_owned();
        sandbox.stvc(&["show", &id]).exits(0);
    }
}
