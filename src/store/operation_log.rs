//! The file of the operation log, `stvc/operations.jsonl`: one JSON object per line, oldest first.
//! Each line ends with a checksum of the text before it. So a flipped bit or a torn write makes the
//! line unreadable, and never changes it into another operation.
//!
//! There are two kinds of lines. An operation is written and synced before its refs move.
//! `{"finished":N}` is written once the refs and files of operation N are in place. It only saves
//! work: if a power cut loses the line, the next command checks operation N and finds everything in
//! place.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{self, unless_absent};
use super::{Error, LoggedOperation, Result, Store};
use crate::durable;
use crate::regular;

/// Beginning of the checksum, which is the last member of every line.
const CHECK: &str = ",\"check\":\"";
/// Number of hex digits of the checksum, a BLAKE3 hash of the text before it.
const DIGITS: usize = 16;
/// Greatest valid number of an operation. Not every JSON parser represents greater integers
/// exactly.
pub(super) const LAST_NUMBER: u64 = (1 << 53) - 1;
/// Private file that contains the log.
pub(super) const LOG: &str = "operations.jsonl";
/// Private file with operations that were removed from the log because they could not be carried
/// out.
pub const SET_ASIDE: &str = "operations-set-aside.jsonl";
/// Number of bytes at the end of the log that are read first.
const WINDOW: u64 = 1 << 16;

pub(super) enum Line {
    Operation(Box<LoggedOperation>),
    Finished(u64),
}

#[derive(Serialize, Deserialize)]
struct Finished {
    finished: u64,
}

#[derive(Default)]
pub(super) struct End {
    pub(super) last: Option<LoggedOperation>,
    pub(super) unfinished: Vec<u64>,
}

/// Whether a line is synced to the disk before the function returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    Now,
    Whenever,
}

impl Store {
    /// Returns all operations that can be read, oldest first, and the number of unreadable lines.
    pub fn operations(&self) -> Result<(Vec<LoggedOperation>, usize)> {
        let (lines, unreadable) = self.log_lines()?;
        let operations = lines.into_iter().filter_map(|line| match line {
            Line::Operation(operation) => Some(*operation),
            Line::Finished(_) => None,
        });
        Ok((operations.collect(), unreadable))
    }

    /// Returns all lines that can be read, oldest first, and the number of unreadable lines.
    fn log_lines(&self) -> Result<(Vec<Line>, usize)> {
        let text = files::read(&self.private(LOG))?.unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let found: Vec<_> = lines.map(decode).collect();
        let unreadable = found.iter().filter(|line| line.is_none()).count();
        Ok((found.into_iter().flatten().collect(), unreadable))
    }

    pub fn unfinished(&self) -> Result<Vec<LoggedOperation>> {
        if self.end_of_log()?.unfinished.is_empty() {
            return Ok(Vec::new());
        }
        Ok(unfinished(self.log_lines()?.0))
    }

    /// Records that an operation is complete. Must be synced if the operation wrote files outside
    /// the store: if the line were lost, a file that is saved later would look like a change that
    /// interrupted the operation.
    pub(super) fn log_finished(&self, number: u64, sync: Sync) -> Result<()> {
        self.log_line(&Finished { finished: number }, sync)
    }

    /// Appends a line to the log. On failure, tries to restore the log.
    pub(super) fn log_line(&self, record: &impl Serialize, sync: Sync) -> Result<()> {
        let path = self.private(LOG);
        let line = encode(record).map_err(Error::io(&path))?;
        append(&path, &line, sync).map_err(Error::io(&path))
    }

    pub(super) fn replace_log(
        &self,
        operations: &[LoggedOperation],
        unfinished: &[u64],
    ) -> Result<()> {
        let path = self.private(LOG);
        let mut text = Vec::new();
        for operation in operations {
            text.extend(encode(operation).map_err(Error::io(&path))?);
        }
        if let Some(last) = operations.last().filter(|last| !unfinished.contains(&last.number)) {
            text.extend(encode(&Finished { finished: last.number }).map_err(Error::io(&path))?);
        }
        files::replace(&path, &text)
    }

    /// Returns the last operation and the numbers of unfinished ones. Reads only the end of the
    /// file.
    pub(super) fn end_of_log(&self) -> Result<End> {
        let Some((path, mut file)) = self.open_log()? else { return Ok(End::default()) };
        let mut window = WINDOW;
        loop {
            let (tail, is_all) = tail(&mut file, window).map_err(Error::io(&path))?;
            if let Some(end) = end_of(tail.rsplit(|byte| *byte == b'\n')) {
                return Ok(end);
            }
            if is_all {
                return Ok(End::default());
            }
            window *= 8;
        }
    }

    /// Returns the latest operations, newest first: those in the last 64 KiB of the log.
    pub fn last_operations(&self) -> Result<Vec<LoggedOperation>> {
        let Some((path, mut file)) = self.open_log()? else { return Ok(Vec::new()) };
        let (tail, _) = tail(&mut file, WINDOW).map_err(Error::io(&path))?;
        let operation = |line: &[u8]| match decode(line) {
            Some(Line::Operation(operation)) => Some(*operation),
            _ => None,
        };
        Ok(tail.rsplit(|byte| *byte == b'\n').filter_map(operation).collect())
    }

    fn open_log(&self) -> Result<Option<(PathBuf, File)>> {
        let path = self.private(LOG);
        let file = unless_absent(regular::open(&path), &path)?;
        Ok(file.map(|file| (path, file)))
    }
}

fn tail(file: &mut File, window: u64) -> io::Result<(Vec<u8>, bool)> {
    let end = file.seek(SeekFrom::End(0))?;
    let begin = file.seek(SeekFrom::Start(end.saturating_sub(window)))?;
    let mut tail = regular::read_of_length(file, end - begin)?;
    if begin > 0 {
        let cut = tail.iter().position(|byte| *byte == b'\n').map_or(tail.len(), |end| end + 1);
        tail.drain(..cut);
    }
    Ok((tail, begin == 0))
}

/// Returns the unfinished operations, oldest first. An operation that was recorded as finished
/// stays finished, even if a later operation lists it as unfinished.
fn unfinished(lines: Vec<Line>) -> Vec<LoggedOperation> {
    let mut open: Vec<LoggedOperation> = Vec::new();
    for line in lines {
        match line {
            Line::Finished(number) => open.retain(|operation| operation.number != number),
            Line::Operation(operation) => {
                open.retain(|former| operation.unfinished.contains(&former.number));
                if !operation.summary {
                    open.push(*operation);
                }
            }
        }
    }
    open
}

/// Finds the last operation and the unfinished ones. `lines` begins with the last line of the log.
/// Returns `None` if `lines` contains no operation.
fn end_of<'l>(lines: impl Iterator<Item = &'l [u8]>) -> Option<End> {
    let mut finished = Vec::new();
    for line in lines {
        match decode(line) {
            Some(Line::Finished(number)) => finished.push(number),
            Some(Line::Operation(last)) => {
                let mut unfinished = last.unfinished.clone();
                // A summary replaces only operations that were finished before.
                if !last.summary {
                    unfinished.push(last.number);
                }
                unfinished.retain(|number| !finished.contains(number));
                return Some(End { last: Some(*last), unfinished });
            }
            None => {}
        }
    }
    None
}

pub(super) fn encode(record: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    // Removes the closing brace, which `seal` appends after the checksum.
    line.pop();
    Ok(seal(line))
}

/// Appends the checksum, the closing brace and a line feed to `line`, a JSON object without its
/// closing brace.
pub(super) fn seal(mut line: Vec<u8>) -> Vec<u8> {
    let check = blake3::hash(&line).to_hex();
    line.extend_from_slice(CHECK.as_bytes());
    line.extend_from_slice(&check.as_bytes()[..DIGITS]);
    line.extend_from_slice(b"\"}\n");
    line
}

/// Parses a line; `None` if its checksum is wrong or its content is invalid.
pub(super) fn decode(line: &[u8]) -> Option<Line> {
    let rest = line.strip_suffix(b"\"}")?;
    let (text, tail) = rest.split_at_checked(rest.len().checked_sub(CHECK.len() + DIGITS)?)?;
    let found = tail.strip_prefix(CHECK.as_bytes())?;
    if blake3::hash(text).to_hex().as_bytes()[..DIGITS] != *found {
        return None;
    }
    let text = [text, b"}"].concat();
    match serde_json::from_slice::<LoggedOperation>(&text) {
        Ok(operation) => (1..=LAST_NUMBER)
            .contains(&operation.number)
            .then_some(Line::Operation(Box::new(operation))),
        Err(_) => {
            let Finished { finished } = serde_json::from_slice(&text).ok()?;
            Some(Line::Finished(finished))
        }
    }
}

pub(super) fn append(path: &Path, line: &[u8], sync: Sync) -> io::Result<()> {
    let new = !path.exists();
    let mut file = durable::open_to_append(path)?;
    let former = file.seek(SeekFrom::End(0))?;
    let mut text = Vec::with_capacity(line.len() + 1);
    // If a power cut has torn the last line, the new line must not be appended to the same line.
    if former > 0 && last_byte(&mut file)? != b'\n' {
        text.push(b'\n');
    }
    text.extend_from_slice(line);
    let written = file.write_all(&text).and_then(|()| match sync {
        Sync::Now => file.sync_all(),
        Sync::Whenever => Ok(()),
    });
    if let Err(error) = written {
        // The next command must not find an operation that this command reports as failed.
        let _ = file.set_len(former).and_then(|()| file.sync_all());
        return Err(error);
    }
    if new { durable::sync_dir(durable::parent(path)) } else { Ok(()) }
}

fn last_byte(file: &mut File) -> io::Result<u8> {
    let mut byte = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut byte)?;
    Ok(byte[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation() -> LoggedOperation {
        let text = r#"{"number":7,"time":"2026-11-15T01:46:40Z","command":["stvc","snapshot"],"refs":[{"ref":"refs/heads/chats/a/b","before":null,"after":"0123456789012345678901234567890123456789"}]}"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn log_line_with_any_flipped_bit_or_truncation_is_rejected() {
        let line = encode(&operation()).unwrap();
        let line = line.strip_suffix(b"\n").unwrap();
        assert!(matches!(decode(line), Some(Line::Operation(found)) if *found == operation()));
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut other = line.to_vec();
                other[at] ^= 1 << bit;
                assert!(decode(&other).is_none(), "{}", String::from_utf8_lossy(&other));
            }
            assert!(decode(&line[..at]).is_none());
        }
    }

    #[test]
    fn upper_case_ids_are_accepted() {
        let text = serde_json::to_string(&operation()).unwrap();
        let upper = text.replace("0123456789012345678901234567890123456789", &"aB".repeat(20));
        let read: LoggedOperation = serde_json::from_str(&upper).unwrap();
        assert_eq!(read.effect.refs[0].after.unwrap().to_string(), "ab".repeat(20));
    }

    #[test]
    fn unfinished_operations_are_found_from_the_end_of_the_log() {
        let first = encode(&operation()).unwrap();
        let second = LoggedOperation { number: 8, unfinished: vec![7], ..operation() };
        let second = encode(&second).unwrap();
        let done = |number| encode(&Finished { finished: number }).unwrap();
        let end = |lines: &[&[u8]]| {
            let lines = lines.iter().map(|line| line.strip_suffix(b"\n").unwrap());
            end_of(lines.rev()).unwrap().unfinished
        };
        let whole = |lines: &[&[u8]]| {
            let lines = lines.iter().map(|line| decode(line.strip_suffix(b"\n").unwrap()).unwrap());
            let open = unfinished(lines.collect());
            open.into_iter().map(|operation| operation.number).collect::<Vec<_>>()
        };
        for (lines, expected) in [
            (&[&first[..]][..], &[7][..]),
            (&[&first, &done(7)], &[]),
            (&[&first, &second], &[7, 8]),
            (&[&first, &second, &done(8)], &[7]),
            (&[&first, &second, &done(8), &done(7)], &[]),
        ] {
            assert_eq!(end(lines), expected);
            assert_eq!(whole(lines), expected);
        }
        // The complete log shows that operation 7 was finished before operation 8 was logged.
        assert_eq!(whole(&[&first, &done(7), &second]), [8]);
    }
}
