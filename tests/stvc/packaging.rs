//! Needs of packagers: completions, manual pages, `cargo install`, a static build.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Sandbox, answer, chat, is_emulated, skip, skip_on_this_machine};

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Creates two chats, one of them in two folders, and a tag.
fn named() -> Sandbox {
    let sandbox = Sandbox::empty();
    for path in ["chats/Mira/Tide Office.jsonl", "chats/Mira/Storm.jsonl", "chats/Voss/Storm.jsonl"]
    {
        sandbox.write(path, chat(path, 2, None));
    }
    sandbox.write("worlds/Eldoria.json", r#"{"entries":{}}"#);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["tag", "dawn chorus", "Tide Office"]).exits(0);
    sandbox
}

/// Returns the completions of the last word.
fn offered(sandbox: &Sandbox, words: &[&str]) -> Vec<String> {
    let mut command = sandbox.command(&[&["--", "stvc"], words].concat());
    command.env("COMPLETE", "fish").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let printed = answer(command.output().unwrap()).exits(0).stdout;
    // Fish gets a description after a tab.
    printed.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn shell_completion_offers_commands_chats_tags_and_ids() {
    let sandbox = named();
    assert_eq!(offered(&sandbox, &["rest"]), ["restore"]);
    assert_eq!(offered(&sandbox, &["restore", "Ti"]), ["Tide Office"]);
    assert_eq!(offered(&sandbox, &["restore", "ti"]), ["Tide Office"]);
    // An ambiguous chat name is completed with its folder.
    assert_eq!(offered(&sandbox, &["log", "Sto"]), [""; 0]);
    assert_eq!(offered(&sandbox, &["log", "Vo"]), ["Voss/Storm"]);
    assert_eq!(offered(&sandbox, &["show", "da"]), ["dawn chorus"]);
    assert_eq!(offered(&sandbox, &["tag", "--delete", "da"]), ["dawn chorus"]);
    let ids = sandbox.snapshot_ids();
    assert!(offered(&sandbox, &["diff", &ids[0][..4]]).contains(&ids[0][..10].to_owned()));
    // The library can be named in the line; without one nothing is completed.
    let other = Sandbox::empty();
    let library = sandbox.library();
    assert_eq!(
        offered(&other, &["--data", library.to_str().unwrap(), "show", "Ti"]),
        ["Tide Office"]
    );
    assert_eq!(offered(&other, &["show", "Ti"]), [""; 0]);
}

#[cfg(unix)]
#[test]
fn completion_scripts_are_valid_in_their_shells() {
    let sandbox = named();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox.stvc(&["completions", shell]).exits(0).stdout;
        assert!(script.contains("stvc"), "{shell}");
        // These shells can check a script without running it.
        if !matches!(shell, "bash" | "zsh" | "fish") {
            continue;
        }
        if has(shell) {
            let mut reader = Command::new(shell).arg("-n").stdin(Stdio::piped()).spawn().unwrap();
            reader.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
            assert!(reader.wait().unwrap().success(), "{shell}");
        } else {
            skip(&format!("{shell} is not installed"));
        }
    }
    sandbox.stvc(&["completions", "cmd"]).exits(2);
}

/// Bash passes each word as it was typed. The second parameter of the function is the last word
/// without an opening quotation mark.
#[cfg(unix)]
#[test]
fn bash_completes_names_and_paths_inside_quotation_marks() {
    let sandbox = named();
    let backups = sandbox.library().join("my $backups");
    std::fs::create_dir(&backups).unwrap();
    let start = backups.to_str().unwrap().strip_suffix(" $backups").unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_stvc")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let script = sandbox.stvc(&["completions", "bash"]).exits(0).stdout;
    let data = format!("'{}'", sandbox.library().display());
    for (words, expected) in [
        (&["rest"][..], "restore".to_owned()),
        (&["show", "Ti"], r"Tide\ Office".to_owned()),
        (&["show", r"Tide\ O"], r"Tide\ Office".to_owned()),
        (&["show", "\"Tide O"], "Tide Office".to_owned()),
        (&["show", "'Tide O"], "Tide Office".to_owned()),
        (&["--data", &data, "show", "\"Ti"], "Tide Office".to_owned()),
        (&["backup", start], format!(r"{start}\ \$backups/")),
        (&["sync", &format!("'{start}")], format!("{start} $backups/")),
        (&["import", &format!("\"{start}")], format!(r"{start} \$backups/")),
    ] {
        let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
        let line: Vec<_> = ["stvc"].iter().chain(words).map(|word| quoted(word)).collect();
        let last = words.last().unwrap();
        let ask = format!(
            "\nCOMP_WORDS=({}); COMP_CWORD={}; COMP_TYPE=9; _clap_complete_stvc stvc {} stvc; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            line.join(" "),
            words.len(),
            quoted(last.strip_prefix(['"', '\'']).unwrap_or(last)),
        );
        let mut bash = Command::new("bash");
        bash.arg("-c").arg(script.clone() + &ask).current_dir(sandbox.library()).env("PATH", &path);
        let printed = answer(bash.output().unwrap()).exits(0).stdout;
        assert_eq!(printed.trim(), expected, "{words:?}");
    }
}

/// A name that the command refuses is not offered.
#[test]
fn completion_offers_only_names_that_the_command_accepts() {
    let sandbox = named();
    let all: BTreeSet<_> = offered(&sandbox, &["log", ""]).into_iter().collect();
    assert!(all.contains("Tide Office") && all.contains("Eldoria"), "{all:?}");
    assert!(!offered(&sandbox, &["fork", ""]).contains(&"Eldoria".to_owned()));
    assert_eq!(offered(&sandbox, &["erase", "Ti"]), [""; 0]);
    fs::remove_file(sandbox.library().join("chats/Mira/Tide Office.jsonl")).unwrap();
    assert!(!offered(&sandbox, &["snapshot", ""]).contains(&"Tide Office".to_owned()));
    assert_eq!(offered(&sandbox, &["erase", "Ti"]), ["Tide Office"]);
    // A destination is a path, not a name.
    assert!(!offered(&sandbox, &["backup", "Ti"]).contains(&"Tide Office".to_owned()));
}

#[test]
fn every_command_has_a_manual_page() {
    let sandbox = Sandbox::empty();
    let page = sandbox.stvc(&["man"]).exits(0).stdout;
    assert!(page.contains(".TH stvc 1"), "{page}");
    let page = sandbox.stvc(&["man", "restore"]).exits(0).stdout;
    for part in [".TH stvc-restore 1", ".SH \"EXIT STATUS\"", ".SH ENVIRONMENT"] {
        assert!(page.contains(part), "{part} is missing:\n{page}");
    }
    sandbox.stvc(&["man", "retsore"]).exits(2);
    let dir = sandbox.folder().join("man/man1");
    sandbox.stvc(&["man", "--dir", dir.to_str().unwrap()]).exits(0);
    #[cfg(unix)]
    {
        // A page replaces a link in its place and never writes to the link's target.
        let target = sandbox.folder().join("target");
        fs::write(&target, "kept").unwrap();
        fs::remove_file(dir.join("stvc.1")).unwrap();
        std::os::unix::fs::symlink(&target, dir.join("stvc.1")).unwrap();
        sandbox.stvc(&["man", "--dir", dir.to_str().unwrap()]).exits(0);
        assert_eq!(fs::read_to_string(target).unwrap(), "kept");
        assert!(fs::read_to_string(dir.join("stvc.1")).unwrap().contains(".TH stvc 1"));
    }
    let help = sandbox.stvc(&["help"]).exits(0).stdout;
    // They are in groups.
    let commands = help.lines().skip_while(|line| !line.starts_with("Usage:")).skip(1);
    let commands = commands.take_while(|line| *line != "Options:");
    // A description may continue in the next line.
    let commands = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let commands = commands.filter_map(|line| line.split_whitespace().next());
    let mut pages = 0;
    for command in commands.filter(|command| *command != "help") {
        let page = fs::read_to_string(dir.join(format!("stvc-{command}.1")));
        let page = page.unwrap_or_else(|error| panic!("stvc-{command}.1: {error}"));
        assert!(page.contains("\\-\\-data"), "{command}");
        pages += 1;
    }
    assert!(pages > 30, "{pages}");
}

#[test]
fn program_can_be_installed() {
    if is_emulated() {
        return skip_on_this_machine("the machine that builds is another one");
    }
    let folder = tempfile::tempdir().unwrap();
    // Reuses what is built, but does not replace the program that other tests run.
    let run = cargo()
        .env("CARGO_BUILD_BUILD_DIR", target_dir())
        .env("CARGO_TARGET_DIR", folder.path().join("target"))
        .args(["install", "--path", ".", "--locked", "--debug", "--root"])
        .arg(folder.path())
        .output();
    answer(run.unwrap()).exits(0);
    let program = folder.path().join("bin").join(format!("stvc{}", std::env::consts::EXE_SUFFIX));
    answer(Command::new(program).arg("--version").output().unwrap()).exits(0);
}

/// Needs the target and a C compiler for it.
#[test]
fn static_program_runs_on_any_linux() {
    if is_emulated() {
        return skip_on_this_machine("the machine that builds is another one");
    }
    const TARGET: &str = "x86_64-unknown-linux-musl";
    let asked = ["--print", "target-libdir", "--target", TARGET];
    let libraries = Command::new("rustc").args(asked).output().unwrap().stdout;
    let libraries = String::from_utf8(libraries).unwrap();
    if !Path::new(libraries.trim()).exists() || !has("musl-gcc") {
        skip_on_this_machine(&format!("{TARGET} or musl-gcc is not installed"));
        return;
    }
    let run = cargo().args(["build", "--locked", "--target", TARGET]).output();
    answer(run.unwrap()).exits(0);
    let program = target_dir().join(TARGET).join("debug").join("stvc");
    answer(Command::new(&program).arg("--version").output().unwrap()).exits(0);
    let linked = Command::new("ldd").arg(&program).output().unwrap();
    let linked = String::from_utf8_lossy(&[linked.stdout, linked.stderr].concat()).into_owned();
    assert!(linked.contains("statically linked") || linked.contains("not a dynamic"), "{linked}");
}

/// Builds a command of the running cargo with the same target folder.
fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).env("CARGO_TARGET_DIR", target_dir());
    cargo
}

fn target_dir() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_stvc")).parent().unwrap().parent().unwrap()
}
