//! Shows output that is longer than the screen in a pager.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

use unicode_width::UnicodeWidthStr;

use super::interrupt::on_interrupt;
use super::screen::Screen;

const PAGER: &str = "less";

/// The options that git passes to less: quit if the text fits the screen, show colours, do not
/// clear the screen.
const LESS: &str = "FRX";

/// Returns the command that starts the pager, or `None` if paging is disabled.
pub fn command(wanted: Option<&str>) -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok();
    let chosen = variable("STVC_PAGER").or(wanted.map(str::to_owned)).or(variable("PAGER"));
    let chosen = chosen.unwrap_or_else(|| PAGER.into());
    let chosen = chosen.trim();
    (!chosen.is_empty() && chosen != "cat").then(|| chosen.to_owned())
}

pub fn is_longer(text: &str, screen: &Screen) -> bool {
    let Some(rows) = screen.rows else { return false };
    let columns = screen.columns().max(1);
    let line = |line: &str| {
        anstream::adapter::strip_str(line).to_string().width().div_ceil(columns).max(1)
    };
    // One row is left for the prompt.
    text.lines().map(line).sum::<usize>() >= rows
}

/// Shows a text in the pager and waits until the user closes the pager. Returns `false` if the
/// default pager is not installed. If this fails, nothing was shown.
pub fn show(text: &str, command: &str) -> io::Result<bool> {
    let mut pager = match start(command) {
        Ok(pager) => pager,
        Err(error) if error.kind() == io::ErrorKind::NotFound && command == PAGER => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    // Ctrl-C is for the pager, for example to stop a search.
    let _ = on_interrupt(|| {});
    if let Some(mut input) = pager.stdin.take() {
        // The pipe breaks if the user quits the pager early.
        match input.write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            _ => {}
        }
    }
    match pager.wait()?.code() {
        // The shell exits with 126 or 127 if it cannot run the command.
        Some(126 | 127) => Err(io::ErrorKind::NotFound.into()),
        _ => Ok(true),
    }
}

fn start(command: &str) -> io::Result<Child> {
    let needs_shell = command.contains(|c: char| "|&;<>()$`\\\"'*?[#~=%".contains(c));
    let mut pager = match (needs_shell, cfg!(windows)) {
        (true, false) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", command]);
            shell
        }
        (true, true) => {
            let mut shell = Command::new("cmd");
            shell.args(["/C", command]);
            shell
        }
        (false, _) => {
            let mut words = command.split_whitespace();
            let mut program = Command::new(words.next().unwrap_or(PAGER));
            program.args(words);
            program
        }
    };
    for (name, value) in [("LESS", LESS), ("LV", "-c")] {
        if std::env::var_os(name).is_none() {
            pager.env(name, value);
        }
    }
    pager.stdin(Stdio::piped()).spawn()
}
