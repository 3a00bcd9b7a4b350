//! Remotes of the user's rclone: a folder, an encrypted one, and a WebDAV server.

use std::fs;
use std::path::Path;
use std::process::Command;

use stvc::storages::{Address, Credentials, Error, Options, Storage};

use crate::contract::{Many, assert_contract};
use crate::servers::{Rclone, free_port, run};
use crate::{options, require};

const FOLDER: &str = "聊天 记录/🌊";

fn open(rclone: &Rclone, address: &str) -> Box<dyn Storage> {
    let options = Options { rclone: rclone.wrapper(), ..options() };
    let address = Address::parse(address).unwrap();
    stvc::storages::open(&address, &Credentials::default(), options).unwrap()
}

/// Creates the objects of a long list in a folder.
fn create_many(folder: &Path) {
    fs::create_dir_all(folder.join("many")).unwrap();
    for n in 0..1000 {
        fs::write(folder.join(format!("many/{n:04}")), format!("{n:04}")).unwrap();
    }
}

#[test]
fn folder_of_rclone_keeps_the_contract() {
    let Some(rclone) = require(Rclone::new()) else { return };
    let root = rclone.folder().join("root");
    fs::create_dir(&root).unwrap();
    rclone.configure("my chats", &["alias", &format!("remote={}", root.display())]);
    let storage = open(&rclone, &format!("rclone:my chats:{FOLDER}"));
    assert_contract(&*storage, Many::Seed(&|| create_many(&root.join(FOLDER))));
}

#[test]
fn encrypted_remote_of_rclone_keeps_the_contract() {
    let Some(rclone) = require(Rclone::new()) else { return };
    let root = rclone.folder().join("root");
    let remote = format!("remote={}", root.display());
    rclone.configure("secret", &["crypt", &remote, "password=a long password"]);
    let storage = open(&rclone, &format!("rclone:secret:{FOLDER}"));
    let seed = || {
        let plain = rclone.folder().join("plain");
        create_many(&plain);
        let target = format!("secret:{FOLDER}");
        run(rclone.command().args(["copy", "--transfers=16"]).arg(&plain).arg(target));
    };
    assert_contract(&*storage, Many::Seed(&seed));
    let stored = run(Command::new("find").arg(&root));
    assert!(!stored.contains("many") && !stored.contains("聊天"), "names are encrypted");
}

#[test]
fn webdav_remote_of_rclone_keeps_the_contract() {
    let Some(rclone) = require(Rclone::new()) else { return };
    let root = rclone.folder().join("root");
    fs::create_dir(&root).unwrap();
    let port = free_port();
    let options = ["--user", "me", "--pass", "right", "--dir-cache-time", "1s"];
    let server = rclone.serve("webdav", &root, port, &options);
    let url = format!("url=http://127.0.0.1:{port}");
    rclone.configure("nas", &["webdav", &url, "vendor=other", "user=me", "pass=right"]);
    let storage = open(&rclone, &format!("rclone:nas:{FOLDER}"));
    let seed = || {
        create_many(&root.join(FOLDER));
        // The server remembers the former list for a second.
        std::thread::sleep(std::time::Duration::from_millis(1500));
    };
    assert_contract(&*storage, Many::Seed(&seed));

    rclone.configure("wrong", &["webdav", &url, "vendor=other", "user=me", "pass=wrong"]);
    let wrong = open(&rclone, "rclone:wrong:a");
    for error in [wrong.list("").unwrap_err(), wrong.write("a", b"a").unwrap_err()] {
        assert!(matches!(error, Error::RcloneLogin { .. }), "{error:?}");
        assert!(error.hint().unwrap().to_string().contains("`rclone config reconnect wrong:`"));
    }
    drop(server);
    let error = storage.read("many/0001", 9).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
}

#[test]
fn problems_of_rclone_itself_are_reported() {
    let Some(rclone) = require(Rclone::new()) else { return };
    let error = open(&rclone, "rclone:none:a").list("").unwrap_err();
    assert!(matches!(error, Error::UnknownRcloneRemote { .. }), "{error:?}");
    let options = Options { rclone: "no-such-program".into(), ..options() };
    let address = Address::parse("rclone:none:a").unwrap();
    let missing = stvc::storages::open(&address, &Credentials::default(), options).unwrap();
    assert!(matches!(missing.list("").unwrap_err(), Error::NoRclone));
    rclone.configure("here", &["local"]);
    run(rclone
        .command()
        .args(["config", "encryption", "set"])
        .args(["--password-command", "echo a-password"]));
    let error = open(&rclone, "rclone:here:/tmp/none").list("").unwrap_err();
    assert!(matches!(error, Error::RcloneLocked), "{error:?}");
}

/// Stands in for an rclone that does not behave.
fn pretend(script: &str) -> (tempfile::TempDir, Box<dyn Storage>) {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("rclone");
    fs::write(folder.path().join("new"), format!("#!/bin/sh\n{script}\n")).unwrap();
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path().join("new"), mode).unwrap();
    run(Command::new("mv").arg(folder.path().join("new")).arg(&program));
    let patience = std::time::Duration::from_millis(50);
    let options = Options { rclone: program, patience, ..options() };
    let address = Address::parse("rclone:drive:a").unwrap();
    let storage = stvc::storages::open(&address, &Credentials::default(), options).unwrap();
    (folder, storage)
}

#[test]
fn output_of_rclone_is_not_trusted() {
    let list = r#"cat <<'E'
[{"Path":"../../secret","Size":1,"IsDir":false},{"Path":"/etc/passwd","Size":1},
{"Path":"packs/a","Size":-1,"IsDir":false},{"Path":"packs/b","Size":3,"IsDir":true},
{"Path":"packs/a","Size":7,"IsDir":false},{"Path":"packs/a b","Size":7}]
E"#;
    let (_folder, storage) = pretend(list);
    let listed = storage.list("").unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0].name, "packs/a");
    let (_folder, storage) = pretend("echo '[{'");
    assert!(matches!(storage.list("").unwrap_err(), Error::Failed { .. }));
    // More than the limit, without an end.
    let (_folder, storage) = pretend("exec yes");
    assert!(matches!(storage.read("a", 1000).unwrap_err(), Error::TooLarge { .. }));
    // Messages without an end.
    let (_folder, storage) = pretend("yes no | head -c 10000000 >&2; echo broken >&2; exit 1");
    let error = storage.list("").unwrap_err();
    assert!(error.to_string().contains("broken") && error.to_string().len() < 400, "{error}");
    // No end at all.
    let (_folder, storage) = pretend("exec sleep 100");
    assert!(matches!(storage.list("").unwrap_err(), Error::Timeout { .. }));
    // Input that nobody reads.
    let (_folder, storage) = pretend("exit 1");
    assert!(storage.write("a", &vec![0; 1 << 20]).is_err());
}

/// Other users can read the arguments of a process.
#[test]
fn rclone_gets_no_secrets_in_its_arguments() {
    let (folder, storage) = pretend("echo \"$@\" >\"$(dirname \"$0\")/arguments\"; cat >/dev/null");
    storage.write("packs/-a", b"text").unwrap();
    let arguments = fs::read_to_string(folder.path().join("arguments")).unwrap();
    assert!(arguments.trim().ends_with(" drive:a/packs/-a"), "{arguments}");
    assert!(!arguments.contains("text"));
}
