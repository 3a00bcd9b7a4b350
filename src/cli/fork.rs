use clap_complete::engine::ArgValueCompleter;

use super::args::{QueueArgs, seconds};
use super::complete::timelines;
use super::error::Result;
use super::output::{Out, bold, bold_name, short_id};
use super::restore::{files, recaps, tell_lost_attachments};
use super::wording::{clean, count, name};
use stvc::findings::lost_attachments;
use stvc::readiness::{GatePolicy, Wait};
use stvc::verbs::restore::fork::{CopiedBook, Options, Report, fork};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The chat: a file, `Character/Chat name`, or any part of that which fits only one
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timeline: String,

    /// The last message that both have; the whole chat if not given
    #[arg(long, value_name = "N")]
    pub at: Option<usize>,

    /// What the new chat is called; `… - Branch #1` and so on if not given
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,

    /// Refuse where the message ends no scene, the scene's lorebook entry is not finished or the running recap does not have it, instead of warning
    #[arg(long)]
    pub strict: bool,

    /// Wait for the lorebook's queue to finish, at most so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "", value_parser = seconds)]
    pub wait: Option<Wait>,

    /// Fork it though work is pending in the lorebook's queue; the snapshot says so
    #[arg(long)]
    pub allow_active_queue: bool,

    #[command(flatten)]
    pub queue: QueueArgs,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const HELP: &str = "First a snapshot of the chat is taken. The new chat has messages 0 to N and a lorebook of its own, a copy of the one of now, so that neither story writes into the other's. \
                    No other chat is touched, and `stvc undo` takes it back. For the lorebook of then, where it is known: `stvc restore TIMELINE --at N --as NAME`.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options = Options {
        timeline: args.timeline.clone(),
        at: args.at,
        name: args.name.clone(),
        gate: GatePolicy {
            scene: args.strict.into(),
            wait: args.wait,
            allow_active_queue: args.allow_active_queue,
        },
        queue: args.queue.change(),
        dry_run: args.dry_run,
    };
    let report = fork(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&report, |out| tell(&report, out)))
}

fn tell(report: &Report, out: &mut Out) {
    let made: &verbs::restore::Report = &report.made;
    files(made, out);
    let called = bold_name(&report.timeline);
    let (messages, from) = (count(report.messages, "message"), name(&report.from));
    match (&made.written.fork, made.dry_run) {
        (Some(snapshot), false) => {
            out.say(format!("{called}: {messages} of {from}, snapshot {}.", short_id(snapshot.id)))
        }
        (None, false) => out.say(format!("{called}: {messages} of {from}.")),
        _ => out.say(format!("{called} would have {messages} of {from}.")),
    }
    match &report.lorebook {
        Some(book) => {
            let last = report.messages.saturating_sub(1);
            let copied = match &report.copied_book {
                CopiedBook::AtMessage => format!("the one at #{last}"),
                CopiedBook::Earlier(from) => {
                    let (id, date) = (short_id(from.id), out.clock.date(from.time));
                    format!("the older one of snapshot {id}, taken {date}")
                }
                CopiedBook::Now => {
                    format!("the one of now: it may know what happens after #{last}")
                }
            };
            out.say(format!("Its lorebook is {}, a copy of {copied}.", bold(clean(book))));
        }
        None => out.say("It has no lorebook."),
    }
    recaps(made, out);
    tell_lost_attachments(lost_attachments(&made.findings), out);
    out.findings(&made.findings);
}
