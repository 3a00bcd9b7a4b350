//! The table that is printed in the end.

use std::fmt;
use std::time::Duration;

/// Something measured.
#[derive(Clone, Copy)]
pub enum Value {
    Time(Duration),
    Bytes(u64),
    Unknown,
}

impl Value {
    fn number(self) -> Option<f64> {
        match self {
            Value::Time(time) => Some(time.as_secs_f64()),
            Value::Bytes(bytes) => Some(bytes as f64),
            Value::Unknown => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Value::Time(time) if time.as_secs() >= 10 => format!("{:.1} s", time.as_secs_f64()),
            Value::Time(time) => format!("{:.1} ms", time.as_secs_f64() * 1e3),
            Value::Bytes(bytes) => format!("{:.2} MB", *bytes as f64 / 1e6),
            Value::Unknown => "n/a".into(),
        };
        out.pad(&text)
    }
}

/// What stvc's value should be to the other's.
#[derive(Clone, Copy)]
pub enum Aim {
    /// The other's is at least so many times larger.
    Better(f64),
    /// It is at most so many times the other's.
    AtMost(f64),
    /// Only to know.
    None,
}

/// One line.
pub struct Row {
    pub number: usize,
    pub what: String,
    pub stvc: Value,
    pub peer: &'static str,
    pub other: Value,
    pub aim: Aim,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        let (own, other) = (self.stvc.number()?, self.other.number()?);
        Some(match self.aim {
            Aim::Better(_) => other / own,
            Aim::AtMost(_) | Aim::None => own / other,
        })
    }

    fn met(&self) -> &'static str {
        match (self.aim, self.ratio()) {
            (Aim::None, _) | (_, None) => "",
            (Aim::Better(aim), Some(ratio)) if ratio >= aim => "yes",
            (Aim::AtMost(aim), Some(ratio)) if ratio <= aim => "yes",
            _ => "NO",
        }
    }

    fn cells(&self) -> [String; 8] {
        let (direction, aim) = match self.aim {
            Aim::Better(aim) => ("1/", format!("<= 1/{aim}")),
            Aim::AtMost(aim) => ("", format!("<= {aim}")),
            Aim::None => ("", String::new()),
        };
        let ratio = self.ratio();
        [
            self.number.to_string(),
            self.what.clone(),
            self.stvc.to_string(),
            self.peer.to_owned(),
            self.other.to_string(),
            ratio.map_or("n/a".into(), |ratio| {
                let digits = if ratio < 0.1 { 3 } else { 2 };
                format!("{direction}{ratio:.digits$}")
            }),
            aim,
            self.met().to_owned(),
        ]
    }
}

/// Print all rows.
pub fn print(rows: &[Row]) {
    let head = ["#", "what", "stvc", "against", "", "ratio", "aim", "met"].map(str::to_owned);
    let lines: Vec<_> = [head].into_iter().chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<_> = (0..8).map(width).collect();
    for line in &lines {
        let cell = |column: usize| {
            let (text, width) = (&line[column], widths[column]);
            match column {
                2 | 4 | 5 => format!("{text:>width$}"),
                _ => format!("{text:<width$}"),
            }
        };
        let cells: Vec<_> = (0..8).map(cell).collect();
        println!("{}", cells.join("  ").trim_end());
    }
}
