use std::fs;

use stvc::internals::archive::backup::{Decoder, Passphrase, unseal};

use crate::common::backups::chat_with_two_snapshots;
use crate::common::{Sandbox, text};

#[test]
fn encrypted_backup_opens_only_with_its_passphrase() {
    let sandbox = chat_with_two_snapshots();
    let secret = sandbox.folder().join("secret");
    fs::write(&secret, "correct horse\n").unwrap();
    let path = sandbox.folder().join("e.stvc");
    let with = ["--passphrase-file", text(&secret)];
    let answer = sandbox.stvc(&[&["backup", text(&path), "--encrypt"][..], &with].concat());
    answer.exits(0);
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.starts_with(b"age-encryption.org/v1\n"));
    let again =
        sandbox.stvc(&[&["--json", "backup", text(&path), "--encrypt"][..], &with].concat());
    assert_eq!(again.exits(0).of_type("summary")[0]["up_to_date"], true);
    assert!(fs::read(&path).unwrap() == bytes);
    assert!(!bytes.windows(4).any(|w| w == b"Mira"), "a name is readable");
    let here = Sandbox::empty();
    let answer = here.stvc(&["import", text(&path)]).exits(1);
    assert!(answer.stderr.contains("no terminal to ask for it"), "{}", answer.stderr);
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
    // Each attempt takes a second by design. `archive/backup/seal` tests every byte without that
    // cost.
    let mut flipped = bytes.clone();
    *flipped.last_mut().unwrap() ^= 1;
    assert!(open(&flipped).is_err());
}

/// A command that prints a passphrase often contains it. The log is in every copy of the store, and
/// every user can read the lock file.
#[test]
fn passphrase_command_is_not_logged() {
    let there = chat_with_two_snapshots();
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
        let output = here.stvc(&["operations"]).exits(0).stdout;
        assert!(!output.contains("horse"), "{output}");
    }
}
