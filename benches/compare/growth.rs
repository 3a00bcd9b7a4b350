//! Workload (d): a growing number of snapshots. The peers stop after `Saves::peers`, because some
//! take a second per save; stvc continues alone.

use std::fs;
use std::path::Path;

use crate::library::Library;
use crate::measure::{Cost, cpu, rounds, run, size, time, wall};
use crate::run::Run;
use crate::sheet::Sheet;
use crate::targets::{Row, Target, memory};
use crate::tools::{Place, Stvc, Tool, git_in};
use crate::value::Value;
use crate::workloads::{Long, Workload};

pub struct Saves {
    /// Number of saves that all tools take.
    pub peers: usize,
    /// Number of saves that stvc takes.
    pub all: usize,
}

pub struct Point {
    pub tool: &'static str,
    pub snapshots: usize,
    pub size: u64,
    /// Size after `gc`; only for stvc.
    pub packed: Option<u64>,
    pub further: Option<Value>,
}

pub struct Growth {
    pub sheets: Vec<Sheet>,
    pub rows: Vec<Row>,
    pub points: Vec<Point>,
}

/// Number of saves whose median is a point: one save of each chat.
const WINDOW: usize = 10;

/// Numbers of saves at which the curve has points; the last save has one too.
const MARKS: [usize; 7] = [10, 30, 100, 300, 1000, 3000, 10_000];

pub fn measure(dir: &Path, saves: &Saves, repeat: usize) -> Growth {
    let mut workload = Long::new();
    let title = format!("the first {} of {} snapshots, ten chats in turn", saves.peers, saves.all);
    let sheet = Sheet::new('d', title, Vec::new());
    let mut together = Run::new(dir, sheet, &mut workload, repeat);
    let stvc = Stvc::new(together.tools[0].place().clone());
    let mut points = Vec::new();
    together.first();
    let mut as_files = size(&together.library.root);
    for n in 2..saves.peers {
        together.save();
        as_files += size(&together.library.root);
        if MARKS.contains(&n) {
            points.extend(points_of(&together, n, dir));
        }
    }
    together.last_save();
    as_files += size(&together.library.root);
    points.extend(points_of(&together, saves.peers, dir));
    // Measure a copy: its `gc` must not affect later points.
    together.tools[0] = Box::new(Stvc::new(stvc.place().copy(&dir.join("stvc-then"))));
    together.finish();
    let Run { library, sheet, tools, .. } = together;
    tools.iter().for_each(|tool| tool.place().clear());

    let mut alone = Alone { dir, stvc, library, workload, as_files, snapshots: saves.peers };
    let (more, ten) = alone.go_on(saves.all);
    points.extend(more);
    let (end, rows) = alone.finish(&ten, repeat);
    Growth { sheets: vec![sheet, end], rows, points }
}

/// Returns the point of each tool.
fn points_of(run: &Run, snapshots: usize, dir: &Path) -> Vec<Point> {
    let mut points = Vec::new();
    for (tool, costs) in run.tools.iter().zip(&run.further).filter(|(_, costs)| !costs.is_empty()) {
        points.push(Point {
            tool: tool.name(),
            snapshots,
            size: size(&tool.place().store()),
            packed: (tool.name() == "stvc").then(|| packed(tool.place(), dir)),
            further: wall(&costs[costs.len().saturating_sub(WINDOW)..]),
        });
    }
    points
}

/// Returns the size of a copy after `gc`.
fn packed(place: &Place, dir: &Path) -> u64 {
    let copy = Stvc::new(place.copy(&dir.join("copy")));
    copy.gc().into_iter().for_each(run);
    let bytes = size(&copy.place().store());
    fs::remove_dir_all(&copy.place().home).expect("remove a copy");
    bytes
}

/// stvc without peers.
struct Alone<'d> {
    dir: &'d Path,
    stvc: Stvc,
    library: Library,
    workload: Long,
    /// Total bytes of all states as plain files.
    as_files: u64,
    snapshots: usize,
}

impl Alone<'_> {
    fn next_state(&mut self) {
        self.library.next_save();
        self.workload.save(&self.library);
        self.as_files += size(&self.library.root);
        self.snapshots += 1;
    }

    /// Saves until there are `to` snapshots. Also returns a store with only the last ten.
    fn go_on(&mut self, to: usize) -> (Vec<Point>, Stvc) {
        let ten = Place { library: self.library.root.clone(), home: self.dir.join("ten") };
        let ten = Stvc::new(ten);
        let mut points = Vec::new();
        let mut costs = Vec::new();
        while self.snapshots < to {
            self.next_state();
            let is_mark = |n: usize| n == to || MARKS.contains(&n);
            if (self.snapshots..self.snapshots + WINDOW).any(is_mark) {
                costs.push(time(self.stvc.save()));
            } else {
                self.stvc.save().into_iter().for_each(run);
            }
            if to - self.snapshots < 10 {
                ten.save().into_iter().for_each(run);
            }
            if is_mark(self.snapshots) {
                points.push(Point {
                    tool: "stvc",
                    snapshots: self.snapshots,
                    size: size(&self.stvc.place().store()),
                    packed: Some(packed(self.stvc.place(), self.dir)),
                    further: wall(&costs),
                });
                costs.clear();
            }
        }
        (points, ten)
    }

    /// Checks the targets with all snapshots in the store.
    fn finish(&mut self, ten: &Stvc, repeat: usize) -> (Sheet, Vec<Row>) {
        let count = self.snapshots;
        let mut rows = vec![self.log(repeat)];
        rows.extend(self.one_more(ten, repeat * 4, ""));
        let title =
            format!("{count} snapshots, stvc alone; {} as files", Value::Bytes(self.as_files));
        let sheet = Sheet::new('d', title, Vec::new());
        let tool = Stvc::new(self.stvc.place().clone());
        let library = self.library.clone();
        let mut end =
            Run::of(self.dir, sheet, &mut self.workload, repeat, vec![Box::new(tool)], library);
        end.finish();
        let sheet = end.sheet;
        rows.extend(memory(&sheet));
        rows.extend(self.one_more(ten, repeat * 4, " after gc"));
        (sheet, rows)
    }

    fn log(&self, repeat: usize) -> Row {
        let costs = rounds(repeat, 2, |n| {
            let commands = if n == 0 {
                self.stvc.log()
            } else {
                let mut log = git_in(&self.stvc.place().store());
                log.args(["log", "--graph", "--oneline", "--all"]);
                vec![log]
            };
            Some(time(commands))
        });
        self.row(
            "log --graph".into(),
            &costs,
            wall,
            "git log of the same store",
            Target::AtMost(3.0),
        )
    }

    fn one_more(&mut self, ten: &Stvc, repeat: usize, when: &str) -> [Row; 2] {
        let mut costs = [Vec::new(), Vec::new()];
        for round in 0..repeat {
            self.next_state();
            for n in [round % 2, (round + 1) % 2] {
                let tool = if n == 0 { &self.stvc } else { ten };
                costs[n].push(time(tool.save()));
            }
        }
        let peer = "a store of the last 10 saves";
        // Not slower, within the clock's precision.
        let target = Target::AtMost(1.1);
        [
            self.row(format!("further snapshot{when}"), &costs, wall, peer, target),
            self.row(format!("further snapshot{when}, CPU"), &costs, cpu, peer, Target::None),
        ]
    }

    fn row(
        &self,
        what: String,
        costs: &[Vec<Cost>],
        of: fn(&[Cost]) -> Option<Value>,
        peer: &str,
        target: Target,
    ) -> Row {
        let value = |n: usize| of(&costs[n]).unwrap_or(Value::Bytes(0));
        let what = format!("{what}, {} snapshots", self.snapshots);
        Row { letter: 'd', what, stvc: value(0), peer: peer.into(), other: value(1), target }
    }
}
