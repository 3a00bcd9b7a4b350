use super::args;
use super::error::Result;
use super::output::{LOOK, Out};
use super::table::{self, Cell};
use super::wording::{clean, name, short};
use stvc::engine::Workspace;
use stvc::lines::answers::Answer;
use stvc::verbs;
use stvc::verbs::tag::Options;

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
    if out.is_json() {
        return Ok(out.answer(&tags));
    }
    let clock = out.clock(workspace);
    let row = |tag: &verbs::tag::Tag| {
        vec![
            Cell::new(LOOK.tag, clean(&tag.name)),
            Cell::new(LOOK.id, short(tag.snapshot.id)),
            Cell::plain(name(&tag.snapshot.timeline)).cut(),
            Cell::new(LOOK.dim, clock.age(tag.snapshot.time)),
        ]
    };
    let rows: Vec<_> = tags.iter().map(row).collect();
    for line in table::lines(&rows) {
        match options {
            Options::Delete { .. } => out.say(format!("deleted {line}")),
            _ => out.line(line),
        }
    }
    if tags.is_empty() {
        out.say("There are no tags yet. `stvc tag NAME SNAPSHOT` makes one.");
    }
    Ok(tags.exit())
}
