//! A git server that is reached through the user's git. `core.sshCommand` names a script that runs
//! the server's command locally.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::common::backups::{
    append_and_snapshot, backup_drill, chat_with_two_snapshots, recap_chat_with_fork,
};
use crate::common::forged_backup::{ForgedBackup, entry};
use crate::common::git_server::{configure_ssh, create_server, set_connection};
use crate::common::{Sandbox, answer, assert_no_panic, assert_valid, chat, git, refs, text, tree};

fn to_server(sandbox: &Sandbox) -> PathBuf {
    let url = configure_ssh(sandbox, &create_server(sandbox.folder()));
    sandbox.stvc(&["backup", &url]).exits(0);
    url.into()
}

#[test]
fn lost_library_is_restored_from_a_server() {
    for fixture in ["1.19.0", "1.12.6", "odd"] {
        backup_drill(&Sandbox::from_fixture(fixture), to_server);
    }
    let sandbox = recap_chat_with_fork();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["gc", "--grace", "0s"]).exits(0);
    backup_drill(&sandbox, to_server);
}

#[test]
fn server_backup_sends_only_new_objects() {
    let mut sandbox = chat_with_two_snapshots();
    sandbox.stvc(&["tag", "mark", "Mira/a"]).exits(0);
    let server = create_server(sandbox.folder());
    let url = configure_ssh(&sandbox, &server);
    let first = sandbox.json(&["backup", &url]).exits(0);
    assert_eq!(first.lines().pop().unwrap()["new_snapshots"], 2);
    assert_eq!(refs(&server), refs(&sandbox.store()));
    git(&server, &["fsck", "--strict"]);
    append_and_snapshot(&mut sandbox, 3);
    let count = || {
        let text = String::from_utf8(git(&server, &["count-objects", "-v"])).unwrap();
        let number = |key: &str| {
            let line = text.lines().find(|line| line.starts_with(key)).unwrap();
            line.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
        };
        number("count:") + number("in-pack:")
    };
    let before = count();
    let again = sandbox.json(&["backup", &url]).exits(0);
    assert_eq!(again.lines().pop().unwrap()["new_snapshots"], 1);
    assert!(count() - before < 10, "{} objects for one message", count() - before);
    let none = sandbox.stvc(&["backup", &url]).exits(0);
    assert!(none.stdout.starts_with("Nothing to do: "), "{}", none.stdout);
    assert_eq!(refs(&server), refs(&sandbox.store()));
    let log = sandbox.json(&["log"]).exits(0).stdout;
    assert_eq!(sandbox.json(&["--store", &url, "log"]).exits(0).stdout, log);
    sandbox.stvc(&["--store", &url, "gc"]).exits(2);
    let checked = sandbox.stvc(&["check", &url]).exits(0);
    assert!(checked.stdout.contains("The backup is valid"), "{}", checked.stdout);
    let last = sandbox.json(&["backup", "--last", &url]).exits(0).of_type("copy");
    assert_eq!((&last[0]["kind"], &last[0]["destination"]), (&"git".into(), &url.clone().into()));
    // A clone of it is a store.
    let clone = sandbox.folder().join("clone");
    git(sandbox.folder(), &["clone", "-q", "--mirror", text(&server), text(&clone)]);
    assert_eq!(sandbox.json(&["--store", text(&clone), "log"]).exits(0).stdout, log);
    // No temporary files remain.
    let left = fs::read_dir(sandbox.store()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.filter(|name| name.to_string_lossy().contains("incoming")).count(), 0);
}

#[test]
fn server_loses_nothing_without_prune() {
    let mut sandbox = chat_with_two_snapshots();
    sandbox.write("chats/Mira/b.jsonl", chat("b", 2, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    let server = create_server(sandbox.folder());
    let url = configure_ssh(&sandbox, &server);
    sandbox.stvc(&["backup", &url]).exits(0);
    let before = refs(&server);
    sandbox.git(&["update-ref", "-d", "refs/heads/chats/Mira/b"]);
    sandbox.stvc(&["backup", &url]).exits(0);
    assert_eq!(refs(&server), before);
    // Snapshots that a retention policy removed here.
    for n in 3..6 {
        append_and_snapshot(&mut sandbox, n);
    }
    sandbox.stvc(&["backup", &url]).exits(0);
    let head = sandbox.snapshot_ids()[0].clone();
    sandbox.stvc(&["forget", "--keep-last", "1"]).exits(0);
    sandbox.stvc(&["gc", "--grace", "0s", "--keep-undo", "0s"]).exits(0);
    sandbox.stvc(&["backup", &url]).exits(0);
    let kept = String::from_utf8(git(&server, &["for-each-ref", "refs/stvc/kept"])).unwrap();
    assert!(kept.contains(&head), "{kept}");
    git(&server, &["fsck", "--strict"]);
    sandbox.stvc(&["backup", &url, "--prune"]).exits(0);
    assert_eq!(refs(&server), refs(&sandbox.store()));
    assert!(git(&server, &["for-each-ref", "refs/stvc/kept"]).is_empty());
}

#[test]
fn failed_transfer_changes_nothing() {
    let mut sandbox = chat_with_two_snapshots();
    let server = create_server(sandbox.folder());
    let url = configure_ssh(&sandbox, &server);
    sandbox.stvc(&["backup", &url]).exits(0);
    append_and_snapshot(&mut sandbox, 3);
    let (there, here) = (refs(&server), tree(&sandbox.store()));
    let fails = |words: &str, hint: &str| {
        for command in [&["backup", "--no-snapshot"][..], &["import"], &["check"]] {
            let answer = assert_no_panic(sandbox.stvc(&[command, &[&url]].concat())).exits(1);
            assert!(answer.stderr.contains(words), "{}", answer.stderr);
            assert!(answer.stderr.contains(hint), "{}", answer.stderr);
        }
        assert_eq!(refs(&server), there);
        assert!(tree(&sandbox.store()) == here, "something changed here");
    };
    set_connection(&sandbox, "down");
    fails("Could not resolve hostname", "check the address and the server");
    set_connection(&sandbox, "cut");
    let cut = assert_no_panic(sandbox.stvc(&["backup", &url, "--no-snapshot"])).exits(1);
    assert!(cut.stderr.contains("try again"), "{}", cut.stderr);
    assert_eq!(refs(&server), there);
    git(&server, &["fsck", "--strict"]);
    set_connection(&sandbox, "");
    // Without git; without a server; with a password prompt and no terminal.
    for command in [&["backup", "--no-snapshot"][..], &["import"], &["check"]] {
        let mut command = sandbox.command(&[command, &[&url]].concat());
        let answer = answer(command.env("PATH", sandbox.folder()).output().unwrap()).exits(1);
        assert!(
            answer.stderr.contains("git is not installed on this machine"),
            "{}",
            answer.stderr
        );
    }
    let nobody =
        sandbox.stvc(&["backup", "http://me:s3cret@127.0.0.1:9/chats.git", "--no-snapshot"]);
    let nobody = nobody.exits(1);
    assert!(nobody.stderr.contains("127.0.0.1"), "{}", nobody.stderr);
    assert!(!nobody.stderr.contains("s3cret"), "{}", nobody.stderr);
    assert!(tree(&sandbox.store()) == here, "something changed here");
    sandbox.stvc(&["backup", &url, "--no-snapshot"]).exits(0);
    assert_eq!(refs(&server), refs(&sandbox.store()));
    assert_valid(&sandbox);
}

/// Other users can read the arguments of every process. The server still gets the password.
#[cfg(target_os = "linux")]
#[test]
fn password_in_an_address_never_becomes_a_process_argument() {
    use base64::Engine as _;
    use std::io::{Read, Write};
    let sandbox = chat_with_two_snapshots();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut buffer, mut text) = ([0; 4096], String::new());
            while !text.contains("\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(read @ 1..) => text.push_str(&String::from_utf8_lossy(&buffer[..read])),
                    _ => break,
                }
            }
            // While git waits for an answer.
            let shown: Vec<String> = fs::read_dir("/proc")
                .unwrap()
                .flatten()
                .filter_map(|it| fs::read(it.path().join("cmdline")).ok())
                .map(|it| String::from_utf8_lossy(&it).replace('\0', " "))
                .filter(|it| it.contains(&format!("127.0.0.1:{port}")))
                .collect();
            if sender.send((text, shown)).is_err() {
                return;
            }
            let _ = stream.write_all(b"HTTP/1.1 401 no\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    // A wrapper that records its arguments and runs git.
    let (bin, noted) = (sandbox.folder().join("bin"), sandbox.folder().join("noted"));
    fs::create_dir(&bin).unwrap();
    let real = std::process::Command::new("sh").args(["-c", "command -v git"]).output().unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    let script =
        format!("#!/bin/sh\necho \"$@\" >> '{}'\nexec {} \"$@\"\n", noted.display(), real.trim());
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let url = format!("http://me:s3%63ret@127.0.0.1:{port}/chats.git");
    let mut command = sandbox.command(&["backup", &url, "--no-snapshot"]);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let result = answer(command.env("PATH", path).output().unwrap()).exits(1);
    assert!(!result.stderr.contains("s3"), "{}", result.stderr);
    let noted = fs::read_to_string(noted).unwrap();
    assert!(noted.contains(&format!("http://127.0.0.1:{port}/chats.git")), "{noted}");
    assert!(!noted.contains("s3cret") && !noted.contains("s3%63ret"), "{noted}");
    let heard: Vec<_> = heard.try_iter().collect();
    let login = base64::engine::general_purpose::STANDARD.encode("me:s3cret");
    assert!(heard.iter().any(|(text, _)| text.contains(&login)), "{heard:?}");
    let shown = heard.iter().flat_map(|(_, shown)| shown);
    // stvc's own arguments are those that the user typed.
    let mut shown = shown.filter(|it| !it.contains("--no-snapshot")).peekable();
    assert!(shown.peek().is_some());
    shown.for_each(|it| assert!(!it.contains("s3cret") && !it.contains("s3%63ret"), "{it}"));
}

#[test]
fn git_configuration_of_the_user_cannot_redirect_a_backup() {
    let sandbox = chat_with_two_snapshots();
    let evidence = sandbox.folder().join("evidence");
    let config = format!(
        "[url \"ext::touch {}\"]\n\tinsteadOf = https://trap/\n[url \"file://{}\"]\n\tinsteadOf = https://files/\n",
        evidence.display(),
        sandbox.store().display(),
    );
    fs::write(sandbox.folder().join(".gitconfig"), config).unwrap();
    for url in ["https://trap/ now", "https://files/"] {
        let answer = sandbox.stvc(&["backup", url]).exits(1);
        assert!(answer.stderr.contains("not allowed"), "{}", answer.stderr);
    }
    assert!(!evidence.exists());
}

#[test]
fn foreign_repository_is_not_written_to() {
    let sandbox = chat_with_two_snapshots();
    let work = sandbox.folder().join("work");
    fs::create_dir(&work).unwrap();
    git(&work, &["init", "-q", "-b", "main"]);
    let commit =
        ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-mx"];
    git(&work, &commit);
    let url = configure_ssh(&sandbox, &work.join(".git"));
    let before = refs(&work);
    for command in ["backup", "import"] {
        let answer = sandbox.stvc(&[command, &url]).exits(4);
        assert!(answer.stderr.contains("refs/heads/main"), "{}", answer.stderr);
    }
    assert_eq!(refs(&work), before);
}

/// Hooks and settings of the other side are ignored in every folder that is backed up to or
/// imported from.
#[test]
fn hooks_and_configuration_of_a_folder_are_never_run_or_read() {
    let mut sandbox = chat_with_two_snapshots();
    let bare = create_server(sandbox.folder());
    let evidence = sandbox.folder().join("evidence");
    let trap = format!("#!/bin/sh\ntouch {}\n", evidence.display());
    let spring = |hooks: &Path| {
        fs::create_dir_all(hooks).unwrap();
        for hook in [
            "pre-receive",
            "update",
            "post-receive",
            "post-update",
            "reference-transaction",
            "pre-push",
            "post-checkout",
        ] {
            fs::write(hooks.join(hook), &trap).unwrap();
            fs::set_permissions(hooks.join(hook), fs::Permissions::from_mode(0o755)).unwrap();
        }
    };
    spring(&bare.join("hooks"));
    let command = sandbox.folder().join("command");
    fs::write(&command, &trap).unwrap();
    fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).unwrap();
    let command = command.display();
    let config = format!(
        "[core]\n\tbare = true\n\trepositoryformatversion = 0\n\tfsmonitor = {command}\n\talternateRefsCommand = {command}\n\tsshCommand = {command}\n\
         [uploadpack]\n\tpackObjectsHook = {command}\n[gc]\n\trecentObjectsHook = {command}\n"
    );
    fs::write(bare.join("config"), &config).unwrap();
    sandbox.stvc(&["backup", text(&bare)]).exits(0);
    let other = Sandbox::empty();
    other.stvc(&["import", text(&bare)]).exits(0);
    other.stvc(&["import", &format!("file://{}", bare.display())]).exits(0);
    other.stvc(&["check", text(&bare)]).exits(0);
    assert!(!evidence.exists());
    // Hooks and settings of the store are ignored too when git runs for a server.
    append_and_snapshot(&mut sandbox, 3);
    let second = sandbox.folder().join("second");
    fs::create_dir(&second).unwrap();
    let url = configure_ssh(&sandbox, &create_server(&second));
    spring(&sandbox.store().join("hooks"));
    fs::write(sandbox.store().join("config"), &config).unwrap();
    sandbox.stvc(&["backup", &url]).exits(0);
    sandbox.stvc(&["import", &url]).exits(0);
    assert!(!evidence.exists());
}

/// Builds a malicious repository with git.
fn repository(forged: &ForgedBackup, at: &Path, name: &str) {
    fs::create_dir_all(at).unwrap();
    git(at, &["init", "-q", "--bare"]);
    for (kind, bytes) in forged.objects.values() {
        let kind = ["commit", "tree", "blob"][usize::from(*kind) - 1];
        let file = at.join("object");
        fs::write(&file, bytes).unwrap();
        git(at, &["hash-object", "--literally", "-w", "-t", kind, "object"]);
        fs::remove_file(file).unwrap();
    }
    let path = at.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{}\n", forged.commit)).unwrap();
}

#[test]
fn hostile_repository_is_refused_before_any_change() {
    let sandbox = chat_with_two_snapshots();
    const BRANCH: &str = "refs/heads/chats/Mira/z";
    let mut cases: Vec<(String, ForgedBackup, &str)> = Vec::new();
    for name in ["..", ".git", "git~1"] {
        let mut forged = ForgedBackup::new();
        let evil = forged.add(3, b"evil".to_vec());
        let root = match name < "chat" {
            true => [entry("100644", name, &evil), forged.root()].concat(),
            false => {
                let at = forged.root().windows(13).position(|w| w == b"snapshot.json").unwrap() - 7;
                [&forged.root()[..at], &entry("100644", name, &evil), &forged.root()[at..]].concat()
            }
        };
        cases.push((name.into(), forged.with_root(root), BRANCH));
    }
    for path in ["../../evil", "/evil", ".stvc/config"] {
        let forged = ForgedBackup::new()
            .with_manifest(|manifest| manifest["files"][0]["path"] = path.into());
        cases.push((path.into(), forged, BRANCH));
    }
    let mut missing = ForgedBackup::new();
    let some = missing.objects.iter().find(|(_, (kind, _))| *kind == 3).map(|(id, _)| *id).unwrap();
    missing.objects.remove(&some);
    cases.push(("missing".into(), missing, BRANCH));
    cases.push(("main".into(), ForgedBackup::new(), "refs/heads/main"));
    for (what, forged, branch) in cases {
        let outside = tempfile::tempdir().unwrap();
        let at = outside.path().join("repository");
        repository(&forged, &at, branch);
        let url = configure_ssh(&sandbox, &at);
        let before = tree(&sandbox.library());
        // In a folder any branch can be a timeline's: its snapshots decide.
        let sources = [text(&at), url.as_str()];
        for source in sources.iter().skip(usize::from(branch.ends_with("main"))) {
            let answer = assert_no_panic(sandbox.stvc(&["import", source]));
            assert!([1, 4].contains(&answer.code), "{what}: {answer:?}");
            assert!(tree(&sandbox.library()) == before, "{what} changed something");
        }
    }
    // Objects with wrong ids.
    let outside = tempfile::tempdir().unwrap();
    let at = outside.path().join("repository");
    let forged = ForgedBackup::new();
    repository(&forged, &at, BRANCH);
    let blobs: Vec<_> = forged
        .objects
        .iter()
        .filter(|(_, (kind, _))| *kind == 3)
        .map(|(id, _)| id.to_string())
        .collect();
    let loose = |id: &String| at.join("objects").join(&id[..2]).join(&id[2..]);
    let other = fs::read(loose(&blobs[1])).unwrap();
    fs::remove_file(loose(&blobs[0])).unwrap();
    fs::write(loose(&blobs[0]), other).unwrap();
    let before = tree(&sandbox.library());
    assert_no_panic(sandbox.stvc(&["import", text(&at)])).exits(1);
    assert_no_panic(sandbox.stvc(&["check", text(&at)])).exits(1);
    assert!(tree(&sandbox.library()) == before);
}

/// A server gets invalid snapshots like any backup. An incomplete timeline is not sent, and the
/// others are.
#[test]
fn invalid_snapshot_does_not_block_others_from_a_server() {
    let library = crate::common::forged_snapshot::Library::new();
    let sandbox = &library.sandbox;
    let (odd, _) = library.forge_middle(|it| it.break_content_id());
    let repository = create_server(sandbox.folder());
    let url = configure_ssh(sandbox, &repository);
    let answer = assert_no_panic(sandbox.json(&["backup", &url])).exits(3);
    assert!(answer.of_type("finding").iter().any(|line| line["subject"] == odd.as_str()));
    let checked = assert_no_panic(sandbox.json(&["check", &url])).exits(1);
    assert!(checked.of_type("finding").iter().any(|line| line["subject"] == odd.as_str()));
    let other = Sandbox::empty();
    let url = configure_ssh(&other, &repository);
    let answer = assert_no_panic(other.json(&["import", &url])).exits(3);
    assert!(answer.of_type("finding").iter().any(|line| line["subject"] == odd.as_str()));
    crate::common::forged_snapshot::assert_imported(&library, &other, None, "a server");
    // A lost message: its branch is not sent.
    let lost = format!("{}:chat/messages/001/00105.json", library.stored[1].id);
    let lost = sandbox.git(&["rev-parse", &lost]).trim().to_owned();
    crate::common::delete_object(&sandbox.store(), &lost);
    let empty = tempfile::tempdir().unwrap();
    let repository = create_server(empty.path());
    let url = configure_ssh(sandbox, &repository);
    let answer = assert_no_panic(sandbox.json(&["backup", &url])).exits(3);
    let findings = answer.of_type("finding");
    let named = |line: &serde_json::Value| {
        line["code"] == "ref-left-out" && line["subject"] == "chats/Mira/b"
    };
    assert!(findings.iter().any(named), "{findings:?}");
    let there = refs(&repository);
    assert!(there.iter().any(|line| line.ends_with("chats/Mira/a")), "{there:?}");
    assert!(!there.iter().any(|line| line.ends_with("chats/Mira/b")), "{there:?}");
    // `--prune` removes nothing there that is lost here.
    sandbox.stvc(&["backup", &url, "--prune"]).exits(3);
    assert_eq!(refs(&repository), there);
}
