//! Several users of one SillyTavern: no user's chats are silently omitted, and one command can run
//! for all.

use std::fs;
use std::path::Path;

use crate::common::{Answer, Sandbox, answer, chat, copy_folder, fixtures};

/// Creates an installation with two users.
fn two_users() -> Sandbox {
    let sandbox = Sandbox::without_library();
    for (user, version) in [("default-user", "1.19.0"), ("alice", "1.12.6")] {
        let from = fixtures().join(version).join("default-user");
        copy_folder(&from, &sandbox.folder().join("data").join(user));
    }
    sandbox
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Answer {
    answer(sandbox.command(arguments).current_dir(sandbox.folder()).output().unwrap())
}

#[test]
fn finding_mentions_other_users() {
    let sandbox = two_users();
    for command in [&["snapshot"][..], &["status"], &["stats"], &["doctor"], &["check"]] {
        let result = run(&sandbox, command);
        assert!(
            result.stdout.contains("the library has other users: alice"),
            "{command:?}: {}",
            result.stdout
        );
        assert!(result.stdout.contains("--all-users"), "{}", result.stdout);
        let named = run(&sandbox, &[&["--user", "default-user"], command].concat());
        assert!(!named.stdout.contains("other users"), "{command:?}: {}", named.stdout);
    }
    assert!(!sandbox.folder().join("data/alice/.stvc").exists());
    // The working folder selects its user.
    let inside = sandbox.folder().join("data/alice");
    let result = answer(sandbox.command(&["status"]).current_dir(inside).output().unwrap());
    assert!(!result.stdout.contains("other users"), "{}", result.stdout);
}

#[test]
fn all_users_option_runs_the_command_for_every_user() {
    let sandbox = two_users();
    let result = run(&sandbox, &["--json", "snapshot", "--all-users"]).exits(0);
    let users: Vec<_> = result.of_type("user").iter().map(|line| line["user"].clone()).collect();
    assert_eq!(users, ["alice", "default-user"]);
    let summaries = result.of_type("summary");
    assert_eq!(summaries.len(), 3);
    assert_eq!((&summaries[2]["users"], &summaries[2]["failed"]), (&2.into(), &0.into()));
    for user in ["alice", "default-user"] {
        assert!(sandbox.folder().join("data").join(user).join(".stvc/HEAD").exists(), "{user}");
    }
    for command in ["check", "doctor", "stats"] {
        let output = run(&sandbox, &[command, "--all-users"]).exits(0).stdout;
        assert!(
            output.contains("alice\n") && output.contains("default-user\n"),
            "{command}: {output}"
        );
    }
    // Each user gets a separate destination.
    let file = sandbox.folder().join("all.stvc");
    run(&sandbox, &["backup", file.to_str().unwrap(), "--all-users"]).exits(0);
    let folder = sandbox.folder().join("mirror");
    fs::create_dir(&folder).unwrap();
    run(&sandbox, &["backup", folder.to_str().unwrap(), "--all-users"]).exits(0);
    for made in
        ["all-alice.stvc", "all-default-user.stvc", "mirror/alice/HEAD", "mirror/default-user/HEAD"]
    {
        assert!(sandbox.folder().join(made).exists(), "{made}");
    }
    run(&sandbox, &["backup", "-", "--all-users"]).exits(2);
    run(&sandbox, &["restore", "--all", "--all-users"]).exits(2);
    run(&sandbox, &["snapshot", "--all-users", "--user", "alice"]).exits(2);
}

#[test]
fn failure_for_one_user_does_not_block_the_others() {
    let sandbox = two_users();
    fs::write(sandbox.folder().join("data/alice/.stvc"), "no store").unwrap();
    let result = run(&sandbox, &["snapshot", "--all-users"]).exits(3);
    let store = Path::new("alice").join(".stvc");
    assert!(result.stderr.contains(store.to_str().unwrap()), "{}", result.stderr);
    assert!(sandbox.folder().join("data/default-user/.stvc/HEAD").exists());
}

#[test]
fn all_users_option_works_without_a_default_user() {
    let sandbox = two_users();
    let data = sandbox.folder().join("data");
    fs::rename(data.join("default-user"), data.join("bob")).unwrap();
    run(&sandbox, &["snapshot"]).exits(1);
    let result = run(&sandbox, &["--json", "snapshot", "--all-users"]).exits(0);
    let users: Vec<_> = result.of_type("user").iter().map(|line| line["user"].clone()).collect();
    assert_eq!(users, ["alice", "bob"]);
    for user in ["alice", "bob"] {
        assert!(data.join(user).join(".stvc/HEAD").exists(), "{user}");
    }
}

#[test]
fn error_lists_five_of_500_user_names_and_counts_the_rest() {
    let sandbox = Sandbox::without_library();
    let data = sandbox.folder().join("data");
    for number in 0..500 {
        let user = data.join(format!("user-{number:03}"));
        fs::create_dir_all(user.join("chats/Mira")).unwrap();
        fs::write(user.join("settings.json"), "{}").unwrap();
    }
    for arguments in [&["snapshot"][..], &["snapshot", "--user", "nobody"]] {
        let refused = run(&sandbox, arguments).exits(1).stderr;
        assert!(refused.contains("user-004 and 495 more"), "{refused}");
        assert!(!refused.contains("user-005"), "{refused}");
    }
    fs::create_dir_all(data.join("default-user/chats")).unwrap();
    let output = run(&sandbox, &["status"]).stdout;
    assert!(output.contains("user-004 and 495 more"), "{output}");
}

#[test]
fn ambiguous_name_lists_ten_candidates_and_counts_the_rest() {
    let sandbox = Sandbox::empty();
    for number in 0..30 {
        sandbox.write(&format!("chats/Mira {number:02}/talk.jsonl"), chat("a", 1, None));
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    let refused = sandbox.stvc(&["log", "talk"]).exits(1).stderr;
    assert!(refused.contains("Mira 09") && !refused.contains("Mira 10"), "{refused}");
    assert!(refused.contains("\n  and 20 more\n"), "{refused}");
    let error = &sandbox.json(&["log", "talk"]).exits(1).of_type("error")[0];
    assert_eq!(error["candidates"].as_array().unwrap().len(), 10);
    assert_eq!(error["more_candidates"], 20);
}
