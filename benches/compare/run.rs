//! Runs a workload with all tools: each state is written once, and every tool stores it before the
//! next.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::library::Library;
use crate::measure::{
    Cost, cpu, memory, rotated_order, rounds, run, size, time, time_and_memory, wall,
};
use crate::sheet::{Measure, Sheet};
use crate::tools::{self, Tool};
use crate::value::Value;
use crate::workloads::Workload;

pub struct Run<'w> {
    pub tools: Vec<Box<dyn Tool>>,
    pub library: Library,
    pub workload: &'w mut dyn Workload,
    pub sheet: Sheet,
    /// Cost of every later snapshot, by tool.
    pub further: Vec<Vec<Cost>>,
    scratch: PathBuf,
    /// Repetitions of repeatable measurements.
    rounds: usize,
}

/// Runs a workload with a fixed number of saves.
pub fn whole(
    dir: &Path,
    sheet: Sheet,
    workload: &mut dyn Workload,
    saves: usize,
    rounds: usize,
) -> Sheet {
    let mut run = Run::new(dir, sheet, workload, rounds);
    run.first();
    for _ in 2..saves {
        run.save();
    }
    run.last_save();
    run.finish();
    run.sheet
}

impl<'w> Run<'w> {
    pub fn new(dir: &Path, sheet: Sheet, workload: &'w mut dyn Workload, rounds: usize) -> Self {
        let library = Library::new(&dir.join("library"));
        let tools = tools::all(dir, &library.root);
        Self::of(dir, sheet, workload, rounds, tools, library)
    }

    /// Runs these tools on an existing library.
    pub fn of(
        dir: &Path,
        mut sheet: Sheet,
        workload: &'w mut dyn Workload,
        rounds: usize,
        tools: Vec<Box<dyn Tool>>,
        library: Library,
    ) -> Self {
        sheet.tools = tools.iter().map(|tool| tool.name()).collect();
        let further = vec![Vec::new(); tools.len()];
        Self { tools, library, workload, sheet, further, scratch: dir.join("scratch"), rounds }
    }

    /// Measures the first snapshot, into an empty store each time.
    pub fn first(&mut self) {
        self.workload.begin(&self.library);
        // Some tools treat a file that was modified in the last two seconds as changed.
        thread::sleep(Duration::from_millis(2100));
        let empty = |tool: &dyn Tool| {
            tool.place().clear();
            tool.create();
        };
        let costs = self.measured(self.rounds, |tool| {
            empty(tool);
            tool.save()
        });
        for (tool, costs) in self.tools.iter().zip(&costs) {
            self.sheet.set(Measure::First, tool.name(), wall(costs));
            self.sheet.set(Measure::FirstCpu, tool.name(), cpu(costs));
            empty(&**tool);
            let peak = memory(tool.save()).map(Value::Bytes);
            self.sheet.set(Measure::FirstMemory, tool.name(), peak);
        }
    }

    fn next_state(&mut self) {
        self.library.next_save();
        self.workload.save(&self.library);
    }

    /// Measures the next save.
    pub fn save(&mut self) {
        self.next_state();
        for n in rotated_order(self.further[0].len(), self.tools.len()) {
            let commands = self.tools[n].save();
            if !commands.is_empty() {
                self.further[n].push(time(commands));
            }
        }
    }

    /// Measures the memory of one more save.
    pub fn last_save(&mut self) {
        self.next_state();
        for (tool, costs) in self.tools.iter().zip(&self.further) {
            self.sheet.set(Measure::Further, tool.name(), wall(costs));
            self.sheet.set(Measure::FurtherCpu, tool.name(), cpu(costs));
            let peak = memory(tool.save()).map(Value::Bytes);
            self.sheet.set(Measure::FurtherMemory, tool.name(), peak);
        }
    }

    /// Measures everything that is done with a full store.
    pub fn finish(&mut self) {
        let (chat, _) = self.workload.chat();
        let chat = fs::metadata(self.library.root.join(chat)).expect("look at the chat");
        self.sheet.largest = chat.len();
        self.sizes(Measure::Size);
        self.restore(Measure::Restore);
        for tool in &self.tools {
            let commands = restore_of(&**tool, self.workload, &self.scratch);
            if !commands.is_empty() {
                let peak = self.without_chat(|| memory(commands));
                self.sheet.set(Measure::RestoreMemory, tool.name(), peak.map(Value::Bytes));
            }
        }
        type Verb = fn(&dyn Tool) -> Vec<Command>;
        let verbs: [(Verb, Measure, Measure); 2] = [
            (|tool| tool.log(), Measure::Log, Measure::LogMemory),
            (|tool| tool.check(), Measure::Check, Measure::CheckMemory),
        ];
        for (verb, of_time, of_memory) in verbs {
            let costs = self.measured(self.rounds, verb);
            for (tool, costs) in self.tools.iter().zip(&costs) {
                self.sheet.set(of_time, tool.name(), wall(costs));
                let peak = memory(verb(&**tool)).map(Value::Bytes);
                self.sheet.set(of_memory, tool.name(), peak);
            }
        }
        self.gc();
        self.sizes(Measure::SizePacked);
        self.restore(Measure::RestorePacked);
        self.backup();
        run(self.tools[0].check().remove(0));
    }

    /// A new file each time.
    fn backup(&mut self) {
        let file = self.scratch.with_extension("stvc");
        for tool in self.tools.iter().filter(|tool| !tool.backup(&file).is_empty()) {
            let again = || {
                let _ = fs::remove_file(&file);
                time_and_memory(tool.backup(&file))
            };
            let (costs, peaks): (Vec<_>, Vec<_>) = (0..self.rounds).map(|_| again()).unzip();
            let peak = peaks.into_iter().flatten().max();
            let bytes = fs::metadata(&file).expect("look at the backup").len();
            self.sheet.set(Measure::Backup, tool.name(), wall(&costs));
            self.sheet.set(Measure::BackupMemory, tool.name(), peak.map(Value::Bytes));
            self.sheet.set(Measure::BackupSize, tool.name(), Some(Value::Bytes(bytes)));
            let _ = fs::remove_file(&file);
        }
    }

    /// Once: a second run has nothing to do.
    fn gc(&mut self) {
        for tool in &self.tools {
            let commands = tool.gc();
            if !commands.is_empty() {
                let (cost, peak) = time_and_memory(commands);
                self.sheet.set(Measure::Gc, tool.name(), wall(&[cost]));
                self.sheet.set(Measure::GcMemory, tool.name(), peak.map(Value::Bytes));
            }
        }
    }

    fn sizes(&mut self, measure: Measure) {
        for tool in &self.tools {
            let bytes = Some(size(&tool.place().store())).filter(|bytes| *bytes > 0);
            self.sheet.set(measure, tool.name(), bytes.map(Value::Bytes));
        }
    }

    fn restore(&mut self, measure: Measure) {
        let costs = self.measured_by(self.rounds, |tool| {
            let commands = restore_of(tool, self.workload, &self.scratch);
            (!commands.is_empty()).then(|| self.without_chat(|| time(commands)))
        });
        for (tool, costs) in self.tools.iter().zip(&costs) {
            self.sheet.set(measure, tool.name(), wall(costs));
        }
    }

    /// Removes the chat, runs `work`, and asserts that it restored the chat.
    fn without_chat<T>(&self, work: impl FnOnce() -> T) -> T {
        let (chat, _) = self.workload.chat();
        let file = self.library.root.join(&chat);
        let aside = self.scratch.with_extension("aside");
        fs::rename(&file, &aside).expect("move the chat aside");
        let _ = fs::remove_dir_all(&self.scratch);
        fs::create_dir_all(&self.scratch).expect("make a folder for what is restored");
        let result = work();
        let name = chat.file_name().expect("a chat has a name");
        let places = [file.clone(), self.scratch.join(&chat), self.scratch.join(name)];
        let restored = places.iter().find(|path| path.exists()).expect("the chat is back");
        let same = fs::read(restored).expect("read it") == fs::read(&aside).expect("read it");
        assert!(same, "{} is not what was stored", restored.display());
        fs::rename(&aside, &file).expect("move the chat back");
        result
    }

    /// Measures `count` rounds of a verb of each tool.
    fn measured(&self, count: usize, verb: impl Fn(&dyn Tool) -> Vec<Command>) -> Vec<Vec<Cost>> {
        self.measured_by(count, |tool| {
            let commands = verb(tool);
            (!commands.is_empty()).then(|| time(commands))
        })
    }

    fn measured_by(
        &self,
        count: usize,
        turn: impl Fn(&dyn Tool) -> Option<Cost>,
    ) -> Vec<Vec<Cost>> {
        rounds(count, self.tools.len(), |n| turn(&*self.tools[n]))
    }
}

fn restore_of(tool: &dyn Tool, workload: &dyn Workload, target: &Path) -> Vec<Command> {
    let (chat, timeline) = workload.chat();
    tool.restore(&chat, &timeline, target)
}
