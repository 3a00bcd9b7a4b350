//! The service managers of the systems: where their files are, how they quote, and their commands.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::watch::error::{Error, Result};
use crate::watch::task_scheduler::{self, escape};
use crate::words::shell;

/// The service manager that starts the watch at login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceManager {
    /// A user unit of systemd on Linux.
    Systemd,
    /// A launch agent on macOS.
    Launchd,
    /// A scheduled task on Windows.
    TaskScheduler,
    /// The app Termux:Boot on Android.
    Termux,
}

/// The service manager and the folders of the user.
#[derive(Clone, Debug)]
pub struct Host {
    /// The manager that this system has.
    pub manager: ServiceManager,
    /// The home folder of the user.
    pub home: Option<PathBuf>,
    /// The folder of the user's configuration files.
    pub configuration: Option<PathBuf>,
    /// The search path for the manager's commands, if it is not that of this program.
    pub path: Option<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallKind {
    Must,
    /// A failure does not matter.
    May,
    /// The command keeps running.
    Detached,
}

/// A command of the service manager.
pub(super) struct Call {
    words: Vec<String>,
    kind: CallKind,
    /// The purpose to show if an optional command fails.
    pub(super) purpose: Option<&'static str>,
}

impl Call {
    fn new(kind: CallKind, words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Self { words, kind, purpose: None }
    }

    pub(super) fn is_optional(&self) -> bool {
        self.kind == CallKind::May
    }

    /// Returns the command as a user types it.
    pub(super) fn command(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| shell(word)).collect();
        let end = if self.kind == CallKind::Detached { " &" } else { "" };
        format!("{}{end}", words.join(" "))
    }
}

impl Host {
    /// Returns the service manager and the folders of the present user.
    pub fn here() -> Self {
        let home = std::env::home_dir();
        let variable = if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_CONFIG_HOME" };
        let default = home.as_ref().map(|home| home.join(".config"));
        let configuration = std::env::var_os(variable).map(PathBuf::from).or(default);
        Self { manager: ServiceManager::here(), home, configuration, path: None }
    }

    /// Returns the path of the unit, script or task definition with this name.
    pub(super) fn unit_file(&self, name: &str) -> Result<PathBuf> {
        let (folder, below, ending) = match self.manager {
            ServiceManager::Systemd => (&self.configuration, "systemd/user", ".service"),
            ServiceManager::TaskScheduler => (&self.configuration, "stvc", ".xml"),
            ServiceManager::Launchd => (&self.home, "Library/LaunchAgents", ".plist"),
            ServiceManager::Termux => (&self.home, ".termux/boot", ""),
        };
        let folder = folder.as_ref().ok_or(Error::NoHome)?;
        Ok(folder.join(below).join(format!("{name}{ending}")))
    }

    /// Runs a command. Returns the reason if it fails.
    pub(super) fn run(&self, call: &Call) -> std::result::Result<(), String> {
        let [program, arguments @ ..] = call.words.as_slice() else { return Ok(()) };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => format!("{program} was not found"),
            _ => format!("{program}: {error}"),
        };
        if call.kind == CallKind::Detached {
            own_group(&mut command);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            return command.spawn().map(drop).map_err(failed);
        }
        let output = command.output().map_err(failed)?;
        if output.status.success() {
            return Ok(());
        }
        let printed = [output.stderr, output.stdout].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        let why = printed.lines().map(str::trim).find(|line| !line.is_empty());
        Err(format!("{program}: {}", why.map_or(output.status.to_string(), str::to_owned)))
    }
}

/// Separates a command from the terminal's foreground processes, so that it survives Ctrl-C.
#[cfg(unix)]
fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

#[cfg(not(unix))]
fn own_group(_command: &mut Command) {}

impl ServiceManager {
    #[cfg(test)]
    pub(super) const ALL: [Self; 4] =
        [Self::Systemd, Self::Launchd, Self::TaskScheduler, Self::Termux];

    /// Returns the service manager of this system.
    pub fn here() -> Self {
        if cfg!(windows) {
            Self::TaskScheduler
        } else if cfg!(target_os = "macos") {
            Self::Launchd
        } else if std::env::var_os("TERMUX_VERSION").is_some() {
            Self::Termux
        } else {
            Self::Systemd
        }
    }

    /// Returns its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::Launchd => "launchd",
            Self::TaskScheduler => "Task Scheduler",
            Self::Termux => "Termux:Boot",
        }
    }

    /// Quotes a word of a command line in a unit file.
    pub(super) fn quote(self, word: &str) -> String {
        match self {
            Self::Systemd => systemd_word(word),
            Self::Launchd => escape(word),
            Self::TaskScheduler => escape(&task_scheduler::argument(word)),
            Self::Termux => format!("'{}'", word.replace('\'', "'\\''")),
        }
    }

    /// Returns the commands that start a unit now and at every login. `is_update`: an earlier
    /// version of the unit may be running.
    pub(super) fn start(self, name: &str, unit: &Path, is_update: bool) -> Vec<Call> {
        use CallKind::{Detached, May, Must};
        let unit = unit.to_string_lossy();
        let mut calls = Vec::new();
        match self {
            Self::Systemd => {
                calls.push(Call::new(Must, &["systemctl", "--user", "daemon-reload"]));
                calls.push(Call::new(Must, &["systemctl", "--user", "enable", "--now", name]));
                if is_update {
                    calls.push(Call::new(Must, &["systemctl", "--user", "restart", name]));
                }
                let purpose = Some("Keep it running while you are not logged in:");
                calls.push(Call { purpose, ..Call::new(May, &["loginctl", "enable-linger"]) });
            }
            Self::Launchd => {
                if is_update {
                    calls.push(Call::new(May, &["launchctl", "unload", &unit]));
                }
                calls.push(Call::new(Must, &["launchctl", "load", "-w", &unit]));
            }
            Self::TaskScheduler => {
                let create = ["schtasks", "/Create", "/F", "/TN", name, "/XML", &unit];
                calls.push(Call::new(Must, &create));
                if is_update {
                    calls.push(Call::new(May, &["schtasks", "/End", "/TN", name]));
                }
                calls.push(Call::new(Must, &["schtasks", "/Run", "/TN", name]));
            }
            Self::Termux => calls.push(Call::new(Detached, &["sh", &unit])),
        }
        calls
    }

    /// Returns the commands that stop a unit before its file is removed, and those that follow.
    /// `process` is the process of the running watch.
    pub(super) fn stop(
        self,
        name: &str,
        unit: &Path,
        process: Option<&str>,
    ) -> (Vec<Call>, Vec<Call>) {
        use CallKind::{May, Must};
        let unit = unit.to_string_lossy();
        match self {
            Self::Systemd => (
                vec![Call::new(Must, &["systemctl", "--user", "disable", "--now", name])],
                vec![Call::new(May, &["systemctl", "--user", "daemon-reload"])],
            ),
            Self::Launchd => {
                (vec![Call::new(Must, &["launchctl", "unload", "-w", &unit])], Vec::new())
            }
            Self::TaskScheduler => {
                let end = Call::new(May, &["schtasks", "/End", "/TN", name]);
                let delete = Call::new(Must, &["schtasks", "/Delete", "/F", "/TN", name]);
                (vec![end, delete], Vec::new())
            }
            Self::Termux => {
                (process.map(|id| Call::new(May, &["kill", id])).into_iter().collect(), Vec::new())
            }
        }
    }
}

/// Quotes a word for the command line of a systemd unit, with `%` and `$` doubled.
fn systemd_word(word: &str) -> String {
    let mut out = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '%' | '$' => out.extend([c, c]),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
