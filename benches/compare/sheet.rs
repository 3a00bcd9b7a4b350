//! The results of one workload: one line per measure, one column per tool.

use std::collections::BTreeMap;

use crate::grid::Grid;
use crate::remote_steps::{Quantity, Step};
use crate::value::Value;

/// Measures in the order of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    First,
    FirstCpu,
    Further,
    FurtherCpu,
    Restore,
    Log,
    Check,
    Gc,
    RestorePacked,
    Backup,
    Size,
    SizePacked,
    BackupSize,
    FirstMemory,
    FurtherMemory,
    RestoreMemory,
    LogMemory,
    CheckMemory,
    GcMemory,
    BackupMemory,
    Remote(Step, Quantity),
}

impl Measure {
    pub const MEMORY: [Measure; 7] = [
        Measure::FirstMemory,
        Measure::FurtherMemory,
        Measure::RestoreMemory,
        Measure::LogMemory,
        Measure::CheckMemory,
        Measure::GcMemory,
        Measure::BackupMemory,
    ];

    pub fn label(self) -> String {
        let label = match self {
            Measure::First => "first snapshot",
            Measure::FirstCpu => "first snapshot, CPU",
            Measure::Further => "further snapshot",
            Measure::FurtherCpu => "further snapshot, CPU",
            Measure::Restore => "restore of a chat",
            Measure::Log => "log",
            Measure::Check => "check",
            Measure::Gc => "gc",
            Measure::RestorePacked => "restore after gc",
            Measure::Backup => "backup to a file",
            Measure::Size => "size before gc",
            Measure::SizePacked => "size after gc",
            Measure::BackupSize => "size of the backup file",
            Measure::FirstMemory => "memory: first snapshot",
            Measure::FurtherMemory => "memory: further snapshot",
            Measure::RestoreMemory => "memory: restore",
            Measure::LogMemory => "memory: log",
            Measure::CheckMemory => "memory: check",
            Measure::GcMemory => "memory: gc",
            Measure::BackupMemory => "memory: backup to a file",
            Measure::Remote(step, quantity) => {
                return format!("{}, {}", step.label(), quantity.label());
            }
        };
        label.to_owned()
    }
}

pub struct Sheet {
    pub letter: char,
    pub title: String,
    pub tools: Vec<&'static str>,
    /// Size of the largest chat file; the memory limit depends on it.
    pub largest: u64,
    cells: BTreeMap<(Measure, &'static str), Value>,
}

impl Sheet {
    pub fn new(letter: char, title: String, tools: Vec<&'static str>) -> Self {
        Self { letter, title, tools, largest: 0, cells: BTreeMap::new() }
    }

    /// Records a value if it exists.
    pub fn set(&mut self, measure: Measure, tool: &'static str, value: Option<Value>) {
        if let Some(value) = value {
            self.cells.insert((measure, tool), value);
        }
    }

    pub fn get(&self, measure: Measure, tool: &'static str) -> Option<Value> {
        self.cells.get(&(measure, tool)).copied()
    }

    pub fn grid(&self) -> Grid {
        let mut grid = Grid::new([""].iter().chain(&self.tools), 1..);
        let mut measures: Vec<_> = self.cells.keys().map(|(measure, _)| *measure).collect();
        measures.dedup();
        for measure in measures {
            let cell = |tool: &&'static str| {
                self.get(measure, tool).map_or(String::new(), |value| value.to_string())
            };
            let cells = self.tools.iter().map(cell);
            grid.line([measure.label()].into_iter().chain(cells));
        }
        grid
    }
}
