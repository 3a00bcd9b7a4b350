//! Parses the command line and runs the points on all cores.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use crate::cases::{self, Case};
use crate::judge::Violation;
use crate::point::{Kind, Point};
use crate::preload::Preload;
use crate::prepare::PreparedCase;
use crate::report::Report;

/// Approximate number of points in the fixed sample.
const SAMPLE: usize = 240;

#[derive(Default)]
struct Options {
    whole: bool,
    /// One point per case.
    quick: bool,
    case: Option<String>,
    kind: Option<String>,
    point: Option<String>,
    /// Print the cases and their points.
    cases: bool,
    /// Print the cases in the format of the test harness.
    list: bool,
    threads: Option<usize>,
    /// Try every n-th point.
    every: Option<usize>,
    /// A filter of `cargo test` that names other tests.
    other_tests: bool,
}

impl Options {
    fn read() -> Result<Self, String> {
        let mut options = Self::default();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--whole" => options.whole = true,
                "--quick" => options.quick = true,
                "--case" => options.case = Some(value()?),
                "--kind" => options.kind = Some(value()?),
                "--point" => options.point = Some(value()?),
                "--cases" => options.cases = true,
                "--list" => options.list = true,
                "--every" => options.every = value()?.parse().ok(),
                "--threads" => options.threads = value()?.parse().ok(),
                // Options that `cargo test` passes to every test program.
                option if option.starts_with('-') => {}
                filter => options.other_tests |= !"sweep".contains(filter),
            }
        }
        Ok(options)
    }

    fn picks(&self, case: &Case) -> bool {
        self.case.as_ref().is_none_or(|name| name == case.name || name == case.verb)
    }

    fn picks_point(&self, point: Point) -> bool {
        let words = point.argument();
        let number = words.split(':').next().unwrap_or_default();
        self.kind.as_ref().is_none_or(|kind| kind == point.kind().name())
            && self.point.as_ref().is_none_or(|wanted| *wanted == words || wanted == number)
    }
}

pub fn main() -> ExitCode {
    let options = match Options::read() {
        Ok(options) => options,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    if options.other_tests || options.list {
        println!("{}", if options.list { "sweep: test" } else { "0 passed, 0 failed" });
        return ExitCode::SUCCESS;
    }
    let base = tempfile::Builder::new().prefix("stvc-sweep-").tempdir_in(memory_folder()).unwrap();
    let preload = match Preload::compile(base.path()) {
        Ok(preload) if has_git() => preload,
        Ok(_) => return skipped("there is no git"),
        Err(why) => return skipped(&why),
    };
    let mut report = Report::default();
    let prepared = prepare(&options, &preload, base.path(), &mut report);
    if options.cases {
        for case in &prepared {
            println!("{}: {} points", case.case.name, case.points.len());
        }
        report.print(&prepared, base.path());
        return ExitCode::SUCCESS;
    }
    let jobs = choose(&options, &prepared);
    attempt(&options, &prepared, &jobs, &preload, base.path(), &mut report);
    report.print(&prepared, base.path());
    match report.failed() {
        0 => ExitCode::SUCCESS,
        _ => {
            // Keeps the folders of failures for inspection.
            let _ = base.keep();
            ExitCode::FAILURE
        }
    }
}

fn skipped(why: &str) -> ExitCode {
    println!("The sweep is skipped: {why}.");
    println!("0 passed, 0 failed");
    ExitCode::from(u8::from(std::env::var_os("STVC_REQUIRE_SWEEP").is_some()))
}

fn has_git() -> bool {
    Command::new("git").arg("--version").output().is_ok_and(|made| made.status.success())
}

/// Returns a folder in memory if possible: it is faster, and `Disk` simulates the losses anyway.
fn memory_folder() -> PathBuf {
    const ENOUGH: u64 = 256 << 10;
    let memory = Path::new("/dev/shm");
    let free = || {
        let options = Command::new("df").arg("-Pk").arg(memory).output().ok()?;
        let text = String::from_utf8(options.stdout).ok()?;
        text.lines().nth(1)?.split_whitespace().nth(3)?.parse::<u64>().ok()
    };
    match tempfile::tempdir_in(memory) {
        Ok(_) if free().is_some_and(|free| free > ENOUGH) => memory.to_owned(),
        _ => std::env::temp_dir(),
    }
}

fn on_all_cores<T: Sync>(options: &Options, items: &[T], work: impl Fn(usize, &T) + Sync) {
    let next = AtomicUsize::new(0);
    let cores = || std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..options.threads.unwrap_or_else(cores) {
            scope.spawn(|| {
                while let Some((at, item)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    items.get(at).map(|item| (at, item))
                } {
                    work(at, item);
                }
            });
        }
    });
}

fn prepare(
    options: &Options,
    preload: &Preload,
    base: &Path,
    report: &mut Report,
) -> Vec<PreparedCase> {
    let cases: Vec<_> = cases::all().into_iter().filter(|case| options.picks(case)).collect();
    let slots: Vec<_> = cases.into_iter().map(|case| Mutex::new(Some(case))).collect();
    let done = Mutex::new(Vec::new());
    on_all_cores(options, &slots, |at, slot| {
        let case = slot.lock().unwrap().take().unwrap();
        let (name, work) = (case.name, base.join(format!("case-{}", case.name)));
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            PreparedCase::new(case, preload, &work)
        }));
        let made = made.unwrap_or_else(|_| Err("it cannot be prepared".into()));
        done.lock().unwrap().push((at, name, made));
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(at, ..)| *at);
    let mut prepared = Vec::new();
    for (_, name, made) in done {
        match made {
            Ok(case) => prepared.push(case),
            Err(why) => report.case_failed(name, &why),
        }
    }
    prepared
}

/// Chooses all points, or an even and deterministic selection of each case and kind.
fn choose(options: &Options, prepared: &[PreparedCase]) -> Vec<(usize, Point)> {
    let mut all: Vec<(usize, Point)> = Vec::new();
    for (case, found) in prepared.iter().enumerate() {
        all.extend(found.points.iter().map(|point| (case, *point)));
    }
    all.retain(|(_, point)| options.picks_point(*point));
    if let Some(every) = options.every {
        return all.into_iter().step_by(every.max(1)).collect();
    }
    if options.whole || options.point.is_some() || options.case.is_some() {
        return all;
    }
    if options.quick {
        return one_of_each_case(&all, prepared.len());
    }
    // Reads are many and mostly end alike: two per case.
    let is_read = |(_, point): &&(usize, Point)| point.kind() == Kind::Read;
    let step = (all.iter().filter(|point| !is_read(point)).count() / SAMPLE).max(1);
    let mut chosen = Vec::new();
    for case in 0..prepared.len() {
        for kind in Kind::ALL {
            let of = all.iter().filter(|(at, point)| *at == case && point.kind() == kind);
            let of: Vec<_> = of.copied().collect();
            let share = if kind == Kind::Read { 0 } else { of.len() / step };
            let wanted = share.max(2).min(of.len());
            // Each case starts at another offset, so that two verbs do not both miss the same step.
            let points =
                (0..wanted).map(|n| of[(n * of.len() + case % of.len()) / wanted % of.len()]);
            chosen.extend(points);
        }
    }
    chosen
}

/// Chooses one point per case, of another kind and step than in the case before.
fn one_of_each_case(all: &[(usize, Point)], cases: usize) -> Vec<(usize, Point)> {
    let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Read);
    let kinds: Vec<_> = kinds.collect();
    (0..cases)
        .filter_map(|case| {
            let of: Vec<_> = all.iter().filter(|(at, _)| *at == case).collect();
            let wanted = kinds[case % kinds.len()];
            let of_kind: Vec<_> =
                of.iter().copied().filter(|(_, point)| point.kind() == wanted).collect();
            let choice = if of_kind.is_empty() { of } else { of_kind };
            choice.get(case * 7 % choice.len().max(1)).copied().copied()
        })
        .collect()
}

fn attempt(
    options: &Options,
    prepared: &[PreparedCase],
    jobs: &[(usize, Point)],
    preload: &Preload,
    base: &Path,
    report: &mut Report,
) {
    let bar = ProgressBar::new(jobs.len() as u64);
    let style = "{wide_bar} {pos}/{len}, {msg} failed, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).unwrap());
    bar.set_message("0");
    let shared = Mutex::new(std::mem::take(report));
    // Restoring every snapshot takes too long for the sample.
    let all_snapshots = options.whole || options.every.is_some() || options.point.is_some();
    on_all_cores(options, jobs, |at, (case, point)| {
        let prepared = &prepared[*case];
        let work = base.join(format!("point-{at}"));
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            prepared.attempt(*point, preload, &work, all_snapshots)
        }));
        let (violations, call) = tried.unwrap_or_else(|_| {
            let words = "the attempt panicked; see above".to_owned();
            (vec![Violation { class: "the sweep itself", words }], String::new())
        });
        let mut report = shared.lock().unwrap();
        let keep = report.add(prepared, *point, &call, &violations);
        bar.set_message(report.failed().to_string());
        drop(report);
        if keep {
            let name =
                format!("{}-{}-{}", prepared.case.name, point.kind().name(), point.argument());
            let _ = std::fs::rename(&work, base.join(name.replace(':', "-")));
        } else {
            let _ = std::fs::remove_dir_all(&work);
        }
        bar.inc(1);
    });
    bar.finish_and_clear();
    *report = shared.into_inner().unwrap();
}
