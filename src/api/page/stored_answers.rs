//! The answers in a standalone file of the viewer. Each line is stored once, and an answer is a
//! list of ranges of lines. Messages and lorebook entries are one answer for each moment, of which
//! the viewer takes pages (`pageOf` in standalone.js).

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Extent;
use crate::api::Answer;
use crate::archive::Blake3;

/// The viewer's page sizes: `PAGE` and `LANES` in standalone.js, and `count` of `pages` in api.js.
pub const PAGE: usize = 50;
pub const LANES: usize = 200;
pub const LONG_PAGE: usize = 1000;

/// An answer. Each range of lines is stored as its first line and its length.
#[derive(Clone, Default, Serialize)]
pub struct Rows {
    rows: Vec<(usize, usize)>,
    exit: u8,
    next: Option<usize>,
}

impl Rows {
    /// Adds the lines of another answer at the end.
    pub fn append(&mut self, other: &Self) {
        other.rows.iter().for_each(|range| self.push(*range));
    }

    fn push(&mut self, (number, more): (usize, usize)) {
        match self.rows.last_mut() {
            Some((first, count)) if *first + *count == number => *count += more,
            _ => self.rows.push((number, more)),
        }
    }
}

pub struct StoredAnswers<'f> {
    out: BufWriter<&'f mut File>,
    lines: HashMap<Blake3, usize>,
    answers: BTreeMap<String, Rows>,
}

impl<'f> StoredAnswers<'f> {
    pub fn begin(mut out: BufWriter<&'f mut File>, extent: Extent) -> io::Result<Self> {
        write!(out, "{{\"extent\":\"{}\",\"lines\":[", extent.name())?;
        Ok(Self { out, lines: HashMap::new(), answers: BTreeMap::new() })
    }

    pub fn keep(&mut self, verb: &str, arguments: &Value, answer: &Answer) -> io::Result<()> {
        let rows = self.rows(&answer.lines)?;
        self.keep_rows(verb, arguments, Rows { exit: answer.exit, next: answer.next, ..rows });
        Ok(())
    }

    /// Writes lines that the file does not contain yet.
    pub fn rows(&mut self, lines: &[Box<RawValue>]) -> io::Result<Rows> {
        let mut rows = Rows::default();
        for line in lines {
            rows.push((self.line(line)?, 1));
        }
        Ok(rows)
    }

    pub fn keep_rows(&mut self, verb: &str, arguments: &Value, rows: Rows) {
        // `serde_json` sorts the arguments by name, as `requestKey` in standalone.js does.
        self.answers.insert(format!("{verb} {arguments}"), rows);
    }

    fn line(&mut self, line: &RawValue) -> io::Result<usize> {
        let number = self.lines.len();
        let text = line.get();
        match self.lines.entry(Blake3::of(text.as_bytes())) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(new) => {
                new.insert(number);
                if number > 0 {
                    self.out.write_all(b",\n")?;
                }
                self.out.write_all(inert(text).as_bytes())?;
                Ok(number)
            }
        }
    }

    pub fn end(mut self) -> io::Result<BufWriter<&'f mut File>> {
        let answers = serde_json::to_string(&self.answers)?;
        self.out.write_all(b"],\"answers\":")?;
        self.out.write_all(inert(&answers).as_bytes())?;
        self.out.write_all(b"}")?;
        Ok(self.out)
    }
}

/// Escapes `<`, so that no string can end the script element. In JSON, `<` occurs only in strings.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c")
}
