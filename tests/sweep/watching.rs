//! One short run of `watch`: it takes what is there, then a save that comes meanwhile, and is stopped.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::stage::{Answer, Stage, wait};
use crate::world::{C, chat};

/// What is saved while it runs.
fn saved() -> String {
    chat("c", 6, None)
}

pub fn run(mut command: Command, stage: &Stage) -> Answer {
    let (out, err) = (stage.beside().join("stdout"), stage.beside().join("stderr"));
    command.stdin(Stdio::null());
    command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    let mut child = command.process_group(0).spawn().unwrap();
    let text = |path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let mut gone = |condition: &dyn Fn(&str) -> bool, limit: u64| {
        let begin = Instant::now();
        loop {
            if child.try_wait().unwrap().is_some() {
                return true;
            }
            if condition(&text(&out)) || begin.elapsed() > Duration::from_millis(limit) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    let snapshots = |n: usize| move |text: &str| text.matches("\"type\":\"snapshot\"").count() >= n;
    // After a fault it may take a while until it tries again, or never come to it.
    let gone = gone(&snapshots(1), 3000) || {
        let path = stage.library("one").join(C);
        let beside = path.with_extension("saving");
        fs::write(&beside, saved()).unwrap();
        fs::rename(&beside, &path).unwrap();
        gone(&|text| text.contains("\"chats/Voss/c\""), 3000)
    };
    if !gone {
        let id = child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
    }
    let ended = wait(&mut child, Duration::from_secs(30));
    let code = ended.and_then(|status| status.code());
    Answer { code, hung: ended.is_none(), stdout: text(&out), stderr: text(&err) }
}
