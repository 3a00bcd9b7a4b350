use serde_json::json;

use super::json::SnapshotLine;
use super::output::{LOOK, Out, paint};
use super::snapshot::{label, new_snapshot};
use super::wording::{clean, count, shell};
use super::{args, exit};
use crate::engine::{self, Workspace};
use crate::verbs::snapshot::{Report, Taken};
use crate::watch::install::{self, InstallStep, Starter};
use crate::watch::{self, Event, Options};

pub fn run(args: &args::Watch, workspace: &Workspace, out: &mut Out) -> engine::Result<u8> {
    if args.install {
        return install(args, workspace, out);
    }
    let options = Options {
        settle: args.settle.0,
        patience: args.patience.0,
        poll: args.poll.map(|span| span.0),
    };
    let (waker, listener) = watch::waker();
    let stop = waker.clone();
    ctrlc::set_handler(move || stop.stop())
        .map_err(|why| engine::Error::NoSignals { why: why.to_string() })?;
    let summary =
        watch::watch(workspace, &options, &waker, &listener, &super::now, &mut |event| {
            tell(&event, out)
        })?;
    out.say(format!("Stopped; {} taken.", count(summary.taken as u64, "snapshot")));
    out.summary("watch", true, json!({ "taken": summary.taken, "autosaves": summary.autosaves }));
    Ok(exit::DONE)
}

fn tell(event: &Event<'_>, out: &mut Out) {
    let now = super::now();
    let line = |text: &str| format!("{}  {text}", paint(LOOK.dim, now.format("%Y-%m-%d %H:%M:%S")));
    let mut object =
        json!({ "type": "watch", "time": now.to_rfc3339_opts(chrono::SecondsFormat::Secs, true) });
    let mut name = |name: &str| object["event"] = json!(name);
    match event {
        Event::Started { root, polling } => {
            name("started");
            object["library"] = json!(root.display().to_string());
            object["polling_seconds"] =
                json!(polling.as_ref().map(|(interval, _)| interval.as_secs_f64()));
            let how = polling.as_ref().map(|(interval, why)| {
                format!(", looking every {} s ({})", interval.as_secs_f64(), clean(why))
            });
            out.say(line(&format!(
                "watching {}{}; Ctrl-C stops it",
                clean(&root.display().to_string()),
                how.unwrap_or_default()
            )));
        }
        Event::Looked(report) => return looked(report, &line, out),
        Event::Noticed(findings) => return out.findings(findings),
        Event::Waiting(timelines) => {
            name("waiting");
            object["timelines"] = json!(timelines);
            for timeline in *timelines {
                out.say(line(&format!(
                    "{}: ST-Auto-Recap is at work; waiting for it",
                    label(timeline)
                )));
            }
        }
        Event::Gone(why) => {
            name("gone");
            object["message"] = json!(why);
            out.warn(&line(&format!("{}; waiting for it to come back", clean(why))));
        }
        Event::Back => {
            name("back");
            out.say(line("it is there again"));
        }
        Event::Failed(error) => {
            name("failed");
            object["message"] = json!(error.to_string());
            out.warn(&line(&format!("{}; will be tried again", clean(&error.to_string()))));
        }
        Event::Tidied(report) => {
            name("tidied");
            let forgotten: usize =
                report.timelines.iter().map(|timeline| timeline.forgotten.len()).sum();
            object["forgotten"] = json!(forgotten);
            out.say(line(&format!(
                "{} let go, as the configuration says",
                count(forgotten as u64, "snapshot")
            )));
        }
    }
    out.object(&object);
}

fn looked(report: &Report, line: &dyn Fn(&str) -> String, out: &mut Out) {
    for outcome in &report.timelines {
        match &outcome.result {
            Taken::New(snapshot, tags) => {
                out.say(line(&new_snapshot(report, snapshot, tags, &label(&outcome.timeline))));
                out.object(&SnapshotLine::new(snapshot, tags).unchanged(false));
            }
            Taken::Failed(why) => {
                out.object(
                    &json!({ "type": "failed", "timeline": outcome.timeline, "message": why }),
                );
                out.warn(&line(&format!(
                    "not taken: {}: {}",
                    label(&outcome.timeline),
                    clean(why)
                )));
            }
            _ => {}
        }
    }
    out.findings(&report.findings);
}

fn install(args: &args::Watch, workspace: &Workspace, out: &mut Out) -> engine::Result<u8> {
    let program = std::env::current_exe().unwrap_or_else(|_| "stvc".into());
    let options: Vec<String> = [
        ("--settle", Some(args.settle)),
        ("--patience", Some(args.patience)),
        ("--poll", args.poll),
    ]
    .into_iter()
    .filter_map(|(name, span)| Some([name.to_owned(), format!("{}s", span?.0.as_secs_f64())]))
    .flatten()
    .collect();
    let home = std::env::home_dir().map(|home| home.join(".config"));
    let configuration = std::env::var_os("XDG_CONFIG_HOME").map(Into::into).or(home);
    let installed =
        install::install(workspace, Starter::here(), &program, &options, configuration.as_deref())?;
    if let Some(path) = &installed.written {
        out.say(format!("Written: {}", shell(&path.display().to_string())));
    }
    for step in &installed.steps {
        match step {
            InstallStep::Say(words) => out.line(words),
            InstallStep::Type(command) => {
                command.lines().for_each(|command| out.line(format!("  {command}")));
            }
        }
    }
    let steps: Vec<_> = installed
        .steps
        .iter()
        .filter_map(|step| match step {
            InstallStep::Type(command) => Some(command.as_str()),
            InstallStep::Say(_) => None,
        })
        .collect();
    let written = installed.written.as_ref().map(|path| path.display().to_string());
    out.object(&json!({ "type": "install", "written": written, "steps": steps }));
    out.summary("watch", true, json!({ "installed": written.is_some() }));
    Ok(exit::DONE)
}
