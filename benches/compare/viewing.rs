//! Workload (h): the page of `stvc view` on a large library, in headless Chromium. The peer is the way of SillyTavern-Timelines: every chat is fetched, and the map is made of
//! all their texts in the page.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value as Json;
use stvc::progress::Silent;
use stvc::verbs::{gc, snapshot};

use crate::aims::{Aim, Row};
use crate::chat::{Chat, lorebook_path};
use crate::equipment::browser;
use crate::library::Library;
use crate::lorebook::{self, Entry};
use crate::prose::Random;
use crate::tools::{Place, Stvc, Tool};
use crate::value::Value;

/// How large the library is.
pub struct Shelves {
    pub characters: usize,
    /// Stories of each, with forks.
    pub stories: usize,
    pub forks: usize,
    /// Snapshots of each timeline.
    pub snapshots: usize,
}

pub fn measure(dir: &Path, shelves: &Shelves) -> Vec<Row> {
    let equipment = match browser() {
        Ok(equipment) => equipment,
        Err(why) => {
            eprintln!("(h) is left out: {why}");
            return Vec::new();
        }
    };
    let library = Library::new(&dir.join("library"));
    let place = Place { library: library.root.clone(), home: dir.to_owned() };
    write(&place, library, shelves);
    let stvc = Stvc::new(place);
    let mut view = stvc.command(&["--json", "view"]);
    let mut view = view.stdout(Stdio::piped()).spawn().expect("start the view");
    let mut line = String::new();
    let out = view.stdout.as_mut().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("read its address");
    let line: Json = serde_json::from_str(&line).expect("a line");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("compare/viewing.mjs");
    let told = Command::new("node")
        .arg(script)
        .args([&equipment.playwright, &equipment.chromium])
        .arg(line["address"].as_str().expect("an address"))
        .args([stvc.place().library.join("chats").display().to_string(), view.id().to_string()])
        .stderr(Stdio::inherit())
        .output()
        .expect("run the browser");
    let _ = view.kill();
    let _ = view.wait();
    let told: Json = serde_json::from_slice(&told.stdout).expect("what the browser measured");
    rows(&told)
}

fn rows(told: &Json) -> Vec<Row> {
    let number = |name: &str| told[name].as_f64().unwrap_or(f64::NAN);
    let time = |name: &str| Value::Time(Duration::from_secs_f64(number(name).max(0.0) / 1e3));
    let bytes = |name: &str| Value::Bytes(number(name) as u64);
    let bound = |ms| Value::Time(Duration::from_millis(ms));
    let (all, limit) = ("every chat fetched", "the bound");
    let most = Aim::AtMost(1.0);
    [
        ("Library, first useful paint", time("library"), all, time("fetched"), Aim::Better(2.0)),
        ("Library, first useful paint", time("library"), limit, bound(1000), most),
        ("Tree, first useful paint", time("tree"), all, time("fetched"), Aim::Better(2.0)),
        ("Tree, first useful paint", time("tree"), limit, bound(1000), most),
        ("bytes for Library and Tree", bytes("bytes"), all, bytes("fetched_bytes"), most),
        ("a frame while the map scrolls", time("map_frame"), "50 a second", bound(20), most),
        ("a frame while the slider moves", time("slider_frame"), "50 a second", bound(20), most),
        ("slowest answer for a screen", time("answer"), limit, bound(50), most),
        ("memory of the page", bytes("page"), all, bytes("fetched_page"), most),
        ("memory of the page", bytes("page"), limit, Value::Bytes(150_000_000), most),
        ("memory of the server", bytes("server"), limit, Value::Bytes(64_000_000), most),
    ]
    .into_iter()
    .map(|(what, stvc, peer, other, aim)| {
        let (what, peer) = (what.to_owned(), peer.to_owned());
        Row { letter: 'h', what, stvc, peer, other, aim }
    })
    .collect()
}

fn write(place: &Place, mut library: Library, shelves: &Shelves) {
    let mut random = Random::new(12);
    let mut chats = Vec::new();
    for n in 0..shelves.characters {
        let character = format!("Character {n}");
        let entries: Vec<_> = (0..40).map(|uid| Entry::new(&mut random, uid)).collect();
        library.write(
            &lorebook_path(&format!("{character} Lore")),
            lorebook::file(&entries).as_bytes(),
        );
        for story in 0..shelves.stories {
            let seed = (n * 1000 + story) as u64;
            let name = format!("Story {story}");
            let main = Chat::new(seed, &character, &name, 60 + random.below(60));
            for fork in 0..shelves.forks {
                let at = 5 + random.below(main.len() - 5);
                let name = format!("{name} - Branch #{fork}");
                chats.push(main.fork(seed * 100 + fork as u64, at, &name));
            }
            chats.push(main);
        }
    }
    let begin = chrono::DateTime::from_timestamp(1_700_000_000, 0).expect("a moment");
    for n in 0..shelves.snapshots {
        library.next_save();
        for chat in &mut chats {
            chat.next_turn(&library);
        }
        let workspace = place.workspace(begin + chrono::Duration::hours(n as i64));
        let options = snapshot::Options::default();
        snapshot::snapshot(&workspace, &options, &mut Silent).expect("take a snapshot");
        if n + 1 == shelves.snapshots {
            gc::gc(&workspace, &gc::Options::default(), &mut Silent).expect("collect");
        }
    }
}
