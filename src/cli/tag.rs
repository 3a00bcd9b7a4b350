use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::wording::{clean, name, pad, short};
use super::{args, exit};
use stvc::engine::Workspace;
use stvc::lines::{Counts, TagLine};
use stvc::verbs;
use stvc::verbs::tag::Options;
use unicode_width::UnicodeWidthStr;

pub fn run(args: &args::Tag, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options = match (&args.name, &args.snapshot, args.delete) {
        (Some(name), _, true) => Options::Delete { name: name.clone() },
        (Some(name), Some(snapshot), false) => {
            Options::Add { name: name.clone(), snapshot: snapshot.clone(), lead: args.lead }
        }
        (name, None, false) => Options::List { name: name.clone() },
        (None, ..) => Options::List { name: None },
    };
    let tags = verbs::tag::tag(workspace, &options)?;
    let width = tags.iter().map(|tag| clean(&tag.name).width()).max().unwrap_or(0).min(50);
    for tag in &tags {
        out.object(TagLine {
            name: &tag.name,
            snapshot: tag.snapshot.id,
            timeline: tag.snapshot.timeline.as_str(),
        });
        let line = format!(
            "{}  {} {}  {}",
            paint(LOOK.tag, pad(&clean(&tag.name), width)),
            paint(LOOK.id, short(tag.snapshot.id)),
            name(&tag.snapshot.timeline),
            paint(LOOK.dim, out.clock(workspace).age(tag.snapshot.time))
        );
        match options {
            Options::Delete { .. } => out.say(format!("deleted {line}")),
            _ => out.line(line),
        }
    }
    if tags.is_empty() {
        out.say("There are no tags yet. `stvc tag NAME SNAPSHOT` makes one.");
    }
    out.summary("tag", true, Counts::Tag { tags: tags.len() });
    Ok(exit::DONE)
}
