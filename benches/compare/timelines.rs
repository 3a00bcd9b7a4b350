//! Workload (i): what it costs that there are many timelines, many snapshots, and a process for every save. stvc alone: it is its own peer.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use stvc::progress::Silent;
use stvc::verbs::snapshot;

use crate::aims::{Aim, Row};
use crate::chat::{Chat, PER_MESSAGE};
use crate::library::Library;
use crate::measure::{Cost, median, memory, run, time, wall};
use crate::tools::{Place, Stvc, Tool};
use crate::value::Value;

/// How much there is.
pub struct Timelines {
    /// So many chats, each time in another library; the others are held against the first.
    pub counts: &'static [u64],
    /// Snapshots of the chat that gets checkpoints.
    pub snapshots: [usize; 2],
    /// Megabytes of that chat, times ten.
    pub tenths: usize,
    /// Rounds of what is measured.
    pub rounds: usize,
}

/// Messages of a chat that is one of many.
const SHORT: usize = 10;
/// How many times longer it may take among ten times as many chats.
const MANY_TIMES: f64 = 3.0;

pub fn measure(dir: &Path, timelines: &Timelines) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut first: Option<Among> = None;
    for count in timelines.counts {
        let home = dir.join(count.to_string());
        let among = Among::measure(&home, *count, timelines.rounds);
        let peer = first.as_ref().unwrap_or(&among);
        rows.extend(among.rows(peer));
        first.get_or_insert(among);
        let _ = fs::remove_dir_all(home);
    }
    rows.extend(checkpoints(dir, timelines));
    rows
}

/// What was measured among so many chats.
struct Among {
    chats: u64,
    further: Vec<Cost>,
    restore: Vec<Cost>,
    log: Vec<Cost>,
    /// Memory of a new device's first `sync`, and how much it gets.
    sync: Option<(u64, u64)>,
}

impl Among {
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
        let row = |what: &str, own: &[Cost], other: &[Cost], aim| Row {
            letter: 'i',
            what: format!("{what} among {chats} chats"),
            stvc: wall(own).unwrap_or(Value::Bytes(0)),
            peer: format!("among {fewer}"),
            other: wall(other).unwrap_or(Value::Bytes(0)),
            aim,
        };
        let is_tenfold = chats == 10 * fewer;
        let aim = if is_tenfold { Aim::AtMost(MANY_TIMES) } else { Aim::None };
        let mut rows = vec![
            row("further snapshot", &self.further, &peer.further, aim),
            row("restore of one", &self.restore, &peer.restore, Aim::None),
            row("log", &self.log, &peer.log, Aim::None),
        ];
        rows.extend(self.sync.map(|(memory, largest)| Row {
            letter: 'i',
            what: format!("memory: sync of {chats} chats to a new device"),
            stvc: Value::Bytes(memory),
            peer: "3 x the chat + 64 MB".into(),
            other: Value::Bytes(3 * largest + 64_000_000),
            aim: Aim::AtMost(1.0),
        }));
        rows
    }
}

/// All of it comes to a device that has nothing: what memory that takes, and how long the longest chat is.
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

/// The longest file below a folder.
fn longest(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let length = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => longest(&entry.path()),
        found => found.map_or(0, |found| found.len()),
    };
    entries.flatten().map(length).max().unwrap_or(0)
}

/// `snapshot --at` beside a plain one, with few and with many snapshots before it; and a plain one where no process starts, as `watch` and the mailbox take it.
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
        snapshot::snapshot(&workspace, &options, &mut Silent).expect("take a snapshot");
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
            // Each at a message that has no checkpoint.
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
        let row = |what: String, stvc, peer: &str, other, aim| Row {
            letter: 'i',
            what,
            stvc,
            peer: peer.into(),
            other,
            aim,
        };
        let what = format!("snapshot --at, {snapshots} snapshots");
        rows.push(row(what.clone(), value(&at), "a plain one", value(&plain), Aim::AtMost(2.0)));
        if let Some(fewer) = known {
            let peer = format!("{} snapshots", timelines.snapshots[0]);
            rows.push(row(what, value(&at), &peer, fewer, Aim::AtMost(1.3)));
        } else {
            // A process is started for neither.
            let bound = median(floor).map(|floor| floor + Duration::from_millis(5));
            if let Some((inside, bound)) = median(inside).zip(bound) {
                let what = "further snapshot, no process started".to_owned();
                let (inside, bound) = (Value::Time(inside), Value::Time(bound));
                let peer = "read and hash it, and 5 ms";
                rows.push(row(what, inside, peer, bound, Aim::AtMost(1.0)));
            }
        }
        known = Some(value(&at));
    }
    rows
}
