use super::args;
use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::restore::{queue_change, recaps};
use super::restored_files::{files, tell_lost_attachments};
use super::wording::{clean, count, name, short};
use stvc::engine::Workspace;
use stvc::engine::gate::{GatePolicy, SceneRule};
use stvc::lines::answers::Answer;
use stvc::rules::lost_attachments;
use stvc::verbs;
use stvc::verbs::restore::from_message::{CopiedBook, Options, fork};

pub fn run(args: &args::Fork, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options = Options {
        timeline: args.timeline.clone(),
        at: args.at,
        name: args.name.clone(),
        gate: GatePolicy {
            scene: if args.strict { SceneRule::Strict } else { SceneRule::Warn },
            wait: args.wait,
            allow_active_queue: args.allow_active_queue,
        },
        queue: queue_change(args.clear_queue, args.trim_queue),
        dry_run: args.dry_run,
    };
    let report = fork(workspace, &options, &mut out.progress())?;
    if out.is_json() {
        return Ok(out.answer(&report));
    }
    let made: &verbs::restore::Report = &report.made;
    files(made, out);
    let called = paint(LOOK.name, name(&report.timeline));
    let (messages, from) = (count(report.messages, "message"), name(&report.from));
    match (&made.fork, made.dry_run) {
        (Some(snapshot), false) => out.say(format!(
            "{called}: {messages} of {from}, snapshot {}.",
            paint(LOOK.id, short(snapshot.id))
        )),
        (None, false) => out.say(format!("{called}: {messages} of {from}.")),
        _ => out.say(format!("{called} would have {messages} of {from}.")),
    }
    match &report.lorebook {
        Some(book) => {
            let last = report.messages.saturating_sub(1);
            let copied = match &report.copied_book {
                CopiedBook::AtMessage => format!("the one at #{last}"),
                CopiedBook::Earlier(from) => format!(
                    "the older one of snapshot {}, taken {}",
                    paint(LOOK.id, short(from.id)),
                    out.clock(workspace).date(from.time)
                ),
                CopiedBook::Now => {
                    format!("the one of now: it may know what happens after #{last}")
                }
            };
            out.say(format!(
                "Its lorebook is {}, a copy of {copied}.",
                paint(LOOK.name, clean(book))
            ));
        }
        None => out.say("It has no lorebook."),
    }
    recaps(made, out);
    tell_lost_attachments(lost_attachments(&made.findings), out);
    out.findings(&made.findings);
    Ok(report.exit())
}
