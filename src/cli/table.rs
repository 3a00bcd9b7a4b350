//! Rows whose cells stand below each other and that fit the screen.

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::output::paint;
use super::screen::Screen;
use super::wording::{cut_middle, pad};

/// One cell.
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        Self { text: text.into(), style }
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(Style::new(), text)
    }
}

/// A column is never cut below this.
const NARROWEST: usize = 12;

/// The rows as lines. Where they do not fit, the columns of `spare` go, first to last; then column `name`, which all rows have, is cut.
pub fn lines(rows: &[Vec<Cell>], name: usize, spare: &[usize]) -> Vec<String> {
    lines_within(rows, name, spare, Screen::get().columns())
}

fn lines_within(rows: &[Vec<Cell>], name: usize, spare: &[usize], columns: usize) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width()).max()
    };
    let mut widths: Vec<_> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    // Names are not cut to almost nothing for what can be looked up elsewhere.
    let wanted = widths.get(name).copied().unwrap_or(0).min(columns * 2 / 5);
    let others = |widths: &[usize]| -> usize {
        let others = widths.iter().enumerate().filter(|(at, width)| *at != name && **width > 0);
        others.map(|(_, width)| width + 2).sum()
    };
    for column in spare {
        if others(&widths) + wanted <= columns {
            break;
        }
        widths[*column] = 0;
    }
    let room = columns.saturating_sub(others(&widths)).max(NARROWEST);
    if let Some(width) = widths.get_mut(name) {
        *width = (*width).min(room);
    }
    let line = |row: &Vec<Cell>| {
        let shown = row.iter().zip(&widths).filter(|(_, width)| **width > 0);
        let mut shown: Vec<_> = shown.collect();
        while shown.pop_if(|(cell, _)| cell.text.is_empty()).is_some() {}
        let last = shown.len().saturating_sub(1);
        let cells = shown.into_iter().enumerate().map(|(at, (cell, width))| {
            let text = cut_middle(&cell.text, *width);
            paint(cell.style, if at == last { text } else { pad(&text, *width) })
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_spared_goes_and_then_names_are_cut() {
        let row = |name: &str| {
            let cells = ["changed", name, "12 messages", "3 snapshots"];
            cells.map(Cell::plain).into_iter().collect::<Vec<_>>()
        };
        let rows = [row("Mira / The harbour at night - Branch #12"), row("雨")];
        let at = |columns| lines_within(&rows, 1, &[3], columns);
        assert_eq!(
            at(100)[0],
            "changed  Mira / The harbour at night - Branch #12  12 messages  3 snapshots"
        );
        assert_eq!(at(60)[0], "changed  Mira / Th…t - Branch #12   12 messages  3 snapshots");
        assert!(at(45)[0].ends_with("Branch #12   12 messages"), "{}", at(45)[0]);
        for columns in [20, 33, 45, 60, 80] {
            let most = at(columns).iter().map(|line| line.width()).max();
            assert!(most <= Some(columns.max(34)), "{columns}");
        }
    }
}
