use std::io::{self, BufRead, Write};

use anstyle::Style;
use clap::builder::PossibleValue;
use clap_complete::engine::ArgValueCompleter;

use super::args::{ClosedArgs, one_of};
use super::complete::timelines;
use super::error::Result;
use super::output::{LOOK, Out, ask, dim, level_word, paint};
use super::restore::tell_file;
use super::wording::{clean, count};
use stvc::files::Action;
use stvc::findings::Level;
use stvc::lines::answers::Doctored;
use stvc::verbs::doctor::{self, Fixed, Missing, Options, Repair, Report, Undecided};
use stvc::{Workspace, finish_interrupted};

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

    #[command(flatten)]
    pub closed: ClosedArgs,

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
        // An interrupted repair is finished, not repaired again.
        finish_interrupted(workspace)?;
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
    let fixed = doctor::fix(workspace, &chosen, args.closed.state(), &mut out.progress());
    let fixed = fixed.inspect_err(|_| {
        // The findings are printed all the same.
        out.answer(&report, |_| {});
    })?;
    let doctored = Doctored { report: &report, decided: &decided, chosen: &chosen, fixed: &fixed };
    let text = |out: &mut Out| {
        for (repair, done) in doctored.repairs() {
            let what = clean(&repair.what);
            if done {
                out.say(format!("{}: {what}", paint(LOOK.good, "done")));
            } else if !(args.fix && asks) {
                // Whoever was asked has read it.
                out.say(format!("{} {what}", paint(LOOK.tag, "would")));
            }
        }
        show_files(&fixed, out);
        let planned = report.repairs.len() + decided.len();
        advise(args, asks, planned, report.undecided.len(), doctored.done().len(), out);
        out.findings(&fixed.findings);
    };
    Ok(out.answer(&doctored, text))
}

/// Prints the findings. A remedy that several in a row share is printed once.
fn tell_report(report: &Report, out: &mut Out) {
    let findings = &report.findings;
    for (n, finding) in findings.iter().enumerate() {
        let (subject, message) = (clean(&finding.subject), clean(&finding.message));
        out.line(format!("{}: {subject}: {message}", level_word(finding.level)));
        let next = findings.get(n + 1);
        let goes_on =
            next.is_some_and(|next| (next.code, &next.remedy) == (finding.code, &finding.remedy));
        if let (Some(remedy), false) = (&finding.remedy, goes_on) {
            out.line(format!("  {}", dim(clean(remedy))));
        }
    }
    let of = |level| findings.iter().filter(|finding| finding.level == level).count();
    let counted = [(Level::Error, "error"), (Level::Warning, "warning"), (Level::Info, "note")];
    let counted = counted.into_iter().filter(|(level, _)| of(*level) > 0);
    let counted: Vec<_> = counted.map(|(level, word)| count(of(level), word)).collect();
    let lorebooks = count(report.lorebooks, "lorebook");
    let looked_at = format!("{} and {lorebooks}", count(report.timelines, "timeline"));
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
        let many = count(undecided, "missing lorebook");
        out.say(format!(
            "{many} can be repaired in several ways: choose one with `--repair` or `--clone-of`."
        ));
    }
}

fn words(repair: &Repair) -> String {
    let files: Vec<_> = repair.files.iter().map(|path| clean(path.as_str())).collect();
    format!("would {}\n  files: {}", clean(&repair.what), files.join(", "))
}

/// Asks how to replace a missing lorebook that no snapshot has. Any other answer, and the end of
/// the input, means no repair.
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
    let (name, users) = (clean(&book.book), users.join(", "));
    let (lines, choice) = (lines.join("\n"), letters.join("/"));
    let question = format!(
        "the lorebook {name:?} of {users} is missing, and no snapshot has it\n{lines}\n  which? [{choice}, Enter: leave it] "
    );
    let answer = ask(&question, input, output).to_lowercase();
    if answer == "o" && book.can_be_written() {
        let mut name = ask("  a copy of which lorebook? ", input, output);
        while !name.is_empty() {
            match copy_of(&name) {
                Ok(repairs) => return repairs,
                Err(why) => {
                    name = ask(&format!("  {why}\n  a copy of which lorebook? "), input, output);
                }
            }
        }
    }
    let ways = book.ways.iter();
    let chosen = ways.zip(letters).find(|(_, letter)| *letter == answer);
    chosen.map(|((_, repairs), _)| repairs.clone()).unwrap_or_default()
}

/// Asks about each thing. `a` agrees to it and to all that follow; the end of the input means no.
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
