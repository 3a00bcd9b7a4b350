//! The trace of `faults.c`: every call that changed something, in order, with its data.

use std::fs;
use std::path::Path;

/// Effect of a call; the numbers are those in `faults.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Open = 1,
    Write,
    Sync,
    Rename,
    Link,
    Symlink,
    Unlink,
    Rmdir,
    Mkdir,
    Truncate,
    Chmod,
    Other,
    Read,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub effect: Effect,
    /// On another machine's disk.
    pub foreign: bool,
    pub failed: bool,
    /// From 1; 0 for foreign calls.
    pub number: u64,
    /// Inode of the file, if it was known.
    pub inode: u64,
    /// Offset, length, mode or flag; for a read its number.
    pub value: u64,
    pub name: String,
    /// Relative to the disk, like `second` for calls with two paths.
    pub path: String,
    pub second: String,
    pub data: Vec<u8>,
}

/// Records a synced save by a process that is not traced.
pub fn add_save(file: &Path, path: &str, bytes: &[u8]) {
    let record = |effect: Effect, value: u64, data: &[u8]| {
        let numbers = [0, 0, value].map(u64::to_le_bytes).concat();
        let text = |text: &str| [&(text.len() as u16).to_le_bytes(), text.as_bytes()].concat();
        let texts = ["save", path, ""].map(text).concat();
        let record = [&[effect as u8, 0, 0], &*numbers, &texts, data].concat();
        [&(record.len() as u32).to_le_bytes(), &*record].concat()
    };
    let all = [
        record(Effect::Open, 1, b""),
        record(Effect::Write, 0, bytes),
        record(Effect::Sync, 0, b""),
    ];
    let mut file = fs::File::options().append(true).open(file).unwrap();
    std::io::Write::write_all(&mut file, &all.concat()).unwrap();
}

/// Reads all calls of a trace.
pub fn read(file: &Path, disk: &Path) -> Vec<Call> {
    let bytes = fs::read(file).unwrap();
    let disk = format!("{}/", disk.display());
    let mut calls = Vec::new();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(*rest.first_chunk().unwrap()) as usize;
        let (record, more) = rest[4..].split_at(length);
        calls.push(parse(record, &disk));
        rest = more;
    }
    calls
}

fn parse(mut record: &[u8], disk: &str) -> Call {
    let mut take = |length: usize| {
        let (part, rest) = record.split_at(length);
        record = rest;
        part
    };
    let effect = match take(1)[0] {
        1 => Effect::Open,
        2 => Effect::Write,
        3 => Effect::Sync,
        4 => Effect::Rename,
        5 => Effect::Link,
        6 => Effect::Symlink,
        7 => Effect::Unlink,
        8 => Effect::Rmdir,
        9 => Effect::Mkdir,
        10 => Effect::Truncate,
        11 => Effect::Chmod,
        13 => Effect::Read,
        _ => Effect::Other,
    };
    let (foreign, failed) = (take(1)[0] == 1, take(1)[0] == 1);
    let mut number = || u64::from_le_bytes(*take(8).first_chunk().unwrap());
    let (n, inode, value) = (number(), number(), number());
    let mut text = || {
        let length = u16::from_le_bytes(*take(2).first_chunk().unwrap());
        String::from_utf8_lossy(take(length.into())).into_owned()
    };
    let (name, path, second) = (text(), text(), text());
    let below = |path: String| path.strip_prefix(disk).unwrap_or(&path).to_owned();
    let (path, second) = (below(path), below(second));
    Call {
        effect,
        foreign,
        failed,
        number: n,
        inode,
        value,
        name,
        path,
        second,
        data: record.to_vec(),
    }
}
