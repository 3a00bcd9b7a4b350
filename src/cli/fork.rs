use clap_complete::engine::ArgValueCompleter;

use super::args::{QueueArgs, seconds};
use super::complete::chats;
use super::error::Result;
use super::output::{Output, bold, bold_name, short_id};
use super::restore::{files, print_lost_attachments, recaps};
use super::wording::{clean, count, name, removed_characters};
use stvc::findings::lost_attachments;
use stvc::readiness::{GatePolicy, WaitLimit};
use stvc::verbs::restore::fork::{CopiedBook, Options, Report, fork};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Chat: a file, `Character/Chat name`, or a unique part of that name
    #[arg(add = ArgValueCompleter::new(chats), value_name = "TIMELINE")]
    pub timeline: String,

    /// Fork point: the last message that both chats share (default: the last message)
    #[arg(long, value_name = "N")]
    pub at: Option<usize>,

    /// Name of the new chat (default: `… - Branch #1` and so on)
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,

    /// Refuse instead of warning if the scene is not finished
    ///
    /// A scene is finished if the message ends it, its lorebook entry is complete, and the running
    /// recap includes it.
    #[arg(long)]
    pub strict: bool,

    /// Wait until the lorebook's queue is empty, at most SECONDS if given
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "", value_parser = seconds)]
    pub wait: Option<WaitLimit>,

    /// Fork even if work is pending in the lorebook's queue; the snapshot records it
    #[arg(long)]
    pub allow_active_queue: bool,

    #[command(flatten)]
    pub queue: QueueArgs,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const HELP: &str = "A snapshot of the chat is created first. The new chat has messages 0 to N and its \
    own lorebook, a copy of the current one, so that neither chat changes the other's lorebook. No \
    other chat is changed, and `stvc undo` undoes the fork. For the lorebook at message N, where it \
    is known, run `stvc restore TIMELINE --at N --as NAME`.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
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
    let text = |out: &mut Output| {
        print(&report, out);
        let chat = report.timeline.chat();
        let removed = args.name.as_deref().and_then(|asked| removed_characters(asked, chat));
        removed.iter().for_each(|removed| out.say(removed));
    };
    Ok(out.answer(&report, text))
}

fn print(report: &Report, out: &mut Output) {
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
                CopiedBook::AtMessage => format!("the lorebook at #{last}"),
                CopiedBook::Earlier(from) => {
                    let (id, date) = (short_id(from.id), out.clock.date(from.time));
                    format!("the older lorebook in snapshot {id}, created {date}")
                }
                CopiedBook::Now => {
                    format!("the current lorebook, which may include what happens after #{last}")
                }
            };
            out.say(format!("Its lorebook is {}, a copy of {copied}.", bold(clean(book))));
        }
        None => out.say("It has no lorebook."),
    }
    recaps(made, out);
    print_lost_attachments(lost_attachments(&made.findings), out);
    out.findings(&made.findings);
}
