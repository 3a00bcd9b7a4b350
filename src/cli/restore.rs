use serde_json::json;

use super::args::{self, Only};
use super::json::{FileLine, SnapshotLine};
use super::output::{LOOK, Out, paint};
use super::words::{age, clean, count, name, short, size};
use crate::archive::Role;
use crate::ops::restore::{Action, Options};
use crate::ops::{self, Workspace};

pub fn run(args: &args::Restore, workspace: &Workspace, out: &mut Out) -> ops::Result<u8> {
    let options = Options {
        snapshot: args.snapshot.clone(),
        to: args.to.clone(),
        only: args.only.map(|only| match only {
            Only::Chat => Role::Chat,
            Only::Lorebook => Role::Lorebook,
        }),
        overwrite: args.overwrite,
        dry_run: args.dry_run,
    };
    let report = ops::restore::restore(workspace, &options, &mut out.progress())?;
    if let Some(safety) = &report.safety {
        out.object(&SnapshotLine::new(safety, &[]));
        out.say(format!(
            "What was there is kept as snapshot {}.",
            paint(LOOK.id, short(safety.id))
        ));
    }
    if report.kept {
        out.say("What was there is kept; `stvc undo` brings it back.");
    }
    for file in &report.files {
        out.object(&FileLine::from(file));
        let (style, verb) = match (file.action, report.dry_run) {
            (Action::Keep, _) => (LOOK.dim, "already there"),
            (Action::Delete, _) => (LOOK.warn, "removed"),
            (Action::Write, true) if file.replaces => (LOOK.warn, "would replace"),
            (Action::Write, true) => (LOOK.good, "would write"),
            (Action::Write, false) if file.replaces => (LOOK.warn, "replaced"),
            (Action::Write, false) => (LOOK.good, "restored"),
        };
        out.say(format!(
            "{}  {}  {}",
            paint(style, format!("{verb:<13}")),
            clean(file.path.as_str()),
            size(file.bytes)
        ));
    }
    let written = report.files.iter().filter(|file| file.action == Action::Write).count();
    let snapshot = &report.snapshot;
    let what = format!(
        "{}, {}, taken {}",
        name(&snapshot.timeline),
        count(snapshot.messages, "message"),
        age(snapshot.time, workspace.now)
    );
    match (written, report.dry_run) {
        (0, _) => out.say(format!(
            "Nothing to do: the files are those of snapshot {} ({what}).",
            short(snapshot.id)
        )),
        (_, true) => {}
        _ => out.say(format!(
            "Restored and verified in {}: {what}.",
            clean(&report.root.display().to_string())
        )),
    }
    out.findings(&report.findings);
    let counts = json!({ "written": written, "kept": report.files.len() - written, "dry_run": report.dry_run });
    out.summary("restore", true, counts);
    Ok(super::DONE)
}
