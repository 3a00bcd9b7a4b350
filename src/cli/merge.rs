use std::io::{self, BufRead, Write};

use clap_complete::engine::ArgValueCompleter;

use super::args::{ClosedArgs, one_of};
use super::complete::snapshots;
use super::diff::Page;
use super::error::Result;
use super::output::{Output, STYLES, ask, bold, dim, paint, short_id};
use super::wording::{clean, count, cut, entry_title, field_name, name, shell, short, size};
use stvc::json_output::{Line, MergeLine};
use stvc::library::Raw;
use stvc::merging::{Conflict, ConflictKind, EntryName, FieldChange, Side};
use stvc::verbs;
use stvc::verbs::merge::{Keep, Options, Report};
use stvc::{Workspace, finish_interrupted};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Timeline to merge into; its lorebook is changed
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "A")]
    pub into: String,

    /// Timeline or snapshot to merge from; its lorebook is not changed
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "B")]
    pub from: String,

    /// Resolve conflicts with the values of this side
    ///
    /// The values local (this device) and remote (the other device) are only for lorebooks that a
    /// sync set aside.
    #[arg(long, value_name = "SIDE", value_parser = one_of([("a", Keep::A), ("b", Keep::B), ("local", Keep::Local), ("remote", Keep::Remote)]))]
    pub keep: Option<Keep>,

    /// Merge without asking
    #[arg(long, short)]
    pub yes: bool,

    #[command(flatten)]
    pub closed: ClosedArgs,

    /// Merge even if ST-Auto-Recap has pending work in the lorebook of A
    #[arg(long)]
    pub allow_active_queue: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const HELP: &str = "The changes are always shown first. Entries are matched by their content, not only by UID; a \
    new entry whose UID is taken gets the lowest free UID. Both lorebooks are compared with the \
    last snapshot that they have in common (three-way merge). A change that only one side made \
    is applied, including removals. An entry that one side removed and the other edited is kept. \
    Without --keep, conflicts are listed and nothing is changed.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    // The files of an interrupted merge are written first, because this merge reads them.
    finish_interrupted(workspace)?;
    let mut options = Options {
        into: args.into.clone(),
        from: args.from.clone(),
        keep: args.keep,
        write: false,
        expected: None,
        closed: args.closed.state(),
        allow_active_queue: args.allow_active_queue,
    };
    let mut report = verbs::merge::merge(workspace, &options, &mut out.progress())?;
    preview(&report, &options, out);
    let changes = report.file.replaces;
    let open = options.keep.is_none() && !report.merged.conflicts.is_empty();
    let asks = out.may_ask();
    let wanted = !args.dry_run && (args.yes || asks);
    let agrees = || args.yes || agreed(&mut io::stdin().lock(), &mut io::stderr());
    let settled = options.keep.is_some() && !report.merged.conflicts.is_empty();
    // Open conflicts are not asked about: the merge refuses them.
    if wanted && (open || (changes || settled) && agrees()) {
        options.write = true;
        options.expected = Some(report.file.blake3);
        let written = verbs::merge::merge(workspace, &options, &mut out.progress());
        report = written.inspect_err(|_| print_plan(&report, out))?;
        done(&report, out);
    } else if changes || settled || open {
        out.say(match (open, args.dry_run || args.yes || !asks) {
            (true, _) => {
                let ways = verbs::ways_to_settle(&options.into, &options.from, report.local);
                format!("Nothing has been changed. To resolve the conflicts: {ways}")
            }
            (_, true) => {
                format!("Nothing has been changed. Run `{} --yes` to merge.", command(&options))
            }
            _ => "Nothing has been changed.".into(),
        });
    }
    Ok(out.answer(&report, |out| out.findings(&report.findings)))
}

fn print_plan(plan: &Report, out: &mut Output) {
    MergeLine::all(&plan.merged).into_iter().for_each(|line| out.object(Line::Merge(line)));
}

fn agreed(input: &mut dyn BufRead, output: &mut dyn Write) -> bool {
    matches!(ask("Merge it? [y/N] ", input, output).to_lowercase().as_str(), "y" | "yes")
}

fn command(options: &Options) -> String {
    let keep = match options.keep {
        Some(Keep::A) => " --keep a",
        Some(Keep::B) => " --keep b",
        Some(Keep::Local) => " --keep local",
        Some(Keep::Remote) => " --keep remote",
        None => "",
    };
    format!("stvc merge {} {}{keep}", shell(&options.into), shell(&options.from))
}

/// Returns the names of both lorebooks. If a sync set one of them aside, each name is followed by
/// `(local)` or `(remote)`.
fn labels(options: &Options, report: &Report) -> (String, String) {
    let (a, b) = (&options.into, &options.from);
    match report.local {
        Some(Side::Ours) => (format!("{a} (local)"), format!("{b} (remote)")),
        Some(Side::Theirs) => (format!("{a} (remote)"), format!("{b} (local)")),
        None => (a.clone(), b.clone()),
    }
}

fn preview(report: &Report, options: &Options, out: &mut Output) {
    let page = Page::of(out, 16);
    let merged = &report.merged;
    let from = match report.from.snapshot {
        Some(id) => format!("{} (snapshot {})", name(&report.from.timeline), short(id)),
        None => name(&report.from.timeline),
    };
    let base = match &report.base {
        Some(base) => format!("last common snapshot: {}", short_id(base.id)),
        None => "no common snapshot".into(),
    };
    let (into, from) = (bold(clean(report.file.path.as_str())), bold(from));
    out.line(format!("{into} ← the lorebook of {from}; {base}"));
    if report.from.is_same_file {
        out.say("Nothing to do: both chats use this lorebook.");
        return;
    }
    let moved = |uid: &str| merged.renumbered.iter().find(|entry| entry.new == uid);
    for entry in &merged.added {
        let from = moved(&entry.uid)
            .map(|entry| format!(" (UID {} in the other lorebook)", clean(&entry.old)));
        let from = from.unwrap_or_default();
        out.line(format!("  {} {}{from}", paint(STYLES.good, "+"), entry_label(entry)));
    }
    for entry in &merged.removed {
        out.line(format!("  {} {}", paint(STYLES.bad, "-"), entry_label(entry)));
    }
    for edited in &merged.edited {
        out.line(format!("  {} {}", paint(STYLES.tag, "~"), entry_label(&edited.entry)));
        for field in &edited.fields {
            out.line(format!("      {}", field_line(field, page)));
        }
    }
    for entry in merged.renumbered.iter().filter(|entry| entry.moved) {
        let named = EntryName { uid: entry.new.clone(), title: entry.title.clone() };
        let sign = paint(STYLES.tag, ">");
        out.line(format!("  {sign} {}: was UID {}", entry_label(&named), clean(&entry.old)));
    }
    for field in &merged.book {
        out.line(format!(
            "  {} the lorebook's {}",
            paint(STYLES.tag, "~"),
            field_line(field, page)
        ));
    }
    let (a, b) = labels(options, report);
    let choice = options.keep.map_or(Choice::Open, |_| Choice::Made);
    for conflict in &merged.conflicts {
        let lines = conflict_lines(conflict, (&a, &b), choice, page);
        lines.iter().for_each(|line| out.line(line));
    }
    let counted = [
        (merged.added.len(), "added"),
        (merged.removed.len(), "removed"),
        (merged.edited.len(), "edited"),
        (merged.renumbered.len(), "with a new UID"),
    ];
    let counted: Vec<_> =
        counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let conflicts = match merged.conflicts.len() as u64 {
        0 => String::new(),
        n => format!("; {}", count(n, "conflict")),
    };
    out.say(match counted.as_slice() {
        [] if !report.file.replaces && conflicts.is_empty() => {
            format!("Nothing to do: {} is up to date.", clean(report.file.path.as_str()))
        }
        [] if !report.file.replaces => {
            let (book, conflicts) =
                (clean(report.file.path.as_str()), conflicts.trim_start_matches("; "));
            if choice == Choice::Made {
                format!("{conflicts}: the values of {book} are kept.")
            } else {
                format!("{conflicts}; nothing else differs from {book}.")
            }
        }
        [] => format!("No entries change{conflicts}."),
        counted => format!("Entries: {}{conflicts}.", counted.join(", ")),
    });
}

fn entry_label(EntryName { uid, title }: &EntryName) -> String {
    format!("UID {}  {}", cut(&clean(uid), 24), entry_title(title, 48))
}

fn raw(value: &Option<Vec<u8>>) -> Option<Raw<'_>> {
    value.as_deref().and_then(Raw::parse)
}

fn field_line(field: &FieldChange, page: Page) -> String {
    format!("{}: {}", field_name(&field.field), page.change(raw(&field.ours), raw(&field.merged)))
}

/// Whether the user chose a side for all conflicts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Made,
    Open,
}

pub fn conflict_lines(
    conflict: &Conflict,
    (here, there): (&str, &str),
    choice: Choice,
    page: Page,
) -> Vec<String> {
    let sign = paint(STYLES.warn, "!");
    let entry = conflict.entry.as_ref().map_or_else(|| "the lorebook".to_owned(), entry_label);
    let short = |value: &Option<Vec<u8>>| {
        raw(value).map_or_else(|| dim("not set"), |value| page.value(value))
    };
    let (here, there) = (clean(here), clean(there));
    match conflict.kind {
        ConflictKind::RemovedThere => {
            vec![format!("  {sign} {entry}: edited in {here}, removed in {there}; kept")]
        }
        ConflictKind::RemovedHere => {
            vec![format!("  {sign} {entry}: removed in {here}, edited in {there}; restored")]
        }
        ConflictKind::Values => {
            let value = &conflict.value;
            let is = |side: &Option<Vec<u8>>| {
                let chosen = choice == Choice::Made && *side == value.merged;
                if chosen { paint(STYLES.good, " (kept)") } else { String::new() }
            };
            vec![
                format!("  {sign} {entry}: {} changed on both sides", field_name(&value.field)),
                format!("      {here}: {}{}", short(&value.ours), is(&value.ours)),
                format!("      {there}: {}{}", short(&value.theirs), is(&value.theirs)),
            ]
        }
    }
}

fn done(report: &Report, out: &mut Output) {
    for snapshot in &report.safety {
        let (id, name) = (short_id(snapshot.id), name(&snapshot.timeline));
        out.say(format!("The previous version is kept as snapshot {id} ({name})."));
    }
    if report.kept {
        out.say("The previous version is kept.");
    }
    let path = clean(report.file.path.as_str());
    out.say(if report.file.replaces {
        format!(
            "Merged and verified: {path}, {}. Run `stvc undo` to undo it.",
            size(report.file.bytes)
        )
    } else {
        format!("Conflicts resolved: {path} keeps its values. Run `stvc undo` to undo it.")
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_y_or_yes_confirms_the_merge() {
        for (answer, is_yes) in
            [("y\n", true), ("YES\n", true), ("\n", false), ("", false), ("yep\n", false)]
        {
            assert_eq!(agreed(&mut answer.as_bytes(), &mut Vec::new()), is_yes, "{answer:?}");
        }
    }
}
