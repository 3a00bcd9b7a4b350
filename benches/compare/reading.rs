//! Workload (g): queries over years of history. The peer is git with the same queries on the same
//! store.

use std::path::Path;
use std::process::Command;

use stvc::progress::NoProgress;
use stvc::verbs::{gc, snapshot};

use crate::chat::{Chat, lorebook_path};
use crate::library::Library;
use crate::lorebook::{self, Entry};
use crate::measure::{memory, rounds, time, wall, wrapped};
use crate::prose::Random;
use crate::targets::{Row, Target};
use crate::tools::{Place, Stvc, Tool, git_in};
use crate::value::Value;

pub struct HistorySize {
    pub snapshots: usize,
    pub entries: u64,
}

/// Index of the queried entry, and how often it changes.
const ASKED: usize = 5;
const ASKED_EVERY: usize = 40;
/// A word that only one entry contains.
const WORD: &str = "cormorant";
/// Number of commits that git searches; all of them would take hours.
const GREPPED: usize = 200;

pub fn measure(dir: &Path, history_size: &HistorySize, again: usize) -> Vec<Row> {
    let library = Library::new(&dir.join("library"));
    let place = Place { library: library.root.clone(), home: dir.to_owned() };
    let title = write(&place, library, history_size);
    let stvc = Stvc::new(place);
    let store = stvc.place().store();
    let git = |arguments: &[&str]| {
        let mut command = git_in(&store);
        command.args(arguments);
        command
    };
    let book = "refs/heads/worlds/Mira Voss Lore";
    let chat = "refs/heads/chats/Mira Voss/The Tide Office";
    let book = branch(&git, book);
    let chat = branch(&git, chat);
    let entry = path_of(&git, &book, &format!("/{ASKED}.json"));
    let message = path_of(&git, &chat, "5.json");
    let newest = text_of(git(&["rev-list", "-n", &GREPPED.to_string(), &chat]));
    let mut grep = vec!["grep", "-q", WORD];
    grep.extend(newest.lines());
    let asked: Vec<(&str, Command, String, Command, Target)> = vec![
        (
            "history of a lorebook entry",
            stvc.command(&["lore", "Mira Voss Lore", &ASKED.to_string()]),
            "git log -p".into(),
            git(&["log", "-p", &book, "--", &entry]),
            Target::AtMost(3.0),
        ),
        (
            "where its sentences come from",
            stvc.command(&["lore", &title, "--blame"]),
            "git blame".into(),
            git(&["blame", &book, "--", &entry]),
            Target::None,
        ),
        (
            "history of a message",
            stvc.command(&["log", "The Tide Office", "--message", "5"]),
            "git log -p".into(),
            git(&["log", "-p", &chat, "--", &message]),
            Target::None,
        ),
        (
            "search of everything",
            stvc.command(&["search", WORD]),
            "git log -S".into(),
            git(&["log", "--all", "--oneline", "-S", WORD]),
            Target::AtMost(1.0),
        ),
        (
            "search of everything",
            stvc.command(&["search", WORD]),
            format!("git grep in {GREPPED} commits"),
            git(&grep),
            Target::AtMost(1.0),
        ),
    ];
    let mut rows = Vec::new();
    for (what, stvc, peer, git, target) in asked {
        let commands = [stvc, git];
        let costs = rounds(again, 2, |n| Some(time(vec![wrapped(&[], &commands[n])])));
        let value = |n: usize| wall(&costs[n]).unwrap_or(Value::Bytes(0));
        let (what, letter) = (what.to_owned(), 'g');
        rows.push(Row {
            letter,
            what: what.clone(),
            stvc: value(0),
            peer: peer.clone(),
            other: value(1),
            target,
        });
        let peaks = commands.map(|command| memory(vec![command]));
        if let [Some(own), Some(other)] = peaks {
            let (stvc, other) = (Value::Bytes(own), Value::Bytes(other));
            let what = format!("{what}, memory");
            rows.push(Row { letter, what, stvc, peer, other, target: Target::None });
        }
    }
    rows
}

/// Writes years of a chat and its lorebook. Returns the title of the queried entry.
fn write(place: &Place, mut library: Library, history_size: &HistorySize) -> String {
    let mut random = Random::new(11);
    let mut chat = Chat::new(1, "Mira Voss", "The Tide Office", 40);
    let mut entries: Vec<_> =
        (0..history_size.entries).map(|uid| Entry::new(&mut random, uid)).collect();
    entries[0].comment.push_str(WORD);
    let book = lorebook_path("Mira Voss Lore");
    let begin = chrono::DateTime::from_timestamp(1_700_000_000, 0).expect("a moment");
    for n in 0..history_size.snapshots {
        library.next_save();
        if n % 10 == 0 {
            chat.next_turn(&library);
        }
        let changed = if n % ASKED_EVERY == 0 { ASKED } else { random.below(entries.len()) };
        let text = Entry::text(&mut random);
        // An edit changes only part of the text.
        let kept = entries[changed].content.chars().take(200).collect::<String>();
        entries[changed].content = format!("{kept} {text}");
        library.write(&book, lorebook::file(&entries).as_bytes());
        let workspace = place.workspace(begin + chrono::Duration::hours(n as i64));
        let options = snapshot::Options::default();
        snapshot::snapshot(&workspace, &options, &mut NoProgress).expect("take a snapshot");
        if n + 1 == history_size.snapshots {
            gc::gc(&workspace, &gc::Options::default(), &mut NoProgress).expect("collect");
        }
    }
    entries[ASKED].comment.clone()
}

fn text_of(mut command: Command) -> String {
    let output = command.output().expect("ask git");
    String::from_utf8(output.stdout).expect("text")
}

/// Finds the branch of a timeline, whose name is encoded.
fn branch(git: &impl Fn(&[&str]) -> Command, name: &str) -> String {
    let all = text_of(git(&["for-each-ref", "--format=%(refname)", "refs/heads"]));
    let plain = |name: &str| name.replace("%20", " ").replace("%23", "#");
    all.lines().find(|found| plain(found) == name).expect("a branch").to_owned()
}

fn path_of(git: &impl Fn(&[&str]) -> Command, branch: &str, end: &str) -> String {
    let all = text_of(git(&["ls-tree", "-r", "--name-only", branch]));
    all.lines().find(|path| path.ends_with(end)).expect("a file").to_owned()
}
