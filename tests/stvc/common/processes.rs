//! Starts the program in special ways: with limited file sizes, under strace, killed.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Answer, Sandbox, answer, skip};

/// Runs a command to its end. After a few hundred processes Wine sometimes fails to start one, with
/// an internal error; then this retries.
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

/// Runs the program with a limit on the file size, in blocks of 512 bytes. The signal is ignored,
/// so that a write returns an error.
pub fn run_with_file_limit(sandbox: &Sandbox, blocks: usize, arguments: &[&str]) -> Answer {
    let script = format!("trap '' XFSZ; ulimit -f {blocks} || exit 99; exec \"$@\"");
    run_in_shell(sandbox, &script, arguments)
}

/// Runs the program by a shell that runs `script` first.
pub fn run_in_shell(sandbox: &Sandbox, script: &str, arguments: &[&str]) -> Answer {
    let mut shell = command_through(sandbox, "sh", &["-c", script, "sh"], arguments);
    answer(shell.stdin(Stdio::null()).output().unwrap())
}

/// Builds a command that starts the program by `starter`, with the program's environment.
pub fn command_through(
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

/// Runs the program on a terminal of 24 lines, types `typed` and returns the screen.
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

/// Whether the program can be run on a terminal; otherwise reports the skipped test.
pub fn has_terminal() -> bool {
    let can = Command::new("script").arg("--version").output().is_ok();
    if !can {
        skip("there is no script");
    }
    can
}

/// Builds a command that runs the program under strace.
pub fn traced_with(sandbox: &Sandbox, options: &[&str], arguments: &[&str]) -> Command {
    let options = [&["-f", "-qq", "-o", "/dev/null"], options].concat();
    command_through(sandbox, "strace", &options, arguments)
}

/// Whether strace can be used; otherwise reports the skipped test.
pub fn can_trace() -> bool {
    let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    let can = tried.is_ok_and(|tried| tried.status.success());
    if !can {
        skip("strace cannot be used here");
    }
    can
}

/// Kills a command after `delay` and returns whether it was still running.
pub fn kill_after(sandbox: &Sandbox, arguments: &[&str], delay: Duration) -> bool {
    let mut command = sandbox.command(arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(delay);
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

/// Sets the flag when dropped, also when its thread panics.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
