//! What `faults.c` recorded: every call that changed something, in its order, with its data.

use std::fs;
use std::path::Path;

/// What a call did; `faults.c` has the same list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
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

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    pub did: Did,
    /// On another machine's disk.
    pub foreign: bool,
    pub failed: bool,
    /// Its number from 1; 0 for foreign ones.
    pub number: u64,
    /// The file's inode, where there was one at hand.
    pub inode: u64,
    /// An offset, a length, a mode, a flag; of a read its own number.
    pub value: u64,
    pub name: String,
    /// Below the disk, without a slash at the beginning; so is `second`, where a call has two paths.
    pub path: String,
    pub second: String,
    pub data: Vec<u8>,
}

/// Add what was done by somebody who is not recorded: a file's new bytes, synced.
pub fn add_save(file: &Path, path: &str, bytes: &[u8]) {
    let record = |did: Did, value: u64, data: &[u8]| {
        let numbers = [0, 0, value].map(u64::to_le_bytes).concat();
        let text = |text: &str| [&(text.len() as u16).to_le_bytes(), text.as_bytes()].concat();
        let texts = ["save", path, ""].map(text).concat();
        let record = [&[did as u8, 0, 0], &*numbers, &texts, data].concat();
        [&(record.len() as u32).to_le_bytes(), &*record].concat()
    };
    let all = [record(Did::Open, 1, b""), record(Did::Write, 0, bytes), record(Did::Sync, 0, b"")];
    let mut file = fs::File::options().append(true).open(file).unwrap();
    std::io::Write::write_all(&mut file, &all.concat()).unwrap();
}

/// All calls of a recording.
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
    let did = match take(1)[0] {
        1 => Did::Open,
        2 => Did::Write,
        3 => Did::Sync,
        4 => Did::Rename,
        5 => Did::Link,
        6 => Did::Symlink,
        7 => Did::Unlink,
        8 => Did::Rmdir,
        9 => Did::Mkdir,
        10 => Did::Truncate,
        11 => Did::Chmod,
        13 => Did::Read,
        _ => Did::Other,
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
        did,
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
