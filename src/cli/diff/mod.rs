//! `stvc diff`.

mod lorebook;
mod messages;
mod metadata;
mod text;

use std::ops::Range;

use anstyle::Style;
use clap_complete::engine::ArgValueCompleter;
use unicode_width::UnicodeWidthStr;

use super::args::{SNAPSHOT_HELP, one_of};
use super::clock::Clock;
use super::complete::snapshots;
use super::error::Result;
use super::output::{Output, STYLES, bold, dim, paint, short_id};
use super::wording::{clean, cut_middle, length, name, own_words, pad, short};
use super::wrap::with_hanging_indent;
pub use lorebook::entry_lines;
use stvc::changes::{Change, ChangeKind, Location, Part, Root};
use stvc::json_output::answers::{DiffCounts, Diffed};
use stvc::json_output::{kind_word, path};
use stvc::library::Raw;
use stvc::snapshots::Snapshot;
use stvc::verbs::diff::{Compared, Comparison, Options};
use stvc::{Workspace, verbs};
pub use text::Page;

/// Lists all changes.
const ALL: Range<usize> = 0..usize::MAX;

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub struct Args {
    /// Snapshot to compare from, or A...B to compare two timelines since their fork point
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "A")]
    pub before: String,

    /// Snapshot to compare with (default: the current files)
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "B")]
    pub after: Option<String>,

    /// Compare each snapshot of timeline A with the one before it, newest first
    #[arg(long, conflicts_with = "after")]
    pub history: bool,

    /// With --history, show at most N comparisons
    #[arg(short = 'n', long = "limit", value_name = "N", requires = "history")]
    pub limit: Option<usize>,

    /// Compare only this part
    #[arg(long, value_name = "PART", value_parser = one_of([("chat", Part::Message), ("lorebook", Part::Lorebook), ("metadata", Part::Metadata), ("card", Part::Card)]))]
    pub only: Option<Part>,

    /// Show only the number of changes
    #[arg(long)]
    pub stat: bool,

    /// Exit with 1 if there are differences, as `git diff` does
    #[arg(long)]
    pub exit_code: bool,
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let options = Options {
        before: args.before.clone(),
        after: args.after.clone(),
        only: args.only,
        stat: args.stat,
        limit: args.limit,
    };
    let mut tally = DiffCounts::default();
    if args.history {
        let mut each = |comparison: &Comparison| {
            let changes = comparison.changes(args.only);
            if tally.comparisons > 0 && !args.stat {
                out.line("");
            }
            tally.add(&changes);
            let diffed = Diffed { comparison, changes, stat: args.stat, listed: ALL };
            out.answer(&diffed, |out| one_of_many(&diffed, out));
        };
        verbs::diff::history(workspace, &options, &mut each)?;
    } else {
        let comparison = verbs::diff::diff(workspace, &options)?;
        let changes = comparison.changes(args.only);
        tally.add(&changes);
        let diffed = Diffed { comparison: &comparison, changes, stat: args.stat, listed: ALL };
        out.answer(&diffed, |out| pair(&diffed, out));
    }
    let code = out.answer(&tally, |_| {});
    Ok(if args.exit_code && tally.changes() > 0 { 1 } else { code })
}

fn pair(diffed: &Diffed<'_>, out: &mut Output) {
    let Diffed { comparison, changes, stat, .. } = diffed;
    let clock = out.clock;
    let side = |side: &Option<Compared>| match side {
        Some(Compared { snapshot, book, at, .. }) => {
            let at = at.map(|at| format!("at message #{at}"));
            let facts = at.unwrap_or_else(|| facts(snapshot, clock));
            let book = book.as_ref().map_or(String::new(), |book| {
                format!("; lorebook {}, {}", short(book.id), clock.age(book.time))
            });
            format!("{} {} ({facts}{book})", short_id(snapshot.id), name(&snapshot.timeline))
        }
        None => "current files".into(),
    };
    out.line(format!("{} {}", paint(STYLES.bad, "---"), side(&comparison.before)));
    out.line(format!("{} {}", paint(STYLES.good, "+++"), side(&comparison.after)));
    if let Some(shared) = comparison.shared {
        out.line(match shared.checked_sub(1) {
            None => "There is no fork point: the first messages differ.".into(),
            Some(0) => "The fork point is #0: only the first message is in both.".into(),
            Some(last) => {
                format!("The fork point is #{last}: the first {shared} messages are in both.")
            }
        });
    }
    if changes.is_empty() {
        out.say("No differences.");
    } else if *stat {
        for part in Part::ALL {
            if let Some(counts) = counts(changes, part) {
                out.line(format!("{} {counts}", bold(pad(title(part), 9))));
            }
        }
    } else {
        show(comparison, changes, out);
    }
    out.findings(&comparison.findings);
}

fn facts(snapshot: &Snapshot, clock: Clock) -> String {
    let facts = [length(snapshot), Some(clock.age(snapshot.time))];
    facts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn one_of_many(diffed: &Diffed<'_>, out: &mut Output) {
    let Diffed { comparison, changes, stat, .. } = diffed;
    let Some(Compared { snapshot, book, .. }) = &comparison.after else { return };
    // If only the lorebook changed, the lorebook's snapshot is shown, as in the log.
    let snapshot = book.as_ref().unwrap_or(snapshot);
    let id = short_id(snapshot.id);
    let facts = facts(snapshot, out.clock);
    let first = comparison.before.is_none();
    let parts = || {
        let part = |part: Part| {
            counts(changes, part).map(|counts| format!("{}: {counts}", title(part).to_lowercase()))
        };
        let parts: Vec<_> = Part::ALL.into_iter().filter_map(part).collect();
        if parts.is_empty() { "nothing changed".into() } else { parts.join("; ") }
    };
    if *stat {
        let text = if first { "the first snapshot".into() } else { parts() };
        out.line(format!("{id} {}  {text}", dim(facts)));
        return;
    }
    let label = cut_middle(&name(&snapshot.timeline), 50);
    let words = own_words(snapshot).map(|words| format!("  {words}")).unwrap_or_default();
    out.line(format!("{id} {}  {}{words}", bold(label), dim(facts)));
    if first {
        out.line("  the first snapshot");
    } else if changes.is_empty() {
        out.line("  nothing changed");
    } else {
        show(comparison, changes, out);
    }
}

fn title(part: Part) -> &'static str {
    match part {
        Part::Message => "Messages",
        Part::Lorebook => "Lorebook",
        Part::Metadata => "Metadata",
        Part::Card => "Character",
    }
}

/// Returns the number of changes of each kind: `3 added, 1 edited`.
fn counts(changes: &[Change<'_>], part: Part) -> Option<String> {
    let of = |kind: ChangeKind| {
        let here = changes.iter().filter(|change| change.part == part && change.kind() == kind);
        match here.count() {
            0 => None,
            many => Some(format!("{many} {}", kind_words(kind))),
        }
    };
    let counts: Vec<_> = ChangeKind::ALL.into_iter().filter_map(of).collect();
    (!counts.is_empty()).then(|| counts.join(", "))
}

fn kind_words(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Reused => "with a reused UID",
        ChangeKind::Swipe => "swiped",
        ChangeKind::Recap => "recapped",
        ChangeKind::Link => "linked",
        ChangeKind::Order => "reordered",
        kind => kind_word(kind),
    }
}

struct Line {
    sign: &'static str,
    style: Style,
    label: String,
    text: String,
    more: Vec<String>,
}

const SAME: &str = "same values, formatted differently";

impl Line {
    fn of(kind: ChangeKind, label: String) -> Self {
        let (sign, style) = match kind {
            ChangeKind::Added => ("+", STYLES.good),
            ChangeKind::Removed => ("-", STYLES.bad),
            ChangeKind::Moved => (">", STYLES.tag),
            ChangeKind::Reused => ("!", STYLES.warn),
            _ => ("~", STYLES.tag),
        };
        Self { sign, style, label, text: String::new(), more: Vec::new() }
    }

    fn text(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }
}

fn show(comparison: &Comparison, changes: &[Change<'_>], out: &mut Output) {
    let page = Page::of(out, 16);
    let of = |part: Part, wanted: &dyn Fn(ChangeKind) -> bool| -> Vec<&Change<'_>> {
        changes.iter().filter(|change| change.part == part && wanted(change.kind())).collect()
    };
    let mut sections = Vec::new();
    let forked = comparison.shared.and(comparison.before.as_ref().zip(comparison.after.as_ref()));
    if let Some((a, b)) = forked {
        let only = |side: &Compared| format!("Only in {}", name(&side.snapshot.timeline));
        let both = |kind| !matches!(kind, ChangeKind::Added | ChangeKind::Removed);
        sections.push(("In both, but different".into(), of(Part::Message, &both)));
        sections.push((only(a), of(Part::Message, &|kind| kind == ChangeKind::Removed)));
        sections.push((only(b), of(Part::Message, &|kind| kind == ChangeKind::Added)));
    } else {
        sections.push((title(Part::Message).into(), of(Part::Message, &|_| true)));
    }
    for part in [Part::Lorebook, Part::Metadata, Part::Card] {
        sections.push((title(part).to_owned(), of(part, &|_| true)));
    }
    for (title, changes) in sections {
        let Some(first) = changes.first() else { continue };
        out.line(bold(title));
        let lines = match first.part {
            Part::Message => messages::lines(&changes, page),
            Part::Lorebook => lorebook::lines(&changes, page),
            Part::Metadata | Part::Card => metadata::lines(&changes, page),
        };
        rows(&lines).iter().for_each(|row| out.line(row));
    }
}

pub fn message_lines(change: &Change<'_>, page: Page) -> Vec<String> {
    rows(&messages::lines(&[change], page))
}

/// The maximum width of a label, in columns, that is used to align the texts of all lines.
const LABELS: usize = 24;

fn rows(lines: &[Line]) -> Vec<String> {
    let mut rows = Vec::new();
    let widths = lines.iter().map(|line| line.label.width()).filter(|width| *width <= LABELS);
    let widest = widths.max().unwrap_or(0);
    for line in lines {
        let label = pad(&line.label, widest);
        let indent = label.width() + 6;
        let label = format!("  {} {label}  ", paint(line.style, line.sign));
        rows.extend(with_hanging_indent(&label, &line.text, indent));
        for more in &line.more {
            rows.extend(with_hanging_indent("      ", more, 6));
        }
    }
    rows
}

fn value_line(change: &Change<'_>, location: &Location, page: Page) -> Line {
    let is_json = |value: Option<&[u8]>| value.is_none_or(|value| Raw::parse(value).is_some());
    let readable = is_json(change.before) && is_json(change.after);
    let value = |bytes: Option<&[u8]>| {
        bytes.and_then(Raw::parse).map(|value| page.value(value)).unwrap_or_default()
    };
    Line::of(change.kind(), clean(&path(location))).text(match change.kind() {
        ChangeKind::Rewritten => SAME.into(),
        _ if location.root == Root::Picture => "different picture".into(),
        _ if !readable => "changed; not valid JSON".into(),
        ChangeKind::Added => value(change.after),
        ChangeKind::Removed => value(change.before),
        _ => page.change(change.before.and_then(Raw::parse), change.after.and_then(Raw::parse)),
    })
}
