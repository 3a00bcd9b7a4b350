//! What packagers need: completions, manual pages, `cargo install`, a static build.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Sandbox, answer, cannot, cannot_here};

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn shells_understand_their_completions() {
    let sandbox = Sandbox::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox.stvc(&["completions", shell]).exits(0).stdout;
        for word in ["snapshot", "restore", "overwrite", "keep-daily"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
        // Those that can read a script without running it.
        if !matches!(shell, "bash" | "zsh" | "fish") {
            continue;
        }
        if has(shell) {
            let mut reader = Command::new(shell).arg("-n").stdin(Stdio::piped()).spawn().unwrap();
            reader.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
            assert!(reader.wait().unwrap().success(), "{shell}");
        } else {
            cannot(&format!("{shell} is not installed"));
        }
    }
    // Asked as a shell asks when somebody types `stvc rest` and the tab key.
    let script = sandbox.stvc(&["completions", "bash"]).exits(0).stdout;
    let ask =
        "\nCOMP_WORDS=(stvc rest); COMP_CWORD=1; _stvc stvc rest stvc; echo \"${COMPREPLY[@]}\"";
    let told = Command::new("bash").arg("-c").arg(script + ask).output().unwrap();
    assert_eq!(answer(told).exits(0).stdout.trim(), "restore");
    sandbox.stvc(&["completions", "cmd"]).exits(2);
}

#[test]
fn every_command_has_a_page() {
    let sandbox = Sandbox::empty();
    let page = sandbox.stvc(&["man"]).exits(0).stdout;
    assert!(page.contains(".TH stvc 1"), "{page}");
    let dir = sandbox.folder().join("man/man1");
    sandbox.stvc(&["man", dir.to_str().unwrap()]).exits(0);
    let help = sandbox.stvc(&["help"]).exits(0).stdout;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    // What is said of one may go on in the next line.
    let commands = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let commands = commands.filter_map(|line| line.split_whitespace().next());
    let mut pages = 0;
    for command in commands.filter(|command| *command != "help") {
        let page = fs::read_to_string(dir.join(format!("stvc-{command}.1")));
        let page = page.unwrap_or_else(|error| panic!("stvc-{command}.1: {error}"));
        assert!(page.contains("\\-\\-data"), "{command}");
        pages += 1;
    }
    assert!(pages > 20);
}

#[test]
fn it_can_be_installed() {
    let folder = tempfile::tempdir().unwrap();
    let run = cargo()
        .args(["install", "--path", ".", "--locked", "--debug", "--root"])
        .arg(folder.path())
        .output();
    answer(run.unwrap()).exits(0);
    let program = folder.path().join("bin").join(format!("stvc{}", std::env::consts::EXE_SUFFIX));
    answer(Command::new(program).arg("--version").output().unwrap()).exits(0);
}

/// Where the target and a C compiler for it are installed.
#[test]
fn a_static_program_for_any_linux() {
    const TARGET: &str = "x86_64-unknown-linux-musl";
    let asked = ["--print", "target-libdir", "--target", TARGET];
    let libraries = Command::new("rustc").args(asked).output().unwrap().stdout;
    let libraries = String::from_utf8(libraries).unwrap();
    if !Path::new(libraries.trim()).exists() || !has("musl-gcc") {
        cannot_here(&format!("{TARGET} or musl-gcc is not installed"));
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

/// The cargo that runs the tests, with the same folder for what it builds.
fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).env("CARGO_TARGET_DIR", target_dir());
    cargo
}

fn target_dir() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_stvc")).parent().unwrap().parent().unwrap()
}
