//! Workload (i): the cost of many timelines, many snapshots, and one process per save. stvc is its
//! own peer.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use stvc::progress::NoProgress;
use stvc::verbs::snapshot;

use crate::chat::{Chat, PER_MESSAGE};
use crate::library::Library;
use crate::measure::{Cost, median, memory, run, time, wall};
use crate::targets::{Row, Target};
use crate::tools::{Place, Stvc, Tool};
use crate::value::Value;

pub struct Timelines {
    /// Numbers of chats, each in its own library; the first is the baseline.
    pub counts: &'static [u64],
    /// Snapshots of the chat that gets checkpoints.
    pub snapshots: [usize; 2],
    /// Size of that chat in tenths of a megabyte.
    pub tenths: usize,
    pub rounds: usize,
}

/// Messages of each of the many chats.
const SHORT: usize = 10;
/// Highest allowed factor with ten times as many chats.
const ALLOWED_FACTOR: f64 = 3.0;

pub fn measure(dir: &Path, timelines: &Timelines) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut first: Option<ChatCountResults> = None;
    for count in timelines.counts {
        let home = dir.join(count.to_string());
        let among = ChatCountResults::measure(&home, *count, timelines.rounds);
        let peer = first.as_ref().unwrap_or(&among);
        rows.extend(among.rows(peer));
        first.get_or_insert(among);
        let _ = fs::remove_dir_all(home);
    }
    rows.extend(checkpoints(dir, timelines));
    rows
}

/// Measurements with one number of chats.
struct ChatCountResults {
    chats: u64,
    further: Vec<Cost>,
    restore: Vec<Cost>,
    log: Vec<Cost>,
    /// Memory of a new device's first `sync`, and the size of the longest chat.
    sync: Option<(u64, u64)>,
}

impl ChatCountResults {
    fn measure(home: &Path, chats: u64, rounds: usize) -> Self {
        let mut library = Library::new(&home.join("library"));
        let mut chat = |n: u64| {
            let chat = Chat::new(n, &format!("Character {}", n / 10), &format!("Chat {n}"), SHORT);
            chat.save(&library);
            chat
        };
        let mut kept: Vec<_> = (0..chats).map(&mut chat).take(rounds + 1).collect();
        (rounds as u64 + 1..chats).for_each(|n| drop(chat(n)));
        let stvc = Stvc::new(Place { library: library.root.clone(), home: home.to_owned() });
        let save = || stvc.save();
        save().into_iter().for_each(run);
        let mut among =
            Self { chats, further: Vec::new(), restore: Vec::new(), log: Vec::new(), sync: None };
        for round in 0..rounds {
            let turn = round % kept.len();
            library.next_save();
            kept[turn].next_turn(&library);
            among.further.push(time(save()));
            let file = library.root.join(kept[0].path());
            let bytes = fs::read(&file).expect("read a chat");
            fs::remove_file(&file).expect("remove a chat");
            let name = format!("{}/{}", kept[0].character, kept[0].name);
            among.restore.push(time(vec![stvc.command(&["restore", &name])]));
            assert!(fs::read(&file).expect("it is back") == bytes, "it is not what was stored");
            among.log.push(time(vec![stvc.command(&["log", "--graph"])]));
        }
        among.sync = new_device(&stvc, home);
        among
    }

    fn rows(&self, peer: &Self) -> Vec<Row> {
        let (chats, fewer) = (self.chats, peer.chats);
        let row = |what: &str, own: &[Cost], other: &[Cost], target| Row {
            letter: 'i',
            what: format!("{what} among {chats} chats"),
            stvc: wall(own).unwrap_or(Value::Bytes(0)),
            peer: format!("among {fewer}"),
            other: wall(other).unwrap_or(Value::Bytes(0)),
            target,
        };
        let is_tenfold = chats == 10 * fewer;
        let target = if is_tenfold { Target::AtMost(ALLOWED_FACTOR) } else { Target::None };
        let mut rows = vec![
            row("further snapshot", &self.further, &peer.further, target),
            row("restore of one", &self.restore, &peer.restore, Target::None),
            row("log", &self.log, &peer.log, Target::None),
        ];
        rows.extend(self.sync.map(|(memory, largest)| Row {
            letter: 'i',
            what: format!("memory: sync of {chats} chats to a new device"),
            stvc: Value::Bytes(memory),
            peer: "3 x the chat + 64 MB".into(),
            other: Value::Bytes(3 * largest + 64_000_000),
            target: Target::AtMost(1.0),
        }));
        rows
    }
}

/// Syncs to an empty device. Returns its memory use and the size of the longest chat.
fn new_device(stvc: &Stvc, home: &Path) -> Option<(u64, u64)> {
    let shared = home.join("shared");
    let to = |stvc: &Stvc| stvc.command(&["sync", &shared.display().to_string()]);
    run(to(stvc));
    let other = home.join("other");
    let library = Library::new(&other.join("library"));
    fs::create_dir_all(library.root.join("chats")).expect("make a library");
    let device = Stvc::new(Place { library: library.root.clone(), home: other });
    let peak = memory(vec![to(&device)])?;
    Some((peak, longest(&library.root)))
}

/// Returns the size of the largest file below a folder.
fn longest(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let length = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => longest(&entry.path()),
        found => found.map_or(0, |found| found.len()),
    };
    entries.flatten().map(length).max().unwrap_or(0)
}

/// Measures `snapshot --at` against a plain snapshot, with few and with many snapshots, and a plain
/// one without a process, as `watch` and the mailbox take it.
fn checkpoints(dir: &Path, timelines: &Timelines) -> Vec<Row> {
    let home = dir.join("checkpoints");
    let mut library = Library::new(&home.join("library"));
    let messages = timelines.tenths * 100_000 / PER_MESSAGE;
    let mut chat = Chat::new(1, "Mira Voss", "The Tide Office", messages);
    let place = Place { library: library.root.clone(), home };
    let stvc = Stvc::new(place);
    let file = library.root.join(chat.path());
    let name = format!("{}/{}", chat.character, chat.name);
    let mut taken = 0;
    let mut known: Option<Value> = None;
    let mut rows = Vec::new();
    let begin = chrono::Utc::now();
    let within = |library: &mut Library, chat: &mut Chat| {
        library.next_save();
        chat.next_turn(library);
        let workspace = stvc.place().workspace(begin);
        let begin = Instant::now();
        let options = snapshot::Options::default();
        snapshot::snapshot(&workspace, &options, &mut NoProgress).expect("take a snapshot");
        begin.elapsed()
    };
    for snapshots in timelines.snapshots {
        let mut inside = Vec::new();
        while taken < snapshots {
            inside.push(within(&mut library, &mut chat));
            taken += 1;
        }
        let (mut plain, mut at, mut floor) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..timelines.rounds {
            library.next_save();
            chat.next_turn(&library);
            plain.push(time(stvc.save()));
            // A message without a checkpoint each time.
            let message = (chat.len() / 2 + round).to_string();
            let tag = format!("checkpoint {snapshots} {round}");
            let arguments = ["snapshot", &name, "--at", &message, "--tag", &tag];
            at.push(time(vec![stvc.command(&arguments)]));
            let begin = Instant::now();
            let bytes = fs::read(&file).expect("read the chat");
            std::hint::black_box(blake3::hash(&bytes));
            floor.push(begin.elapsed());
        }
        taken += timelines.rounds;
        let value = |costs: &[Cost]| wall(costs).unwrap_or(Value::Bytes(0));
        let row = |what: String, stvc, peer: &str, other, target| Row {
            letter: 'i',
            what,
            stvc,
            peer: peer.into(),
            other,
            target,
        };
        let what = format!("snapshot --at, {snapshots} snapshots");
        rows.push(row(what.clone(), value(&at), "a plain one", value(&plain), Target::AtMost(2.0)));
        if let Some(fewer) = known {
            let peer = format!("{} snapshots", timelines.snapshots[0]);
            rows.push(row(what, value(&at), &peer, fewer, Target::AtMost(1.3)));
        } else {
            // Neither starts a process.
            let bound = median(floor).map(|floor| floor + Duration::from_millis(5));
            if let Some((inside, bound)) = median(inside).zip(bound) {
                let what = "further snapshot, no process started".to_owned();
                let (inside, bound) = (Value::Time(inside), Value::Time(bound));
                let peer = "read and hash it, and 5 ms";
                rows.push(row(what, inside, peer, bound, Target::AtMost(1.0)));
            }
        }
        known = Some(value(&at));
    }
    rows
}
