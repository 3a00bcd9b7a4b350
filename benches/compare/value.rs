//! A measured value and its format.

use std::fmt;
use std::time::Duration;

#[derive(Clone, Copy)]
pub enum Value {
    Time(Duration),
    Bytes(u64),
    Count(f64),
}

impl Value {
    pub fn number(self) -> f64 {
        match self {
            Value::Time(time) => time.as_secs_f64(),
            Value::Bytes(bytes) => bytes as f64,
            Value::Count(count) => count,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Value::Count(count) = self {
            let digits = usize::from(count.fract() != 0.0);
            return out.pad(&format!("{count:.digits$}"));
        }
        let (number, unit) = match self.number() {
            seconds if matches!(self, Value::Time(_)) && seconds < 1.0 => (seconds * 1e3, "ms"),
            seconds if matches!(self, Value::Time(_)) => (seconds, "s"),
            bytes if bytes < 1e5 => (bytes / 1e3, "kB"),
            bytes if bytes < 1e9 => (bytes / 1e6, "MB"),
            bytes => (bytes / 1e9, "GB"),
        };
        // Three significant digits.
        let digits = match number {
            n if n < 10.0 => 2,
            n if n < 100.0 => 1,
            _ => 0,
        };
        out.pad(&format!("{number:.digits$} {unit}"))
    }
}
