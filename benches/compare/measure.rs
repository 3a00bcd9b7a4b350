//! Measures the time and memory of commands and the size of folders.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::value::Value;

/// Runs a command that must succeed and discards its output.
pub fn run(mut command: Command) {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.stderr(Stdio::piped()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[derive(Clone, Copy)]
pub struct Cost {
    wall: Duration,
    /// Of all cores, for commands only; `None` outside Linux.
    cpu: Option<Duration>,
}

/// Measures commands, run one after the other.
pub fn time(commands: Vec<Command>) -> Cost {
    time_of(|| commands.into_iter().for_each(run))
}

/// Measures commands, and the highest memory use of one of them in bytes.
pub fn time_and_memory(commands: Vec<Command>) -> (Cost, Option<u64>) {
    let mut peak = None;
    let cost = time_of(|| peak = memory(commands));
    (cost, peak)
}

/// Returns the highest memory use of one of the commands in bytes; `None` outside Linux.
pub fn memory(commands: Vec<Command>) -> Option<u64> {
    commands.into_iter().filter_map(peak_memory).max()
}

/// Measures a function of this program.
fn time_of(work: impl FnOnce()) -> Cost {
    flush_dirty_pages();
    let (begin, cpu) = (Instant::now(), cpu_of_commands());
    work();
    let wall = begin.elapsed();
    let cpu = cpu_of_commands().zip(cpu).map(|(after, before)| after - before);
    Cost { wall, cpu }
}

/// Returns the CPU time of all finished commands, in hundredths of a second.
fn cpu_of_commands() -> Option<Duration> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, after_name) = text.rsplit_once(") ")?;
    let ticks = after_name.split(' ').skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 10))
}

/// Writes dirty pages to disk, so that a tool that syncs does not pay for one that does not.
fn flush_dirty_pages() {
    let _ = Command::new("sync").status();
}

/// Measures each of `count` tools once per round, in the order of [`rotated_order`].
pub fn rounds(
    rounds: usize,
    count: usize,
    mut turn: impl FnMut(usize) -> Option<Cost>,
) -> Vec<Vec<Cost>> {
    let mut costs = vec![Vec::new(); count];
    for round in 0..rounds {
        for contestant in rotated_order(round, count) {
            costs[contestant].extend(turn(contestant));
        }
    }
    costs
}

/// Returns the order of the tools in a round. The first one rotates, and none always follows the
/// same tool, which may have filled or emptied the caches: of two equal programs the second was a
/// fifth faster.
pub fn rotated_order(round: usize, count: usize) -> impl Iterator<Item = usize> {
    let divides_both =
        |part: usize, step: usize| step.is_multiple_of(part) && count.is_multiple_of(part);
    let meets_all = |step: &usize| !(2..=*step).any(|part| divides_both(part, *step));
    let steps: Vec<_> = (1..count.max(2)).filter(meets_all).collect();
    let step = steps[round % steps.len()];
    (0..count).map(move |n| (round + n * step) % count)
}

/// Returns the median wall time.
pub fn wall(costs: &[Cost]) -> Option<Value> {
    median(costs.iter().map(|cost| cost.wall).collect()).map(Value::Time)
}

pub fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort();
    times.get(times.len() / 2).copied()
}

/// Returns the mean CPU time; the clock's ticks are too coarse for a median.
pub fn cpu(costs: &[Cost]) -> Option<Value> {
    let times: Option<Vec<_>> = costs.iter().map(|cost| cost.cpu).collect();
    let times = times.filter(|times| !times.is_empty())?;
    Some(Value::Time(times.iter().sum::<Duration>() / times.len() as u32))
}

/// Returns the total size of the files below `dir`.
pub fn size(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let size_of = |entry: fs::DirEntry| {
        let found = entry.metadata().expect("look at a file");
        if found.is_dir() { size(&entry.path()) } else { found.len() }
    };
    entries.flatten().map(size_of).sum()
}

fn peak_memory(command: Command) -> Option<u64> {
    if !cfg!(target_os = "linux") {
        run(command);
        None
    } else if Path::new(GNU_TIME).exists() {
        Some(peak_by_time(&command))
    } else {
        Some(peak_by_polling(command))
    }
}

const GNU_TIME: &str = "/usr/bin/time";

fn peak_by_time(command: &Command) -> u64 {
    let report = std::env::temp_dir().join(format!("stvc-bench-{}", std::process::id()));
    let report_path = report.to_str().expect("a path of ours");
    run(wrapped(&[GNU_TIME, "-f", "%M", "-o", report_path], command));
    let text = fs::read_to_string(&report).expect("read what time says");
    let _ = fs::remove_file(&report);
    text.trim().parse::<u64>().expect("a number of kilobytes") * 1024
}

/// Copies a command, behind the words of another one that starts it.
pub fn wrapped(wrapper: &[&str], command: &Command) -> Command {
    let wrapper = wrapper.iter().map(OsStr::new);
    let mut words = wrapper.chain([command.get_program()]).chain(command.get_args());
    let mut wrapped = Command::new(words.next().expect("a program"));
    wrapped.args(words);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        wrapped.current_dir(dir);
    }
    wrapped
}

/// Polls the high-water mark until the process ends; misses its last millisecond.
fn peak_by_polling(mut command: Command) -> u64 {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("start a command");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("ask for a process").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = mark.and_then(|mark| mark.trim().strip_suffix(" kB")?.parse().ok());
        peak = peak.max(kilobytes.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(1));
    }
    peak * 1024
}
