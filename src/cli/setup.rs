//! `stvc setup`: from nothing to protected chats, with one question.
//!
//! The steps are commands of their own (`snapshot`, `extension`, `watch --install`, `backup`) that
//! are in several rooms of the library, and a verb never uses another verb. Therefore this front
//! end calls them, one after another. Each step can be repeated and none depends on a later one: a
//! failed step does not stop the others, and the next run repairs only what is missing.

use std::io::{self, BufRead, Write};
use std::path::Path;

use clap::ValueHint;

use super::error::{Error, Result};
use super::exit;
use super::output::{Output, STYLES, bold, dim, paint};
use super::watch::program;
use super::wording::{clean, count, pad, shell};
use stvc::api::extension;
use stvc::configuration::parse_schedule;
use stvc::copies::CopyPlace;
use stvc::findings::Finding;
use stvc::hint::Hint;
use stvc::json_output::{Counts, Line, Summary};
use stvc::library::Surroundings;
use stvc::verbs::config::{Change, Options, config};
use stvc::verbs::setup::{self, Candidate, StoreState};
use stvc::verbs::{backup, snapshot};
use stvc::watch::install::{self, InstallStep};
use stvc::watch::{self, Host, ServiceManager};
use stvc::{LibraryPlace, Workspace};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Do everything without asking
    #[arg(long)]
    pub yes: bool,

    /// Back up to this folder, file or git server now, and then regularly
    #[arg(long, value_name = "PLACE", value_hint = ValueHint::AnyPath)]
    pub backup: Option<String>,

    /// How often the watch backs up: daily, weekly, or a time such as 12h (default: daily)
    #[arg(long, value_name = "TIME", value_parser = checked_schedule)]
    pub schedule: Option<String>,

    /// Store settings.json, too: persona descriptions, tags and global lorebooks
    ///
    /// API keys are in another file, which is never stored.
    #[arg(long)]
    pub include_settings: bool,

    /// Only show what would be done
    #[arg(long)]
    pub dry_run: bool,

    /// Remove the watch and the extension; snapshots and backups are kept
    #[arg(long, conflicts_with_all = ["backup", "schedule", "include_settings"])]
    pub remove: bool,
}

const HELP: &str = "SillyTavern is looked for in the current folder and above it, then among running \
    programs, and then in the usual places of this system and of Docker volumes. The setup creates \
    the first snapshot, installs the extension, and starts `stvc watch` now and at every login. Run \
    it again at any time: it repairs what is missing, for example after an update of Node.js.";

fn checked_schedule(text: &str) -> Result<String, String> {
    parse_schedule(text).map(|_| text.to_owned())
}

/// A step that is not done yet.
enum Task {
    IncludeSettings(bool),
    Snapshot,
    Extension,
    Watch,
    Backup { place: String, schedule: String },
}

impl Task {
    fn describe(&self, host: &Host, root: &Path) -> String {
        match self {
            Self::IncludeSettings(true) => "store settings.json, too".into(),
            Self::IncludeSettings(false) => "leave settings.json out".into(),
            Self::Snapshot => {
                let store = root.join(stvc::library::STORE);
                format!("create the first snapshots, in {}", clean(&store.display().to_string()))
            }
            Self::Extension => "install the extension for SillyTavern's page".into(),
            Self::Watch => {
                let when = match host.manager {
                    ServiceManager::Systemd => "keep it running, also while logged out",
                    _ => "at every login",
                };
                format!("start the watch now, and {when} ({})", host.manager.title())
            }
            Self::Backup { place, schedule } => format!("back up to {}, {schedule}", clean(place)),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StepState {
    Done,
    Present,
    Planned,
    Failed,
    Removed,
    Absent,
}

impl StepState {
    fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Present => "present",
            Self::Planned => "planned",
            Self::Failed => "failed",
            Self::Removed => "removed",
            Self::Absent => "absent",
        }
    }
}

/// The outcome of a step.
struct Step {
    name: &'static str,
    state: StepState,
    message: String,
    hint: Option<String>,
    /// Explanations and commands that follow the step.
    then: Vec<InstallStep>,
}

impl Step {
    fn new(name: &'static str, state: StepState, message: impl Into<String>) -> Self {
        Self { name, state, message: message.into(), hint: None, then: Vec::new() }
    }

    fn failed(name: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let hint = Some(hint.into()).filter(|hint| !hint.is_empty());
        Self { hint, ..Self::new(name, StepState::Failed, message) }
    }
}

fn failed(name: &'static str, error: impl Into<Error>) -> Step {
    let error = error.into();
    let hint = error.hint().map(|hint: Hint| hint.to_string()).unwrap_or_default();
    Step::failed(name, error.to_string(), hint)
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    if !args.remove {
        install::refuse_temporary(&program())?;
    }
    let surroundings = Surroundings::here();
    let root = choose(args, setup::find(workspace, &surroundings)?, out)?.root;
    let library = LibraryPlace::At(root.clone());
    let workspace = &Workspace { library, user: None, ..workspace.clone() };
    let host = Host::here();
    if args.remove {
        return remove(args, workspace, &host, out);
    }
    let state = setup::state(workspace)?;
    let mut tasks = missing(args, workspace, &host, &state)?;
    let asks = !args.yes && !args.dry_run && out.may_ask();
    print_plan(&tasks, &host, &root, out);
    if !tasks.is_empty() && !args.yes && !args.dry_run {
        if !asks {
            print_steps_as_json(&planned(&tasks, &host, &root), out);
            return Err(Error::NotConfirmed);
        }
        if !agrees("Continue? [Y/n] ") {
            out.say("Nothing was changed.");
            return Ok(exit::DONE);
        }
    }
    if asks {
        ask_for_more(args, &state, &surroundings, &root, &mut tasks, out);
    }
    if args.dry_run {
        out.say("Nothing was changed.");
        return Ok(finish(&planned(&tasks, &host, &root), out));
    }
    let mut findings = Vec::new();
    let mut steps = Vec::new();
    for task in &tasks {
        let step = carry_out(task, workspace, &host, &mut findings, out);
        print_step(&step, out);
        steps.push(step);
    }
    for step in present(workspace, &state, &tasks) {
        print_step(&step, out);
        steps.push(step);
    }
    let is_new = |name| steps.iter().any(|it| it.name == name && it.state == StepState::Done);
    if is_new("extension") {
        out.say("Reload SillyTavern's page (F5) to load the extension.");
    }
    out.findings(&findings);
    Ok(finish(&steps, out))
}

/// Prints the libraries, and returns the one to set up.
fn choose(args: &Args, mut found: Vec<Candidate>, out: &mut Output) -> Result<Candidate> {
    for (n, candidate) in found.iter().enumerate() {
        let number = if found.len() > 1 { format!("{}  ", n + 1) } else { String::new() };
        let folder = clean(&candidate.root.display().to_string());
        out.line(format!("{number}{}", bold(format!("SillyTavern: {folder}"))));
        let (chats, characters) = (candidate.chats, candidate.characters);
        let running = candidate.process.map(|id| format!("; running (process {id})"));
        let facts = format!(
            "{}, {}{}",
            count(characters, "character"),
            count(chats, "chat"),
            running.unwrap_or_default()
        );
        out.line(format!("{}{}", " ".repeat(number.len() + 2), dim(facts)));
    }
    let chosen = match found.len() {
        1 => Some(0),
        _ if args.yes || args.dry_run || !out.may_ask() => None,
        several => answer(&format!("Which one? [1-{several}] ")).and_then(|typed| {
            let number = typed.parse::<usize>().ok()?;
            (1..=several).contains(&number).then(|| number - 1)
        }),
    };
    for (n, candidate) in found.iter().enumerate() {
        out.object(Line::Found {
            library: candidate.root.display().to_string(),
            chats: candidate.chats,
            characters: candidate.characters,
            process: candidate.process,
            chosen: chosen == Some(n),
        });
    }
    let first = found[0].root.clone();
    Ok(found.swap_remove(chosen.ok_or(Error::SeveralLibraries { first })?))
}

/// Returns the steps that are needed, or that the options ask for.
fn missing(
    args: &Args,
    workspace: &Workspace,
    host: &Host,
    state: &StoreState,
) -> Result<Vec<Task>> {
    let mut tasks = Vec::new();
    if args.include_settings && state.settings != Some(true) {
        tasks.push(Task::IncludeSettings(true));
    }
    if state.store.is_none() || !tasks.is_empty() {
        tasks.push(Task::Snapshot);
    }
    let is_current = match extension::state(workspace)? {
        extension::State::Installed(installed) => {
            installed.version() == env!("CARGO_PKG_VERSION") && !installed.is_incomplete()
        }
        _ => false,
    };
    if !is_current {
        tasks.push(Task::Extension);
    }
    // A foreign unit is reported when the step is carried out.
    let is_installed = install::is_installed(workspace, host, &program()).unwrap_or(false);
    if !is_installed || !watch::is_running(workspace) {
        tasks.push(Task::Watch);
    }
    let place = args.backup.clone().or_else(|| state.destination.clone());
    if let Some(place) = place.filter(|_| args.backup.is_some() || args.schedule.is_some()) {
        let schedule = args.schedule.clone().or_else(|| state.schedule.clone());
        tasks.push(backup_task(&place, schedule.as_deref().unwrap_or("daily")));
    } else if args.schedule.is_some() {
        return Err(Error::NoPlace { command: "backup" });
    }
    Ok(tasks)
}

fn backup_task(place: &str, schedule: &str) -> Task {
    // The watch has another working directory.
    let absolute = match CopyPlace::parse(place) {
        Ok(CopyPlace::Folder(path) | CopyPlace::File(path)) => std::path::absolute(path).ok(),
        _ => None,
    };
    let place = absolute.map_or(place.to_owned(), |path| path.display().to_string());
    Task::Backup { place, schedule: schedule.to_owned() }
}

fn print_plan(tasks: &[Task], host: &Host, root: &Path, out: &mut Output) {
    if tasks.is_empty() {
        return out.say("Everything is set up.");
    }
    out.line("stvc setup will");
    tasks.iter().for_each(|task| out.line(format!("  {}", task.describe(host, root))));
}

/// Asks for the decisions that only the user can make, if they are still open.
fn ask_for_more(
    args: &Args,
    state: &StoreState,
    surroundings: &Surroundings,
    root: &Path,
    tasks: &mut Vec<Task>,
    out: &mut Output,
) {
    if state.settings.is_none() && !args.include_settings && root.join("settings.json").is_file() {
        out.say(
            "settings.json holds persona descriptions, tags and the choice of global lorebooks.",
        );
        out.say("It may hold the password of a proxy. API keys are in another file, which is never stored.");
        let wanted = answer("Store settings.json, too? [y/N] ");
        let wanted = wanted.is_some_and(|typed| is_yes(&typed));
        tasks.insert(0, Task::IncludeSettings(wanted));
        if wanted && state.store.is_some() {
            tasks.insert(1, Task::Snapshot);
        }
    }
    let is_open = state.destination.is_none() && args.backup.is_none();
    if let Some(place) = is_open.then(|| ask_for_place(surroundings, root, out)).flatten() {
        let schedule = loop {
            match answer("How often? daily, weekly, or a time such as 12h [daily] ") {
                Some(typed) if !typed.is_empty() => match parse_schedule(&typed) {
                    Ok(_) => break typed,
                    Err(why) => out.say(why),
                },
                _ => break "daily".to_owned(),
            }
        };
        tasks.push(backup_task(&place, &schedule));
    }
}

fn ask_for_place(surroundings: &Surroundings, root: &Path, out: &mut Output) -> Option<String> {
    out.say("The snapshots are on the same disk as your chats. Where should they be backed up?");
    let drives = setup::other_drives(surroundings, root);
    let places: Vec<_> =
        drives.iter().map(|drive| drive.join("stvc-backup").display().to_string()).collect();
    for (n, place) in places.iter().enumerate() {
        out.line(format!("  {}  {}", n + 1, clean(place)));
    }
    let choice = if places.is_empty() { "A folder" } else { "A number, a folder" };
    loop {
        let typed =
            answer(&format!("{choice} or a git server (me@host:chats.git); Enter for none: "))?;
        let number = typed.parse::<usize>().ok();
        if let Some(place) = number.and_then(|n| places.get(n.checked_sub(1)?)) {
            return Some(place.clone());
        }
        if typed.is_empty() || ["n", "no"].iter().any(|no| typed.eq_ignore_ascii_case(no)) {
            return None;
        }
        // The shell does not expand an answer. A single word, such as "yes", is not a place.
        match (typed.strip_prefix("~/"), &surroundings.home) {
            (Some(rest), Some(home)) => return Some(home.join(rest).display().to_string()),
            _ if typed.contains(['/', '\\', ':']) => return Some(typed),
            _ => out.say("Type the full path of a folder, for example /media/stick/chats."),
        }
    }
}

fn carry_out(
    task: &Task,
    workspace: &Workspace,
    host: &Host,
    findings: &mut Vec<Finding>,
    out: &mut Output,
) -> Step {
    match task {
        Task::IncludeSettings(wanted) => {
            match set(workspace, "include.settings", if *wanted { "true" } else { "false" }) {
                Ok(()) => {
                    let what = if *wanted { "stored from now on" } else { "not stored" };
                    Step::new("settings", StepState::Done, format!("settings.json is {what}"))
                }
                Err(error) => failed("settings", error),
            }
        }
        Task::Snapshot => take_snapshots(workspace, findings, out),
        Task::Extension => match extension::install(workspace) {
            Ok(_) => Step::new("extension", StepState::Done, extension_folder(workspace)),
            Err(error) => failed("extension", error),
        },
        Task::Watch => install_watch(workspace, host),
        Task::Backup { place, schedule } => back_up(place, schedule, workspace, findings, out)
            .unwrap_or_else(|error| failed("backup", error)),
    }
}

fn take_snapshots(workspace: &Workspace, findings: &mut Vec<Finding>, out: &mut Output) -> Step {
    let taken = snapshot::snapshot(workspace, &snapshot::Options::default(), &mut out.progress());
    let report = match taken {
        Ok(report) => report,
        Err(error) => return failed("snapshot", error),
    };
    let is_new =
        |it: &&snapshot::TimelineResult| matches!(it.result, snapshot::SnapshotResult::New(..));
    let created = count(report.timelines.iter().filter(is_new).count(), "snapshot");
    let failures = report.failed();
    findings.extend(report.findings);
    match failures {
        0 => Step::new("snapshot", StepState::Done, format!("{created} created")),
        n => {
            let message = format!("{created} created, {n} failed");
            Step::failed("snapshot", message, "run `stvc snapshot` to see the reasons")
        }
    }
}

fn install_watch(workspace: &Workspace, host: &Host) -> Step {
    let installed = match install::install(workspace, host, &program(), None) {
        Ok(installed) => installed,
        Err(error) => return failed("watch", error),
    };
    let then = installed.steps;
    match installed.failure {
        None => {
            let message = format!("running, and started at every login ({})", host.manager.title());
            Step { then, ..Step::new("watch", StepState::Done, message) }
        }
        Some(why) => {
            let hint = "run the commands below, or `stvc watch` in a terminal";
            Step { then, ..Step::failed("watch", why, hint) }
        }
    }
}

/// Creates the first backup. The place is configured only if that succeeds.
fn back_up(
    place: &str,
    schedule: &str,
    workspace: &Workspace,
    findings: &mut Vec<Finding>,
    out: &mut Output,
) -> Result<Step> {
    let (_, found) =
        backup::to_place(workspace, &workspace.copy_place(place)?, &mut out.progress())?;
    findings.extend(found);
    set(workspace, "backup.destination", place)?;
    set(workspace, "backup.schedule", schedule)?;
    Ok(Step::new("backup", StepState::Done, format!("{}, {schedule}", clean(place))))
}

fn set(workspace: &Workspace, key: &str, value: &str) -> Result<()> {
    let change = Change::Set(value.to_owned());
    config(workspace, &Options { key: Some(key.to_owned()), change })?;
    Ok(())
}

fn extension_folder(workspace: &Workspace) -> String {
    let folder = extension::folder(workspace).map(|folder| folder.display().to_string());
    shell(&folder.unwrap_or_default())
}

/// Returns the steps that were done before.
fn present(workspace: &Workspace, state: &StoreState, tasks: &[Task]) -> Vec<Step> {
    let has = |is: fn(&Task) -> bool| tasks.iter().any(is);
    let mut steps = Vec::new();
    if let Some(store) = state.store.as_ref().filter(|_| !has(|it| matches!(it, Task::Snapshot))) {
        let store = shell(&store.display().to_string());
        steps.push(Step::new("snapshot", StepState::Present, format!("the store is {store}")));
    }
    if !has(|it| matches!(it, Task::Extension)) {
        steps.push(Step::new("extension", StepState::Present, extension_folder(workspace)));
    }
    if !has(|it| matches!(it, Task::Watch)) {
        let message = "running, and started at every login";
        steps.push(Step::new("watch", StepState::Present, message));
    }
    if !has(|it| matches!(it, Task::Backup { .. })) {
        steps.push(match (&state.destination, &state.schedule) {
            (Some(place), Some(schedule)) => {
                Step::new("backup", StepState::Present, format!("{}, {schedule}", clean(place)))
            }
            _ => {
                let message = "no regular backup; add one with `stvc setup --backup PLACE`";
                Step::new("backup", StepState::Absent, message)
            }
        });
    }
    steps
}

/// Removes everything but the store.
fn remove(args: &Args, workspace: &Workspace, host: &Host, out: &mut Output) -> Result<u8> {
    out.line("stvc setup --remove will");
    out.line("  stop the watch, and do not start it at login any more");
    out.line("  remove the extension from SillyTavern's page");
    out.line("Snapshots and backups are kept.");
    if args.dry_run {
        out.say("Nothing was changed.");
        return Ok(finish(&[], out));
    }
    if !args.yes && !out.may_ask() {
        return Err(Error::NotConfirmed);
    }
    if !args.yes && !agrees("Continue? [Y/n] ") {
        out.say("Nothing was changed.");
        return Ok(finish(&[], out));
    }
    let watch = match install::uninstall(workspace, host) {
        Err(error) => failed("watch", error),
        Ok(removed) => {
            let state = if removed.changed { StepState::Removed } else { StepState::Absent };
            let message = match (removed.changed, removed.running) {
                (_, true) => "not started at login any more; a watch is still running",
                (true, false) => "stopped, and not started at login any more",
                (false, false) => "it was not installed",
            };
            let step = match removed.failure {
                None => Step::new("watch", state, message),
                Some(why) => Step::failed("watch", why, "run the commands below"),
            };
            Step { then: removed.steps, ..step }
        }
    };
    let was_there = !matches!(extension::state(workspace), Ok(extension::State::Absent));
    let extension = match extension::remove(workspace) {
        Err(error) => failed("extension", error),
        Ok(()) if was_there => {
            Step::new("extension", StepState::Removed, extension_folder(workspace))
        }
        Ok(()) => Step::new("extension", StepState::Absent, "it was not installed"),
    };
    let steps = [watch, extension];
    steps.iter().for_each(|step| print_step(step, out));
    Ok(finish(&steps, out))
}

fn planned(tasks: &[Task], host: &Host, root: &Path) -> Vec<Step> {
    let name = |task: &Task| match task {
        Task::IncludeSettings(_) => "settings",
        Task::Snapshot => "snapshot",
        Task::Extension => "extension",
        Task::Watch => "watch",
        Task::Backup { .. } => "backup",
    };
    let step = |task| Step::new(name(task), StepState::Planned, task.describe(host, root));
    tasks.iter().map(step).collect()
}

fn print_step(step: &Step, out: &mut Output) {
    let style = match step.state {
        StepState::Failed => STYLES.bad,
        StepState::Done | StepState::Removed => STYLES.good,
        _ => STYLES.dim,
    };
    let state = paint(style, pad(step.state.word(), 8));
    out.line(format!("{state} {} {}", pad(step.name, 10), step.message));
    if let Some(hint) = &step.hint {
        out.line(format!("  {}: {hint}", paint(STYLES.tag, "hint")));
    }
    for then in &step.then {
        match then {
            InstallStep::Say(words) => out.line(format!("  {words}")),
            InstallStep::Type(command) => out.line(format!("    {}", clean(command))),
        }
    }
}

fn print_steps_as_json(steps: &[Step], out: &mut Output) {
    for step in steps {
        let (state, message, hint) =
            (step.state.word(), step.message.as_str(), step.hint.as_deref());
        out.object(Line::Step { step: step.name, state, message, hint });
    }
}

/// Ends the command with a JSON line for each step. Returns the exit code.
fn finish(steps: &[Step], out: &mut Output) -> u8 {
    print_steps_as_json(steps, out);
    let of = |state| steps.iter().filter(|step| step.state == state).count();
    let failed = of(StepState::Failed);
    let counts = Counts(vec![
        ("done", (of(StepState::Done) + of(StepState::Removed)).into()),
        ("present", of(StepState::Present).into()),
        ("planned", of(StepState::Planned).into()),
        ("failed", failed.into()),
    ]);
    out.end_with(Summary { command: "setup", ok: failed == 0, counts });
    if failed == 0 { exit::DONE } else { exit::PARTLY }
}

fn is_yes(typed: &str) -> bool {
    ["y", "yes"].iter().any(|yes| typed.eq_ignore_ascii_case(yes))
}

/// Asks for consent. Enter means yes; the end of the input means no.
fn agrees(question: &str) -> bool {
    answer(question).is_some_and(|typed| typed.is_empty() || is_yes(&typed))
}

/// Asks a question. Returns `None` at the end of the input.
fn answer(question: &str) -> Option<String> {
    let mut stderr = io::stderr();
    stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush()).ok()?;
    let mut typed = String::new();
    let read = io::stdin().lock().read_line(&mut typed).ok()?;
    (read > 0).then(|| typed.trim().to_owned())
}
