//! Counts the instructions of commands with valgrind. Unlike a time, the count hardly depends on
//! the machine and on its other work, so it shows small changes.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::chat::{Chat, PER_MESSAGE};
use crate::library::Library;
use crate::measure::{run, size, wrapped};
use crate::recap::RecapChat;
use crate::tools::{Place, Stvc, Tool};

/// A count in millions of instructions, or a size in kilobytes, under the name of its column.
pub type Count = (&'static str, f64);

/// Number of saves whose mean is counted. The joining of packs is among them.
const SAVES: usize = 8;
/// Messages of the chats that do not change.
const SHORT: usize = 10;
/// Size of the chat that grows.
const LONG: usize = 3_000_000;

pub fn measure(dir: &Path) -> Vec<Count> {
    let mut counts = among_20_chats(&dir.join("plain"));
    counts.extend(among_200_chats(&dir.join("many")));
    counts.extend(recap(&dir.join("recap")));
    counts
}

fn among_20_chats(home: &Path) -> Vec<Count> {
    let (stvc, mut library) = create(home);
    let mut chat = Chat::new(1, "Mira Voss", "The Tide Office", LONG / PER_MESSAGE);
    chat.save(&library);
    chat.save_lorebook(&library, 40);
    add_short_chats(&library, 19);
    let timeline = format!("{}/{}", chat.character, chat.name);
    let first = count(stvc.save());
    let further = further(&stvc, &mut library, |library| chat.next_turn(library));
    let before_gc = stored(&stvc);
    let file = library.root.join(chat.path());
    let saved = fs::read(&file).expect("read the chat");
    fs::remove_file(&file).expect("remove the chat");
    let restore = count(stvc.restore(&chat.path(), &timeline, home));
    assert!(fs::read(&file).expect("read the chat") == saved, "it is not what was stored");
    let idle = idle_minute(&stvc);
    let of = |arguments: &[&str]| count(vec![stvc.command(arguments)]);
    let log = of(&["log", "--graph"]);
    let status = of(&["status"]);
    let search = of(&["search", "harbour"]);
    let check = count(stvc.check());
    let gc = count(stvc.gc());
    let backup = count(stvc.backup(&home.join("backup.stvc")));
    vec![
        ("first", first),
        ("further", further),
        ("restore", restore),
        ("idle", idle),
        ("log", log),
        ("status", status),
        ("search", search),
        ("check", check),
        ("gc", gc),
        ("backup", backup),
        ("kB", before_gc),
        ("kB, gc", stored(&stvc)),
    ]
}

fn among_200_chats(home: &Path) -> Vec<Count> {
    let (stvc, mut library) = create(home);
    let mut chat = Chat::new(1, "Mira Voss", "The Tide Office", SHORT);
    chat.save(&library);
    add_short_chats(&library, 199);
    stvc.save().into_iter().for_each(run);
    vec![("of 200", further(&stvc, &mut library, |library| chat.next_turn(library)))]
}

fn recap(home: &Path) -> Vec<Count> {
    let (stvc, mut library) = create(home);
    let mut chat = RecapChat::new(1, "Night Market", 60);
    chat.grow(150);
    chat.save(&library);
    stvc.save().into_iter().for_each(run);
    let further = further(&stvc, &mut library, |library| {
        chat.grow(2);
        chat.save(library);
    });
    let before_gc = stored(&stvc);
    stvc.gc().into_iter().for_each(run);
    vec![("recap", further), ("recap kB", before_gc), ("recap kB, gc", stored(&stvc))]
}

fn create(home: &Path) -> (Stvc, Library) {
    let library = Library::new(&home.join("library"));
    (Stvc::new(Place { library: library.root.clone(), home: home.to_owned() }), library)
}

fn add_short_chats(library: &Library, chats: u64) {
    for n in 0..chats {
        let chat = Chat::new(100 + n, &format!("Character {n}"), "A long evening", SHORT);
        chat.save(library);
    }
}

fn further(stvc: &Stvc, library: &mut Library, mut save: impl FnMut(&Library)) -> f64 {
    let mut total = 0.0;
    for _ in 0..SAVES {
        library.next_save();
        save(library);
        total += count(stvc.save());
    }
    total / SAVES as f64
}

fn stored(stvc: &Stvc) -> f64 {
    size(&stvc.place().store()) as f64 / 1e3
}

/// Counts a minute in which nothing happens: two watches run, one of them a minute longer.
fn idle_minute(stvc: &Stvc) -> f64 {
    let [short, long] = [30, 90].map(|seconds| {
        let watch = start(&stvc.command(&["watch"]));
        thread::sleep(Duration::from_secs(seconds));
        let mut interrupt = Command::new("kill");
        interrupt.args(["-INT", &watch.id().to_string()]);
        run(interrupt);
        finish(watch)
    });
    long - short
}

fn count(commands: Vec<Command>) -> f64 {
    commands.iter().map(start).map(finish).sum()
}

/// Starts a command under valgrind, on one core, because parallel work is divided by their number.
fn start(command: &Command) -> Child {
    let counter =
        ["taskset", "1", "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let mut counted = wrapped(&counter, command);
    counted.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    counted.spawn().expect("start taskset")
}

/// Returns the millions of instructions of a command that must succeed.
fn finish(command: Child) -> f64 {
    let output = command.wait_with_output().expect("wait for a command");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "valgrind is missing, or the command failed: {text}");
    let collected = text.lines().find_map(|line| line.split_once("Collected : "));
    let (_, number) = collected.expect("callgrind reports a count");
    number.trim().parse::<f64>().expect("a count") / 1e6
}
