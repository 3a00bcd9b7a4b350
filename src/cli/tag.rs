use clap_complete::engine::ArgValueCompleter;

use super::args::SNAPSHOT_HELP;
use super::complete::{snapshots, tags};
use super::error::Result;
use super::output::{Output, STYLES};
use super::table::{self, Cell};
use super::wording::{clean, name, short};
use stvc::verbs::tag::{Options, Tag};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub struct Args {
    /// Tag to create; without SNAPSHOT, tag to show; without a name, all tags are listed
    #[arg(add = ArgValueCompleter::new(tags), value_name = "NAME", required_if_eq("delete", "true"))]
    pub name: Option<String>,

    /// Snapshot to tag
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "SNAPSHOT", requires = "name", conflicts_with = "delete")]
    pub snapshot: Option<String>,

    /// Delete the tag
    #[arg(long, short)]
    pub delete: bool,

    /// Move the tag if another snapshot has it
    #[arg(long = "move", requires = "snapshot")]
    pub lead: bool,
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let options = match (&args.name, &args.snapshot, args.delete) {
        (Some(name), _, true) => Options::Delete { name: name.clone() },
        (Some(name), Some(snapshot), false) => {
            Options::Add { name: name.clone(), snapshot: snapshot.clone(), lead: args.lead }
        }
        (name, None, false) => Options::List { name: name.clone() },
        (None, ..) => Options::List { name: None },
    };
    let tags = verbs::tag::tag(workspace, &options)?;
    Ok(out.answer(&tags, |out| print(&options, &tags, out)))
}

fn print(options: &Options, tags: &[Tag], out: &mut Output) {
    let clock = out.clock;
    let row = |tag: &Tag| {
        vec![
            Cell::new(STYLES.tag, clean(&tag.name)),
            Cell::new(STYLES.id, short(tag.snapshot.id)),
            Cell::plain(name(&tag.snapshot.timeline)).cut(),
            Cell::new(STYLES.dim, clock.age(tag.snapshot.time)),
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
        out.say("There are no tags yet. Run `stvc tag NAME SNAPSHOT` to create one.");
    }
}
