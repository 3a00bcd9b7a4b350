use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::error::{Error, Result};
use super::interrupt::on_interrupt;
use super::output::{Output, dim, level_word};
use super::snapshot::{new_snapshot, was_deleted};
use super::wording::{clean, count, name, shell};
use super::{clock, exit, sync, table};
use stvc::Workspace;
use stvc::api::mailbox::{Alarm, Mailbox, Notice};
use stvc::findings::{Finding, Level};
use stvc::json_output::{Counts, Line, SnapshotLine, Summary, WatchEvent};
use stvc::retention::parse_span;
use stvc::verbs::snapshot::{Report, SnapshotResult};
use stvc::watch::install::{self, InstallStep};
use stvc::watch::{self, Event, Host, Options};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Create a snapshot when the files have not changed for this time
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_span)]
    pub settle: Duration,

    /// Wait at most this time for ST-Auto-Recap's queue, then create a snapshot marked as autosave
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_span)]
    pub patience: Duration,

    /// Check the files at this interval, if the system does not report changes
    ///
    /// This is needed on network drives and in some containers.
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub poll: Option<Duration>,

    /// Start the watch now and at every login
    ///
    /// Uses systemd, launchd, the Task Scheduler of Windows, or the app Termux:Boot.
    #[arg(long)]
    pub install: bool,

    /// Stop the watch, and do not start it at login any more
    #[arg(long, conflicts_with = "install")]
    pub uninstall: bool,
}

/// Watches the libraries of these users. A single user has an empty name.
pub fn run(args: &Args, users: &[(String, Workspace)], out: &mut Output) -> Result<u8> {
    if args.install || args.uninstall {
        return users
            .iter()
            .try_fold(exit::DONE, |_, (_, workspace)| install(args, workspace, out));
    }
    let options = Options { settle: args.settle, patience: args.patience, poll: args.poll };
    let watches: Vec<_> = users.iter().map(|user| (user, watch::waker())).collect();
    let stop: Vec<_> = watches.iter().map(|(_, (waker, _))| waker.clone()).collect();
    on_interrupt(move || stop.iter().for_each(|waker| waker.stop()))
        .map_err(|why| Error::NoSignals { why: why.to_string() })?;
    let shared = Mutex::new(&mut *out);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for ((user, workspace), (waker, listener)) in watches {
            let (options, shared) = (&options, &shared);
            running.push(scope.spawn(move || {
                let out = || shared.lock().unwrap_or_else(PoisonError::into_inner);
                // The mailbox is served only after the watch has started, because only one watch
                // per store can start.
                let mut mailbox = Some(Mailbox::default());
                let bell = mailbox.as_ref().map(Mailbox::waker);
                let mut tell = |event: Event<'_>| {
                    if let (Event::Started { .. }, Some(mailbox)) = (&event, mailbox.take()) {
                        let notice = options.poll.map_or(Notice::Events, |_| Notice::Polling);
                        scope.spawn(move || mailbox.serve(workspace, &clock::now, notice));
                    }
                    if let (Event::Looked(report), Some(bell)) = (&event, &bell) {
                        bell.news(alarms(report));
                    }
                    print(&event, user, &mut out());
                };
                let ended =
                    watch::watch(workspace, options, &waker, &listener, &clock::now, &mut tell);
                bell.iter().for_each(|bell| bell.stop());
                // The error is printed now, because the watches of other users may run for a long
                // time.
                if let (Err(error), false) = (&ended, user.is_empty()) {
                    out().warn(&format!("{}: {}", clean(user), clean(&error.to_string())));
                }
                ended
            }));
        }
        running.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let (mut taken, mut autosaves) = (0, 0);
    for summary in outcomes.into_iter().collect::<Result<Vec<_>, _>>()? {
        taken += summary.taken;
        autosaves += summary.autosaves;
    }
    out.say(format!("Stopped; {} created.", count(taken, "snapshot")));
    let counts = Counts(vec![("taken", taken.into()), ("autosaves", autosaves.into())]);
    out.end_with(Summary { command: "watch", ok: true, counts });
    Ok(exit::DONE)
}

fn alarms(report: &Report) -> Vec<Alarm> {
    let is_bad = |finding: &&Finding| finding.level >= Level::Warning;
    let alarm = |finding: &Finding| Alarm {
        code: finding.code.as_str().to_owned(),
        subject: finding.subject.clone(),
        message: finding.message.clone(),
        snapshot: finding.snapshot.clone(),
        noticed: clock::now().timestamp(),
    };
    report.findings.iter().filter(is_bad).map(alarm).collect()
}

fn print(event: &Event<'_>, user: &str, out: &mut Output) {
    let now = clock::now();
    let whose = if user.is_empty() { String::new() } else { format!("{}: ", clean(user)) };
    let line = |text: &str| format!("{}  {whose}{text}", dim(now.format("%Y-%m-%d %H:%M:%S")));
    if !user.is_empty() {
        out.object(Line::User { user });
    }
    let event = match event {
        Event::Started { root, polling } => {
            let library = root.display().to_string();
            let polling = polling.as_ref().map(|(interval, why)| (interval.as_secs_f64(), why));
            let how = polling.map(|(n, why)| format!(", checking every {n} s ({})", clean(why)));
            let how = how.unwrap_or_default();
            out.say(line(&format!("watching {}{how}; press Ctrl-C to stop", clean(&library))));
            WatchEvent::Started { library, polling_seconds: polling.map(|(seconds, _)| seconds) }
        }
        Event::Looked(report) => return looked(report, &line, out),
        Event::Noticed(findings) => return out.findings(findings),
        Event::Waiting(timelines) => {
            for timeline in *timelines {
                let name = name(timeline);
                out.say(line(&format!("{name}: waiting for ST-Auto-Recap to finish")));
            }
            WatchEvent::Waiting { timelines }
        }
        Event::Gone(why) => {
            out.warn(&line(&format!("{}; waiting until it is available again", clean(why))));
            WatchEvent::Gone { message: why }
        }
        Event::Back => {
            out.say(line("SillyTavern's folder is available again"));
            WatchEvent::Back
        }
        Event::Failed(error) => {
            let message = error.to_string();
            out.warn(&line(&format!("{}; stvc will try again", clean(&message))));
            WatchEvent::Failed { message }
        }
        Event::Tidied(report) => {
            let forgotten = report.forgotten();
            let many = count(forgotten, "snapshot");
            out.say(line(&format!("{many} removed by the retention policy")));
            WatchEvent::Tidied { forgotten }
        }
        Event::BackedUp(backup) => {
            let destination = &backup.destination;
            out.say(line(&format!("backed up to {}", clean(destination))));
            WatchEvent::BackedUp { destination }
        }
        Event::BackupFailed(message) => {
            let why = clean(message);
            out.warn(&line(&format!("the scheduled backup failed: {why}; stvc will try again")));
            WatchEvent::BackupFailed { message }
        }
        Event::Synced(report) => {
            let (received, sent) = (report.received(), report.sent_snapshots());
            if received + sent > 0 {
                out.say(line(&format!("synced: {}", sync::totals(report))));
            }
            WatchEvent::Synced { received, sent }
        }
        Event::SyncFailed(message) => {
            let why = clean(message);
            out.warn(&line(&format!("the scheduled sync failed: {why}; stvc will try again")));
            WatchEvent::SyncFailed { message }
        }
    };
    out.object(Line::watch(now, event));
}

fn looked(report: &Report, line: &dyn Fn(&str) -> String, out: &mut Output) {
    for Finding { subject, message, .. } in &report.unreadable {
        out.object(Line::failed(subject, message));
        out.warn(&line(&format!("snapshot failed: {}: {}", clean(subject), clean(message))));
    }
    for outcome in &report.timelines {
        match &outcome.result {
            SnapshotResult::New(snapshot, tags) => {
                let row = new_snapshot(report, snapshot, tags, name(&outcome.timeline));
                table::lines(&[row]).iter().for_each(|text| out.say(line(text)));
                out.object(Line::Snapshot(SnapshotLine::taken(snapshot, tags, None)));
            }
            SnapshotResult::Failed(why) => {
                out.object(Line::failed(outcome.timeline.as_str(), why));
                let label = name(&outcome.timeline);
                out.warn(&line(&format!("snapshot failed: {label}: {}", clean(why))));
            }
            _ => {}
        }
    }
    for deleted in &report.newly_deleted {
        out.object(Line::Snapshot(SnapshotLine::taken(deleted, &[], None)));
        table::lines(&[was_deleted(deleted)]).iter().for_each(|text| out.say(line(text)));
    }
    out.findings(&report.findings);
}

fn install(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let spans = [("--settle", Some(args.settle)), ("--patience", Some(args.patience))];
    let spans = spans.into_iter().chain([("--poll", args.poll)]);
    let option = |(name, span): (&str, Option<Duration>)| {
        Some([name.to_owned(), format!("{}s", span?.as_secs_f64())])
    };
    let options: Vec<_> = spans.filter_map(option).flatten().collect();
    let host = Host::here();
    let installed = if args.uninstall {
        install::uninstall(workspace, &host)?
    } else {
        install::install(workspace, &host, &program(), Some(&options))?
    };
    let path = shell(&installed.unit.display().to_string());
    match (args.uninstall, installed.changed) {
        (false, true) => out.say(format!("Written: {path}")),
        (false, false) => {}
        (true, true) => out.say(format!("Removed: {path}")),
        (true, false) => out.say("The watch is not installed for this library."),
    }
    match &installed.failure {
        Some(why) => out.warn(&format!("{}: {}", level_word(Level::Warning), clean(why))),
        None if args.uninstall => {}
        None => out.say("The watch is running, and starts at every login."),
    }
    if args.uninstall && installed.running {
        out.say("A watch of this library is still running.");
    }
    for step in &installed.steps {
        match step {
            InstallStep::Say(words) => out.line(words),
            InstallStep::Type(command) => out.line(format!("  {}", clean(command))),
        }
    }
    let is_ok = installed.failure.is_none();
    let done = if args.uninstall { "uninstalled" } else { "installed" };
    out.object(Line::Install {
        written: installed.changed.then(|| installed.unit.display().to_string()),
        running: installed.running,
        message: installed.failure.as_deref(),
        steps: commands(&installed.steps),
    });
    let counts = Counts(vec![(done, installed.changed.into())]);
    out.end_with(Summary { command: "watch", ok: is_ok, counts });
    Ok(if is_ok { exit::DONE } else { exit::PARTLY })
}

/// Returns the path of this program, which the service starts.
pub fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "stvc".into())
}

fn commands(steps: &[InstallStep]) -> Vec<&str> {
    steps
        .iter()
        .filter_map(|step| match step {
            InstallStep::Type(command) => Some(command.as_str()),
            InstallStep::Say(_) => None,
        })
        .collect()
}
