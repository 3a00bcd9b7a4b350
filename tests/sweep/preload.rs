//! `faults.c`, compiled once, and the program run under it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::stage::{Answer, Stage};
use crate::trace::{self, Call};

/// Where things are in the page that `faults.c` shares.
const HIT: usize = 8;
const LOADED: usize = 24;
const WHAT: usize = 36;

/// What happens to the program at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is killed before it.
    Kill,
    /// It is killed after half of it was written.
    Torn,
    /// The call fails.
    Error(i32),
    /// The same for one that only reads; these have numbers of their own.
    Read(i32),
}

/// The library that is loaded into the program.
pub struct Preload {
    library: PathBuf,
}

impl Preload {
    /// Compile it into a folder; if that cannot be, why.
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
            Ok(made) if made.status.success() => Self { library }.proved(into),
            Ok(made) => Err(format!("{compiler}: {}", String::from_utf8_lossy(&made.stderr))),
            Err(error) => Err(format!("there is no C compiler ({compiler}: {error})")),
        }
    }

    /// Whether it works here.
    fn proved(self, into: &Path) -> Result<Self, String> {
        let stage = Stage::new(&into.join("proof"));
        std::fs::create_dir_all(stage.library("one")).unwrap();
        let mut command = stage.command("one", &["--version"]);
        let page = self.watch(&mut command, &stage);
        crate::stage::run(command, &stage.beside());
        match fs::read(page).unwrap()[LOADED] {
            2 => Ok(self),
            1 => Err("this system allows no filter for calls (seccomp)".into()),
            _ => Err("nothing can be loaded into the program; it is linked statically".into()),
        }
    }

    /// The environment under which calls on the stage's disk are numbered.
    fn watch(&self, command: &mut Command, stage: &Stage) -> PathBuf {
        let page = stage.beside().join("page");
        fs::write(&page, [0; 4096]).unwrap();
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAULTS_ROOT", stage.disk())
            .env("FAULTS_EXCEPT", stage.server())
            .env("FAULTS_PAGE", &page);
        page
    }

    /// Run a command with a fault at one call; the answer, and the call if it came to it.
    pub fn run(
        &self,
        stage: &Stage,
        mut command: Command,
        at: u64,
        fault: Fault,
        run: impl FnOnce(Command) -> Answer,
    ) -> (Answer, Option<String>) {
        let page = self.watch(&mut command, stage);
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
        let words = page[WHAT..].split(|byte| *byte == 0).next().unwrap_or_default();
        (answer, hit.then(|| String::from_utf8_lossy(words).into_owned()))
    }

    /// Run a command as it is; the answer, and all calls.
    pub fn record(
        &self,
        stage: &Stage,
        mut command: Command,
        run: impl FnOnce(Command) -> Answer,
    ) -> (Answer, Vec<Call>) {
        let page = self.watch(&mut command, stage);
        let file = stage.beside().join("trace");
        fs::write(&file, []).unwrap();
        command.env("FAULTS_TRACE", &file);
        let answer = run(command);
        if stage.server().exists() {
            wait_for_all(&page);
        }
        (answer, trace::read(&file, &stage.disk()))
    }
}

/// Until nobody who was started under this page lives any more: the server's git ends a moment after the one that spoke with it.
fn wait_for_all(page: &Path) {
    let mark = format!("FAULTS_PAGE={}\0", page.display()).into_bytes();
    let lives = || {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut environments =
            processes.filter_map(|process| fs::read(process.path().join("environ")).ok());
        environments.any(|text| text.windows(mark.len()).any(|part| part == mark))
    };
    let begin = Instant::now();
    // Seen dead twice: who is just becoming another program shows nothing for a moment.
    let mut dead = 0;
    while dead < 2 && begin.elapsed() < Duration::from_secs(30) {
        dead = if lives() { 0 } else { dead + 1 };
        std::thread::sleep(Duration::from_millis(3));
    }
}
