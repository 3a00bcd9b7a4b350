//! Several users of one SillyTavern: nobody's chats are left out unsaid, and one command can be for all.

use std::fs;
use std::path::Path;

use crate::common::{Answer, Sandbox, answer, chat, copy, fixtures};

/// An install with two users.
fn two_users() -> Sandbox {
    let sandbox = Sandbox::bare();
    for (user, version) in [("default-user", "1.19.0"), ("alice", "1.12.6")] {
        let from = fixtures().join(version).join("default-user");
        copy(&from, &sandbox.folder().join("data").join(user));
    }
    sandbox
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Answer {
    answer(sandbox.command(arguments).current_dir(sandbox.folder()).output().unwrap())
}

#[test]
fn other_users_are_told_of() {
    let sandbox = two_users();
    for command in [&["snapshot"][..], &["status"], &["stats"], &["doctor"], &["check"]] {
        let told = run(&sandbox, command);
        assert!(
            told.stdout.contains("there are other users, too: alice"),
            "{command:?}: {}",
            told.stdout
        );
        assert!(told.stdout.contains("--all-users"), "{}", told.stdout);
        let named = run(&sandbox, &[&["--user", "default-user"], command].concat());
        assert!(!named.stdout.contains("other users"), "{command:?}: {}", named.stdout);
    }
    assert!(!sandbox.folder().join("data/alice/.stvc").exists());
    // Who is in a folder means that one.
    let inside = sandbox.folder().join("data/alice");
    let told = answer(sandbox.command(&["status"]).current_dir(inside).output().unwrap());
    assert!(!told.stdout.contains("other users"), "{}", told.stdout);
}

#[test]
fn one_command_for_all_users() {
    let sandbox = two_users();
    let told = run(&sandbox, &["--json", "snapshot", "--all-users"]).exits(0);
    let users: Vec<_> = told.of_type("user").iter().map(|line| line["user"].clone()).collect();
    assert_eq!(users, ["alice", "default-user"]);
    let summaries = told.of_type("summary");
    assert_eq!(summaries.len(), 3);
    assert_eq!((&summaries[2]["users"], &summaries[2]["failed"]), (&2.into(), &0.into()));
    for user in ["alice", "default-user"] {
        assert!(sandbox.folder().join("data").join(user).join(".stvc/HEAD").exists(), "{user}");
    }
    for command in ["check", "doctor", "stats"] {
        let told = run(&sandbox, &[command, "--all-users"]).exits(0).stdout;
        assert!(told.contains("alice\n") && told.contains("default-user\n"), "{command}: {told}");
    }
    // Each gets a place of their own.
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
fn a_user_who_cannot_be_helped_does_not_keep_the_others_from_it() {
    let sandbox = two_users();
    fs::write(sandbox.folder().join("data/alice/.stvc"), "no store").unwrap();
    let told = run(&sandbox, &["snapshot", "--all-users"]).exits(3);
    let store = Path::new("alice").join(".stvc");
    assert!(told.stderr.contains(store.to_str().unwrap()), "{}", told.stderr);
    assert!(sandbox.folder().join("data/default-user/.stvc/HEAD").exists());
}

#[test]
fn all_users_works_without_a_default_user() {
    let sandbox = two_users();
    let data = sandbox.folder().join("data");
    fs::rename(data.join("default-user"), data.join("bob")).unwrap();
    run(&sandbox, &["snapshot"]).exits(1);
    let told = run(&sandbox, &["--json", "snapshot", "--all-users"]).exits(0);
    let users: Vec<_> = told.of_type("user").iter().map(|line| line["user"].clone()).collect();
    assert_eq!(users, ["alice", "bob"]);
    for user in ["alice", "bob"] {
        assert!(data.join(user).join(".stvc/HEAD").exists(), "{user}");
    }
}

#[test]
fn errors_list_a_handful_of_five_hundred_names() {
    let sandbox = Sandbox::bare();
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
    let told = run(&sandbox, &["status"]).stdout;
    assert!(told.contains("user-004 and 495 more"), "{told}");
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
