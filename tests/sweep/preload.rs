//! Compiles `faults.c` and runs the program under it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::stage::{Answer, Stage};
use crate::trace::{self, Call};

/// Offsets in the page of memory that `faults.c` shares.
const HIT: usize = 8;
const LOADED: usize = 24;
const CALL: usize = 36;

/// A fault at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Kills the program before the call.
    Kill,
    /// Kills the program after half of the data is written.
    Torn,
    /// Makes the call fail.
    Error(i32),
    /// Makes a reading call fail; those calls have their own numbers.
    Read(i32),
}

/// The shared library that is preloaded into the program.
pub struct Preload {
    library: PathBuf,
}

impl Preload {
    /// Compiles the library, or returns the reason why that is impossible.
    pub fn compile(into: &Path) -> Result<Self, String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sweep/faults.c");
        let library = into.join("faults.so");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let made = Command::new(&compiler)
            .args(["-shared", "-fPIC", "-O2", "-o"])
            .arg(&library)
            .arg(&source)
            .arg("-ldl")
            .output();
        match made {
            Ok(made) if made.status.success() => Self { library }.verified(into),
            Ok(made) => Err(format!("{compiler}: {}", String::from_utf8_lossy(&made.stderr))),
            Err(error) => Err(format!("there is no C compiler ({compiler}: {error})")),
        }
    }

    /// Checks that preloading works on this machine.
    fn verified(self, into: &Path) -> Result<Self, String> {
        let stage = Stage::new(&into.join("proof"));
        std::fs::create_dir_all(stage.library("one")).unwrap();
        let mut command = stage.command("one", &["--version"]);
        let page = self.set_environment(&mut command, &stage);
        crate::stage::run(command, &stage.outside());
        match fs::read(page).unwrap()[LOADED] {
            2 => Ok(self),
            1 => Err("this system allows no filter for calls (seccomp)".into()),
            _ => Err("nothing can be loaded into the program; it is linked statically".into()),
        }
    }

    /// Sets the environment that numbers the calls on the stage's disk.
    fn set_environment(&self, command: &mut Command, stage: &Stage) -> PathBuf {
        let page = stage.outside().join("page");
        fs::write(&page, [0; 4096]).unwrap();
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAULTS_ROOT", stage.disk())
            .env("FAULTS_EXCEPT", stage.server())
            .env("FAULTS_PAGE", &page);
        page
    }

    /// Runs a command with a fault at one call. Returns the answer, and the call if it was reached.
    pub fn run(
        &self,
        stage: &Stage,
        mut command: Command,
        at: u64,
        fault: Fault,
        run: impl FnOnce(Command) -> Answer,
    ) -> (Answer, Option<String>) {
        let page = self.set_environment(&mut command, stage);
        let what = match fault {
            Fault::Kill => "kill".to_owned(),
            Fault::Torn => "torn".to_owned(),
            Fault::Error(number) | Fault::Read(number) => number.to_string(),
        };
        let which = if let Fault::Read(_) = fault { "FAULTS_READ" } else { "FAULTS_AT" };
        command.env(which, at.to_string()).env("FAULTS_DO", what);
        let answer = run(command);
        if stage.server().exists() {
            wait_for_all(&page);
        }
        let page = fs::read(page).unwrap();
        let hit = page[HIT] == 1;
        let words = page[CALL..].split(|byte| *byte == 0).next().unwrap_or_default();
        (answer, hit.then(|| String::from_utf8_lossy(words).into_owned()))
    }

    /// Runs a command without faults. Returns the answer and all calls.
    pub fn record(
        &self,
        stage: &Stage,
        mut command: Command,
        run: impl FnOnce(Command) -> Answer,
    ) -> (Answer, Vec<Call>) {
        let page = self.set_environment(&mut command, stage);
        let file = stage.outside().join("trace");
        fs::write(&file, []).unwrap();
        command.env("FAULTS_TRACE", &file);
        let answer = run(command);
        if stage.server().exists() {
            wait_for_all(&page);
        }
        (answer, trace::read(&file, &stage.disk()))
    }
}

/// Waits until every process that shares this page has ended: the server's git ends shortly after
/// its client.
fn wait_for_all(page: &Path) {
    let mark = format!("FAULTS_PAGE={}\0", page.display()).into_bytes();
    let is_running = || {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut environments =
            processes.filter_map(|process| fs::read(process.path().join("environ")).ok());
        environments.any(|text| text.windows(mark.len()).any(|part| part == mark))
    };
    let begin = Instant::now();
    // Checked twice: during `exec` a process briefly shows no environment.
    let mut dead = 0;
    while dead < 2 && begin.elapsed() < Duration::from_secs(30) {
        dead = if is_running() { 0 } else { dead + 1 };
        std::thread::sleep(Duration::from_millis(3));
    }
}
