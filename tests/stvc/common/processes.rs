//! The program started in a special way: with little room, under strace, killed.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Answer, Sandbox, answer, cannot};

/// Runs a command to its end. After some hundred processes Wine fails to start one now and then, with an internal error; then it is started again.
#[track_caller]
pub fn output_of(command: &mut Command) -> Output {
    const INTERNAL_ERROR: i32 = 1359;
    for _ in 0..10 {
        match command.output() {
            Err(error) if error.raw_os_error() == Some(INTERNAL_ERROR) => {
                std::thread::sleep(Duration::from_millis(200));
            }
            output => return output.unwrap(),
        }
    }
    command.output().unwrap()
}

/// Run the program where no file may grow beyond this many blocks of 512 bytes. Ignored, the signal becomes an error.
pub fn limited(sandbox: &Sandbox, blocks: usize, arguments: &[&str]) -> Answer {
    let script = format!("trap '' XFSZ; ulimit -f {blocks} || exit 99; exec \"$@\"");
    scripted(sandbox, &script, arguments)
}

/// Run the program by a shell that does something before it.
pub fn scripted(sandbox: &Sandbox, script: &str, arguments: &[&str]) -> Answer {
    let mut shell = started_by(sandbox, "sh", &["-c", script, "sh"], arguments);
    answer(shell.stdin(Stdio::null()).output().unwrap())
}

/// The program with its own surroundings, to be started by another with these options.
pub fn started_by(
    sandbox: &Sandbox,
    starter: &str,
    options: &[&str],
    arguments: &[&str],
) -> Command {
    let program = sandbox.command(arguments);
    let mut command = Command::new(starter);
    command.args(options).arg(program.get_program()).args(arguments);
    command.current_dir(sandbox.library()).env_clear();
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

/// Runs the program on a terminal of 24 lines on which `typed` is typed, and returns what is on it.
pub fn typed_on_terminal(
    sandbox: &Sandbox,
    arguments: &[&str],
    variables: &[(&str, &str)],
    typed: &str,
) -> Answer {
    let quoted: Vec<_> = arguments.iter().map(|word| format!("'{word}'")).collect();
    let line =
        format!("stty rows 24 cols 80; '{}' {}", env!("CARGO_BIN_EXE_stvc"), quoted.join(" "));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(sandbox.library()).env_clear();
    for (name, value) in sandbox.command(&[]).get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env_remove("STVC_COLUMNS").env("TERM", "dumb").env("SHELL", "/bin/sh");
    command.envs(variables.iter().copied());
    command.stdin(if typed.is_empty() { Stdio::null() } else { Stdio::piped() });
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(typed.as_bytes()).unwrap();
    }
    let answer = answer(child.wait_with_output().unwrap());
    Answer { stdout: answer.stdout.replace("\r\n", "\n"), ..answer }
}

/// Whether the program can be run on a terminal; if not, that is said.
pub fn has_terminal() -> bool {
    let can = Command::new("script").arg("--version").output().is_ok();
    if !can {
        cannot("there is no script");
    }
    can
}

/// The program under strace with these options, not started yet.
pub fn traced_with(sandbox: &Sandbox, options: &[&str], arguments: &[&str]) -> Command {
    let options = [&["-f", "-qq", "-o", "/dev/null"], options].concat();
    started_by(sandbox, "strace", &options, arguments)
}

/// Whether strace can be used; if not, that is said.
pub fn can_trace() -> bool {
    let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    let can = tried.is_ok_and(|tried| tried.status.success());
    if !can {
        cannot("strace cannot be used here");
    }
    can
}

/// Start a command, let it work that long, and kill it; whether it was still at work.
pub fn kill_after(sandbox: &Sandbox, arguments: &[&str], delay: Duration) -> bool {
    let mut command = sandbox.command(arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(delay);
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

/// Says so also when its thread panics.
pub struct Done<'a>(pub &'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
