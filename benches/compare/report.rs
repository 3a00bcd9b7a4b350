//! Prints the tables. docs/performance.md is written by hand from them.

use std::fs;

use crate::grid::Grid;
use crate::growth::Point;
use crate::plot;
use crate::root;
use crate::sheet::Sheet;
use crate::targets::{self, Row};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Plain,
    Markdown,
}

#[derive(Default)]
pub struct Report {
    pub sheets: Vec<Sheet>,
    pub rows: Vec<Row>,
    pub points: Vec<Point>,
}

impl Report {
    pub fn print(&self, format: Format) {
        let print = |title: &str, grid: Grid| match format {
            Format::Plain => println!("\n{title}\n\n{}", grid.plain()),
            Format::Markdown => println!("\n## {title}\n\n{}", grid.markdown()),
        };
        for sheet in &self.sheets {
            print(&format!("({}) {}", sheet.letter, sheet.title), sheet.grid());
        }
        if !self.points.is_empty() {
            print("Growth", self.growth());
        }
        print("Aims", targets::grid(&self.rows));
    }

    /// Writes the plot of the page, if growth was measured.
    pub fn write_plot(&self) {
        if !self.points.is_empty() {
            let path = root().join("docs/performance.svg");
            fs::write(path, plot::svg(&self.points)).expect("write the plot");
        }
    }

    fn growth(&self) -> Grid {
        let mut grid =
            Grid::new(&["tool", "snapshots", "size", "after gc", "further snapshot"], 1..);
        for point in &self.points {
            let megabytes = |bytes: u64| crate::value::Value::Bytes(bytes).to_string();
            grid.line([
                point.tool.to_owned(),
                point.snapshots.to_string(),
                megabytes(point.size),
                point.packed.map_or(String::new(), megabytes),
                point.further.map_or(String::new(), |time| time.to_string()),
            ]);
        }
        grid
    }
}
