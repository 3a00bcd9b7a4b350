//! Workload (h): the viewer on a large library, in headless Chromium. The peer uses the approach of
//! SillyTavern-Timelines: it fetches every chat and builds the map from all texts in the browser.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value as Json;
use stvc::progress::NoProgress;
use stvc::verbs::{gc, snapshot};

use crate::chat::{Chat, lorebook_path};
use crate::equipment::browser;
use crate::library::Library;
use crate::lorebook::{self, Entry};
use crate::measure::{time, wall};
use crate::prose::Random;
use crate::targets::{Row, Target};
use crate::tools::{Place, Stvc, Tool};
use crate::value::Value;

pub struct LibrarySize {
    pub characters: usize,
    /// Stories per character, each with forks.
    pub stories: usize,
    pub forks: usize,
    /// Snapshots per timeline.
    pub snapshots: usize,
    pub long: LongChat,
}

/// One chat that is longer than all others.
pub struct LongChat {
    pub messages: usize,
    pub snapshots: usize,
}

pub fn measure(dir: &Path, library_size: &LibrarySize) -> Vec<Row> {
    let equipment = match browser() {
        Ok(equipment) => equipment,
        Err(why) => {
            eprintln!("(h) is left out: {why}");
            return Vec::new();
        }
    };
    let library = Library::new(&dir.join("library"));
    let place = Place { library: library.root.clone(), home: dir.to_owned() };
    write(&place, library, library_size);
    let stvc = Stvc::new(place);
    let file = dir.join("story.html");
    let export = ["view", LONG, "--all-history", "--out", file.to_str().expect("a path")];
    let exported = time(vec![stvc.command(&export)]);
    let mut view = stvc.command(&["--json", "view"]);
    let mut view = view.stdout(Stdio::piped()).spawn().expect("start the view");
    let mut line = String::new();
    let out = view.stdout.as_mut().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("read its address");
    let line: Json = serde_json::from_str(&line).expect("a line");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("compare/viewing.mjs");
    let measured_values = Command::new("node")
        .arg(script)
        .args([&equipment.playwright, &equipment.chromium])
        .arg(line["address"].as_str().expect("an address"))
        .args([stvc.place().library.join("chats").display().to_string(), view.id().to_string()])
        .args([LONG, &library_size.long.snapshots.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .expect("run the browser");
    let _ = view.kill();
    let _ = view.wait();
    let measured_values: Json =
        serde_json::from_slice(&measured_values.stdout).expect("what the browser measured");
    let mut rows = rows(&measured_values);
    let (most, peer) = (Target::AtMost(1.0), "the bound");
    let seconds = Value::Time(Duration::from_secs(20));
    let bytes = Value::Bytes(fs::metadata(&file).expect("the file").len());
    rows.extend(
        wall(&[exported]).map(|time| row("view --out, all history", time, peer, seconds, most)),
    );
    rows.push(row("view --out, all history", bytes, peer, Value::Bytes(20_000_000), most));
    rows
}

fn row(what: &str, stvc: Value, peer: &str, other: Value, target: Target) -> Row {
    let (what, peer) = (what.to_owned(), peer.to_owned());
    Row { letter: 'h', what, stvc, peer, other, target }
}

fn rows(measured_values: &Json) -> Vec<Row> {
    let number = |name: &str| measured_values[name].as_f64().unwrap_or(f64::NAN);
    let time = |name: &str| Value::Time(Duration::from_secs_f64(number(name).max(0.0) / 1e3));
    let bytes = |name: &str| Value::Bytes(number(name) as u64);
    let bound = |ms| Value::Time(Duration::from_millis(ms));
    let (all, limit) = ("every chat fetched", "the bound");
    let most = Target::AtMost(1.0);
    [
        ("Library, first useful paint", time("library"), all, time("fetched"), Target::Better(2.0)),
        ("Library, first useful paint", time("library"), limit, bound(1000), most),
        ("Map, first useful paint", time("tree"), all, time("fetched"), Target::Better(2.0)),
        ("Map, first useful paint", time("tree"), limit, bound(1000), most),
        ("Reader, first useful paint", time("read"), limit, bound(1000), most),
        ("Compare, first useful paint", time("compare"), limit, bound(1000), most),
        ("Search, first useful paint", time("search"), limit, bound(1000), most),
        ("CPU of the server per idle second", time("idle"), limit, bound(10), most),
        ("bytes for Library and Map", bytes("bytes"), all, bytes("fetched_bytes"), most),
        ("a frame while the map scrolls", time("map_frame"), "50 a second", bound(20), most),
        ("a frame while the slider moves", time("slider_frame"), "50 a second", bound(20), most),
        ("slowest answer for a screen", time("answer"), limit, bound(50), most),
        ("memory of the page", bytes("page"), all, bytes("fetched_page"), most),
        ("memory of the page", bytes("page"), limit, Value::Bytes(150_000_000), most),
        ("memory of the server", bytes("server"), limit, Value::Bytes(64_000_000), most),
    ]
    .into_iter()
    .map(|(what, stvc, peer, other, target)| row(what, stvc, peer, other, target))
    .collect()
}

/// The timeline of the long chat.
const LONG: &str = "chats/Long/Story";

/// Writes the library, with a snapshot after each save.
fn write(place: &Place, mut library: Library, library_size: &LibrarySize) {
    let mut random = Random::new(12);
    let mut chats = Vec::new();
    for n in 0..library_size.characters {
        let character = format!("Character {n}");
        let entries: Vec<_> = (0..40).map(|uid| Entry::new(&mut random, uid)).collect();
        library.write(
            &lorebook_path(&format!("{character} Lore")),
            lorebook::file(&entries).as_bytes(),
        );
        for story in 0..library_size.stories {
            let seed = (n * 1000 + story) as u64;
            let name = format!("Story {story}");
            let main = Chat::new(seed, &character, &name, 60 + random.below(60));
            for fork in 0..library_size.forks {
                let at = 5 + random.below(main.len() - 5);
                let name = format!("{name} - Branch #{fork}");
                chats.push(main.fork(seed * 100 + fork as u64, at, &name));
            }
            chats.push(main);
        }
    }
    let begin = chrono::DateTime::from_timestamp(1_700_000_000, 0).expect("a moment");
    let mut saves = 0;
    let mut take = || {
        saves += 1;
        let workspace = place.workspace(begin + chrono::Duration::hours(saves));
        let options = snapshot::Options::default();
        snapshot::snapshot(&workspace, &options, &mut NoProgress).expect("take a snapshot");
        workspace
    };
    for _ in 0..library_size.snapshots {
        library.next_save();
        for chat in &mut chats {
            chat.next_turn(&library);
        }
        take();
    }
    let LongChat { messages, snapshots } = library_size.long;
    let mut long = Chat::new(1, "Long", "Story", messages - 2 * snapshots);
    long.save_lorebook(&library, 60);
    for _ in 0..snapshots {
        library.next_save();
        long.next_turn(&library);
        take();
    }
    gc::gc(&take(), &gc::Options::default(), &mut NoProgress).expect("collect");
}
