//! `status` and `log` report changes and snapshots, and a dry run predicts the run.

use serde_json::Value;

use crate::common::recap_library::{Operation, RecapLibrary};
use crate::common::{
    Answer, Sandbox, chat, delete_object, finding_codes, message, text, unpack_all,
};

const A: &str = "chats/Mira/a.jsonl";

fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 4, Some("Lore")));
    sandbox.write("chats/Mira/b.jsonl", chat("b", 2, None));
    sandbox.write("worlds/Lore.json", r#"{"entries":{}}"#);
    sandbox
}

fn line(answer: &Answer, name: &str) -> Value {
    let lines = answer.of_type("timeline");
    lines.into_iter().find(|line| line["timeline"] == format!("chats/Mira/{name}")).unwrap()
}

#[test]
fn status_lists_changes() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    let changed =
        |sandbox: &Sandbox| line(&sandbox.json(&["status"]).exits(0), "a")["changed"].clone();
    assert_eq!(changed(&sandbox), Value::Array(vec![]));
    // A lorebook is one timeline, however many chats use it.
    sandbox.write("worlds/Lore.json", r#"{"entries":{"0":{"uid":0}}}"#);
    let status = sandbox.json(&["status"]).exits(0).of_type("timeline");
    let states: Vec<_> =
        status.iter().map(|line| (line["timeline"].as_str().unwrap(), &line["state"])).collect();
    let (same, other) = (Value::from("unchanged"), Value::from("changed"));
    assert_eq!(states, [("chats/Mira/a", &same), ("chats/Mira/b", &same), ("worlds/Lore", &other)]);
    sandbox.wait(60);
    let taken = sandbox.stvc(&["snapshot"]).exits(0).stdout;
    assert!(taken.contains("lorebook / Lore") && taken.contains("1 snapshot created"), "{taken}");
    // A chat's name includes its lorebook.
    let both = sandbox.json(&["snapshot", "Mira/a"]).exits(0).of_type("snapshot");
    assert_eq!(both[0]["unchanged"], false);
    assert!(sandbox.stvc(&["log", "Mira/a", "-n", "1"]).exits(0).stdout.contains("lorebook only"));
    sandbox.append(A, &message("a", 4));
    assert_eq!(changed(&sandbox), serde_json::json!(["chat"]));
    sandbox.write("worlds/Lore.json", r#"{"entries":{"1":{"uid":1}}}"#);
    assert_eq!(changed(&sandbox), serde_json::json!(["chat"]));
    sandbox.wait(60);
    sandbox.stvc(&["snapshot"]).exits(0);
    let log = sandbox.json(&["log", "Mira/a"]).exits(0).of_type("snapshot");
    let only: Vec<_> = log.iter().map(|line| line["lorebook_only"].as_bool().unwrap()).collect();
    assert_eq!(only, [false, true, false]);
    // Only the named ones.
    let some = sandbox.stvc(&["status", "Mira / b"]).exits(0).stdout;
    assert!(some.contains("No changes since the latest snapshots of 1 timeline."), "{some}");
    let none = sandbox.stvc(&["status", "nobody"]).exits(0).stdout;
    assert!(none.contains("No timeline has a name that contains this text."), "{none}");
}

#[test]
fn status_names_the_last_backup() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    let status = |sandbox: &Sandbox| sandbox.stvc(&["status"]).exits(0).stdout;
    let words = status(&sandbox);
    assert!(words.contains("There is no backup yet."), "{words}");
    assert!(words.ends_with("Not protected: no watch is running. Run `stvc setup`.\n"), "{words}");
    let file = sandbox.folder().join("all.stvc");
    sandbox.stvc(&["backup", text(&file)]).exits(0);
    sandbox.wait(2 * 86_400);
    sandbox.append(A, &message("a", 4));
    sandbox.stvc(&["snapshot"]).exits(0);
    let words = status(&sandbox);
    assert!(words.contains("2 days ago, 1 snapshot of 1 timeline since"), "{words}");
}

#[test]
fn status_names_timelines_waiting_for_the_queue() {
    let sandbox = Sandbox::empty();
    let mut recap = RecapLibrary::new("Mira", "Harbour");
    recap.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    assert!(
        !finding_codes(&sandbox.json(&["status"]).exits(0)).contains(&"queue-active".to_owned())
    );
    recap.queue = Some(vec![Operation::new("pending"), Operation::new("in_progress")]);
    recap.write(&sandbox);
    let status = sandbox.stvc(&["status"]).exits(0).stderr;
    assert!(status.contains("Cannot create checkpoint yet: 2 operations in queue"), "{status}");
    assert!(status.contains("(1 pending, 1 in progress)"), "{status}");
    // The hint to wait is omitted after a wait.
    let waited = sandbox.stvc(&["snapshot", "Harbour", "--wait", "0.1"]).exits(4).stderr;
    assert!(!waited.contains("`--wait`"), "{waited}");
    // Only errors.
    assert_eq!(sandbox.stvc(&["-q", "status"]).exits(0).stderr, "");
}

#[test]
fn damaged_snapshot_is_listed_with_the_last_valid_snapshot() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    let sound = sandbox.json(&["show", "Mira/a"]).exits(0).of_type("snapshot")[0]["id"].clone();
    sandbox.wait(60);
    sandbox.append(A, &message("a", 4));
    sandbox.stvc(&["snapshot"]).exits(0);
    let id = sandbox.json(&["show", "Mira/a"]).exits(0).of_type("snapshot")[0]["id"].clone();
    // Its messages are lost, its commit is not.
    let folder = sandbox.git(&["rev-parse", &format!("{}:chat/messages", id.as_str().unwrap())]);
    unpack_all(&sandbox.store());
    delete_object(&sandbox.store(), folder.trim());
    sandbox.stvc(&["check"]).exits(1);
    let answer = sandbox.json(&["timelines"]).exits(0);
    let line = line(&answer, "a");
    assert_eq!((&line["damaged"], &line["last_valid"]), (&true.into(), &sound));
    let log = sandbox.json(&["log", "Mira/a"]).exits(0).of_type("snapshot");
    assert_eq!((&log[0]["damaged"], &log[1]["damaged"]), (&true.into(), &false.into()));
    let status = sandbox.stvc(&["status"]).exits(0).stderr;
    assert!(status.contains("the latest valid one is"), "{status}");
    assert!(sandbox.stvc(&["log"]).exits(0).stdout.contains("damaged"));
    // The files still have it: the next snapshot repairs the store, and `check` confirms it.
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["check"]).exits(0);
    assert!(!sandbox.stvc(&["log"]).exits(0).stdout.contains("damaged"));
}

#[test]
fn dry_run_prints_the_warnings_of_the_run() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    // It shrank and has a broken line, and another chat is new.
    sandbox.write(A, [chat("a", 1, Some("Missing")), b"\n{broken".to_vec()].concat());
    sandbox.write("chats/Mira/c.jsonl", chat("a", 3, None));
    let (refs, files) = (sandbox.git(&["for-each-ref"]), sandbox.files());
    let plan = sandbox.json(&["snapshot", "--dry-run"]).exits(0);
    assert_eq!((sandbox.git(&["for-each-ref"]), sandbox.files()), (refs, files));
    let run = sandbox.json(&["snapshot"]).exits(0);
    let findings = |answer: &Answer| {
        let mut all: Vec<_> = answer
            .of_type("finding")
            .iter()
            .map(|line| format!("{} {}", line["code"], line["subject"]))
            .collect();
        all.sort();
        all
    };
    assert!(!findings(&run).is_empty());
    assert_eq!(findings(&plan), findings(&run));
    let taken = |answer: &Answer, kind: &str| -> Vec<_> {
        let lines = answer.of_type(kind);
        lines
            .iter()
            .filter(|line| line["unchanged"] != true)
            .map(|line| line["timeline"].clone())
            .collect()
    };
    assert_eq!(taken(&plan, "plan"), taken(&run, "snapshot"));
    // After `--`, a name may begin with a dash.
    sandbox.write("chats/Mira/-x.jsonl", chat("x", 1, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["show", "--", "-x"]).exits(0);
    sandbox.stvc(&["show", "Mira/-x"]).exits(0);
    sandbox.stvc(&["show", "-x"]).exits(2);
}

#[test]
fn checkpoint_name_follows_the_template() {
    let sandbox = library();
    let named = ["snapshot", "Mira/a", "--at", "2", "--name", "{chat} at {message}"];
    sandbox.stvc(&named).exits(0);
    assert!(sandbox.stvc(&["tag"]).exits(0).stdout.contains("a at 2"));
    sandbox.stvc(&named).exits(0);
    sandbox.stvc(&["snapshot", "Mira/a", "--at", "2", "--name", "{nonsense}"]).exits(2);
    let alone = sandbox.stvc(&["snapshot", "--name", "x"]).exits(2).stderr;
    assert!(alone.contains("--name applies only to checkpoints"), "{alone}");
}
