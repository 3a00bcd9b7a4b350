//! One short run of `watch`: it stores the current files, then one save, and is stopped.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::stage::{Answer, Stage, run as run_to_end, wait};
use crate::trace::add_save;
use crate::world::{C, chat};

/// Time limit for a snapshot; after a fault the watch retries, but not forever.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_AFTER_FAULT: Duration = Duration::from_millis(2500);

/// The chat that is saved while the watch runs.
fn saved() -> String {
    chat("c", 6, None)
}

pub fn run(mut command: Command, stage: &Stage) -> Answer {
    let (out, err) = (stage.outside().join("watch-stdout"), stage.outside().join("watch-stderr"));
    let status = run_to_end(stage.command("one", &["status"]), &stage.outside());
    let stored = |line: &serde_json::Value| line["state"] == "unchanged";
    let has_changes = status.code != Some(0) || !status.of_type("timeline").iter().all(stored);
    command.stdin(Stdio::null());
    command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    let trace = command.get_envs().find(|(name, _)| *name == "FAULTS_TRACE");
    let trace = trace.and_then(|(_, file)| Some(Path::new(file?).to_owned()));
    let mut child = command.process_group(0).spawn().unwrap();
    let contains = |what: &'static str| move |text: &str| text.contains(what);
    let is_running = wait_for(&mut child, &out, contains("\"started\""))
        && (!has_changes || wait_for(&mut child, &out, contains("\"type\":\"snapshot\"")));
    if is_running {
        let path = stage.library("one").join(C);
        if fs::read(&path).ok() != Some(saved().into_bytes()) {
            let beside = path.with_extension("saving");
            fs::write(&beside, saved()).unwrap();
            fs::rename(&beside, &path).unwrap();
            if let Some(trace) = trace {
                let path = path.strip_prefix(stage.disk()).unwrap();
                add_save(&trace, path.to_str().unwrap(), saved().as_bytes());
            }
            wait_for(&mut child, &out, contains("\"chats/Voss/c\""));
        }
        let stop = format!("kill -TERM {}", child.id());
        let _ = Command::new("sh").args(["-c", &stop]).stderr(Stdio::null()).status();
    }
    let ended = wait(&mut child, Duration::from_secs(30));
    let code = ended.and_then(|status| status.code());
    Answer { code, hung: ended.is_none(), stdout: text(&out), stderr: text(&err) }
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

/// Waits for an output; returns false if the process ended.
fn wait_for(child: &mut Child, out: &Path, is_done: impl Fn(&str) -> bool) -> bool {
    let begin = Instant::now();
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        let text = text(out);
        let patience = if text.contains("failed") { PATIENCE_AFTER_FAULT } else { PATIENCE };
        if is_done(&text) || begin.elapsed() > patience {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
