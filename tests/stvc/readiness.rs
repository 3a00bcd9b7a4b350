//! The readiness check of everything that stores, copies or replaces a lorebook: the queue of
//! ST-Auto-Recap must be empty.

use serde_json::{Value, json};
use stvc::api::{BackgroundJobs, Request, Rights, serve};

use crate::common::recap_library::{Operation, RecapLibrary, book_name};
use crate::common::{Answer, Sandbox};

const NAME: &str = "Harbour nights";

/// Creates a chat with an active queue that was stored before with an empty one.
fn chat_with_active_queue() -> (Sandbox, RecapLibrary) {
    let mut sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    library.queue = Some(vec![Operation::new("pending").about(11)]);
    library.write(&sandbox);
    (sandbox, library)
}

#[test]
fn repair_does_not_copy_a_lorebook_with_active_queue() {
    let (sandbox, main) = chat_with_active_queue();
    for fork in [main.fork("Branch #1", 7), main.fork("Branch #2", 11)] {
        fork.write(&sandbox);
    }
    let before = sandbox.files();
    let answer = sandbox.json(&["doctor", "--fix", "--yes"]).exits(4);
    let refused: Vec<_> = answer
        .of_type("finding")
        .into_iter()
        .filter(|line| line["code"] == "queue-active" && line["level"] == "error")
        .collect();
    assert_eq!(refused.len(), 2, "{}", answer.stdout);
    assert!(refused[0]["message"].as_str().unwrap().contains("ST-Auto-Recap"));
    let now = sandbox.files();
    let books = |files: &std::collections::BTreeMap<String, Vec<u8>>| {
        files.keys().filter(|path| path.starts_with("worlds/")).count()
    };
    assert_eq!((books(&before), books(&now)), (1, 1));
    // The repair works once the queue is empty.
    RecapLibrary { queue: None, ..main }.write(&sandbox);
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    assert_eq!(books(&sandbox.files()), 3);
}

#[test]
fn restore_refuses_a_lorebook_with_active_queue() {
    let (sandbox, library) = chat_with_active_queue();
    let book = sandbox.read(&library.book_path());
    for dry in [&["-n"][..], &[]] {
        let words = [&["restore", NAME, "--overwrite"][..], dry].concat();
        let answer = sandbox.stvc(&words).exits(4);
        assert!(answer.stderr.contains("--allow-active-queue"), "{}", answer.stderr);
    }
    assert_eq!(sandbox.read(&library.book_path()), book);
    // The chat alone may be restored.
    sandbox.append(&library.chat_path(), r#"{"name":"Wren","mes":"one more"}"#);
    sandbox.stvc(&["restore", NAME, "--only", "chat", "--overwrite"]).exits(0);
    sandbox
        .stvc(&["restore", &format!("{NAME}~2"), "--overwrite", "--allow-active-queue"])
        .exits(0);
    assert_ne!(sandbox.read(&library.book_path()), book);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.read(&library.book_path()), book, "and can be taken back");
}

#[test]
fn merge_refuses_a_lorebook_with_active_queue() {
    let (sandbox, _) = chat_with_active_queue();
    sandbox.stvc(&["restore", NAME, "--as", "Another ending"]).exits(0);
    let book = format!("worlds/{}.json", book_name("Mira", "Another ending"));
    let text = String::from_utf8(sandbox.read(&book)).unwrap();
    sandbox.write(&book, text.replace("Wet stones", "Dry stones"));
    let answer = sandbox.stvc(&["merge", NAME, "Another ending", "--keep", "b", "--yes"]).exits(4);
    assert!(answer.stderr.contains("ST-Auto-Recap"), "{}", answer.stderr);
    sandbox
        .stvc(&["merge", NAME, "Another ending", "--keep", "b", "--yes", "--allow-active-queue"])
        .exits(0);
}

#[test]
fn restore_reports_a_snapshot_that_contains_an_active_queue() {
    let (sandbox, _) = chat_with_active_queue();
    sandbox.stvc(&["snapshot", "--allow-active-queue"]).exits(0);
    let answer = sandbox.stvc(&["restore", NAME, "--as", "Another ending"]).exits(0);
    assert!(answer.stderr.contains("1 operation in queue"), "{}", answer.stderr);
    assert!(answer.stderr.contains("--clear-queue"), "{}", answer.stderr);
    let answer = sandbox.stvc(&["restore", NAME, "--as", "A third", "--clear-queue"]).exits(0);
    assert!(!answer.stderr.contains("in queue"), "{}", answer.stderr);
}

#[test]
fn backup_creates_snapshots_of_changes_first() {
    let mut sandbox = Sandbox::from_fixture("1.19.0");
    let backup = sandbox.folder().join("all.stvc");
    let destination = backup.to_str().unwrap();
    // The first backup too: users need not know about snapshots.
    sandbox.stvc(&["backup", destination, "--no-snapshot"]).exits(10);
    sandbox.stvc(&["backup", destination]).exits(0);
    let chat = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";
    sandbox.append(chat, r#"{"name":"Wren","mes":"said after the last snapshot"}"#);
    sandbox.wait(60);
    let summary = sandbox.json(&["backup", destination]).exits(0).of_type("summary").remove(0);
    assert_eq!((&summary["taken_first"], &summary["not_taken"]), (&1.into(), &0.into()));
    let other = Sandbox::empty();
    other.stvc(&["import", destination]).exits(0);
    other.stvc(&["restore", "--all"]).exits(0);
    assert_eq!(other.read(chat), sandbox.read(chat));

    sandbox.append(chat, r#"{"name":"Wren","mes":"and more"}"#);
    sandbox.stvc(&["backup", destination, "--no-snapshot"]).exits(0);
    assert_eq!(sandbox.json(&["status"]).of_type("summary")[0]["changed"], 1);
}

#[test]
fn timeline_with_active_queue_is_left_out_of_a_backup() {
    let (sandbox, _) = chat_with_active_queue();
    let folder = sandbox.folder().join("mirror");
    let answer = sandbox.json(&["backup", folder.to_str().unwrap()]).exits(3);
    assert_eq!(answer.of_type("summary")[0]["not_taken"], 1);
    assert_eq!(answer.of_type("finding")[0]["code"], "queue-active");
    // The last stored state is in the backup.
    let store = folder.to_str().unwrap();
    let log = sandbox.json(&["--store", store, "log"]).exits(0).chat_lines("snapshot");
    assert_eq!(log.len(), 1);
}

#[test]
fn sync_sends_the_last_snapshot_of_timelines_with_active_queue() {
    let (sandbox, library) = chat_with_active_queue();
    let remote = sandbox.folder().join("remote");
    let remote = remote.to_str().unwrap();
    let answer = sandbox.stvc(&["sync", remote]).exits(3);
    assert!(answer.stderr.contains("ST-Auto-Recap"), "{}", answer.stderr);
    let other = Sandbox::empty();
    other.stvc(&["sync", remote]).exits(0);
    assert_eq!(
        other.read(&library.book_path()),
        RecapLibrary::default().book_bytes().into_bytes(),
        "the last good state went"
    );
}

/// Returns the codes of missing readiness, sorted, without those about the queue and later states.
fn not_ready(answer: &Answer) -> Vec<String> {
    let codes = answer.of_type("finding").into_iter().map(|line| line["code"].clone());
    let codes = codes.filter_map(|code| code.as_str().map(str::to_owned));
    let mut codes: Vec<_> = codes
        .filter(|code| code.starts_with("scene-") || code == "running-recap-missing")
        .collect();
    codes.sort();
    codes
}

fn of_line<'a>(lines: &'a [Value], kind: &str) -> &'a Value {
    lines.iter().find(|line| line["type"] == kind).unwrap_or_else(|| panic!("no {kind}: {lines:?}"))
}

#[test]
fn fork_at_a_message_is_subject_to_the_readiness_check() {
    let sandbox = Sandbox::empty();
    RecapLibrary::default().write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    for (at, is_ready) in [("3", true), ("5", false), ("7", true), ("11", false)] {
        let taken = sandbox.json(&["snapshot", NAME, "--at", at, "-n"]).exits(0);
        assert_eq!(not_ready(&taken).is_empty(), is_ready, "{at}: {taken:?}");
        for way in [&["fork", NAME, "--as", "New"][..], &["restore", NAME, "--as", "New"]] {
            let words = [way, &["--at", at, "-n"]].concat();
            let forked = sandbox.json(&words);
            // An unknown lorebook is refused for another reason.
            if forked.stdout.contains("lorebook-then-unknown") {
                continue;
            }
            let forked = forked.exits(0);
            assert_eq!(not_ready(&forked), not_ready(&taken), "{words:?}");
            let words = [&words[..], &["--strict"]].concat();
            let strict = sandbox.stvc(&words).exits(if is_ready { 0 } else { 4 });
            let refused = strict.stderr.contains("Cannot create checkpoint");
            assert_eq!(refused, !is_ready, "{words:?}: {strict:?}");
        }
    }
    let files = sandbox.files();
    assert!(files.keys().all(|path| !path.contains("New")), "only plans were made");
}

#[test]
fn fork_with_active_queue_is_refused_unless_the_option_allows_it() {
    let (sandbox, library) = chat_with_active_queue();
    for way in ["fork", "restore"] {
        let name = format!("By {way}");
        let words = [way, NAME, "--as", &name, "--at", "7"];
        let refused = sandbox.stvc(&words).exits(4);
        assert!(refused.stderr.contains("1 operation in queue"), "{}", refused.stderr);
        assert!(refused.stderr.contains("--wait"), "{}", refused.stderr);
        let waited = sandbox.stvc(&[&words[..], &["--wait", "0.3"]].concat()).exits(4);
        assert!(waited.stderr.contains("the waiting time is over"), "{}", waited.stderr);
        let answer = sandbox.json(&[&words[..], &["--allow-active-queue"]].concat()).exits(0);
        let active = |line: &&Value| line["code"] == "queue-active" && line["level"] == "warning";
        assert!(answer.of_type("finding").iter().any(|line| active(&line)), "{}", answer.stdout);
        assert!(sandbox.path(&format!("chats/Mira/{name}.jsonl")).exists());
    }
    // The queue empties during the wait.
    let (root, book) = (sandbox.path(""), library.book_path());
    let done = RecapLibrary { queue: Some(Vec::new()), ..library }.book_bytes();
    let emptied = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(500));
        std::fs::write(root.join(book), done).unwrap();
    });
    sandbox.stvc(&["fork", NAME, "--as", "Later", "--at", "7", "--wait", "30"]).exits(0);
    emptied.join().unwrap();
}

#[test]
fn fork_reports_recap_version_combined_recap_and_entry_count() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary { combined: Some(("So far.".into(), 8)), ..RecapLibrary::default() };
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    for (way, name) in [("fork", "One"), ("restore", "Two")] {
        let lines = sandbox.json(&[way, NAME, "--as", name, "--at", "7"]).exits(0);
        let restored = of_line(&lines.of_type("restored"), "restored").clone();
        assert_eq!(restored["timeline"], format!("chats/Mira/{name}"), "{restored}");
        assert_eq!(restored["messages"], 8, "{restored}");
        assert_eq!(restored["running_recap_version"], 1, "{restored}");
        assert_eq!(restored["combined_recap_message_count"], 8, "{restored}");
        // Including the queue's entry.
        assert_eq!(restored["entries"], 5, "{restored}");
        assert_eq!(restored["state"]["message_id"], 7, "{restored}");
    }
    let words = sandbox.stvc(&["fork", NAME, "--as", "Three", "--at", "7"]).exits(0).stdout;
    for line in ["Running recap:  v1", "Combined recap: 8 messages", "Lorebook:       5 entries"] {
        assert!(words.contains(line), "{line}: {words}");
    }
}

#[test]
fn first_snapshot_with_active_queue_is_marked_as_autosave() {
    for words in [&["reconstruct", NAME, "--all"][..], &["import"]] {
        let (sandbox, library) = chat_with_active_queue();
        sandbox.append(&library.chat_path(), r#"{"name":"Wren","mes":"one more"}"#);
        let early: Vec<_> = library.chat_bytes().lines().take(5).map(str::to_owned).collect();
        sandbox.write("backups/chat_mira_20260101-120000.jsonl", early.join("\n"));
        let answer = sandbox.json(words).exits(0);
        let found = answer.of_type("finding");
        let active = found.iter().find(|line| line["code"] == "queue-active");
        assert_eq!(active.unwrap()["level"], "warning", "{words:?}: {found:?}");
        let shown = sandbox.json(&["show", NAME]).exits(0).of_type("snapshot").remove(0);
        assert_eq!(shown["kind"], "autosave", "{words:?}: {shown}");
        assert_eq!(shown["state"]["active_operations"], 1, "{words:?}: {shown}");
    }
}

#[test]
fn api_forwards_readiness_options() {
    let (sandbox, _) = chat_with_active_queue();
    let ask = |verb: &str, more: Value| {
        let mut args = match verb {
            "snapshot" => json!({ "timelines": [NAME], "at": 5 }),
            _ => json!({ "snapshot": NAME, "cut": 5, "name": "New" }),
        };
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let request = Request::of(verb, Some(args)).unwrap();
        serve(&sandbox.workspace(), &request, Rights::Change, &BackgroundJobs::default())
    };
    for verb in ["snapshot", "restore"] {
        assert_eq!(ask(verb, json!({})).exit, 4, "{verb}");
        assert_eq!(ask(verb, json!({ "wait": 0 })).exit, 4, "{verb}");
        let strict = json!({ "allow_active_queue": true, "strict": true });
        assert_eq!(ask(verb, strict).exit, 4, "{verb}: message 5 ends no scene");
        let done = ask(verb, json!({ "allow_active_queue": true }));
        assert_eq!(done.exit, 0, "{verb}: {:?}", done.lines);
    }
}
