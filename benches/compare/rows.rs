//! What is measured. Each function makes its own library and stores in an empty folder and gives its rows.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::Scale;
use crate::library::{Chat, PER_MESSAGE, write_ten_chats};
use crate::measure::{Cost, cpu, peak_memory, rounds, run, size, time, time_of, wall};
use crate::peers::{Borg, Git, Place, Restic, Stvc, Tool, git_in, version};
use crate::table::{Aim, Row, Value};

/// stvc and git over a library in `dir`, which the tools are yet to store.
fn stvc_and_git(dir: &Path) -> (Stvc, Git) {
    let place = |store: &str| Place { library: dir.join("library"), store: dir.join(store) };
    (Stvc(place("stvc")), Git(place("git")))
}

fn first_save(tool: &dyn Tool) {
    tool.create();
    tool.save().into_iter().for_each(run);
}

/// The next turn of a chat, as SillyTavern saves it: a question, an answer, and the header.
fn next_turn(chat: &mut Chat, library: &Path) {
    chat.grow(2);
    chat.save(library);
}

pub fn one_more_snapshot(dir: &Path, scale: &Scale) -> Vec<Row> {
    let (stvc, git) = stvc_and_git(dir);
    let mut chat = write_ten_chats(&stvc.0.library, scale.messages);
    first_save(&stvc);
    first_save(&git);
    let [own, other] = rounds(
        scale.rounds,
        || next_turn(&mut chat, &stvc.0.library),
        [&mut || time(stvc.save()), &mut || time(git.save())],
    );
    let row = |what: &str, of: fn(&[Cost]) -> Value, aim| Row {
        number: 1,
        what: format!("one more snapshot{what}; {}", scale.library()),
        stvc: of(&own),
        peer: "git add, commit",
        other: of(&other),
        aim,
    };
    vec![row("", wall, Aim::Better(15.0)), row(", CPU", cpu, Aim::None)]
}

pub fn first_snapshot(dir: &Path, scale: &Scale) -> Vec<Row> {
    let (stvc, git) = stvc_and_git(dir);
    write_ten_chats(&stvc.0.library, scale.messages);
    let clear = |tool: &dyn Tool| {
        let _ = fs::remove_dir_all(tool.store());
    };
    let [own, other] = rounds(
        scale.few,
        || {
            clear(&stvc);
            clear(&git);
        },
        [&mut || time(stvc.save()), &mut || {
            git.create();
            time(git.save())
        }],
    );
    let megabytes = size(&stvc.0.library) / 1_000_000;
    let row = |what: &str, of: fn(&[Cost]) -> Value, aim| Row {
        number: 2,
        what: format!("first snapshot{what}; {megabytes} MB in all"),
        stvc: of(&own),
        peer: "git add, commit",
        other: of(&other),
        aim,
    };
    vec![row("", wall, Aim::AtMost(1.0)), row(", CPU", cpu, Aim::None)]
}

pub fn restore(dir: &Path, scale: &Scale) -> Vec<Row> {
    let (stvc, git) = stvc_and_git(dir);
    let mut chat = write_ten_chats(&stvc.0.library, scale.messages);
    for tool in [&stvc as &dyn Tool, &git] {
        first_save(tool);
    }
    next_turn(&mut chat, &stvc.0.library);
    for tool in [&stvc as &dyn Tool, &git] {
        tool.save().into_iter().for_each(run);
    }
    let (path, timeline) = (chat.path(), chat.timeline());
    let path_text = path.to_str().expect("a path of ours");
    let file = stvc.0.library.join(&path);
    let saved = dir.join("copy");
    fs::copy(&file, &saved).expect("copy the chat");
    let delete = || fs::remove_file(&file).expect("delete the chat");
    let [own, other, copy] = rounds(
        scale.some,
        || (),
        [
            &mut || {
                delete();
                time(vec![stvc.command(&["restore", &timeline])])
            },
            &mut || {
                delete();
                time(vec![git.command(&["checkout", "HEAD", "--", path_text])])
            },
            &mut || {
                delete();
                time_of(|| {
                    fs::copy(&saved, &file).expect("copy the chat back");
                    let copied = fs::File::options().append(true).open(&file);
                    let copied = copied.expect("open the copy");
                    copied.sync_all().expect("sync the copy");
                })
            },
        ],
    );
    let row = |peer, other: &[Cost], aim| Row {
        number: 3,
        what: format!("restore of one chat, {}", scale.chat()),
        stvc: wall(&own),
        peer,
        other: wall(other),
        aim,
    };
    vec![
        row("git checkout, not synced", &other, Aim::AtMost(2.0)),
        row("copy of the file, synced", &copy, Aim::None),
    ]
}

pub fn memory(dir: &Path, scale: &Scale) -> Vec<Row> {
    let (stvc, _) = stvc_and_git(dir);
    let library = &stvc.0.library;
    let mut chat = write_ten_chats(library, scale.messages);
    let file = library.join(chat.path());
    let bound = 3 * fs::metadata(&file).expect("look at the chat").len() + 64_000_000;
    let measure = |command: &str, arguments: &[&str]| Row {
        number: 4,
        what: format!("peak memory: {command}; {}", scale.library()),
        stvc: peak_memory(stvc.command(arguments)).map_or(Value::Unknown, Value::Bytes),
        peer: "3 x the chat + 64 MB",
        other: Value::Bytes(bound),
        aim: Aim::AtMost(1.0),
    };
    let mut rows = vec![measure("first snapshot", &["snapshot"])];
    for _ in 0..scale.few {
        next_turn(&mut chat, library);
        run(stvc.command(&["snapshot"]));
    }
    next_turn(&mut chat, library);
    rows.push(measure("one more snapshot", &["snapshot"]));
    fs::remove_file(&file).expect("delete the chat");
    rows.push(measure("restore", &["restore", &chat.timeline()]));
    rows.push(measure("check", &["check"]));
    rows.push(measure("log", &["log"]));
    rows
}

/// Many saves of one chat, forks of it coming up; all tools store each.
fn many_saves(library: &Path, scale: &Scale, tools: &[&dyn Tool]) {
    let mut main = Chat::new(1, "Mira Voss", "The Tide Office", scale.growing());
    main.save(library);
    main.save_lorebook(library, 40);
    tools.iter().for_each(|tool| tool.create());
    let mut forks: Vec<Chat> = Vec::new();
    for save in 0..scale.saves {
        let number = forks.len() + 1;
        if save > 0 && save % (scale.saves / 5) == 0 {
            let name = format!("The Tide Office - Branch #{number}");
            let fork = main.fork(100 + number as u64, main.len() * 2 / 3, &name);
            fork.save(library);
            forks.push(fork);
        } else {
            match forks.last_mut().filter(|_| save % 5 == 4) {
                Some(fork) => next_turn(fork, library),
                None => next_turn(&mut main, library),
            }
        }
        for tool in tools {
            tool.save().into_iter().for_each(run);
        }
    }
}

pub fn store_size(dir: &Path, scale: &Scale) -> Vec<Row> {
    let (stvc, git) = stvc_and_git(dir);
    many_saves(&stvc.0.library, scale, &[&stvc, &git]);
    let row = |peer, aim| Row {
        number: 5,
        what: scale.saved(),
        stvc: Value::Bytes(size(stvc.store())),
        peer,
        other: Value::Bytes(size(git.store())),
        aim,
    };
    let loose = row("git, no gc", Aim::None);
    run(git.command(&["gc", "-q", "--aggressive", "--prune=now"]));
    vec![loose, row("git gc --aggressive", Aim::None)]
}

pub fn many_snapshots(dir: &Path, scale: &Scale) -> Vec<Row> {
    let (many, _) = stvc_and_git(dir);
    let library = many.0.library.as_path();
    let few = Stvc(Place { library: library.to_owned(), store: dir.join("few") });
    let chat = |n: u64| Chat::new(n, &format!("Character {n}"), "A long evening", 300);
    let mut chats: Vec<_> = (1..=4).map(chat).collect();
    for chat in &mut chats {
        chat.save(library);
        chat.save_lorebook(library, 20);
    }
    run(many.command(&["snapshot"]));
    for n in 4..scale.snapshots {
        next_turn(&mut chats[n % 4], library);
        run(many.command(&["snapshot"]));
        // Four at once, then six more.
        if n + 7 >= scale.snapshots {
            run(few.command(&["snapshot"]));
        }
    }
    let [own, other] = rounds(
        scale.some,
        || (),
        [&mut || time(vec![many.command(&["log", "--graph"])]), &mut || {
            let mut log = git_in(many.store());
            log.args(["log", "--graph", "--oneline", "--all"]);
            time(vec![log])
        }],
    );
    let graph = Row {
        number: 6,
        what: format!("log --graph over {} snapshots", scale.snapshots),
        stvc: wall(&own),
        peer: "git log --graph",
        other: wall(&other),
        aim: Aim::AtMost(3.0),
    };
    // No stamp younger than two seconds is believed.
    thread::sleep(Duration::from_millis(2100));
    run(many.command(&["snapshot"]));
    run(few.command(&["snapshot"]));
    let [with_many, with_few] = rounds(
        scale.rounds * 2,
        || next_turn(&mut chats[0], library),
        [&mut || time(many.save()), &mut || time(few.save())],
    );
    let row = |what: &str, of: fn(&[Cost]) -> Value, aim| Row {
        number: 6,
        what: format!("one more with {} in the store{what}", scale.snapshots),
        stvc: of(&with_many),
        peer: "with 10 in the store",
        other: of(&with_few),
        aim,
    };
    vec![graph, row("", wall, Aim::AtMost(1.5)), row(", CPU", cpu, Aim::None)]
}

/// The other snapshot archives, where they are installed.
pub fn archives(dir: &Path, scale: &Scale) -> Vec<Row> {
    let mut rows = Vec::new();
    if version("restic", "version").is_some() {
        let restic = |place: &Place| Restic(place.clone());
        rows.extend(archive(&dir.join("restic"), scale, &restic));
        rows.push(restic_restore(&dir.join("restic-restore"), scale));
    }
    if version("borg", "--version").is_some() {
        rows.extend(archive(&dir.join("borg"), scale, &|place| Borg(place.clone())));
    }
    rows
}

fn archive<T: Tool>(dir: &Path, scale: &Scale, tool: &dyn Fn(&Place) -> T) -> Vec<Row> {
    let (stvc, mut place) = stvc_and_place(&dir.join("one"));
    let other = tool(&place);
    let mut chat = write_ten_chats(&place.library, scale.messages);
    first_save(&stvc);
    first_save(&other);
    let [own, others] = rounds(
        scale.some,
        || next_turn(&mut chat, &place.library),
        [&mut || time(stvc.save()), &mut || time(other.save())],
    );
    let faster = Row {
        number: 7,
        what: format!("one more snapshot; {}", scale.library()),
        stvc: wall(&own),
        peer: other.name(),
        other: wall(&others),
        aim: Aim::Better(40.0),
    };
    let stvc;
    (stvc, place) = stvc_and_place(&dir.join("many"));
    let other = tool(&place);
    many_saves(&place.library, scale, &[&stvc, &other]);
    let smaller = Row {
        number: 7,
        what: scale.saved(),
        stvc: Value::Bytes(size(stvc.store())),
        peer: other.name(),
        other: Value::Bytes(size(other.store())),
        aim: Aim::Better(20.0),
    };
    vec![faster, smaller]
}

fn restic_restore(dir: &Path, scale: &Scale) -> Row {
    let (stvc, place) = stvc_and_place(dir);
    let restic = Restic(place.clone());
    let chat = write_ten_chats(&place.library, scale.messages);
    first_save(&stvc);
    first_save(&restic);
    let file = place.library.join(chat.path());
    let target = dir.join("restored");
    // Patterns begin at the folder that was backed up.
    let include = format!("/{}", chat.path().display());
    let arguments = [
        "restore",
        "latest",
        "--target",
        target.to_str().expect("a path of ours"),
        "--include",
        &include,
    ];
    let [own, others] = rounds(
        scale.few,
        || {
            let _ = fs::remove_dir_all(&target);
            fs::remove_file(&file).expect("delete the chat");
        },
        [&mut || time(vec![stvc.command(&["restore", &chat.timeline()])]), &mut || {
            time(vec![restic.command(&arguments)])
        }],
    );
    assert!(target.join(chat.path()).exists(), "restic restores it");
    Row {
        number: 7,
        what: format!("restore of one chat, {}", scale.chat()),
        stvc: wall(&own),
        peer: "restic restore",
        other: wall(&others),
        aim: Aim::Better(4.0),
    }
}

fn stvc_and_place(dir: &Path) -> (Stvc, Place) {
    let (stvc, _) = stvc_and_git(dir);
    let place = Place { library: stvc.0.library.clone(), store: dir.join("other") };
    (stvc, place)
}

impl Scale {
    fn chat(&self) -> String {
        let megabytes = self.messages * PER_MESSAGE / 1_000_000;
        format!("{} messages, {megabytes} MB", self.messages)
    }

    fn library(&self) -> String {
        format!("{}, among ten", self.chat())
    }

    /// How many messages the growing chat begins with: 3 MB in the end.
    fn growing(&self) -> usize {
        (self.saves * 25 / 2).saturating_sub(self.saves * 2)
    }

    fn saved(&self) -> String {
        let megabytes = (self.growing() + self.saves * 2) * PER_MESSAGE;
        format!(
            "store after {} saves of a chat of {:.1} MB with four forks",
            self.saves,
            megabytes as f64 / 1e6
        )
    }
}
