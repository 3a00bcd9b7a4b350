use clap_complete::engine::ArgValueCompleter;

use super::args::SNAPSHOT_HELP;
use super::complete::{snapshots, tags};
use super::error::Result;
use super::output::{LOOK, Out};
use super::table::{self, Cell};
use super::wording::{clean, name, short};
use stvc::verbs::tag::{Options, Tag};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub struct Args {
    /// The name; alone, it is shown what it names, and without it all names are listed
    #[arg(add = ArgValueCompleter::new(tags), value_name = "NAME", required_if_eq("delete", "true"))]
    pub name: Option<String>,

    /// The snapshot it names
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "SNAPSHOT", requires = "name", conflicts_with = "delete")]
    pub snapshot: Option<String>,

    /// Take the name away
    #[arg(long, short)]
    pub delete: bool,

    /// Also if another snapshot has the name: it gets it from that one
    #[arg(long = "move", requires = "snapshot")]
    pub lead: bool,
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options = match (&args.name, &args.snapshot, args.delete) {
        (Some(name), _, true) => Options::Delete { name: name.clone() },
        (Some(name), Some(snapshot), false) => {
            Options::Add { name: name.clone(), snapshot: snapshot.clone(), lead: args.lead }
        }
        (name, None, false) => Options::List { name: name.clone() },
        (None, ..) => Options::List { name: None },
    };
    let tags = verbs::tag::tag(workspace, &options)?;
    Ok(out.answer(&tags, |out| tell(&options, &tags, out)))
}

fn tell(options: &Options, tags: &[Tag], out: &mut Out) {
    let clock = out.clock;
    let row = |tag: &Tag| {
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
}
