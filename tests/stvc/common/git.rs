//! The real git.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Sandbox, files_of, make_writable, output_of};

/// A git that knows no user's configuration, not started yet.
fn command(repository: &Path, arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(repository).args(arguments);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    git
}

/// Run a real git on a repository; the bytes that it printed. It must succeed.
#[track_caller]
pub fn git(repository: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = output_of(&mut command(repository, arguments));
    assert!(
        output.status.success(),
        "git {arguments:?}: {}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Git with something on its standard input; what it printed. It must succeed.
#[track_caller]
pub fn git_given(store: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = command(store, arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // At the same time: both pipes are short.
        scope.spawn(move || stdin.write_all(input).unwrap());
        child.wait_with_output().unwrap()
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "git {arguments:?}: {said}");
    output.stdout
}

/// The branches and tags of a repository.
pub fn refs(repository: &Path) -> BTreeSet<String> {
    let refs = git(repository, &["for-each-ref", "refs/heads", "refs/tags"]);
    String::from_utf8(refs).unwrap().lines().map(str::to_owned).collect()
}

/// The file of a branch or a tag, which is now the only one that says where it leads: where a file system takes names for one another, stvc keeps most of them in
/// `packed-refs`.
pub fn loose_ref(store: &Path, name: &str) -> PathBuf {
    let file = store.join(name);
    let packed = fs::read_to_string(store.join("packed-refs")).unwrap_or_default();
    let is_meant = |line: &&str| line.split_once(' ').is_some_and(|(_, found)| found == name);
    if let Some(line) = packed.lines().find(is_meant) {
        if !file.exists() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, format!("{}\n", &line[..40])).unwrap();
        }
        let others = packed.lines().filter(|line| !is_meant(line));
        let others: String = others.map(|line| format!("{line}\n")).collect();
        fs::write(store.join("packed-refs"), others).unwrap();
    }
    file
}

/// Where a branch or a tag leads.
pub fn target_of(repository: &Path, name: &str) -> String {
    let target = git(repository, &["rev-parse", "--verify", name]);
    String::from_utf8(target).unwrap().trim().to_owned()
}

/// Git finds nothing wrong.
#[track_caller]
pub fn fsck(sandbox: &Sandbox) {
    let words = sandbox.git(&["fsck", "--strict", "--full", "--no-progress"]);
    let wrong: Vec<_> = words.lines().filter(|line| !line.starts_with("dangling ")).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Make each object of this pack a file of its own.
#[track_caller]
pub fn unpack(store: &Path, pack: &Path) {
    let bytes = fs::read(pack).unwrap();
    fs::remove_file(pack.with_extension("idx")).unwrap();
    fs::remove_file(pack).unwrap();
    git_given(store, &["unpack-objects", "-q"], &bytes);
}

/// Make each object of the store a file of its own.
#[track_caller]
pub fn unpack_all(store: &Path) {
    for pack in files_of(&store.join("objects/pack"), "pack") {
        unpack(store, &pack);
    }
}

/// Take one object out of the store and leave the others.
#[track_caller]
pub fn lose(store: &Path, id: &str) {
    unpack_all(store);
    let file = store.join("objects").join(&id[..2]).join(&id[2..]);
    make_writable(&file);
    fs::remove_file(file).unwrap();
}
