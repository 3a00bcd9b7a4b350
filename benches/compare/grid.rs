//! A text table for the terminal and for Markdown.

use std::ops::RangeFrom;

pub struct Grid {
    lines: Vec<Vec<String>>,
    /// Right-aligned columns of numbers.
    numbers: RangeFrom<usize>,
}

impl Grid {
    pub fn new<'t>(head: impl IntoIterator<Item = &'t &'t str>, numbers: RangeFrom<usize>) -> Self {
        let head = head.into_iter().map(|text| (*text).to_owned()).collect();
        Self { lines: vec![head], numbers }
    }

    pub fn line(&mut self, cells: impl IntoIterator<Item = String>) {
        self.lines.push(cells.into_iter().collect());
    }

    pub fn plain(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            text += self.padded(line).join("  ").trim_end();
            text += "\n";
        }
        text
    }

    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for (n, line) in self.lines.iter().enumerate() {
            text += &format!("| {} |\n", self.padded(line).join(" | "));
            if n == 0 {
                let rule = |column| if self.numbers.contains(&column) { "---:|" } else { "---|" };
                text += &format!("|{}\n", (0..line.len()).map(rule).collect::<String>());
            }
        }
        text
    }

    fn padded(&self, line: &[String]) -> Vec<String> {
        let pad = |(column, text): (usize, &String)| {
            let lengths = self.lines.iter().map(|line| line[column].chars().count());
            let width = lengths.max().unwrap_or(0);
            if self.numbers.contains(&column) {
                format!("{text:>width$}")
            } else {
                format!("{text:<width$}")
            }
        };
        line.iter().enumerate().map(pad).collect()
    }
}
