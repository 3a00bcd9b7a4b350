//! The answers that a page in a file has with it: every line once, and each answer as rows of lines that follow each other.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::Answer;
use crate::archive::Blake3;

/// An answer: where each row of its lines begins, and how long it is.
#[derive(Clone, Default, Serialize)]
pub struct Rows {
    rows: Vec<(usize, usize)>,
    exit: u8,
    next: Option<usize>,
}

/// The answers, whose lines are written as they come.
pub struct Kept<W> {
    out: W,
    lines: HashMap<Blake3, usize>,
    answers: BTreeMap<String, Rows>,
}

impl<W: Write> Kept<W> {
    pub fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(b"{\"lines\":[")?;
        Ok(Self { out, lines: HashMap::new(), answers: BTreeMap::new() })
    }

    /// Keep what is answered to a request.
    pub fn keep(&mut self, verb: &str, arguments: &Value, answer: &Answer) -> io::Result<Rows> {
        let mut rows = Rows { exit: answer.exit, next: answer.next, rows: Vec::new() };
        for line in &answer.lines {
            let number = self.line(line)?;
            match rows.rows.last_mut() {
                Some((first, count)) if *first + *count == number => *count += 1,
                _ => rows.rows.push((number, 1)),
            }
        }
        self.keep_again(verb, arguments, rows.clone());
        Ok(rows)
    }

    /// The same answer to another request.
    pub fn keep_again(&mut self, verb: &str, arguments: &Value, rows: Rows) {
        // The page writes the arguments in the order of their names, as it is here.
        self.answers.insert(format!("{verb} {arguments}"), rows);
    }

    fn line(&mut self, line: &RawValue) -> io::Result<usize> {
        let number = self.lines.len();
        let text = line.get();
        match self.lines.entry(Blake3::of(text.as_bytes())) {
            std::collections::hash_map::Entry::Occupied(known) => Ok(*known.get()),
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(number);
                if number > 0 {
                    self.out.write_all(b",\n")?;
                }
                self.out.write_all(inert(text).as_bytes())?;
                Ok(number)
            }
        }
    }

    pub fn end(mut self) -> io::Result<W> {
        let answers = serde_json::to_string(&self.answers)?;
        self.out.write_all(b"],\"answers\":")?;
        self.out.write_all(inert(&answers).as_bytes())?;
        self.out.write_all(b"}")?;
        Ok(self.out)
    }
}

/// JSON that can stand in a page: `<` is only in strings, where it can be written otherwise.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c")
}
