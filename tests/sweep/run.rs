//! What is asked for on the command line, and all cores at work on it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use crate::cases::{self, Case};
use crate::judge::Wrong;
use crate::point::{Kind, Point};
use crate::preload::Preload;
use crate::prepare::Ready;
use crate::report::Report;

/// How many points the fixed sample has, about.
const SAMPLE: usize = 240;

/// What to try.
#[derive(Default)]
struct Asked {
    whole: bool,
    /// One point of each case.
    quick: bool,
    case: Option<String>,
    kind: Option<String>,
    point: Option<String>,
    /// Only say which cases there are, with their points.
    cases: bool,
    /// The same in the words of every test program.
    list: bool,
    threads: Option<usize>,
    /// Of all points only each so many-th.
    every: Option<usize>,
    /// A filter of `cargo test` that is about other tests.
    others: bool,
}

impl Asked {
    fn read() -> Result<Self, String> {
        let mut asked = Self::default();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--whole" => asked.whole = true,
                "--quick" => asked.quick = true,
                "--case" => asked.case = Some(value()?),
                "--kind" => asked.kind = Some(value()?),
                "--point" => asked.point = Some(value()?),
                "--cases" => asked.cases = true,
                "--list" => asked.list = true,
                "--every" => asked.every = value()?.parse().ok(),
                "--threads" => asked.threads = value()?.parse().ok(),
                // What `cargo test` may say to every test program.
                option if option.starts_with('-') => {}
                filter => asked.others |= !"sweep".contains(filter),
            }
        }
        Ok(asked)
    }

    fn picks(&self, case: &Case) -> bool {
        self.case.as_ref().is_none_or(|name| name == case.name || name == case.verb)
    }

    fn picks_point(&self, point: Point) -> bool {
        let words = point.words();
        let number = words.split(':').next().unwrap_or_default();
        self.kind.as_ref().is_none_or(|kind| kind == point.kind().words())
            && self.point.as_ref().is_none_or(|wanted| *wanted == words || wanted == number)
    }
}

pub fn main() -> ExitCode {
    let asked = match Asked::read() {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    if asked.others || asked.list {
        println!("{}", if asked.list { "sweep: test" } else { "0 passed, 0 failed" });
        return ExitCode::SUCCESS;
    }
    let base = tempfile::Builder::new().prefix("stvc-sweep-").tempdir_in(fast_folder()).unwrap();
    let preload = match Preload::compile(base.path()) {
        Ok(preload) if has_git() => preload,
        Ok(_) => return skipped("there is no git"),
        Err(why) => return skipped(&why),
    };
    let mut report = Report::default();
    let ready = prepare(&asked, &preload, base.path(), &mut report);
    if asked.cases {
        for case in &ready {
            println!("{}: {} points", case.case.name, case.points.len());
        }
        report.print(&ready, base.path());
        return ExitCode::SUCCESS;
    }
    let jobs = choose(&asked, &ready);
    attempt(&asked, &ready, &jobs, &preload, base.path(), &mut report);
    report.print(&ready, base.path());
    match report.failed() {
        0 => ExitCode::SUCCESS,
        _ => {
            // What failed can be looked at.
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

/// In memory, where that is to be had: no disk is waited for, and what a cut would lose is decided here and not there.
fn fast_folder() -> PathBuf {
    const ENOUGH: u64 = 256 << 10;
    let memory = Path::new("/dev/shm");
    let free = || {
        let asked = Command::new("df").arg("-Pk").arg(memory).output().ok()?;
        let text = String::from_utf8(asked.stdout).ok()?;
        text.lines().nth(1)?.split_whitespace().nth(3)?.parse::<u64>().ok()
    };
    match tempfile::tempdir_in(memory) {
        Ok(_) if free().is_some_and(|free| free > ENOUGH) => memory.to_owned(),
        _ => std::env::temp_dir(),
    }
}

/// Do something for each, on all cores.
fn on_all_cores<T: Sync>(asked: &Asked, items: &[T], work: impl Fn(usize, &T) + Sync) {
    let next = AtomicUsize::new(0);
    let cores = || std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..asked.threads.unwrap_or_else(cores) {
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

fn prepare(asked: &Asked, preload: &Preload, base: &Path, report: &mut Report) -> Vec<Ready> {
    let cases: Vec<_> = cases::all().into_iter().filter(|case| asked.picks(case)).collect();
    let slots: Vec<_> = cases.into_iter().map(|case| Mutex::new(Some(case))).collect();
    let done = Mutex::new(Vec::new());
    on_all_cores(asked, &slots, |at, slot| {
        let case = slot.lock().unwrap().take().unwrap();
        let (name, work) = (case.name, base.join(format!("case-{}", case.name)));
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            Ready::new(case, preload, &work)
        }));
        let made = made.unwrap_or_else(|_| Err("it cannot be made".into()));
        done.lock().unwrap().push((at, name, made));
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(at, ..)| *at);
    let mut ready = Vec::new();
    for (_, name, made) in done {
        match made {
            Ok(case) => ready.push(case),
            Err(why) => report.case_failed(name, &why),
        }
    }
    ready
}

/// The points to try: all, or from each case and kind some, evenly, always the same ones.
fn choose(asked: &Asked, ready: &[Ready]) -> Vec<(usize, Point)> {
    let mut all: Vec<(usize, Point)> = Vec::new();
    for (case, found) in ready.iter().enumerate() {
        all.extend(found.points.iter().map(|point| (case, *point)));
    }
    all.retain(|(_, point)| asked.picks_point(*point));
    if let Some(every) = asked.every {
        return all.into_iter().step_by(every.max(1)).collect();
    }
    if asked.whole || asked.point.is_some() || asked.case.is_some() {
        return all;
    }
    if asked.quick {
        return one_of_each_case(&all, ready.len());
    }
    // Reads are many, and most of them end alike: two of each case.
    let is_read = |(_, point): &&(usize, Point)| point.kind() == Kind::Read;
    let step = (all.iter().filter(|point| !is_read(point)).count() / SAMPLE).max(1);
    let mut chosen = Vec::new();
    for case in 0..ready.len() {
        for kind in Kind::ALL {
            let of = all.iter().filter(|(at, point)| *at == case && point.kind() == kind);
            let of: Vec<_> = of.copied().collect();
            let share = if kind == Kind::Read { 0 } else { of.len() / step };
            let wanted = share.max(2).min(of.len());
            // Another begin for each case, so that the same step of two verbs is not missed in both.
            let points =
                (0..wanted).map(|n| of[(n * of.len() + case % of.len()) / wanted % of.len()]);
            chosen.extend(points);
        }
    }
    chosen
}

/// One point of each case: of another kind and at another step than that of the case before.
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
    asked: &Asked,
    ready: &[Ready],
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
    // Every snapshot is brought back where there is time for it.
    let all_snapshots = asked.whole || asked.every.is_some() || asked.point.is_some();
    on_all_cores(asked, jobs, |at, (case, point)| {
        let ready = &ready[*case];
        let work = base.join(format!("point-{at}"));
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            ready.attempt(*point, preload, &work, all_snapshots)
        }));
        let (wrong, call) = tried.unwrap_or_else(|_| {
            let words = "it could not be tried; see above".to_owned();
            (vec![Wrong { class: "the sweep itself", words }], String::new())
        });
        let mut report = shared.lock().unwrap();
        let keep = report.add(ready, *point, &call, &wrong);
        bar.set_message(report.failed().to_string());
        drop(report);
        if keep {
            let name = format!("{}-{}-{}", ready.case.name, point.kind().words(), point.words());
            let _ = std::fs::rename(&work, base.join(name.replace(':', "-")));
        } else {
            let _ = std::fs::remove_dir_all(&work);
        }
        bar.inc(1);
    });
    bar.finish_and_clear();
    *report = shared.into_inner().unwrap();
}
