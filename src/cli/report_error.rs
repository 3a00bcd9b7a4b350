//! Prints errors with hints.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use unicode_width::UnicodeWidthStr;

use super::error::Error;
use super::exit::{FAILED, USAGE};
use super::output::{Output, STYLES, paint};
use super::wording::clean;
use stvc::json_output::{ErrorLine, Line, Summary};
use stvc::verbs;

pub fn report(error: &Error, command: &'static str, out: &mut Output) -> u8 {
    let exit = error.exit();
    let typed: Vec<_> = std::env::args().collect();
    let hint = error.hint().and_then(|hint| hint.without(&typed)).map(|hint| hint.to_string());
    let line = error.of_verb().map(ErrorLine::from).unwrap_or_default();
    let line = ErrorLine { code: error.code(), message: error.to_string(), hint, exit, ..line };
    if out.is_json() {
        out.findings(error.of_verb().map_or(&[], verbs::Error::findings));
        out.object(Line::Error(line));
        out.end_with(Summary::failed(command));
        return exit;
    }
    out.error_line(&format!("{}: {}", paint(STYLES.bad, "error"), clean(&line.message)));
    if let Some((text, at)) = error.of_verb().and_then(verbs::Error::unparsed) {
        pointed(text, at).iter().for_each(|line| out.error_line(line));
    }
    for candidate in line.candidates {
        out.error_line(&format!("  {}", clean(&candidate)));
    }
    if line.more_candidates > 0 {
        out.error_line(&format!("  and {} more", line.more_candidates));
    }
    if let Some(hint) = line.hint {
        out.error_line(&format!("{}: {hint}", paint(STYLES.tag, "hint")));
    }
    exit
}

/// Returns the text, and a line with a `^` below the position of the error.
fn pointed(text: &str, at: usize) -> [String; 2] {
    let (before, rest) = (clean(&text[..at]), clean(&text[at..]));
    let mark = format!("{}{}", " ".repeat(before.width()), paint(STYLES.bad, "^"));
    [format!("  {before}{rest}"), format!("  {mark}")]
}

/// Prints clap's message. clap reports an invalid command line, `--help` and `--version` all as
/// errors.
pub fn usage(problem: &clap::Error, arguments: &[OsString]) -> u8 {
    let exit = u8::try_from(problem.exit_code()).unwrap_or(USAGE);
    if arguments.iter().any(|argument| argument == "--json") && exit != 0 {
        let message = problem.to_string();
        let message =
            message.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let code = "command-line";
        let error = ErrorLine { code, message, exit, ..ErrorLine::default() };
        let lines = [Line::Error(error), Line::Summary(Summary::failed(""))];
        let lines = lines.map(|line| serde_json::to_string(&line).unwrap_or_default() + "\n");
        written(io::stdout().write_all(lines.concat().as_bytes()), exit)
    } else if problem.use_stderr() {
        let _ = write!(anstream::stderr(), "{}", usage_words(problem));
        exit
    } else {
        written(problem.print(), exit)
    }
}

/// Adds a hint about names with spaces to clap's message, and removes clap's hint about `--`.
fn usage_words(problem: &clap::Error) -> String {
    let text = problem.render().ansi().to_string();
    let lines = text.lines().filter(|line| !line.contains("as a value, use"));
    let mut text: String = lines.map(|line| format!("{line}\n")).collect();
    if let Some(ContextValue::String(word)) = problem.get(ContextKind::InvalidSubcommand)
        && let Some(command) = meant_by(word)
    {
        text.push_str(&format!("\nThe command for this is `stvc {command}`.\n"));
    }
    let word = match problem.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) if problem.kind() == ErrorKind::UnknownArgument => word,
        _ => return text,
    };
    if !word.starts_with('-') {
        let example = "stvc restore \"Tide Office\"";
        text.push_str(&format!("\nA name with spaces needs quotes: `{example}`.\n"));
    }
    text
}

/// Returns the command for a word of another tool.
fn meant_by(word: &str) -> Option<&'static str> {
    Some(match word {
        "commit" | "save" | "add" | "stash" => "snapshot",
        "ls" | "list" | "chats" => "timelines",
        "branch" | "clone" | "copy" => "fork",
        "checkout" | "switch" | "revert" | "reset" | "recover" => "restore",
        "history" | "reflog" => "log",
        "prune" | "cleanup" | "clean" => "forget` and `stvc gc",
        "rm" | "delete" | "remove" => "erase",
        "push" | "pull" | "fetch" => "sync` or `stvc backup",
        "fsck" | "verify" => "check",
        "grep" | "find" => "search",
        "blame" => "lore --blame",
        "repair" | "fix" => "doctor --fix",
        "install" => "setup",
        "version" => "--version",
        _ => return None,
    })
}

fn written(outcome: io::Result<()>, exit: u8) -> u8 {
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(io::stderr(), "error: cannot write to standard output: {error}");
            exit.max(FAILED)
        }
        _ => exit,
    }
}
