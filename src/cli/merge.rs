use std::io::{self, BufRead, Write};

use clap_complete::engine::ArgValueCompleter;

use super::args::{ClosedArgs, one_of};
use super::complete::snapshots;
use super::diff::Page;
use super::error::Result;
use super::output::{LOOK, Out, ask, bold, dim, paint, short_id};
use super::wording::{clean, count, cut, entry_title, field_name, name, shell, short, size};
use stvc::library::Raw;
use stvc::lines::{Line, MergeLine};
use stvc::merging::{Conflict, ConflictKind, FieldChange, Named, Side};
use stvc::verbs::merge::{Keep, Options, Report};
use stvc::verbs::{self, MergeError};
use stvc::{Workspace, finish_interrupted};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The timeline whose lorebook is changed
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "A")]
    pub into: String,

    /// The timeline or snapshot whose lorebook is merged into it; its own file stays as it is
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "B")]
    pub from: String,

    /// Where both changed one value differently, keep the value of A, of B, of this device, or of another device. The last two are for lorebooks that a sync set aside
    #[arg(long, value_name = "SIDE", value_parser = one_of([("a", Keep::A), ("b", Keep::B), ("local", Keep::Local), ("remote", Keep::Remote)]))]
    pub keep: Option<Keep>,

    /// Do it without asking
    #[arg(long, short)]
    pub yes: bool,

    #[command(flatten)]
    pub closed: ClosedArgs,

    /// Also while ST-Auto-Recap is at work in the lorebook that is replaced
    #[arg(long)]
    pub allow_active_queue: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const HELP: &str = "What would change is always shown first. Entries are the same by what they say, not by their UID alone; a new one whose UID is taken gets the \
                    lowest free one. Both lorebooks are held against the snapshot from which both timelines come: what only one side changed is taken, also that an \
                    entry was removed. An entry that one side removed and the other edited stays. Without --keep, conflicts are listed and nothing is changed.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    // Files that an interrupted merge has not written yet take part in this one.
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
    if wanted && open {
        tell_plan(&report, out);
        return Err(MergeError::Conflicts {
            count: report.merged.conflicts.len(),
            into: options.into,
            from: options.from,
            local: report.local,
        }
        .into());
    }
    let agrees = || args.yes || agreed(&mut io::stdin().lock(), &mut io::stderr());
    let settled = options.keep.is_some() && !report.merged.conflicts.is_empty();
    if (changes || settled) && wanted && agrees() {
        options.write = true;
        options.expected = Some(report.file.blake3);
        let written = verbs::merge::merge(workspace, &options, &mut out.progress());
        report = written.inspect_err(|_| tell_plan(&report, out))?;
        done(&report, out);
    } else if changes || settled || open {
        out.say(match (open, args.dry_run || args.yes || !asks) {
            (true, _) => {
                let ways = verbs::ways_to_settle(&options.into, &options.from, report.local);
                format!("Nothing has been changed. {ways}")
            }
            (_, true) => {
                format!("Nothing has been changed. `{} --yes` does it.", command(&options))
            }
            _ => "Nothing has been changed.".into(),
        });
    }
    Ok(out.answer(&report, |out| out.findings(&report.findings)))
}

fn tell_plan(plan: &Report, out: &mut Out) {
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

/// Returns the names of both lorebooks, with the side of each if a sync set one aside.
fn labels(options: &Options, report: &Report) -> (String, String) {
    let (a, b) = (&options.into, &options.from);
    match report.local {
        Some(Side::Ours) => (format!("{a} (local)"), format!("{b} (remote)")),
        Some(Side::Theirs) => (format!("{a} (remote)"), format!("{b} (local)")),
        None => (a.clone(), b.clone()),
    }
}

fn preview(report: &Report, options: &Options, out: &mut Out) {
    let page = Page::of(out, 16);
    let merged = &report.merged;
    let from = match report.from.snapshot {
        Some(id) => format!("{} (snapshot {})", name(&report.from.timeline), short(id)),
        None => name(&report.from.timeline),
    };
    let base = match &report.base {
        Some(base) => format!("both come from snapshot {}", short_id(base.id)),
        None => "no common state is known".into(),
    };
    let (into, from) = (bold(clean(report.file.path.as_str())), bold(from));
    out.line(format!("{into} ← the lorebook of {from}; {base}"));
    if report.from.is_same_file {
        out.say("Nothing to do: both chats use this one lorebook.");
        return;
    }
    let moved = |uid: &str| merged.renumbered.iter().find(|entry| entry.new == uid);
    for entry in &merged.added {
        let from = moved(&entry.uid).map(|entry| format!(" (UID {} there)", clean(&entry.old)));
        let from = from.unwrap_or_default();
        out.line(format!("  {} {}{from}", paint(LOOK.good, "+"), entry_label(entry)));
    }
    for entry in &merged.removed {
        out.line(format!("  {} {}", paint(LOOK.bad, "-"), entry_label(entry)));
    }
    for edited in &merged.edited {
        out.line(format!("  {} {}", paint(LOOK.tag, "~"), entry_label(&edited.entry)));
        for field in &edited.fields {
            out.line(format!("      {}", field_line(field, page)));
        }
    }
    for entry in merged.renumbered.iter().filter(|entry| entry.moved) {
        let named = Named { uid: entry.new.clone(), title: entry.title.clone() };
        let sign = paint(LOOK.tag, ">");
        out.line(format!("  {sign} {}: was UID {}", entry_label(&named), clean(&entry.old)));
    }
    for field in &merged.book {
        out.line(format!("  {} the book's {}", paint(LOOK.tag, "~"), field_line(field, page)));
    }
    let (a, b) = labels(options, report);
    let settled = options.keep.is_some();
    for conflict in &merged.conflicts {
        let lines = conflict_lines(conflict, (&a, &b), settled, page);
        lines.iter().for_each(|line| out.line(line));
    }
    let counted = [
        (merged.added.len(), "added"),
        (merged.removed.len(), "removed"),
        (merged.edited.len(), "edited"),
        (merged.renumbered.len(), "with another UID"),
    ];
    let counted: Vec<_> =
        counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let conflicts = match merged.conflicts.len() as u64 {
        0 => String::new(),
        n => format!("; {}", count(n, "conflict")),
    };
    out.say(match counted.as_slice() {
        [] if !report.file.replaces && conflicts.is_empty() => {
            format!("Nothing to do: {} has all of it.", clean(report.file.path.as_str()))
        }
        [] if !report.file.replaces => {
            let (book, conflicts) =
                (clean(report.file.path.as_str()), conflicts.trim_start_matches("; "));
            if settled {
                format!("{conflicts}: settled for the values that {book} has.")
            } else {
                format!("{conflicts}; nothing else differs from {book}.")
            }
        }
        [] => format!("No entry changes{conflicts}."),
        counted => format!("Entries: {}{conflicts}.", counted.join(", ")),
    });
}

fn entry_label(Named { uid, title }: &Named) -> String {
    format!("UID {}  {}", cut(&clean(uid), 24), entry_title(title, 48))
}

fn raw(value: &Option<Vec<u8>>) -> Option<Raw<'_>> {
    value.as_deref().and_then(Raw::parse)
}

fn field_line(field: &FieldChange, page: Page) -> String {
    format!("{}: {}", field_name(&field.field), page.change(raw(&field.ours), raw(&field.merged)))
}

pub fn conflict_lines(
    conflict: &Conflict,
    (here, there): (&str, &str),
    settled: bool,
    page: Page,
) -> Vec<String> {
    let sign = paint(LOOK.warn, "!");
    let entry = conflict.entry.as_ref().map_or_else(|| "the book".to_owned(), entry_label);
    let short = |value: &Option<Vec<u8>>| {
        raw(value).map_or_else(|| dim("not there"), |value| page.value(value))
    };
    let (here, there) = (clean(here), clean(there));
    match conflict.kind {
        ConflictKind::RemovedThere => {
            vec![format!("  {sign} {entry}: removed in {there}, edited in {here}; it stays")]
        }
        ConflictKind::RemovedHere => {
            vec![format!("  {sign} {entry}: removed in {here}, edited in {there}; it comes back")]
        }
        ConflictKind::Values => {
            let value = &conflict.value;
            let is = |side: &Option<Vec<u8>>| {
                let chosen = settled && *side == value.merged;
                if chosen { paint(LOOK.good, " (this one)") } else { String::new() }
            };
            vec![
                format!("  {sign} {entry}: {} changed in both", field_name(&value.field)),
                format!("      {here}: {}{}", short(&value.ours), is(&value.ours)),
                format!("      {there}: {}{}", short(&value.theirs), is(&value.theirs)),
            ]
        }
    }
}

fn done(report: &Report, out: &mut Out) {
    for snapshot in &report.safety {
        let (id, name) = (short_id(snapshot.id), name(&snapshot.timeline));
        out.say(format!("What was there is kept as snapshot {id} ({name})."));
    }
    if report.kept {
        out.say("What was there is kept.");
    }
    let path = clean(report.file.path.as_str());
    out.say(if report.file.replaces {
        format!(
            "Merged and verified: {path}, {}. `stvc undo` takes it back.",
            size(report.file.bytes)
        )
    } else {
        format!("Settled: {path} keeps its values. `stvc undo` takes it back.")
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        for (answer, is_yes) in
            [("y\n", true), ("YES\n", true), ("\n", false), ("", false), ("yep\n", false)]
        {
            assert_eq!(agreed(&mut answer.as_bytes(), &mut Vec::new()), is_yes, "{answer:?}");
        }
    }
}
