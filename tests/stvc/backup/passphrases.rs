//! Encrypted backups.

use std::fs;

use stvc::archive::backup::{Decoder, Passphrase, unseal};

use crate::common::backups::small;
use crate::common::{Sandbox, text};

#[test]
fn an_encrypted_backup_opens_with_its_passphrase_alone() {
    let sandbox = small();
    let secret = sandbox.folder().join("secret");
    fs::write(&secret, "correct horse\n").unwrap();
    let path = sandbox.folder().join("e.stvc");
    let with = ["--passphrase-file", text(&secret)];
    let answer = sandbox.stvc(&[&["backup", text(&path), "--encrypt"][..], &with].concat());
    answer.exits(0);
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.starts_with(b"age-encryption.org/v1\n"));
    assert!(!bytes.windows(4).any(|w| w == b"Mira"), "a name is readable");
    let here = Sandbox::empty();
    let answer = here.stvc(&["import", text(&path)]).exits(1);
    assert!(answer.stderr.contains("no terminal to ask on"), "{}", answer.stderr);
    let wrong = here.stvc(&["--passphrase-command", "echo wrong", "import", text(&path)]).exits(1);
    assert!(wrong.stderr.contains("passphrase is wrong"), "{}", wrong.stderr);
    assert!(!here.store().exists());
    let given = match cfg!(windows) {
        true => "echo correct horse&echo and more",
        false => "printf 'correct horse\\nand more\\n'",
    };
    here.stvc(&["--passphrase-command", given, "import", text(&path)]).exits(0);
    assert_eq!(here.snapshot_ids(), sandbox.snapshot_ids());
    let log = fs::read_to_string(here.store().join("stvc/operations.jsonl")).unwrap();
    assert!(!log.contains("\"correct horse\""));

    let passphrase = Passphrase::new("correct horse".into()).unwrap();
    let open = |bytes: &[u8]| {
        let input = unseal(bytes, Some(&passphrase)).map_err(|error| error.to_string())?;
        let mut decoder = Decoder::new(input).map_err(|error| error.to_string())?;
        while decoder.next_object().map_err(|error| error.to_string())?.is_some() {}
        Ok::<_, String>(())
    };
    open(&bytes).unwrap();
    // Each costs a second by design; every byte is tried in `archive/backup/seal`, where it costs nothing.
    let mut flipped = bytes.clone();
    *flipped.last_mut().unwrap() ^= 1;
    assert!(open(&flipped).is_err());
}

/// The command that prints a passphrase often has it in it; the log goes into every copy of the store's folder, and anybody may read who holds the lock.
#[test]
fn the_command_that_prints_a_passphrase_stands_in_no_log() {
    let there = small();
    let path = there.folder().join("copy.stvc");
    let printed = "echo correct horse";
    let backup = ["backup", text(&path), "--passphrase-command", printed];
    there.stvc(&backup).exits(0);
    for arguments in [
        vec!["--passphrase-command".to_owned(), printed.to_owned()],
        vec![format!("--passphrase-command={printed}")],
    ] {
        let here = Sandbox::empty();
        let mut all: Vec<_> = arguments.iter().map(String::as_str).collect();
        all.extend(["import", text(&path)]);
        here.stvc(&all).exits(0);
        let log = fs::read_to_string(here.store().join("stvc/operations.jsonl")).unwrap();
        assert!(log.contains("import") && log.contains("***"), "{log}");
        assert!(!log.contains("horse"), "{log}");
        let said = here.stvc(&["operations"]).exits(0).stdout;
        assert!(!said.contains("horse"), "{said}");
    }
}
