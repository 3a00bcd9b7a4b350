//! Formats rows of aligned cells that fit the width of the terminal.

use std::collections::BTreeSet;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::output::paint;
use super::screen::Screen;
use super::wording::{cut_middle, pad};

pub struct Cell {
    text: String,
    style: Style,
    fit: Fit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    Whole,
    /// The cell is shortened in the middle. Only one column of a table can be of this kind.
    Cut,
    /// The column is left out if there is not enough room. Columns with lower numbers are left out
    /// first.
    Spare(u8),
}

impl Cell {
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        Self { text: text.into(), style, fit: Fit::Whole }
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(Style::new(), text)
    }

    pub fn cut(self) -> Self {
        Self { fit: Fit::Cut, ..self }
    }

    pub fn spare(self, turn: u8) -> Self {
        Self { fit: Fit::Spare(turn), ..self }
    }
}

const NARROWEST: usize = 12;

pub fn lines(rows: &[Vec<Cell>]) -> Vec<String> {
    lines_within(rows, Screen::get().columns())
}

fn lines_within(rows: &[Vec<Cell>], columns: usize) -> Vec<String> {
    let Some(longest) = rows.iter().max_by_key(|row| row.len()) else { return Vec::new() };
    let fits: Vec<_> = longest.iter().map(|cell| cell.fit).collect();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width()).max()
    };
    let mut widths: Vec<_> = (0..fits.len()).map(|column| width(column).unwrap_or(0)).collect();
    // Columns that can be left out are removed before the name becomes too short.
    let name = fits.iter().position(|fit| *fit == Fit::Cut);
    let wanted = name.map_or(0, |name| widths[name]).min(columns * 2 / 5);
    let others = |widths: &[usize]| -> usize {
        let others =
            widths.iter().enumerate().filter(|(at, width)| Some(*at) != name && **width > 0);
        others.map(|(_, width)| width + 2).sum()
    };
    let spare = fits.iter().enumerate().filter_map(|(column, fit)| match fit {
        Fit::Spare(turn) => Some((turn, column)),
        Fit::Whole | Fit::Cut => None,
    });
    for (_, column) in spare.collect::<BTreeSet<_>>() {
        if others(&widths) + wanted <= columns {
            break;
        }
        widths[column] = 0;
    }
    let room = columns.saturating_sub(others(&widths)).max(NARROWEST);
    if let Some(name) = name {
        widths[name] = widths[name].min(room);
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
    fn narrow_table_shortens_names_and_drops_optional_columns() {
        let row = |name: &str| {
            let [change, name, messages, snapshots] =
                ["changed", name, "12 messages", "3 snapshots"].map(Cell::plain);
            vec![change, name.cut(), messages, snapshots.spare(0)]
        };
        let rows = [row("Mira / The harbour at night - Branch #12"), row("雨")];
        let at = |columns| lines_within(&rows, columns);
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
