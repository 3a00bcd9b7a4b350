//! Workload (f): a chat in a library with characters and lorebooks. The peer is stvc without them.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::chat::{Chat, PER_MESSAGE, lorebook_path};
use crate::library::{Library, quoted};
use crate::lorebook::{self, Entry};
use crate::measure::{Cost, cpu, rotated_order, run, size, time, wall};
use crate::prose::{Random, story};
use crate::targets::{Row, Target};
use crate::tools::{Place, Stvc, Tool};
use crate::value::Value;

pub struct Whole {
    pub cards: u64,
    pub books: u64,
    /// Bytes of the chat.
    pub chat: usize,
}

/// Bytes of a card's picture: 200 cards take 100 MB.
const PICTURE: usize = 495_000;
const ENTRIES: u64 = 20;

pub fn measure(dir: &Path, whole: &Whole, saves: usize) -> Vec<Row> {
    let mut contestants = [("alone", false), ("whole", true)].map(|(name, is_whole)| {
        let home = dir.join(name);
        let library = Library::new(&home.join("library"));
        let mut chat = Chat::new(1, "Mira Voss", "The Tide Office", whole.chat / PER_MESSAGE);
        chat.save(&library);
        chat.save_lorebook(&library, 40);
        if is_whole {
            furnish(&library, whole);
        }
        let stvc = Stvc::new(Place { library: library.root.clone(), home });
        (stvc, library, chat)
    });
    let first: Vec<_> = contestants.iter().map(|(stvc, ..)| time(stvc.save())).collect();
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..saves {
        for n in rotated_order(round, 2) {
            let (stvc, library, chat) = &mut contestants[n];
            library.next_save();
            chat.next_turn(library);
            costs[n].push(time(stvc.save()));
        }
    }
    let [_, (stvc, library, _)] = &mut contestants;
    let others = format!("{} cards and {} lorebooks", whole.cards, whole.books);
    let row = |what: String, of: fn(&[Cost]) -> Option<Value>, target| {
        let value = |n: usize| of(&costs[n]).unwrap_or(Value::Bytes(0));
        Row {
            letter: 'f',
            what,
            stvc: value(1),
            peer: "the chat alone".into(),
            other: value(0),
            target,
        }
    };
    vec![
        row(format!("further snapshot of a chat among {others}"), wall, Target::AtMost(1.1)),
        row("further snapshot among them, CPU".into(), cpu, Target::None),
        first_snapshot(dir, library, &first[1]),
        another_description(stvc, library),
    ]
}

/// Compares the first snapshot of everything with a copy.
fn first_snapshot(dir: &Path, library: &Library, first: &Cost) -> Row {
    let mut copy = std::process::Command::new("cp");
    copy.arg("-a").arg(&library.root).arg(dir.join("copy"));
    let other = wall(&[time(vec![copy])]).unwrap_or(Value::Bytes(0));
    let stvc = wall(&[*first]).unwrap_or(Value::Bytes(0));
    let what = "first snapshot of them".into();
    Row { letter: 'f', what, stvc, peer: "cp".into(), other, target: Target::None }
}

/// Compares the store's growth after a new description with the card's size.
fn another_description(stvc: &Stvc, library: &mut Library) -> Row {
    let before = size(&stvc.place().store());
    library.next_save();
    let mut random = Random::new(99);
    let text = story(&mut random, 3000);
    let bytes = card(0, &text);
    library.write(&card_path(0), &bytes);
    stvc.save().into_iter().for_each(run);
    let grown = size(&stvc.place().store()).saturating_sub(before);
    let what = "size of a card's new description".into();
    let (stvc, other) = (Value::Bytes(grown), Value::Bytes(bytes.len() as u64));
    Row { letter: 'f', what, stvc, peer: "the card".into(), other, target: Target::AtMost(0.02) }
}

fn furnish(library: &Library, whole: &Whole) {
    let mut random = Random::new(7);
    for number in 0..whole.cards {
        let text = story(&mut random, 3000);
        library.write(&card_path(number), &card(number, &text));
    }
    for number in 0..whole.books {
        let entries: Vec<_> = (0..ENTRIES).map(|uid| Entry::new(&mut random, uid)).collect();
        let path = lorebook_path(&format!("World {number}"));
        library.write(&path, lorebook::file(&entries).as_bytes());
    }
}

fn card_path(number: u64) -> std::path::PathBuf {
    Path::new("characters").join(format!("Character {number}.png"))
}

/// Builds a card as SillyTavern 1.19 writes it: both texts after the picture.
fn card(number: u64, description: &str) -> Vec<u8> {
    let mut random = Random::new(number);
    let picture: Vec<_> = (0..PICTURE / 8).flat_map(|_| random.next().to_le_bytes()).collect();
    let text = quoted(description);
    let json = |spec: &str| {
        format!(
            r#"{{"name":"Character {number}","description":{text},"spec":"{spec}","data":{{"name":"Character {number}","description":{text},"extensions":{{}}}}}}"#
        )
    };
    let named = |name: &str, spec: &str| {
        [name.as_bytes(), b"\0", STANDARD.encode(json(spec)).as_bytes()].concat()
    };
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [
        (b"IHDR", vec![0, 0, 1, 144, 0, 0, 2, 88, 8, 6, 0, 0, 0]),
        (b"IDAT", picture),
        (b"tEXt", named("chara", "chara_card_v2")),
        (b"tEXt", named("ccv3", "chara_card_v3")),
        (b"IEND", Vec::new()),
    ] {
        bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
        let content = [kind.as_slice(), &data].concat();
        bytes.extend_from_slice(&content);
        bytes.extend_from_slice(&crc32fast::hash(&content).to_be_bytes());
    }
    bytes
}
