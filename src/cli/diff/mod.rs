//! `stvc diff`.

mod lorebook;
mod messages;
mod metadata;
mod text;

use anstyle::Style;
use clap_complete::engine::ArgValueCompleter;
use unicode_width::UnicodeWidthStr;

use super::args::{SNAPSHOT_HELP, one_of};
use super::clock::Clock;
use super::complete::snapshots;
use super::error::Result;
use super::output::{LOOK, Out, bold, dim, paint, short_id};
use super::wording::{clean, cut_middle, length, name, own_words, pad, short};
use super::wrap::hanging;
pub use lorebook::entry_lines;
use stvc::changes::{Change, ChangeKind, Location, Part, Root};
use stvc::library::Raw;
use stvc::lines::answers::{DiffCounts, Diffed};
use stvc::lines::{kind_word, path};
use stvc::snapshots::Snapshot;
use stvc::verbs::diff::{Compared, Comparison, Options};
use stvc::{Workspace, verbs};
pub use text::Page;

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub struct Args {
    /// The snapshot before; or A...B: what two timelines have each for itself since they parted
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "A")]
    pub before: String,

    /// The snapshot after; the files as they are now if not given
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "B")]
    pub after: Option<String>,

    /// One timeline over time: each snapshot of A against the one before it, newest first
    #[arg(long, conflicts_with = "after")]
    pub history: bool,

    /// With --history: at most this many
    #[arg(short = 'n', long = "limit", value_name = "N", requires = "history")]
    pub limit: Option<usize>,

    /// Only this part
    #[arg(long, value_name = "PART", value_parser = one_of([("chat", Part::Message), ("lorebook", Part::Lorebook), ("metadata", Part::Metadata), ("card", Part::Card)]))]
    pub only: Option<Part>,

    /// Only how much changed
    #[arg(long)]
    pub stat: bool,

    /// Exit with 1 if something changed, as `git diff` does
    #[arg(long)]
    pub exit_code: bool,
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
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
            let diffed = Diffed { comparison, changes, stat: args.stat };
            out.answer(&diffed, |out| one_of_many(&diffed, out));
        };
        verbs::diff::history(workspace, &options, &mut each)?;
    } else {
        let comparison = verbs::diff::diff(workspace, &options)?;
        let changes = comparison.changes(args.only);
        tally.add(&changes);
        let diffed = Diffed { comparison: &comparison, changes, stat: args.stat };
        out.answer(&diffed, |out| pair(&diffed, out));
    }
    let code = out.answer(&tally, |_| {});
    Ok(if args.exit_code && tally.changes() > 0 { 1 } else { code })
}

fn pair(diffed: &Diffed<'_>, out: &mut Out) {
    let Diffed { comparison, changes, stat } = diffed;
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
        None => "the files now".into(),
    };
    out.line(format!("{} {}", paint(LOOK.bad, "---"), side(&comparison.before)));
    out.line(format!("{} {}", paint(LOOK.good, "+++"), side(&comparison.after)));
    if let Some(shared) = comparison.shared {
        out.line(match shared.checked_sub(1) {
            None => "They share no first message.".into(),
            Some(0) => "They part after #0, the only first message that both have.".into(),
            Some(last) => {
                format!("They part after #{last}: the first {shared} messages are in both.")
            }
        });
    }
    if changes.is_empty() {
        out.say("No difference.");
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

fn one_of_many(diffed: &Diffed<'_>, out: &mut Out) {
    let Diffed { comparison, changes, stat } = diffed;
    let Some(Compared { snapshot, book, .. }) = &comparison.after else { return };
    // A change of the lorebook alone is the lorebook's own snapshot, as in the log.
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

/// `3 added, 1 edited`.
fn counts(changes: &[Change<'_>], part: Part) -> Option<String> {
    let of = |kind: ChangeKind| {
        let here = changes.iter().filter(|change| change.part == part && change.kind() == kind);
        match here.count() {
            0 => None,
            many => Some(format!("{many} {}", kind_told(kind))),
        }
    };
    let counts: Vec<_> = ChangeKind::ALL.into_iter().filter_map(of).collect();
    (!counts.is_empty()).then(|| counts.join(", "))
}

fn kind_told(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Reused => "with another entry's UID",
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

const SAME: &str = "the same values, written differently";

impl Line {
    fn of(kind: ChangeKind, label: String) -> Self {
        let (sign, style) = match kind {
            ChangeKind::Added => ("+", LOOK.good),
            ChangeKind::Removed => ("-", LOOK.bad),
            ChangeKind::Moved => (">", LOOK.tag),
            ChangeKind::Reused => ("!", LOOK.warn),
            _ => ("~", LOOK.tag),
        };
        Self { sign, style, label, text: String::new(), more: Vec::new() }
    }

    fn text(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }
}

fn show(comparison: &Comparison, changes: &[Change<'_>], out: &mut Out) {
    let page = Page::of(out, 16);
    let of = |part: Part, wanted: &dyn Fn(ChangeKind) -> bool| -> Vec<&Change<'_>> {
        changes.iter().filter(|change| change.part == part && wanted(change.kind())).collect()
    };
    let mut sections = Vec::new();
    let forked = comparison.shared.and(comparison.before.as_ref().zip(comparison.after.as_ref()));
    if let Some((a, b)) = forked {
        let only = |side: &Compared| format!("Only in {}", name(&side.snapshot.timeline));
        let both = |kind| !matches!(kind, ChangeKind::Added | ChangeKind::Removed);
        sections.push(("In both, but not the same".into(), of(Part::Message, &both)));
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

/// Wider labels do not indent the other texts.
const LABELS: usize = 24;

fn rows(lines: &[Line]) -> Vec<String> {
    let mut rows = Vec::new();
    let widths = lines.iter().map(|line| line.label.width()).filter(|width| *width <= LABELS);
    let widest = widths.max().unwrap_or(0);
    for line in lines {
        let label = pad(&line.label, widest);
        let indent = label.width() + 6;
        let label = format!("  {} {label}  ", paint(line.style, line.sign));
        rows.extend(hanging(&label, &line.text, indent));
        for more in &line.more {
            rows.extend(hanging("      ", more, 6));
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
        _ if location.root == Root::Picture => "another picture".into(),
        _ if !readable => "changed, and cannot be read as JSON".into(),
        ChangeKind::Added => value(change.after),
        ChangeKind::Removed => value(change.before),
        _ => page.change(change.before.and_then(Raw::parse), change.after.and_then(Raw::parse)),
    })
}
