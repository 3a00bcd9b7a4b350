use std::io::{self, BufRead, Write};

use anstyle::Style;
use clap::builder::PossibleValue;
use clap_complete::engine::ArgValueCompleter;

use super::args::{ClosedArgs, one_of};
use super::complete::timelines;
use super::error::Result;
use super::output::{Output, STYLES, ask, dim, level_word, paint};
use super::restore::print_file;
use super::wording::{clean, count};
use stvc::files::Action;
use stvc::findings::Level;
use stvc::json_output::answers::Doctored;
use stvc::verbs::doctor::{self, FixReport, MissingBookRepair, Options, Repair, Report, Undecided};
use stvc::{Workspace, finish_interrupted};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Check only these chats (default: the whole library)
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Repair problems, asking before each repair
    ///
    /// `stvc undo` undoes all repairs.
    #[arg(long)]
    pub fix: bool,

    /// Repair everything without asking
    #[arg(long, short, requires = "fix")]
    pub yes: bool,

    #[command(flatten)]
    pub closed: ClosedArgs,

    /// How to repair missing lorebooks (default: restore those that the store has)
    #[arg(long, value_name = "HOW", value_parser = one_of(repairs()))]
    pub repair: Option<MissingBookRepair>,

    /// Replace missing lorebooks with copies of this one
    #[arg(long, value_name = "LOREBOOK", conflicts_with = "repair")]
    pub clone_of: Option<String>,

    /// Also remove unused lorebooks that did not belong to a deleted chat
    ///
    /// These may be lorebooks that you keep for later use.
    #[arg(long)]
    pub orphans: bool,

    /// Group in which to list group chats whose group is unclear, by its name or file name
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
}

const HELP: &str = "Repairs: a fork that shares the lorebook of its parent gets its own copy; a \
    missing lorebook is restored; a lorebook left behind by a deleted chat is removed; the running \
    recap of a renamed chat gets the chat's new name; a group chat that no group lists is listed in \
    its group again. The exit code is 1 if an error remains, and 0 if there are only warnings and \
    notes.";

fn repairs() -> [(PossibleValue, MissingBookRepair); 3] {
    let copy = "A copy of the parent chat's lorebook";
    [
        (PossibleValue::new("empty").help("An empty lorebook"), MissingBookRepair::Empty),
        (PossibleValue::new("clone").help(copy), MissingBookRepair::Clone),
        (
            PossibleValue::new("detach").help("No lorebook: the chat's reference to it is removed"),
            MissingBookRepair::Detach,
        ),
    ]
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let options = Options {
        timelines: args.timelines.clone(),
        missing: args.repair.clone().or(args.clone_of.clone().map(MissingBookRepair::CloneOf)),
        orphans: args.orphans,
        group: args.group.clone(),
    };
    if args.fix {
        // An interrupted repair is finished first, so that its problem is not found again.
        finish_interrupted(workspace)?;
    }
    let report = doctor::doctor(workspace, &options, &mut out.progress())?;
    print_report(&report, out);
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
        // If the repairs fail, the findings are still printed.
        out.answer(&report, |_| {});
    })?;
    let doctored = Doctored { report: &report, decided: &decided, chosen: &chosen, fixed: &fixed };
    let text = |out: &mut Output| {
        for (repair, done) in doctored.repairs() {
            let what = clean(&repair.what);
            if done {
                out.say(format!("{}: {what}", paint(STYLES.good, "done")));
            } else if !(args.fix && asks) {
                // With prompts, the user has already seen and declined this repair.
                out.say(format!("{} {what}", paint(STYLES.tag, "would")));
            }
        }
        show_files(&fixed, out);
        advise(args, &doctored, out);
        out.all_findings(&fixed.findings);
    };
    Ok(out.answer(&doctored, text))
}

/// Prints the findings. If consecutive findings have the same remedy, the remedy is printed once.
fn print_report(report: &Report, out: &mut Output) {
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
    let examined = format!("{} and {lorebooks}", count(report.timelines, "timeline"));
    out.say(match counted.as_slice() {
        [] => format!("No problems found in {examined}."),
        counted => format!("{} in {examined}.", counted.join(", ")),
    });
}

fn show_files(fixed: &FixReport, out: &mut Output) {
    for file in &fixed.files {
        let word = match file.action {
            Action::Keep => "unchanged",
            Action::Write if file.replaces => "changed",
            Action::Write => "written",
            Action::Delete => "removed",
        };
        print_file(file, Style::new(), word, out);
    }
}

fn advise(args: &Args, doctored: &Doctored<'_>, out: &mut Output) {
    let asks = out.may_ask();
    let repairs = doctored.report.repairs.len() + doctored.decided.len();
    let undecided = doctored.report.undecided.len();
    if !doctored.done().is_empty() {
        out.say("The previous files are saved; run `stvc undo` to undo all repairs.");
    } else if repairs > 0 && !args.fix {
        out.say(
            "Nothing was changed. Run `stvc doctor --fix` to repair; it asks before each repair.",
        );
    } else if repairs > 0 && !asks && !args.yes {
        out.say(
            "Nothing was changed: there is no terminal to ask on. Add --yes to repair everything.",
        );
    } else if args.fix {
        out.say(if repairs + undecided == 0 {
            "Nothing to repair."
        } else {
            "Nothing was changed."
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

/// Asks how to replace a missing lorebook that no snapshot contains. An unknown answer, or the end
/// of the input, means that the lorebook is not replaced.
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
            MissingBookRepair::Empty => "e",
            MissingBookRepair::Clone => "c",
            MissingBookRepair::CloneOf(_) => "o",
            MissingBookRepair::Detach => "d",
        };
        let whats: Vec<_> = repairs.iter().map(|repair| clean(&repair.what)).collect();
        lines.push(format!("  {letter}: {}", whats.join("; ")));
        letters.push(letter);
    }
    if book.can_be_written() {
        lines.push("  o: copy another lorebook; you are asked for its name".into());
        letters.push("o");
    }
    let users: Vec<_> = book.users.iter().map(|user| clean(user.as_str())).collect();
    let (name, users) = (clean(&book.book), users.join(", "));
    let (lines, choice) = (lines.join("\n"), letters.join("/"));
    let question = format!(
        "the lorebook {name:?} of {users} is missing, and no snapshot has it\n{lines}\n  choose [{choice}, Enter: skip] "
    );
    let answer = ask(&question, input, output).to_lowercase();
    if answer == "o" && book.can_be_written() {
        let mut name = ask("  name of the lorebook to copy: ", input, output);
        while !name.is_empty() {
            match copy_of(&name) {
                Ok(repairs) => return repairs,
                Err(why) => {
                    name =
                        ask(&format!("  {why}\n  name of the lorebook to copy: "), input, output);
                }
            }
        }
    }
    let ways = book.ways.iter();
    let chosen = ways.zip(letters).find(|(_, letter)| *letter == answer);
    chosen.map(|((_, repairs), _)| repairs.clone()).unwrap_or_default()
}

/// Asks about each item. The answer `a` accepts the item and all that follow. The end of the input
/// means no.
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
    fn only_confirmed_repairs_are_chosen() {
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
