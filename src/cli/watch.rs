use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use super::error::{Error, Result};
use super::interrupt::on_interrupt;
use super::output::{Output, dim, level_word};
use super::snapshot::{new_snapshot, was_deleted};
use super::wording::{clean, count, name, shell};
use super::{clock, exit, sync, table};
use stvc::Workspace;
use stvc::api::http::MetricsServer;
use stvc::api::mailbox::Mailbox;
use stvc::findings::{Finding, Level};
use stvc::json_output::{Counts, Line, SnapshotLine, Summary, WatchEvent};
use stvc::retention::parse_span;
use stvc::verbs::snapshot::{Report, SnapshotResult};
use stvc::watch::install::{self, InstallStep};
use stvc::watch::{self, Companion, Event, FrontEnd, Host, Metrics, Options, Users, WatchedUser};

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

    /// Serve numbers for monitoring at this address, in the text format of Prometheus
    ///
    /// PORT alone means 127.0.0.1:PORT, which only this machine can reach. Another address, such as
    /// 0.0.0.0:9464, shows the names of all users to every machine that can reach it.
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = address, conflicts_with_all = ["install", "uninstall"])]
    pub metrics: Option<SocketAddr>,

    /// Start the watch now and at every login
    ///
    /// Uses systemd, launchd, the Task Scheduler of Windows, or the app Termux:Boot.
    #[arg(long)]
    pub install: bool,

    /// Stop the watch, and do not start it at login any more
    #[arg(long, conflicts_with = "install")]
    pub uninstall: bool,
}

/// Watches one library, or those of all users.
pub fn run(args: &Args, workspace: &Workspace, users: Users, out: &mut Output) -> Result<u8> {
    if args.install || args.uninstall {
        let users = match users {
            Users::One(workspace) => vec![workspace],
            Users::All(users) => users.into_iter().map(|user| user.workspace).collect(),
        };
        return users.iter().try_fold(exit::DONE, |_, workspace| install(args, workspace, out));
    }
    let options = Options { settle: args.settle, patience: args.patience, poll: args.poll };
    let metrics = Arc::new(Metrics::default());
    let server = match args.metrics {
        Some(address) => {
            let failed = |source| Error::NoMetrics { address, source };
            Some(MetricsServer::bind(address).map_err(failed)?)
        }
        None => None,
    };
    if let Some(server) = &server {
        let address = format!("http://{}/metrics", server.address());
        out.say(format!("Metrics: {address}"));
        out.object(Line::Metrics { address: &address });
    }
    let (waker, listener) = watch::waker();
    let stop = waker.clone();
    on_interrupt(move || stop.stop()).map_err(|why| Error::NoSignals { why: why.to_string() })?;
    let all = matches!(users, Users::All(_)).then_some(workspace);
    let front = Terminal { out: Mutex::new(&mut *out), all };
    let stop_server = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        if let Some(server) = server {
            let (metrics, stop) = (Arc::clone(&metrics), &stop_server);
            scope.spawn(move || server.run(Arc::new(move || metrics.to_prometheus()), stop));
        }
        let ended = watch::watch(users, &options, (&waker, &listener), &metrics, &front);
        stop_server.store(true, Ordering::Relaxed);
        ended
    });
    let watch::Summary { taken, autosaves, users, failed, .. } = ended?;
    let mut counts = vec![("taken", taken.into()), ("autosaves", autosaves.into())];
    let mut text = format!("Stopped; {} created.", count(taken, "snapshot"));
    if front.all.is_some() {
        counts.extend([("users", users.into()), ("failed", failed.into())]);
        if failed > 0 {
            text = format!("{text} Not watched: {}.", count(failed, "user"));
        }
    }
    out.say(text);
    out.end_with(Summary { command: "watch", ok: failed == 0, counts: Counts(counts) });
    Ok(if failed == 0 { exit::DONE } else { exit::PARTLY })
}

/// Prints the events of the watch, and serves SillyTavern's pages.
struct Terminal<'a> {
    out: Mutex<&'a mut Output>,
    /// The workspace in which users are looked for, if all users are watched.
    all: Option<&'a Workspace>,
}

impl FrontEnd for Terminal<'_> {
    fn now(&self) -> DateTime<FixedOffset> {
        clock::now()
    }

    fn tell(&self, user: &str, event: Event<'_>) {
        print(&event, user, &mut self.out.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn companion(&self, workspace: &Workspace) -> Option<Box<dyn Companion>> {
        Some(Box::new(LazyMailbox { workspace: workspace.clone(), mailbox: None }))
    }

    fn users(&self) -> Vec<WatchedUser> {
        let found = self.all.and_then(|workspace| workspace.of_all_users().ok());
        found.into_iter().flatten().map(watched).collect()
    }
}

/// Returns a user for the watch.
pub fn watched((name, workspace): (String, Workspace)) -> WatchedUser {
    WatchedUser { name, workspace }
}

/// The mailbox of a user, which is created when the library is watched.
struct LazyMailbox {
    workspace: Workspace,
    mailbox: Option<Mailbox>,
}

impl Companion for LazyMailbox {
    fn folder(&self) -> PathBuf {
        Mailbox::FOLDER.into()
    }

    fn is_mail(&self) -> fn(&OsStr) -> bool {
        Mailbox::is_request
    }

    fn step(&mut self, news: Option<Vec<Finding>>, interval: Duration) -> Duration {
        if self.mailbox.is_none() {
            self.mailbox = Mailbox::new(self.workspace.clone(), Arc::new(clock::now)).ok();
        }
        self.mailbox.as_mut().map_or(interval, |mailbox| mailbox.step(news, interval))
    }

    fn end(&mut self) {
        if let Some(mailbox) = &mut self.mailbox {
            mailbox.end();
        }
    }
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
        Event::Failed(message) => {
            out.warn(&line(&format!("{}; stvc will try again", clean(message))));
            WatchEvent::Failed { message }
        }
        Event::OverLimit(finding) => return out.findings(std::slice::from_ref(finding)),
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

fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into());
    let why = "expected a port or an address with a port, such as 127.0.0.1:9464";
    port.or_else(|_| text.parse()).map_err(|_| why.to_owned())
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
