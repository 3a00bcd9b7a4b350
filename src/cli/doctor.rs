use std::io::{self, BufRead, Write};

use anstyle::Style;
use clap::builder::PossibleValue;
use clap_complete::engine::ArgValueCompleter;

use super::args::one_of;
use super::complete::timelines;
use super::error::Result;
use super::output::{LOOK, Out, ask, paint};
use super::restored_files::tell_file;
use super::wording::{clean, closed, count};
use stvc::engine::files::Action;
use stvc::engine::{self, Workspace};
use stvc::lines::answers::Doctored;
use stvc::rules::Level;
use stvc::verbs::doctor::{self, Fixed, Missing, Options, Repair, Report, Undecided};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Only these chats; the whole library if not given
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Repair: each repair is shown and asked for, and `stvc undo` takes all of it back
    #[arg(long)]
    pub fix: bool,

    /// Repair all of it without asking
    #[arg(long, short, requires = "fix")]
    pub yes: bool,

    /// SillyTavern is running, and the chats that are replaced are closed there (menu ☰, "Close chat"): it has nothing to write back
    #[arg(long)]
    pub chat_closed: bool,

    /// What to do about missing lorebooks; if not given, those that the store has are brought back
    #[arg(long, value_name = "HOW", value_parser = one_of(repairs()))]
    pub repair: Option<Missing>,

    /// Make missing lorebooks copies of this one
    #[arg(long, value_name = "LOREBOOK", conflicts_with = "repair")]
    pub clone_of: Option<String>,

    /// Also remove lorebooks that nothing uses and that no chat left behind: you may keep them for later
    #[arg(long)]
    pub orphans: bool,

    /// The group, by its name or its file's, in which group chats are listed that can belong to several groups, or of which nothing tells the group
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
}

const HELP: &str = "Repairs: a fork that shares its lorebook with the chat it comes from gets a copy of its own; a missing lorebook is brought back; a lorebook \
                    that a deleted chat left behind is removed; the running recap of a renamed chat is told the chat's new name; a group chat that no group lists is listed in its group again. \
                    Exits with 1 if an error is left, with 0 if there are only warnings and notes.";

fn repairs() -> [(PossibleValue, Missing); 3] {
    let copy = "Copy the one of the chat that it was forked from";
    [
        (PossibleValue::new("empty").help("Make an empty one"), Missing::Empty),
        (PossibleValue::new("clone").help(copy), Missing::Clone),
        (PossibleValue::new("detach").help("Let the chat go without"), Missing::Detach),
    ]
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options = Options {
        timelines: args.timelines.clone(),
        missing: args.repair.clone().or(args.clone_of.clone().map(Missing::CloneOf)),
        orphans: args.orphans,
        group: args.group.clone(),
    };
    if args.fix {
        // What an interrupted repair left is not to be repaired again.
        engine::finish_interrupted(workspace)?;
    }
    let report = doctor::doctor(workspace, &options, &mut out.progress())?;
    tell_report(&report, out);
    let asks = out.may_ask();
    let mut decided = Vec::new();
    let mut chosen: Vec<&Repair> = match (args.fix, args.yes) {
        (true, true) => report.repairs.iter().collect(),
        (true, false) if asks => {
            let asked = report.repairs.iter().map(|repair| (repair, words(repair)));
            let (mut input, mut output) = (io::stdin().lock(), io::stderr());
            let chosen = choose(asked, &mut input, &mut output);
            for book in &report.undecided {
                let copy_of = |name: &str| {
                    book.copy_of(workspace, name).map_err(|error| clean(&error.to_string()))
                };
                decided.extend(decide(book, copy_of, &mut input, &mut output));
            }
            chosen
        }
        _ => Vec::new(),
    };
    chosen.extend(&decided);
    let fixed = doctor::fix(workspace, &chosen, closed(args.chat_closed), &mut out.progress());
    let fixed = fixed.inspect_err(|_| {
        // The findings are told all the same.
        out.answer(&report, |_| {});
    })?;
    let doctored = Doctored { report: &report, decided: &decided, chosen: &chosen, fixed: &fixed };
    let text = |out: &mut Out| {
        for (repair, done) in doctored.repairs() {
            let line = if done {
                format!("{}: {}", paint(LOOK.good, "done"), clean(&repair.what))
            } else {
                format!("{} {}", paint(LOOK.tag, "would"), clean(&repair.what))
            };
            // Who was asked about it has read it.
            if done || !(args.fix && asks) {
                out.say(line);
            }
        }
        show_files(&fixed, out);
        let planned = report.repairs.len() + decided.len();
        advise(args, asks, planned, report.undecided.len(), doctored.done().len(), out);
        out.findings(&fixed.findings);
    };
    Ok(out.answer(&doctored, text))
}

/// The findings, which are what was asked for. What to do is said once for those that follow each other.
fn tell_report(report: &Report, out: &mut Out) {
    let findings = &report.findings;
    for (n, finding) in findings.iter().enumerate() {
        let (style, word) = match finding.level {
            Level::Error => (LOOK.bad, "error"),
            Level::Warning => (LOOK.warn, "warning"),
            Level::Info => (LOOK.dim, "note"),
        };
        let (subject, message) = (clean(&finding.subject), clean(&finding.message));
        out.line(format!("{}: {subject}: {message}", paint(style, word)));
        let next = findings.get(n + 1);
        let goes_on =
            next.is_some_and(|next| (next.code, &next.remedy) == (finding.code, &finding.remedy));
        if let (Some(remedy), false) = (&finding.remedy, goes_on) {
            out.line(format!("  {}", paint(LOOK.dim, clean(remedy))));
        }
    }
    let of = |level| findings.iter().filter(|finding| finding.level == level).count() as u64;
    let counted = [(Level::Error, "error"), (Level::Warning, "warning"), (Level::Info, "note")];
    let counted = counted.map(|(level, word)| (of(level), word)).into_iter();
    let counted: Vec<_> = counted.filter(|(n, _)| *n > 0).map(|(n, word)| count(n, word)).collect();
    let looked_at = format!(
        "{} and {}",
        count(report.timelines as u64, "timeline"),
        count(report.lorebooks as u64, "lorebook")
    );
    out.say(match counted.as_slice() {
        [] => format!("All is sound: {looked_at}."),
        counted => format!("{} in {looked_at}.", counted.join(", ")),
    });
}

fn show_files(fixed: &Fixed, out: &mut Out) {
    for file in &fixed.files {
        let word = match file.action {
            Action::Keep => "already there",
            Action::Write if file.replaces => "changed",
            Action::Write => "written",
            Action::Delete => "removed",
        };
        tell_file(file, Style::new(), word, out);
    }
}

fn advise(args: &Args, asks: bool, repairs: usize, undecided: usize, done: usize, out: &mut Out) {
    if done > 0 {
        out.say("What was there is kept; `stvc undo` takes all of it back.");
    } else if repairs > 0 && !args.fix {
        out.say("`stvc doctor --fix` does that, after asking; nothing has been changed.");
    } else if repairs > 0 && !asks && !args.yes {
        out.say("Nothing has been changed: there is nobody to ask. Add --yes to do all of it.");
    } else if args.fix {
        out.say(if repairs + undecided == 0 {
            "There is nothing to repair."
        } else {
            "Nothing has been changed."
        });
    }
    if args.fix && !asks && undecided > 0 {
        out.say(format!(
            "{} can be repaired in several ways: choose one with `--repair` or `--clone-of`.",
            count(undecided as u64, "missing lorebook")
        ));
    }
}

fn words(repair: &Repair) -> String {
    let files: Vec<_> = repair.files.iter().map(|path| clean(path.as_str())).collect();
    format!("would {}\n  files: {}", clean(&repair.what), files.join(", "))
}

/// Asks what takes the place of a missing lorebook that no snapshot has, and returns the repairs. Anything but one of the letters, and the end of the input, is no.
fn decide(
    book: &Undecided,
    copy_of: impl Fn(&str) -> std::result::Result<Vec<Repair>, String>,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Vec<Repair> {
    let mut lines = Vec::new();
    let mut letters = Vec::new();
    for (way, repairs) in &book.ways {
        let letter = match way {
            Missing::Empty => "e",
            Missing::Clone => "c",
            Missing::CloneOf(_) => "o",
            Missing::Detach => "d",
        };
        let whats: Vec<_> = repairs.iter().map(|repair| clean(&repair.what)).collect();
        lines.push(format!("  {letter}: {}", whats.join("; ")));
        letters.push(letter);
    }
    if book.can_be_written() {
        lines.push("  o: make it a copy of another lorebook, which you name".into());
        letters.push("o");
    }
    let users: Vec<_> = book.users.iter().map(|user| clean(user.as_str())).collect();
    let question = format!(
        "the lorebook {:?} of {} is missing, and no snapshot has it\n{}\n  which? [{}, Enter: leave it] ",
        clean(&book.book),
        users.join(", "),
        lines.join("\n"),
        letters.join("/")
    );
    let answer = ask(&question, input, output).to_lowercase();
    if answer == "o" && book.can_be_written() {
        let mut name = ask("  a copy of which lorebook? ", input, output);
        while !name.is_empty() {
            match copy_of(&name) {
                Ok(repairs) => return repairs,
                Err(why) => {
                    let question = format!("  {why}\n  a copy of which lorebook? ");
                    name = ask(&question, input, output);
                }
            }
        }
    }
    let ways = book.ways.iter();
    let chosen = ways.zip(letters).find(|(_, letter)| *letter == answer);
    chosen.map(|((_, repairs), _)| repairs.clone()).unwrap_or_default()
}

/// Ask for each thing in words. `a` is yes to it and to all that follow; the end of the input is no.
fn choose<T>(
    things: impl ExactSizeIterator<Item = (T, String)>,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Vec<T> {
    let mut chosen = Vec::new();
    let mut all = false;
    let count = things.len();
    for (n, (thing, words)) in things.enumerate() {
        if !all {
            let question = format!("({} of {count}) {words}\n  do it? [y/N, a: all] ", n + 1);
            match ask(&question, input, output).to_lowercase().as_str() {
                "a" | "all" => all = true,
                "y" | "yes" => {}
                _ => continue,
            }
        }
        chosen.push(thing);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_repair_is_asked_for() {
        let chosen = |answers: &str| -> String {
            let mut asked = Vec::new();
            let things = ["a", "b", "c", "d"].into_iter().map(|it| (it, format!("would {it}")));
            let chosen = choose(things, &mut answers.as_bytes(), &mut asked);
            assert!(String::from_utf8(asked).unwrap().starts_with("(1 of 4) would a\n"));
            chosen.concat()
        };
        assert_eq!(chosen("y\nn\nYES\n\n"), "ac");
        assert_eq!(chosen("\na\n"), "bcd");
        assert_eq!(chosen(""), "");
        assert_eq!(chosen("maybe\nq\n"), "");
    }
}
