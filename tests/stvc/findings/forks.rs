//! Findings about forks, whose header records the state at their creation.

use super::findings_of_answer;
use crate::common::Sandbox;
use crate::common::recap_library::RecapLibrary;
use crate::common::recap_story::metadata;

const FORK: &str = "chats/Mira/What if.jsonl";

/// Forks the library at its last message, with version 1 of the running recap.
fn fork() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    RecapLibrary::default().write(&sandbox);
    sandbox.take(&[]);
    sandbox.wait(60);
    sandbox.stvc(&["fork", "Mira/Harbour nights", "--as", "What if"]).exits(0);
    sandbox.wait(60);
    sandbox
}

/// Sets the version in use of the fork's running recap. `written` creates it, with that time in
/// milliseconds.
fn use_version(sandbox: &Sandbox, number: i64, written: Option<i64>) {
    let text = String::from_utf8(sandbox.read(FORK)).unwrap();
    let (header, messages) = text.split_once('\n').unwrap();
    let mut header: serde_json::Value = serde_json::from_str(header).unwrap();
    let recap = &mut header["chat_metadata"]["auto_recap_running_scene_recaps"];
    recap["current_version"] = number.into();
    if let Some(timestamp) = written {
        let mut version = recap["versions"][1].clone();
        version["version"] = number.into();
        version["timestamp"] = timestamp.into();
        recap["versions"].as_array_mut().unwrap().push(version);
    }
    sandbox.write(FORK, format!("{header}\n{messages}"));
}

/// Returns the codes of recap findings that `show` and `restore` print for the fork.
fn recap_codes(sandbox: &Sandbox) -> [Vec<String>; 2] {
    sandbox.take(&[]);
    let answers = [
        sandbox.json(&["show", "What if"]).exits(0),
        sandbox.json(&["restore", "What if", "--overwrite"]).exits(0),
    ];
    answers.map(|answer| {
        let codes = findings_of_answer(&answer).into_iter().map(|(code, ..)| code);
        codes.filter(|code| code.contains("recap")).collect()
    })
}

const NONE: [Vec<String>; 2] = [Vec::new(), Vec::new()];

#[test]
fn grown_fork_may_have_a_later_recap() {
    let sandbox = fork();
    assert_eq!(recap_codes(&sandbox), NONE);
    sandbox.append(FORK, r#"{"name":"Mira","mes":"Then the story went on."}"#);
    use_version(&sandbox, 2, Some(1_763_632_702_000));
    assert_eq!(recap_codes(&sandbox), NONE);
}

#[test]
fn fork_may_get_a_recap_before_its_next_message() {
    let sandbox = fork();
    use_version(&sandbox, 2, Some(4_000_000_000_000));
    assert_eq!(recap_codes(&sandbox), NONE);
}

#[test]
fn fork_at_its_recorded_moment_with_another_recap_is_an_error() {
    let expected = || vec!["recap-version-mismatch".to_owned()];
    let sandbox = fork();
    use_version(&sandbox, 0, None);
    assert_eq!(recap_codes(&sandbox), [expected(), expected()]);
    // A version that existed when the fork was created is not a later one.
    let state = &metadata(&fork().read(FORK))["auto_recap_checkpoint_state"];
    let created = state["timestamp"].as_i64();
    assert!(created.is_some());
    for timestamp in [Some(1_763_632_702_000), created] {
        let sandbox = fork();
        use_version(&sandbox, 2, timestamp);
        assert_eq!(recap_codes(&sandbox), [expected(), expected()]);
    }
}
