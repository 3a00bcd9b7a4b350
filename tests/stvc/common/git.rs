//! Runs the installed git.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Sandbox, files_with_extension, make_writable, output_of};

/// Builds a git command that ignores the user's configuration.
fn command(repository: &Path, arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(repository).args(arguments);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    git
}

/// Runs git on a repository and returns its stdout. It must succeed.
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

/// Runs git with `input` on its stdin and returns its stdout. It must succeed.
#[track_caller]
pub fn git_with_input(store: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = command(store, arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // Concurrently, because both pipes have small buffers.
        scope.spawn(move || stdin.write_all(input).unwrap());
        child.wait_with_output().unwrap()
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "git {arguments:?}: {errors}");
    output.stdout
}

/// Lists the branches and tags of a repository.
pub fn refs(repository: &Path) -> BTreeSet<String> {
    let refs = git(repository, &["for-each-ref", "refs/heads", "refs/tags"]);
    String::from_utf8(refs).unwrap().lines().map(str::to_owned).collect()
}

/// Returns the loose file of a branch or tag, after moving it out of `packed-refs`. On a
/// case-insensitive file system stvc packs most refs.
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

/// Resolves a branch or tag.
pub fn resolve_ref(repository: &Path, name: &str) -> String {
    let target = git(repository, &["rev-parse", "--verify", name]);
    String::from_utf8(target).unwrap().trim().to_owned()
}

/// Asserts that `git fsck` reports nothing but dangling objects.
#[track_caller]
pub fn fsck(sandbox: &Sandbox) {
    let words = sandbox.git(&["fsck", "--strict", "--full", "--no-progress"]);
    let wrong: Vec<_> = words.lines().filter(|line| !line.starts_with("dangling ")).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Replaces a pack by loose objects.
#[track_caller]
pub fn unpack(store: &Path, pack: &Path) {
    let bytes = fs::read(pack).unwrap();
    fs::remove_file(pack.with_extension("idx")).unwrap();
    fs::remove_file(pack).unwrap();
    git_with_input(store, &["unpack-objects", "-q"], &bytes);
}

/// Replaces every pack by loose objects.
#[track_caller]
pub fn unpack_all(store: &Path) {
    for pack in files_with_extension(&store.join("objects/pack"), "pack") {
        unpack(store, &pack);
    }
}

/// Deletes one object from the store.
#[track_caller]
pub fn delete_object(store: &Path, id: &str) {
    unpack_all(store);
    let file = store.join("objects").join(&id[..2]).join(&id[2..]);
    make_writable(&file);
    fs::remove_file(file).unwrap();
}
