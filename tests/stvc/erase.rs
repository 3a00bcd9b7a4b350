//! Erased text is removed from the history, the log and the disk.

use std::fs;
use std::path::Path;

use stvc::internals::store::Store;

use crate::common::devices::{sync, synced_pair};
use crate::common::{Sandbox, assert_valid, chat, files, fsck, git, message};

const SECRET: &str = "chats/Mira/Secret garden.jsonl";
const WORDS: &str = "a word that nobody shall read";

fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/Harbour.jsonl", chat("Voss", 4, Some("Lore")));
    sandbox.write("worlds/Lore.json", r#"{"entries":{}}"#);
    let mut secret = chat("Mira", 3, Some("Private"));
    secret.extend(format!("\n{{\"name\":\"Mira\",\"mes\":\"{WORDS}\"}}").bytes());
    sandbox.write(SECRET, secret);
    sandbox.write(
        "worlds/Private.json",
        format!("{{\"entries\":{{\"0\":{{\"uid\":0,\"content\":\"{WORDS} in the book\"}}}}}}"),
    );
    sandbox
}

/// Concatenates every object and file of the store.
fn everything(sandbox: &Sandbox) -> String {
    everything_in(&sandbox.store())
}

fn everything_in(store: &Path) -> String {
    let objects = git(store, &["cat-file", "--batch-all-objects", "--batch"]);
    let mut text = String::from_utf8_lossy(&objects).into_owned();
    for (path, bytes) in files(store) {
        text.push_str(&path);
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    text
}

#[test]
fn req_88_erase_leaves_no_trace_in_the_store() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["tag", "the garden", "Secret garden"]).exits(0);
    sandbox.wait(60);
    sandbox.append(SECRET, "{\"name\":\"Mira\",\"mes\":\"more\"}");
    sandbox.stvc(&["snapshot", "Secret", "-m", "in the garden"]).exits(0);
    let backup = sandbox.folder().join("all.stvc");
    sandbox.stvc(&["backup", backup.to_str().unwrap()]).exits(0);

    // An existing chat would be stored again.
    let refused = sandbox.stvc(&["erase", "Secret garden", "--yes"]).exits(4);
    assert!(refused.stderr.contains("delete the chat in SillyTavern first"), "{}", refused.stderr);
    for path in [SECRET, "worlds/Private.json"] {
        fs::remove_file(sandbox.path(path)).unwrap();
    }
    // Without a terminal to confirm on.
    let before = sandbox.git(&["for-each-ref"]);
    let asked = sandbox.stvc(&["erase", "Secret garden"]).exits(4);
    assert!(asked.stdout.contains("Add --yes"), "{}", asked.stdout);
    sandbox.json(&["erase", "Secret garden", "--dry-run"]).exits(0);
    assert_eq!(sandbox.git(&["for-each-ref"]), before);
    assert!(everything(&sandbox).contains(WORDS));

    let answer = sandbox.json(&["erase", "Secret garden", "--yes"]).exits(0);
    let erased = answer.of_type("erased");
    assert_eq!(erased[0]["timeline"], "chats/Mira/Secret garden");
    assert_eq!(erased[0]["snapshots"], 2);
    assert_eq!(erased[0]["tags"][0], "the garden");
    // Other copies are reported.
    assert_eq!(answer.of_type("copy")[0]["destination"], backup.to_str().unwrap());
    let left = everything(&sandbox);
    for trace in [WORDS, "Secret", "garden", "Private"] {
        assert!(!left.contains(trace), "{trace} is still there");
    }
    assert_valid(&sandbox);
    fsck(&sandbox);
    // The other chats are unchanged and can grow.
    sandbox.stvc(&["show", "Harbour"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.stvc(&["erase", "Secret garden", "--yes"]).exits(1);
    sandbox.append("chats/Mira/Harbour.jsonl", &message("Mira", 9));
    sandbox.stvc(&["snapshot"]).exits(0);
    assert_eq!(sandbox.json(&["timelines"]).exits(0).chat_lines("timeline").len(), 1);
}

/// Another process has the packs mapped. Windows cannot delete such a file, and until it is deleted
/// success is not reported.
#[test]
fn erase_does_not_claim_success_while_a_reader_holds_the_pack() {
    let sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    for path in [SECRET, "worlds/Private.json"] {
        fs::remove_file(sandbox.path(path)).unwrap();
    }
    let store = Store::open(&sandbox.store()).unwrap();
    let reader = store.reader();
    for id in sandbox.snapshot_ids() {
        reader.commit(id.parse().unwrap()).unwrap();
    }
    let erase = || sandbox.stvc(&["erase", "Secret garden", "--yes"]);
    if cfg!(windows) {
        for answer in [erase(), erase()] {
            assert!(
                answer.stderr.contains("stop the program that has them open"),
                "{}",
                answer.stderr
            );
            assert_ne!(answer.code, 0);
        }
    }
    drop((reader, store));
    erase().exits(0);
    assert!(!everything(&sandbox).contains(WORDS));
    assert_valid(&sandbox);
}

#[test]
fn erase_keeps_messages_that_forks_share() {
    let mut sandbox = Sandbox::empty();
    let first = |messages| chat("Mira", messages, None);
    sandbox.write("chats/Mira/Main.jsonl", first(4));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    let mut middle = first(3);
    middle.extend(b"\n{\"name\":\"Mira\",\"mes\":\"of the middle alone\"}\n{\"name\":\"Mira\",\"mes\":\"and on\"}");
    sandbox.write("chats/Mira/Middle.jsonl", &middle);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    let mut end = middle.clone();
    end.extend(b"\n{\"name\":\"Mira\",\"mes\":\"an ending\"}");
    sandbox.write("chats/Mira/End.jsonl", &end);
    sandbox.stvc(&["snapshot"]).exits(0);
    let line = |name: &str| {
        let lines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
        lines.into_iter().find(|line| line["timeline"] == format!("chats/Mira/{name}")).unwrap()
    };
    assert_eq!(line("End")["parent"], "chats/Mira/Middle");
    fs::remove_file(sandbox.path("chats/Mira/Middle.jsonl")).unwrap();
    let answer = sandbox.stvc(&["erase", "Middle", "--yes"]).exits(0);
    assert!(answer.stdout.contains("kept with the messages that they share: Mira / End"));
    // Its parent is now that of the erased one, after the messages that all three share.
    let end_now = line("End");
    assert_eq!((&end_now["parent"], &end_now["fork_at"]), (&"chats/Mira/Main".into(), &3.into()));
    assert_valid(&sandbox);
    fsck(&sandbox);
    fs::remove_file(sandbox.path("chats/Mira/End.jsonl")).unwrap();
    sandbox.stvc(&["restore", "End"]).exits(0);
    assert_eq!(sandbox.read("chats/Mira/End.jsonl"), end);
}

#[test]
fn sync_does_not_restore_an_erased_chat() {
    let (mut one, mut two, folder) = synced_pair(|sandbox| {
        sandbox.write(SECRET, chat("Mira", 3, None));
        sandbox.write("chats/Mira/Harbour.jsonl", chat("Voss", 4, None));
    });
    sync(&mut one, &folder);
    sync(&mut two, &folder);
    fs::remove_file(one.path(SECRET)).unwrap();
    one.stvc(&["erase", "Secret garden", "--yes"]).exits(0);
    two.wait(3600);
    two.append(SECRET, &message("Mira", 7));
    sync(&mut two, &folder);
    let synced = sync(&mut one, &folder);
    let secret = synced.iter().find(|line| line["timeline"] == "chats/Mira/Secret garden").unwrap();
    assert_eq!(secret["outcome"], "erased");
    assert!(!one.path(SECRET).exists());
    let left = everything(&one);
    let at = left.find("Secret garden");
    assert_eq!(at.map(|at| left[at.saturating_sub(200)..at + 20].to_owned()), None);
    // The other device keeps its chat.
    assert!(two.path(SECRET).exists());
}

#[test]
fn former_ids_and_other_branches_no_longer_reach_an_erased_chat() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    for n in 0..3 {
        sandbox.wait(60);
        sandbox.append(SECRET, &message("Mira", 20 + n));
        sandbox.stvc(&["snapshot"]).exits(0);
    }
    let shared = sandbox.folder().join("shared");
    sandbox.stvc(&["sync", shared.to_str().unwrap()]).exits(0);
    sandbox.wait(60);
    sandbox.stvc(&["forget", "Secret", "--keep-last", "1"]).exits(0);
    let branch = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]);
    let branch = branch.lines().find(|name| name.contains("Secret")).unwrap().to_owned();
    sandbox.git(&["branch", "elsewhere", &branch]);
    for path in [SECRET, "worlds/Private.json"] {
        fs::remove_file(sandbox.path(path)).unwrap();
    }
    // A misspelled name erases nothing and leaves the log.
    sandbox.stvc(&["erase", "Secrt gardn", "--yes"]).exits(1);
    let operations = sandbox.json(&["operations"]).exits(0).of_type("operation").len();
    assert!(operations > 3);
    sandbox.stvc(&["erase", "Secret garden", "--yes"]).exits(0);
    sandbox.stvc(&["erase", "nobody", "--yes"]).exits(1);
    assert!(!everything(&sandbox).contains(WORDS));
    sandbox.wait(60);
    let synced = sandbox.json(&["sync", shared.to_str().unwrap()]).exits(0).lines();
    let secret = synced.iter().find(|line| line["timeline"] == "chats/Mira/Secret garden").unwrap();
    assert_eq!(secret["outcome"], "erased");
    assert!(!everything(&sandbox).contains(WORDS));
    assert!(!sandbox.path(SECRET).exists());
    assert_valid(&sandbox);
}

#[test]
fn erase_removes_nothing_of_another_timeline() {
    let mut sandbox = Sandbox::empty();
    let (t, u) = ("chats/Mira/T.jsonl", "chats/Mira/U.jsonl");
    sandbox.write(t, chat("t", 4, None));
    sandbox.write("chats/Mira/other.jsonl", chat("other", 2, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["snapshot", "Mira/T", "--at", "1", "--tag", "cp1"]).exits(0);
    // The chat is renamed, and another one gets its name.
    fs::rename(sandbox.path(t), sandbox.path(u)).unwrap();
    sandbox.wait(60);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.write(t, chat("quite another", 3, None));
    sandbox.wait(60);
    sandbox.stvc(&["snapshot"]).exits(0);
    fs::remove_file(sandbox.path(t)).unwrap();
    let plan = sandbox.json(&["erase", "Mira/T", "--dry-run"]).exits(0).of_type("erased");
    assert_eq!((&plan[0]["snapshots"], plan[0]["tags"].as_array().unwrap().len()), (&1.into(), 0));
    sandbox.stvc(&["erase", "Mira/T", "--yes"]).exits(0);
    sandbox.stvc(&["show", "cp1"]).exits(0);
    assert!(!everything(&sandbox).contains("quite another"));
    fs::remove_file(sandbox.path(u)).unwrap();
    sandbox.stvc(&["erase", "Mira/U", "--yes"]).exits(0);
    sandbox.stvc(&["show", "cp1"]).exits(1);
    let left = everything(&sandbox);
    assert!(!left.contains("t 0: ") && !left.contains("chats/Mira/T"));
    sandbox.stvc(&["show", "Mira/other"]).exits(0);
    assert_valid(&sandbox);
}

fn packs(sandbox: &Sandbox) -> Vec<String> {
    let files = files(&sandbox.store().join("objects/pack"));
    files.into_keys().filter(|name| name.ends_with(".pack")).collect()
}

/// Rewriting all packs takes long in a large library.
#[test]
fn erase_rewrites_only_packs_with_erased_objects() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot", SECRET]).exits(0);
    let first = packs(&sandbox);
    sandbox.wait(60);
    sandbox.stvc(&["snapshot"]).exits(0);
    let others: Vec<_> = packs(&sandbox).into_iter().filter(|it| !first.contains(it)).collect();
    assert!(!others.is_empty());
    for path in [SECRET, "worlds/Private.json"] {
        fs::remove_file(sandbox.path(path)).unwrap();
    }
    sandbox.stvc(&["erase", "Secret garden", "--yes"]).exits(0);
    let left = packs(&sandbox);
    assert!(others.iter().all(|pack| left.contains(pack)), "{others:?} {left:?}");
    assert!(first.iter().all(|pack| !left.contains(pack)), "{first:?} {left:?}");
    assert!(!everything(&sandbox).contains(WORDS));
    assert_valid(&sandbox);
    fsck(&sandbox);
}

/// Checks that no secret words are in the store, and that the other chat can be restored.
#[track_caller]
fn assert_only_the_harbour_remains(sandbox: &Sandbox, harbour: &[u8]) {
    assert!(!everything(sandbox).contains(WORDS));
    assert_valid(sandbox);
    fsck(sandbox);
    fs::remove_file(sandbox.path("chats/Mira/Harbour.jsonl")).unwrap();
    sandbox.stvc(&["restore", "Harbour"]).exits(0);
    assert_eq!(sandbox.read("chats/Mira/Harbour.jsonl"), harbour);
}

/// `gc` combines short messages into volumes and stores deltas across chats.
#[test]
fn erase_leaves_no_text_in_a_store_that_gc_packed() {
    let mut sandbox = library();
    for n in 0..30 {
        let mes = format!("{WORDS}, number {n}, and then some that is told by it");
        sandbox.append(SECRET, &format!("{{\"name\":\"Mira\",\"mes\":\"{mes}\"}}"));
        let mes = mes.replace(WORDS, "a word that everybody may read");
        sandbox
            .append("chats/Mira/Harbour.jsonl", &format!("{{\"name\":\"V\",\"mes\":\"{mes}\"}}"));
        if n % 10 == 0 {
            sandbox.stvc(&["snapshot"]).exits(0);
            sandbox.wait(60);
        }
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    let harbour = sandbox.read("chats/Mira/Harbour.jsonl");
    sandbox.stvc(&["gc", "--grace", "0s", "--keep-undo", "0s"]).exits(0);
    assert!(everything(&sandbox).contains(WORDS));
    for path in [SECRET, "worlds/Private.json"] {
        fs::remove_file(sandbox.path(path)).unwrap();
    }
    sandbox.stvc(&["erase", "Secret garden", "--yes"]).exits(0);
    assert_only_the_harbour_remains(&sandbox, &harbour);
    sandbox.stvc(&["gc", "--grace", "0s"]).exits(0);
    assert_valid(&sandbox);
}

/// The messages of new chats are joined into volumes, also messages of different chats.
#[test]
fn erase_leaves_no_text_in_a_volume_that_another_chat_shares() {
    let sandbox = library();
    let line = |who: &str, words: &str, n: usize| {
        format!(
            "{{\"name\":\"{who}\",\"mes\":\"{words}, number {n}, {}\"}}",
            "and so on, ".repeat(40)
        )
    };
    for n in 0..150 {
        sandbox.append(SECRET, &line("Mira", WORDS, n));
        sandbox.append("chats/Mira/Harbour.jsonl", &line("V", "a word for everybody", n));
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    let mark = fs::read_to_string(sandbox.store().join("stvc/packed")).unwrap();
    assert!(mark.lines().any(|line| line.len() == 40), "no volume is listed in {mark:?}");
    assert_valid(&sandbox);
    fsck(&sandbox);
    let harbour = sandbox.read("chats/Mira/Harbour.jsonl");
    for path in [SECRET, "worlds/Private.json"] {
        fs::remove_file(sandbox.path(path)).unwrap();
    }
    sandbox.stvc(&["erase", "Secret garden", "--yes"]).exits(0);
    assert_only_the_harbour_remains(&sandbox, &harbour);
}

/// Erases the secret chat. Returns the reported files that contain its text, and whether each was
/// removed.
fn traces(sandbox: &Sandbox, options: &[&str]) -> Vec<(String, String, bool)> {
    let answer = sandbox.json(&[&["erase", "Secret garden"], options].concat()).exits(0);
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let line = |line: &serde_json::Value| {
        (text(&line["path"]), text(&line["kind"]), line["removed"].as_bool().unwrap())
    };
    answer.of_type("trace").iter().map(line).collect()
}

#[test]
fn req_97_erase_reports_and_removes_files_with_the_text() {
    let sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    let (secret, open) = (sandbox.read(SECRET), sandbox.read("chats/Mira/Harbour.jsonl"));
    sandbox.write("backups/chat_mira_20261101-183000.jsonl", &secret);
    sandbox.write("backups/chat_mira_20261102-183000.jsonl", &open);
    sandbox.write("backups/chat_other_20261101-183000.jsonl", &secret);
    sandbox.write("user/files/stvc-res-0123.json", WORDS);
    sandbox.write("user/files/stvc-status.json", "Secret garden");
    sandbox.write("user/files/.stvc-mail-7.tmp", WORDS);
    sandbox.write("user/files/mine.txt", "kept");
    fs::remove_file(sandbox.path(SECRET)).unwrap();
    let expected = |removed: [bool; 2]| -> Vec<(String, String, bool)> {
        [
            ("backups/chat_mira_20261101-183000.jsonl", "chat-backup", removed[0]),
            ("worlds/Private.json", "lorebook", removed[0]),
            ("user/files/.stvc-mail-7.tmp", "mailbox", removed[1]),
            ("user/files/stvc-res-0123.json", "mailbox", removed[1]),
            ("user/files/stvc-status.json", "mailbox", removed[1]),
        ]
        .map(|(path, kind, removed)| (path.to_owned(), kind.to_owned(), removed))
        .to_vec()
    };
    let before = sandbox.files();
    assert_eq!(traces(&sandbox, &["--dry-run"]), expected([false, false]));
    assert!(before == sandbox.files());
    assert_eq!(traces(&sandbox, &["--yes", "--copies"]), expected([true, true]));
    for (path, ..) in expected([true, true]) {
        assert!(!sandbox.path(&path).exists(), "{path}");
    }
    for kept in ["user/files/mine.txt", "backups/chat_mira_20261102-183000.jsonl"] {
        assert!(sandbox.path(kept).exists(), "{kept}");
    }
    // The history of its lorebook is erased too.
    assert!(!everything(&sandbox).contains(WORDS));
    assert_valid(&sandbox);
}

#[test]
fn erase_keeps_shared_lorebook_and_backups_by_default() {
    let sandbox = library();
    sandbox.write("chats/Mira/Other.jsonl", chat("Other", 2, Some("Private")));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.write("backups/chat_mira_20261101-183000.jsonl", sandbox.read(SECRET));
    fs::remove_file(sandbox.path(SECRET)).unwrap();
    let reported = traces(&sandbox, &["--yes"]);
    let kinds: Vec<_> =
        reported.iter().map(|(_, kind, removed)| (kind.as_str(), *removed)).collect();
    assert_eq!(kinds, [("chat-backup", false), ("shared-lorebook", false)]);
    assert!(reported.iter().all(|(path, ..)| sandbox.path(path).exists()));
}

#[test]
fn req_97_erase_names_backups_made_before_snapshots_were_forgotten() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    let file = sandbox.folder().join("all.stvc").display().to_string();
    let folder = sandbox.folder().join("mirror").display().to_string();
    for place in [&file, &folder] {
        sandbox.stvc(&["backup", place]).exits(0);
    }
    for n in 0..3 {
        sandbox.wait(60);
        sandbox.append(SECRET, &message("Mira", 10 + n));
        sandbox.stvc(&["snapshot"]).exits(0);
    }
    sandbox.stvc(&["forget", "--keep-last", "1"]).exits(0);
    // The folder still has it, although this backup is of another chat only.
    sandbox.stvc(&["backup", &folder, "Mira/Harbour"]);
    for path in [SECRET, "worlds/Private.json"] {
        fs::remove_file(sandbox.path(path)).unwrap();
    }
    let answer = sandbox.json(&["erase", "Secret garden", "--yes"]).exits(0);
    let mut places: Vec<_> =
        answer.of_type("copy").iter().map(|it| it["destination"].clone()).collect();
    places.sort_by_key(|place| place.as_str().unwrap().to_owned());
    assert_eq!(places, [file, folder]);
    for trace in [WORDS, "Secret", "garden"] {
        assert!(!everything(&sandbox).contains(trace), "{trace} is still there");
    }
}

#[test]
fn req_97_erase_removes_the_text_from_folder_backups_on_request() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    let folder = sandbox.folder().join("mirror");
    sandbox.stvc(&["backup", folder.to_str().unwrap()]).exits(0);
    // The folder has it under its former name.
    const RENAMED: &str = "chats/Mira/Hidden garden.jsonl";
    fs::rename(sandbox.path(SECRET), sandbox.path(RENAMED)).unwrap();
    sandbox.wait(60);
    sandbox.stvc(&["snapshot"]).exits(0);
    for path in [RENAMED, "worlds/Private.json"] {
        fs::remove_file(sandbox.path(path)).unwrap();
    }
    let plan = sandbox.stvc(&["erase", "Hidden garden", "--dry-run"]).exits(0);
    assert!(plan.stderr.contains("use `--copies` to remove it there"), "{}", plan.stderr);
    assert!(everything_in(&folder).contains(WORDS));
    let answer = sandbox.json(&["erase", "Hidden garden", "--yes", "--copies"]).exits(0);
    assert!(answer.of_type("copy").is_empty());
    for trace in [WORDS, "Secret", "garden"] {
        assert!(!everything_in(&folder).contains(trace), "{trace} is still there");
    }
    sandbox.stvc(&["check", folder.to_str().unwrap()]).exits(0);
    // The rest is intact, and new snapshots work.
    sandbox.append("chats/Mira/Harbour.jsonl", &message("Mira", 9));
    sandbox.stvc(&["backup", folder.to_str().unwrap()]).exits(0);
}

#[cfg(unix)]
#[test]
fn erase_refuses_a_chat_whose_folder_cannot_be_read() {
    let sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    fs::rename(sandbox.path("chats/Mira"), sandbox.folder().join("drive")).unwrap();
    std::os::unix::fs::symlink("/mnt/not mounted", sandbox.path("chats/Mira")).unwrap();
    sandbox.stvc(&["erase", "Secret garden", "--yes"]).exits(1);
    fs::remove_file(sandbox.path("chats/Mira")).unwrap();
    sandbox.stvc(&["restore", "Secret garden"]).exits(0);
}

/// A picture of the secret chat, and one that both chats name.
const OWN_PICTURE: &str = "user/images/Mira/own.png";
const SHARED_PICTURE: &str = "user/images/Mira/shared.png";

/// Creates a deleted chat with pictures, a backup by SillyTavern and one in a folder.
fn with_copies() -> (Sandbox, std::path::PathBuf) {
    let sandbox = library();
    for (path, chats) in
        [(OWN_PICTURE, &[SECRET][..]), (SHARED_PICTURE, &[SECRET, "chats/Mira/Harbour.jsonl"][..])]
    {
        sandbox.write(path, format!("picture {path}"));
        let line =
            format!("{{\"name\":\"Mira\",\"mes\":\"see\",\"extra\":{{\"image\":\"/{path}\"}}}}");
        chats.iter().for_each(|chat| sandbox.append(chat, &line));
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    let folder = sandbox.folder().join("mirror");
    sandbox.stvc(&["backup", folder.to_str().unwrap()]).exits(0);
    sandbox.write("backups/chat_mira_20261101-183000.jsonl", sandbox.read(SECRET));
    fs::remove_file(sandbox.path(SECRET)).unwrap();
    (sandbox, folder)
}

const REMOVABLE: [&str; 3] =
    ["backups/chat_mira_20261101-183000.jsonl", "worlds/Private.json", OWN_PICTURE];

#[test]
fn erase_copies_option_without_name_removes_copies_of_an_earlier_erase() {
    let (sandbox, folder) = with_copies();
    let nothing = sandbox.stvc(&["erase", "--copies", "--yes"]).exits(0).stdout;
    assert!(nothing.contains("Nothing to do"), "{nothing}");
    let answer = sandbox.stvc(&["erase", "Secret garden", "--yes"]).exits(0);
    assert!(
        answer.stdout.contains("Run `stvc erase --copies` to remove the accessible copies"),
        "{}",
        answer.stdout
    );
    let marks = fs::read_to_string(sandbox.store().join("stvc/erased-copies")).unwrap();
    assert!(marks.bytes().all(|byte| byte.is_ascii_hexdigit() || b" \n".contains(&byte)));
    // The name is unknown now, and the refusal names the right command.
    let answer = sandbox.stvc(&["erase", "Secret garden", "--copies", "--yes"]).exits(1);
    assert!(answer.stderr.contains("`stvc erase --copies`, without a name"), "{}", answer.stderr);
    let before = sandbox.files();
    let planned = sandbox.json(&["erase", "--copies", "--dry-run"]).exits(0);
    assert_eq!((planned.of_type("trace").len(), planned.of_type("copy").len()), (3, 1));
    sandbox.stvc(&["erase", "--copies"]).exits(4);
    assert!(before == sandbox.files() && everything_in(&folder).contains(WORDS));
    let done = sandbox.json(&["erase", "--copies", "--yes"]).exits(0);
    assert!(done.of_type("trace").iter().all(|trace| trace["removed"] == true));
    for path in REMOVABLE {
        assert!(!sandbox.path(path).exists(), "{path}");
    }
    assert!(sandbox.path(SHARED_PICTURE).exists());
    for trace in [WORDS, "Secret garden"] {
        assert!(!everything_in(&folder).contains(trace), "{trace} is still there");
    }
    sandbox.stvc(&["check", folder.to_str().unwrap()]).exits(0);
    let nothing = sandbox.stvc(&["erase", "--copies", "--yes"]).exits(0).stdout;
    assert!(nothing.contains("Nothing to do"), "{nothing}");
    assert!(!sandbox.store().join("stvc/erased-copies").exists());
    sandbox.stvc(&["backup", folder.to_str().unwrap()]).exits(0);
}

#[test]
fn erase_copies_option_keeps_files_that_are_used_again() {
    let (sandbox, _) = with_copies();
    sandbox.stvc(&["erase", "Secret garden", "--yes"]).exits(0);
    let mut newcomer = chat("new", 2, Some("Private"));
    let line = format!(
        "\n{{\"name\":\"Mira\",\"mes\":\"see\",\"extra\":{{\"image\":\"/{OWN_PICTURE}\"}}}}"
    );
    newcomer.extend(line.bytes());
    sandbox.write("chats/Mira/Newcomer.jsonl", newcomer);
    sandbox.stvc(&["erase", "--copies", "--yes"]).exits(0);
    for path in ["worlds/Private.json", OWN_PICTURE] {
        assert!(sandbox.path(path).exists(), "{path}");
    }
    assert!(!sandbox.path(REMOVABLE[0]).exists());
}

#[test]
fn erase_removes_only_unshared_files_of_the_chat() {
    let (sandbox, folder) = with_copies();
    let reported = traces(&sandbox, &["--dry-run"]);
    let kind =
        |path: &str| reported.iter().find(|(found, ..)| found == path).map(|it| it.1.as_str());
    assert_eq!(kind(OWN_PICTURE), Some("attachment"));
    assert_eq!(kind(SHARED_PICTURE), Some("shared-attachment"));
    let answer = sandbox.stvc(&["erase", "Secret garden", "--copies", "--yes"]).exits(0);
    assert!(answer.stdout.contains(&format!("removed  {OWN_PICTURE}")), "{}", answer.stdout);
    assert!(!answer.stdout.contains("`stvc erase --copies`"), "{}", answer.stdout);
    for path in REMOVABLE {
        assert!(!sandbox.path(path).exists(), "{path}");
    }
    assert!(sandbox.path(SHARED_PICTURE).exists());
    assert!(!everything_in(&folder).contains(WORDS) && !everything(&sandbox).contains(WORDS));
}

#[test]
fn erase_copies_option_keeps_a_new_chat_with_the_erased_name() {
    let (mut sandbox, folder) = with_copies();
    sandbox.stvc(&["erase", "Secret garden", "--yes"]).exits(0);
    sandbox.wait(60);
    sandbox.write(SECRET, chat("quite another", 3, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["erase", "--copies", "--yes"]).exits(0);
    assert!(!everything_in(&folder).contains(WORDS));
    sandbox.stvc(&["backup", folder.to_str().unwrap()]).exits(0);
    sandbox.stvc(&["erase", "--copies", "--yes"]).exits(0);
    assert!(sandbox.path(SECRET).exists());
    assert!(everything_in(&folder).contains("quite another"));
    sandbox.stvc(&["show", "Secret garden"]).exits(0);
}

#[test]
fn erase_of_a_fork_reports_messages_kept_by_its_parent() {
    let sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    let fork = "chats/Mira/Fork.jsonl";
    let mut text = sandbox.read(SECRET);
    text.extend(b"\n{\"name\":\"Mira\",\"mes\":\"of the fork alone\"}");
    sandbox.write(fork, text);
    sandbox.stvc(&["snapshot"]).exits(0);
    fs::remove_file(sandbox.path(fork)).unwrap();
    let output = sandbox.stvc(&["erase", "Mira/Fork", "--yes"]).exits(0).stdout;
    let sentence = "Messages up to the fork point stay in Mira / Secret garden and in backups.";
    assert!(output.contains(sentence), "{output}");
    assert!(!everything(&sandbox).contains("of the fork alone"));
}

#[test]
fn erase_copies_option_keeps_a_picture_that_another_chat_shows() {
    let (sandbox, _) = with_copies();
    let mut other = chat("other", 2, None);
    let line = format!("\n{{\"name\":\"Mira\",\"mes\":\"![](/{OWN_PICTURE})\"}}");
    other.extend(line.bytes());
    sandbox.write("chats/Mira/Other one.jsonl", other);
    sandbox.stvc(&["erase", "Secret garden", "--copies", "--yes"]).exits(0);
    assert!(sandbox.path(OWN_PICTURE).exists());
}

#[test]
fn erase_copies_option_removes_the_history_of_the_lorebook() {
    let (sandbox, folder) = with_copies();
    sandbox.stvc(&["erase", "Secret garden", "--yes"]).exits(0);
    sandbox.stvc(&["erase", "--copies", "--yes"]).exits(0);
    let has_book = |store: &std::path::Path| {
        let heads = crate::common::git(store, &["for-each-ref", "refs/heads"]);
        String::from_utf8_lossy(&heads).contains("Private")
    };
    assert!(!sandbox.path("worlds/Private.json").exists());
    assert!(!has_book(&sandbox.store()) && !has_book(&folder));
}
