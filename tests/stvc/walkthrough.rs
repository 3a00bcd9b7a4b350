//! docs/sillytavern.md shows the output of the program: every box is produced here and compared.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use regex::Regex;

use crate::common::services::Services;
use crate::common::{Sandbox, text};
use crate::running::Running;

const PAGES: [&str; 2] = ["docs/sillytavern.md", "docs/sillytavern.zh-CN.md"];
const CHAT: &str = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";
const BOOK: &str = "worlds/Tide Office Lore.json";
const MESSAGE: &str =
    r#"{"name":"Wren","is_user":true,"mes":"One more.","send_date":"2026-11-15T09:09:10Z"}"#;

/// `UPDATE_DOCS=1 cargo test --locked --test stvc walkthrough` writes the boxes into both pages.
#[test]
fn documented_output_equals_the_printed_output() {
    let mut home = writers_library();
    let boxes = [
        setup(),
        watch(),
        format!("$ cd /home/wren/SillyTavern\n{}", shown(&home, &["snapshot"])),
        shown(&home, &["snapshot"]),
        lost_chat(&home),
        shown(&home, &["log", "--graph"]),
        shown(&home, &["restore", "Tide Office", "--as", "What if she stays"]),
        doctor(),
        while_open(),
        sync_first(&mut home),
        sync_second(&home),
        store(&home),
    ];
    for page in PAGES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
        let mut rest = fs::read_to_string(&path).unwrap();
        let mut updated = String::new();
        for made in &boxes {
            let begin = rest.find("```text\n").unwrap_or_else(|| panic!("{page} lacks {made}")) + 8;
            let end = begin + rest[begin..].find("```").unwrap();
            if masked(&rest[begin..end]) == masked(made) {
                updated += &rest[..end];
            } else if std::env::var_os("UPDATE_DOCS").is_some() {
                updated = updated + &rest[..begin] + made;
            } else {
                panic!("{page} shows:\n{}\nbut the program prints:\n{made}", &rest[begin..end]);
            }
            rest.drain(..end);
        }
        assert!(!rest.contains("```text"), "{page} has a box that is not produced here");
        fs::write(path, updated + &rest).unwrap();
    }
}

/// Creates a writer's library: the fixture without the chats that other tests need.
fn writers_library() -> Sandbox {
    let sandbox = Sandbox::from_fixture("1.19.0");
    let chats = sandbox.path("chats/Mira Voss");
    let branch = "Mira Voss - 2026-11-14@23h57m31s408ms - Branch #1.jsonl";
    fs::rename(chats.join(branch), chats.join("What if the ferry is late.jsonl")).unwrap();
    for entry in fs::read_dir(chats).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with("Mira Voss - ") || name.starts_with("probe") {
            fs::remove_file(sandbox.path("chats/Mira Voss").join(name)).unwrap();
        }
    }
    for file in [
        "group chats/2026-11-15@00h01m50s750ms - Branch #1.jsonl",
        "characters/Ærin 雪 🦊.png",
        "worlds/Snow Shrine.json",
    ] {
        fs::remove_file(sandbox.path(file)).unwrap();
    }
    fs::remove_dir_all(sandbox.path("backups")).unwrap();
    sandbox
}

/// Replaces values that differ between runs: ids, sizes on disk, times and process numbers.
fn masked(text: &str) -> String {
    let varying = [
        r"\b[0-9a-f]{8,10}\b",
        r"\b[0-9.]+ (k?B|bytes)\b",
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
        r"process \d+",
        r" {2,}",
    ];
    Regex::new(&varying.join("|")).unwrap().replace_all(text, "*").into_owned()
}

/// Runs a command and returns its output as in the documented folder.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let printed = sandbox.folder().join("printed");
    let file = File::create(&printed).unwrap();
    let mut command = sandbox.command(arguments);
    command.stdout(file.try_clone().unwrap()).stderr(file).status().unwrap();
    in_documented_folder(sandbox, &fs::read_to_string(printed).unwrap())
}

fn in_documented_folder(sandbox: &Sandbox, printed: &str) -> String {
    let printed = printed
        .replace(text(&sandbox.library()), "/home/wren/SillyTavern/data/default-user")
        .replace(
            &format!("{}/other", text(sandbox.folder())),
            "/home/wren/SillyTavern/data/default-user",
        )
        .replace(&format!("{}/.config", text(sandbox.folder())), "/home/wren/.config");
    printed.replace(&format!("{}/stick", text(sandbox.folder())), "/media/stick")
}

/// Runs a command and returns the command line and its output.
fn shown(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let quote = |argument: &&str| {
        if argument.contains(' ') { format!("\"{argument}\"") } else { (*argument).to_owned() }
    };
    let line: Vec<_> = arguments.iter().map(quote).collect();
    let line = in_documented_folder(sandbox, &line.join(" "));
    format!("$ stvc {line}\n{}", run(sandbox, arguments))
}

/// Runs the setup with stand-ins for systemd.
fn setup() -> String {
    let sandbox = writers_library();
    let services = Services::new(&sandbox);
    let printed = services.stvc(&["setup", "--yes"]).exits(0);
    let printed = in_documented_folder(&sandbox, &(printed.stdout + &printed.stderr));
    format!("$ cd /home/wren/SillyTavern\n$ stvc setup --yes\n{printed}")
}

fn watch() -> String {
    let sandbox = writers_library();
    sandbox.stvc(&["snapshot"]).exits(0);
    let mut command = sandbox.command(&["watch", "--settle", "100ms"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    sandbox.append(CHAT, MESSAGE);
    let second = lines.next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    in_documented_folder(&sandbox, &format!("$ stvc watch\n{first}\n{second}\n"))
}

fn lost_chat(home: &Sandbox) -> String {
    fs::remove_file(home.path(CHAT)).unwrap();
    let status = shown(home, &["status"]);
    status + "\n" + &shown(home, &["restore", "Tide Office"])
}

/// Returns findings and repairs of shared lorebooks only.
fn doctor() -> String {
    let sandbox = writers_library();
    let all = run(&sandbox, &["doctor"]);
    let is_of_subject = |line: &&str| line.contains("Tide Office Lore") || line.contains("--fix");
    let mut kept = vec!["$ stvc doctor", "…"];
    for line in all.lines().filter(is_of_subject) {
        if line.starts_with("would") && !kept.iter().any(|line| line.starts_with("would")) {
            kept.push("…");
        }
        kept.push(line);
    }
    kept.join("\n") + "\n"
}

fn while_open() -> String {
    let mut sandbox = writers_library();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.append(CHAT, MESSAGE);
    sandbox.wait(10);
    sandbox.stvc(&["snapshot"]).exits(0);
    let running = Running::on(&sandbox, "");
    let chat = shown(&sandbox, &["restore", "Tide Office~1", "--overwrite"]);
    let id = Regex::new(r"\b[0-9a-f]{10}\b").unwrap();
    let replaced = id.find(&chat).expect("the snapshot of the replaced chat").as_str();
    let book = String::from_utf8(sandbox.read(BOOK)).unwrap();
    sandbox.save(BOOK, book.replacen("\"content\": \"", "\"content\": \"Later. ", 1));
    let book = shown(&sandbox, &["restore", replaced, "--overwrite"]);
    drop(running);
    chat + "\n" + &book
}

fn sync_first(home: &mut Sandbox) -> String {
    let stick = home.folder().join("stick/chats");
    fs::create_dir_all(stick.parent().unwrap()).unwrap();
    home.stvc(&["sync", text(&stick)]).exits(0);
    let other = Sandbox::empty();
    other.stvc(&["sync", text(&stick)]).exits(0);
    crate::common::copy_folder(&other.library(), &home.folder().join("other"));
    home.append(CHAT, MESSAGE);
    home.wait(10);
    shown(home, &["sync", text(&stick)])
}

fn sync_second(home: &Sandbox) -> String {
    let other = home.folder().join("other");
    let stick = home.folder().join("stick/chats");
    let output = home.command(&["--data", text(&other), "sync", text(&stick)]).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = in_documented_folder(home, &String::from_utf8(printed).unwrap());
    format!("$ stvc sync /media/stick/chats\n{printed}")
}

fn store(home: &Sandbox) -> String {
    let entries = fs::read_dir(home.store()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let listed = format!("$ ls data/default-user/.stvc\n{}\n", names.join("\n"));
    listed + "\n" + &shown(home, &["stats"])
}
