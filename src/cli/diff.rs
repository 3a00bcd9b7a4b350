use serde_json::json;

use super::args;
use super::json::ChangeLine;
use super::output::{LOOK, Out, paint};
use super::words::{age, clean, count, cut, name, short};
use crate::archive::Snapshot;
use crate::archive::diff::{Change, ChangeKind, Part, Place};
use crate::ops::diff::Options;
use crate::ops::{self, Workspace};
use crate::st::{self, Raw};

pub fn run(args: &args::Diff, workspace: &Workspace, out: &mut Out) -> ops::Result<u8> {
    let options = Options { before: args.before.clone(), after: args.after.clone() };
    let report = ops::diff::diff(workspace, &options)?;
    let side = |snapshot: &Snapshot| {
        let age = age(snapshot.time, workspace.now);
        format!(
            "{} {} ({}, {age})",
            paint(LOOK.id, short(snapshot.id)),
            name(&snapshot.timeline),
            count(snapshot.messages, "message")
        )
    };
    out.line(format!("{} {}", paint(LOOK.bad, "---"), side(&report.before)));
    let after = report.after.as_ref().map_or("the files now".into(), side);
    out.line(format!("{} {after}", paint(LOOK.good, "+++")));
    let room = out.columns().saturating_sub(16);
    let mut part = None;
    for change in &report.changes {
        out.object(&ChangeLine::from(change));
        if part != Some(change.part) {
            part = Some(change.part);
            let title = match change.part {
                Part::Message => "Messages",
                Part::Lorebook => "Lorebook",
                Part::Metadata => "Metadata",
            };
            out.line(paint(LOOK.name, title));
        }
        tell(change, room, out);
    }
    if report.changes.is_empty() {
        out.say("No difference.");
    }
    let of = |kind| report.changes.iter().filter(|change| change.kind == kind).count();
    let counts = json!({
        "changes": report.changes.len(), "added": of(ChangeKind::Added), "removed": of(ChangeKind::Removed),
        "edited": of(ChangeKind::Edited), "rewritten": of(ChangeKind::Rewritten),
    });
    out.summary("diff", true, counts);
    Ok(if args.exit_code && !report.changes.is_empty() { 1 } else { super::DONE })
}

fn tell(change: &Change, room: usize, out: &mut Out) {
    let place = match &change.place {
        Place::Message(number) => format!("#{number}"),
        Place::Entry(key) => format!("entry {}", clean(key)),
        Place::Path(path) => clean(path),
    };
    let gist = |value: &Option<Vec<u8>>| {
        value.as_deref().map(|value| cut(&clean(&gist(change.part, &change.place, value)), room))
    };
    let (before, after) =
        (gist(&change.before).unwrap_or_default(), gist(&change.after).unwrap_or_default());
    let line = |sign: &str, style, text: &str| format!("  {} {place}  {text}", paint(style, sign));
    match change.kind {
        ChangeKind::Added => out.line(line("+", LOOK.good, &after)),
        ChangeKind::Removed => out.line(line("-", LOOK.bad, &before)),
        ChangeKind::Rewritten => {
            out.line(line("~", LOOK.tag, "the same values, written differently"))
        }
        // What a person would read is the same: something else in the value changed.
        ChangeKind::Edited if before == after => {
            let fields = changed_fields(change).unwrap_or_default();
            out.line(line(
                "~",
                LOOK.tag,
                &format!("{} {after}", paint(LOOK.dim, format!("({fields})"))),
            ));
        }
        ChangeKind::Edited => {
            out.line(line("~", LOOK.tag, &paint(LOOK.bad, before)));
            out.line(format!(
                "    {}  {}",
                " ".repeat(place.chars().count()),
                paint(LOOK.good, after)
            ));
        }
    }
}

/// What a person would call a value: what was said, an entry's title, or the value itself.
fn gist(part: Part, place: &Place, value: &[u8]) -> String {
    let verbatim = || String::from_utf8_lossy(value).into_owned();
    match (part, place) {
        (Part::Message, _) => match st::text_of(value) {
            Some(message) if message.name.is_empty() => message.text,
            Some(message) => format!("{}: {}", message.name, message.text),
            None => verbatim(),
        },
        (Part::Lorebook, Place::Entry(_)) => match Raw::parse(value) {
            Some(entry) => {
                let title = st::entry_comment(entry).unwrap_or_default();
                let content =
                    entry.get("content").and_then(|content| content.string()).unwrap_or_default();
                format!("{title}: {content}")
            }
            None => verbatim(),
        },
        (Part::Lorebook, Place::Path(path)) if path == "book" => "the whole book".into(),
        _ => Raw::parse(value).and_then(|value| value.string()).unwrap_or_else(verbatim),
    }
}

/// The names of the members that differ between two objects.
fn changed_fields(change: &Change) -> Option<String> {
    let (before, after) =
        (Raw::parse(change.before.as_deref()?)?, Raw::parse(change.after.as_deref()?)?);
    let (old, new) = (before.members()?, after.members()?);
    let mut fields: Vec<String> = Vec::new();
    for member in old.iter().chain(&new) {
        let key = member.key.to_string_lossy();
        if !fields.contains(&key)
            && before.get(&key).map(|v| v.as_bytes()) != after.get(&key).map(|v| v.as_bytes())
        {
            fields.push(key);
        }
    }
    Some(if fields.is_empty() {
        "spacing".into()
    } else {
        fields.iter().map(|field| clean(field)).collect::<Vec<_>>().join(", ")
    })
}
