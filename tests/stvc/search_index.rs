//! A search with the index of words has the same report as one that reads every text, whatever
//! happened to the store and to the index since the index was written.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use stvc::progress::NoProgress;
use stvc::verbs::search::{self, Options, Part, Report, TextState};

use crate::common::forged_snapshot::{ForgedSnapshot, Node, entry, file};
use crate::common::{Dice, Sandbox, copy_folder, delete_object, message};

const CHATS: [&str; 3] = ["chats/Mira/One.jsonl", "chats/Mira/Two.jsonl", "chats/雪/三.jsonl"];

/// Texts that differ in case, script, punctuation, white space and length of words.
const PIECES: &[&str] = &[
    "The Tide Office.",
    "the ferry\\nleft",
    "don't",
    "夜の雨が降る。",
    "雨",
    "ÄRGER im Büro",
    "ΟΔΟΣ, οδος",
    "İstanbul",
    "🌧🌧 ❤",
    "leſs and KKelvin",
    "3.14",
    "…*?!",
    "aGVsbG8gd29ybGQsIHRoaXMgaXMgYSBsb25nIHdvcmQgb2YgZGF0YQ",
    "สวัสดีครับ",
    "tideoffice",
    "x y z",
    "rain雨rain",
];

/// Searched texts. Each occurs in some text, or nearly.
const SEARCHED: &[&str] = &[
    "tide",
    "ide off",
    "the tide",
    "ferry left",
    "don't",
    "on't",
    "'",
    "雨",
    "の雨",
    "雨が降",
    "雨rain",
    "n雨",
    "ärger",
    "rger im b",
    "οδοσ",
    "i",
    "istanbul",
    "🌧",
    "🌧🌧",
    "❤",
    "less",
    "kelvin",
    "3.14",
    ".1",
    "…*",
    "bg8gd29yb",
    "agvsbg8gd29ybgqsihroaxmgaxmgysbsb25nihdvcmqgb2ygzgf0yq",
    "ครับ",
    "y z",
    "e",
    "e o",
    "cormorant",
    "mira",
    "l office",
];

const PATTERNS: &[&str] = &[
    "tide",
    "T.de\\s+OFF",
    "(?:ferry|雨)",
    "(?:ferry)+",
    "less",
    "kel\\w+",
    "^x",
    "の雨.降",
    "ärger",
    "d29yb.*gQ",
    "(?-i)Tide",
    "a{0}z$",
    "(?x) t i d e",
    "don't|on",
    "[^a-z]{3}",
];

fn write_chat(sandbox: &Sandbox, path: &str, lines: &[String]) {
    let header = r#"{"chat_metadata":{"world_info":"Lore"}}"#.to_owned();
    sandbox.write(path, [&[header], lines].concat().join("\n"));
}

fn text(dice: &mut Dice) -> String {
    let pieces = (0..dice.roll(4)).map(|_| PIECES[dice.roll(PIECES.len())]);
    pieces.collect::<Vec<_>>().join([" ", "", "\\n \\t", ", "][dice.roll(4)])
}

fn line(dice: &mut Dice) -> String {
    let (text, other) = (text(dice), text(dice));
    match dice.roll(8) {
        0 => text,
        1 => String::new(),
        2 => format!(r#"{{"name":"Mira","mes":"{text}","swipes":["{text}","{other}"]}}"#),
        3 => format!(r#"{{"name":"{other}","is_user":true,"mes":"{text}"}}"#),
        _ => format!(r#"{{"name":"Mira","is_system":{},"mes":"{text}"}}"#, dice.roll(2) == 0),
    }
}

fn write_book(sandbox: &Sandbox, dice: &mut Dice) {
    let entries = (0..dice.roll(4)).map(|uid| {
        let (title, content) = (text(dice), text(dice));
        format!(r#""{uid}":{{"uid":{uid},"comment":"{title}","key":["k"],"content":"{content}"}}"#)
    });
    let book = format!(r#"{{"entries":{{{}}}}}"#, entries.collect::<Vec<_>>().join(","));
    let book = if dice.roll(6) == 0 { text(dice) } else { book };
    sandbox.write("worlds/Lore.json", book);
}

fn index(sandbox: &Sandbox) -> PathBuf {
    sandbox.store().join("stvc/search")
}

fn index_files(sandbox: &Sandbox) -> Vec<PathBuf> {
    let found = fs::read_dir(index(sandbox)).into_iter().flatten();
    let mut files: Vec<_> = found.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

fn answer(report: Report) -> Value {
    let Report { matches, more, snapshots, texts, broken, .. } = report;
    json!({ "matches": matches, "more": more, "snapshots": snapshots, "texts": texts, "broken": broken })
}

#[track_caller]
fn compare(sandbox: &Sandbox, options: &Options) -> usize {
    let workspace = sandbox.workspace();
    let plain = search::search_without_index(&workspace, options).unwrap();
    let found = plain.matches.len();
    let plain = answer(plain);
    for time in ["first", "second"] {
        let indexed = search::search(&workspace, options, &mut NoProgress).unwrap();
        assert_eq!(answer(indexed), plain, "the {time} search of {options:?}");
    }
    found
}

fn options(dice: &mut Dice) -> Options {
    let regex = dice.roll(3) == 0;
    let asked = if regex { PATTERNS } else { SEARCHED };
    let mut options = Options {
        text: asked[dice.roll(asked.len())].to_owned(),
        regex,
        phrase: !regex && dice.roll(2) == 0,
        ..Options::default()
    };
    match dice.roll(8) {
        0 => options.limit = Some(dice.roll(4)),
        1 => options.only = Some([Part::Chat, Part::Lorebook, Part::Character][dice.roll(3)]),
        2 => {
            options.state = Some([TextState::Current, TextState::Deleted][dice.roll(2)]);
        }
        3 => options.who = Some("mira".into()),
        4 => options.since = Some(crate::common::NOW + 600),
        _ => {}
    }
    options
}

/// Compares searches of everything that is searched, so that no text can be missed.
fn compare_all(sandbox: &Sandbox) -> usize {
    let words = SEARCHED.iter().map(|text| Options { text: (*text).into(), ..Options::default() });
    let phrases = words.clone().map(|options| Options { phrase: true, ..options });
    let patterns = PATTERNS.iter().map(|text| Options {
        text: (*text).into(),
        regex: true,
        ..Options::default()
    });
    words.chain(phrases).chain(patterns).map(|options| compare(sandbox, &options)).sum()
}

fn change_store(sandbox: &mut Sandbox, dice: &mut Dice, chats: &mut [Vec<String>; 3]) {
    let n = dice.roll(3);
    match dice.roll(12) {
        0..5 => chats[n].push(line(dice)),
        5 if !chats[n].is_empty() => {
            let at = dice.roll(chats[n].len());
            chats[n][at] = line(dice);
        }
        // A fork.
        6 => chats[n] = chats[(n + 1) % 3].iter().take(2).cloned().collect(),
        7 => write_book(sandbox, dice),
        8 => drop(sandbox.stvc(&["undo"])),
        9 => drop(sandbox.stvc(&["forget", "--keep-last", "1"])),
        10 => drop(sandbox.stvc(&["gc", "--grace", "0s", "--keep-undo", "0s"])),
        _ => {
            let _ = fs::remove_file(sandbox.path(CHATS[n]));
            let name = CHATS[n].strip_suffix(".jsonl").unwrap();
            if dice.roll(2) == 0 {
                sandbox.stvc(&["erase", name, "--yes"]);
            }
            chats[n].clear();
        }
    }
    for (path, lines) in CHATS.iter().zip(chats.iter()).filter(|(_, lines)| !lines.is_empty()) {
        write_chat(sandbox, path, lines);
    }
    sandbox.wait(60);
    if dice.roll(4) > 0 {
        sandbox.stvc(&["snapshot"]);
    }
}

fn change_index(sandbox: &Sandbox, dice: &mut Dice, earlier: &mut Vec<tempfile::TempDir>) {
    let files = index_files(sandbox);
    let Some(path) = files.get(dice.roll(files.len().max(1))) else { return };
    let mut bytes = fs::read(path).unwrap();
    match dice.roll(6) {
        0 => {
            let at = dice.roll(bytes.len());
            bytes[at] ^= 1 << dice.roll(8);
            fs::write(path, bytes).unwrap();
        }
        1 => fs::write(path, &bytes[..dice.roll(bytes.len())]).unwrap(),
        2 => fs::remove_file(path).unwrap(),
        3 => {
            let copy = tempfile::tempdir().unwrap();
            copy_folder(&index(sandbox), copy.path());
            earlier.push(copy);
        }
        4 if !earlier.is_empty() => {
            let copy = earlier[dice.roll(earlier.len())].path();
            fs::remove_dir_all(index(sandbox)).unwrap();
            copy_folder(copy, &index(sandbox));
        }
        _ => fs::write(path.with_file_name("0001"), bytes).unwrap(),
    }
}

#[test]
fn search_with_index_reports_the_same_as_search_without() {
    for seed in 1..=6 {
        let mut dice = Dice(seed);
        let mut sandbox = Sandbox::empty();
        let (mut chats, mut earlier) = (Default::default(), Vec::new());
        write_book(&sandbox, &mut dice);
        for _ in 0..3 {
            change_store(&mut sandbox, &mut dice, &mut chats);
        }
        sandbox.stvc(&["snapshot"]);
        for _ in 0..25 {
            change_store(&mut sandbox, &mut dice, &mut chats);
            if dice.roll(3) == 0 {
                change_index(&sandbox, &mut dice, &mut earlier);
            }
            for _ in 0..3 {
                compare(&sandbox, &options(&mut dice));
            }
        }
        assert!(compare_all(&sandbox) > 0);
    }
}

/// Returns a store whose index is complete.
fn indexed() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    let mut dice = Dice(7);
    let mut lines: Vec<_> = PIECES
        .iter()
        .map(|text| message("Mira", 0).replace("mes\":\"", &format!("mes\":\"{text} ")))
        .collect();
    lines.extend((0..20).map(|_| line(&mut dice)));
    write_book(&sandbox, &mut dice);
    write_chat(&sandbox, CHATS[0], &lines[..20]);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    write_chat(&sandbox, CHATS[0], &lines);
    sandbox.stvc(&["snapshot"]).exits(0);
    compare(&sandbox, &Options { text: "tide".into(), ..Options::default() });
    assert_eq!(index_files(&sandbox).len(), 1);
    sandbox
}

#[test]
fn every_searched_text_is_found_with_the_index() {
    assert!(compare_all(&indexed()) > 50);
}

#[test]
fn text_that_becomes_unreadable_after_it_was_indexed_is_reported() {
    let sandbox = indexed();
    let lost =
        sandbox.git(&["rev-parse", "refs/heads/chats/Mira/One:chat/messages/000/00003.json"]);
    delete_object(&sandbox.store(), lost.trim());
    let options = Options { text: "cormorant".into(), ..Options::default() };
    let report = search::search(&sandbox.workspace(), &options, &mut NoProgress).unwrap();
    assert_eq!(report.broken.len(), 1);
    compare_all(&sandbox);
    // A folder of messages.
    let lost = sandbox.git(&["rev-parse", "refs/heads/chats/Mira/One:chat/messages/000"]);
    delete_object(&sandbox.store(), lost.trim());
    compare_all(&sandbox);
}

#[test]
fn erase_deletes_the_index_and_the_next_search_indexes_only_the_other_chats() {
    let sandbox = indexed();
    write_chat(&sandbox, CHATS[1], &[message("Mira", 1).replace("mes\":\"", "mes\":\"Zanzibar ")]);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["search", "zanzibar"]).exits(0);
    fs::remove_file(sandbox.path(CHATS[1])).unwrap();
    let copy = tempfile::tempdir().unwrap();
    copy_folder(&index(&sandbox), copy.path());
    sandbox.stvc(&["erase", "chats/Mira/Two", "--yes"]).exits(0);
    assert!(!index(&sandbox).exists());
    sandbox.stvc(&["search", "zanzibar"]).exits(1);
    let rebuilt =
        index_files(&sandbox).iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>();
    // The index of before the erasure is not extended, but replaced.
    fs::remove_dir_all(index(&sandbox)).unwrap();
    copy_folder(copy.path(), &index(&sandbox));
    sandbox.stvc(&["search", "zanzibar"]).exits(1);
    let again =
        index_files(&sandbox).iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>();
    assert!(again == rebuilt);
}

/// A planted index with valid checksums may hide texts. It must neither break a search nor add a
/// match.
#[test]
fn planted_index_does_not_break_a_search() {
    let sandbox = indexed();
    let path = index_files(&sandbox).remove(0);
    let valid = fs::read(&path).unwrap();
    let mut dice = Dice(3);
    for _ in 0..150 {
        let mut bytes = valid.clone();
        for _ in 0..=dice.roll(3) {
            let at = 40 + dice.roll(bytes.len() - 40);
            bytes[at] = if dice.roll(2) == 0 { 0xff } else { dice.roll(256) as u8 };
        }
        let checksum = *blake3::hash(&bytes[40..]).as_bytes();
        bytes[8..40].copy_from_slice(&checksum);
        fs::write(&path, &bytes).unwrap();
        let options = Options { text: "tide".into(), ..Options::default() };
        let report = search::search(&sandbox.workspace(), &options, &mut NoProgress).unwrap();
        assert!(
            report.matches.iter().all(|found| found.excerpt.text.to_lowercase().contains("tide"))
        );
    }
}

#[test]
fn searches_at_the_same_time_have_the_same_report() {
    let sandbox = indexed();
    let options = Options { text: "tide".into(), ..Options::default() };
    let plain = answer(search::search_without_index(&sandbox.workspace(), &options).unwrap());
    fs::remove_dir_all(index(&sandbox)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let workspace = sandbox.workspace();
                    let report = search::search(&workspace, &options, &mut NoProgress).unwrap();
                    assert_eq!(answer(report), plain);
                    let _ = fs::remove_file(index(&sandbox).join("0000"));
                }
            });
        }
    });
}

#[test]
fn search_does_not_write_to_a_clone() {
    let sandbox = indexed();
    let clone = sandbox.folder().join("clone");
    sandbox.git(&["clone", "--quiet", "--mirror", ".", &clone.display().to_string()]);
    sandbox.stvc(&["--store", &clone.display().to_string(), "search", "tide"]).exits(0);
    assert!(!clone.join("stvc").exists());
}

#[test]
fn gc_keeps_the_index() {
    let sandbox = indexed();
    sandbox.stvc(&["gc"]).exits(0);
    assert_eq!(index_files(&sandbox).len(), 1);
    compare_all(&sandbox);
}

#[test]
fn backups_do_not_contain_the_index() {
    let sandbox = indexed();
    let mirror = sandbox.folder().join("mirror");
    sandbox.stvc(&["backup", &mirror.display().to_string()]).exits(0);
    assert!(!mirror.join("stvc/search").exists());
    let store = mirror.display().to_string();
    sandbox.stvc(&["--store", &store, "search", "tide"]).exits(0);
    assert!(!mirror.join("stvc/search").exists(), "a search of a mirror wrote an index");
}

#[test]
#[cfg(unix)]
fn search_does_not_write_through_a_planted_link() {
    let sandbox = indexed();
    fs::remove_dir_all(index(&sandbox)).unwrap();
    let elsewhere = sandbox.folder().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, index(&sandbox)).unwrap();
    compare_all(&sandbox);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
#[cfg(unix)]
fn search_works_when_the_index_cannot_be_written() {
    let sandbox = indexed();
    fs::remove_dir_all(index(&sandbox)).unwrap();
    fs::write(index(&sandbox), "a file").unwrap();
    compare_all(&sandbox);
    assert_eq!(fs::read(index(&sandbox)).unwrap(), b"a file");
}

/// A tree with two roles, a text with two roles, and names that no program of stvc writes.
#[test]
fn forged_snapshots_are_searched_alike() {
    let sandbox = indexed();
    let store = stvc::internals::store::Store::open(&sandbox.store()).unwrap();
    let head = sandbox.chat_ids().remove(0);
    let mut forged = ForgedSnapshot::read(&store, &head);
    let text = br#"{"name":"Mira","mes":"a forged tide","comment":"a forged ferry","content":"x"}"#;
    forged.folder_at("chat/messages/000").extend([
        file("not a number.json", b"tide"),
        file("99999999999.json", b"a far tide"),
        file("7777.json", text),
    ]);
    let book = vec![file("a%0", text), file("7777.json", text)];
    let books = vec![entry(
        "40000",
        "Forged",
        Node::Tree(vec![
            file("book.json", b"tide"),
            entry("40000", "entries", Node::Tree(book.clone())),
        ]),
    )];
    forged.root.retain(|entry| entry.name != b"lorebooks");
    forged.root.push(entry("40000", "lorebooks", Node::Tree(books)));
    let id = forged.write(&store, Some(&head));
    sandbox.git(&["update-ref", "refs/heads/chats/Mira/One", &id]);
    compare_all(&sandbox);
    // The tree of the entries is also a folder of messages.
    forged.folder_at("chat/messages").push(entry("40000", "001", Node::Tree(book)));
    let id = forged.write(&store, Some(&id));
    sandbox.git(&["update-ref", "refs/heads/chats/Mira/One", &id]);
    compare_all(&sandbox);
}
