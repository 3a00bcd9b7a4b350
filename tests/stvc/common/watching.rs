//! A running `stvc watch` and its events.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Sandbox;

/// Timeout of each expected event.
pub const LIMIT: Duration = Duration::from_secs(60);

pub struct Watching {
    pub child: Child,
    events: Receiver<Value>,
}

impl Watching {
    pub fn start(sandbox: &Sandbox, options: &[&str]) -> Self {
        let mut arguments = vec!["--json", "watch"];
        if !options.contains(&"--settle") {
            arguments.extend(["--settle", "150ms"]);
        }
        arguments.extend(options);
        Self::start_command(sandbox.command(&arguments))
    }

    /// Starts a watch by this command.
    pub fn start_command(command: Command) -> Self {
        Self::start_until(command, |event| event["event"] == "started").0
    }

    /// Starts a watch by this command, and waits for an event, which is returned.
    pub fn start_until(mut command: Command, fits: impl Fn(&Value) -> bool) -> (Self, Value) {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, events) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let Ok(event) = serde_json::from_str(&line) else { continue };
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        let watching = Self { child, events };
        let event = watching.wait_for(fits);
        (watching, event)
    }

    /// Waits for the next matching event.
    #[track_caller]
    pub fn wait_for(&self, fits: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let left = LIMIT.saturating_sub(begin.elapsed());
            let event = self.events.recv_timeout(left).expect("it was not told in time");
            if fits(&event) {
                return event;
            }
        }
    }

    /// Waits for a snapshot with this number of messages.
    #[track_caller]
    pub fn snapshot_of(&self, messages: u64) -> Value {
        self.wait_for(|event| event["type"] == "snapshot" && event["messages"] == messages)
    }

    /// Stops the watch and returns its summary. Windows has no signals: there it is killed and
    /// prints no summary.
    #[track_caller]
    pub fn stop(mut self) -> Value {
        if cfg!(windows) {
            self.kill();
            return Value::Null;
        }
        signal(&self.child, "TERM");
        let summary = self.wait_for(|event| event["type"] == "summary");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        summary
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    let status = Command::new("sh").args(["-c", &kill]).status();
    assert!(status.unwrap().success());
}
