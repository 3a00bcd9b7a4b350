//! Sets up the automatic start of the watch: writes a unit for systemd or a task for Windows. On
//! other systems, only returns instructions for the user.

use std::fs;
use std::path::{Path, PathBuf};

use crate::archive::Blake3;
use crate::durable::{self, Existing};
use crate::engine::Workspace;
use crate::st;
use crate::watch::error::{Error, Result};
use crate::watch::task_scheduler::{self, escape};

/// The service manager of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starter {
    Systemd,
    Termux,
    Launchd,
    TaskScheduler,
}

impl Starter {
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
    fn unit_file(self, configuration: Option<&Path>, name: &str) -> Result<Option<PathBuf>> {
        let (folder, ending) = match self {
            Self::Systemd => ("systemd/user", "service"),
            Self::TaskScheduler => ("stvc", "xml"),
            Self::Termux | Self::Launchd => return Ok(None),
        };
        let folder = configuration.ok_or(Error::NoHome)?.join(folder);
        Ok(Some(folder.join(format!("{name}.{ending}"))))
    }
}

/// The result of installing or uninstalling, with steps for the user.
pub struct Installed {
    /// The file that was written or removed, if any.
    pub written: Option<PathBuf>,
    /// Explanations and commands for the user, in order.
    pub steps: Vec<InstallStep>,
}

/// A step for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallStep {
    /// An explanation.
    Say(String),
    /// A command to type, or the content of a file to create.
    Type(String),
}

fn say(words: &str) -> InstallStep {
    InstallStep::Say(words.into())
}

/// The text that marks a unit that stvc wrote and may replace. Do not change this text, because it
/// is searched in existing files.
const UNIT_HEADER: &str = "# Written by `stvc watch --install`; the next time writes it anew.";

/// Sets up the automatic start of the watch for this library. `program` and `options` form the
/// command line of the watch. `configuration` is the folder of the user's configuration files.
pub fn install(
    workspace: &Workspace,
    starter: Starter,
    program: &Path,
    options: &[String],
    configuration: Option<&Path>,
) -> Result<Installed> {
    let root = workspace.library()?.root().to_owned();
    let mut words = vec![text(program), "--data".into(), text(&root)];
    if let Some(store) = &workspace.store {
        words.extend(["--store".into(), text(store)]);
    }
    words.push("watch".into());
    words.extend(options.iter().cloned());
    let name = name_of(&root);
    let written = starter.unit_file(configuration, &name)?;
    if let Some(path) = &written {
        let unit = if starter == Starter::TaskScheduler {
            let description =
                format!("{UNIT_HEADER} Snapshots of the SillyTavern chats in {}", text(&root));
            task_scheduler::task(&description, &words, task_scheduler::user().as_deref())
        } else {
            unit(&root, &words).into_bytes()
        };
        write_unit(path, &unit)?;
    }
    let steps = steps_to_start(starter, &name, &words, written.as_deref());
    Ok(Installed { written, steps })
}

/// Removes the automatic start of the watch for this library.
pub fn uninstall(
    workspace: &Workspace,
    starter: Starter,
    configuration: Option<&Path>,
) -> Result<Installed> {
    let name = name_of(workspace.library()?.root());
    let file = starter.unit_file(configuration, &name)?;
    let is_removed = file.as_deref().map_or(Ok(false), remove_unit)?;
    let mut first = "Do not start it at login any more:";
    let stop = match starter {
        Starter::Systemd if !is_removed => {
            let steps = vec![say("The watch is not installed for this library.")];
            return Ok(Installed { written: None, steps });
        }
        Starter::Systemd => {
            first = "Stop it, and do not start it at login any more:";
            format!("systemctl --user disable --now {name}; systemctl --user daemon-reload")
        }
        Starter::Termux => format!("rm ~/.termux/boot/{name}"),
        Starter::Launchd => {
            let plist = format!("~/Library/LaunchAgents/{name}.plist");
            format!("launchctl unload {plist} && rm {plist}")
        }
        Starter::TaskScheduler => format!("schtasks /Delete /TN {name} /F"),
    };
    let written = file.filter(|_| starter == Starter::Systemd);
    Ok(Installed { written, steps: vec![say(first), InstallStep::Type(stop)] })
}

fn exists(path: &Path) -> Result<bool> {
    match fs::read(path) {
        Ok(there) if is_ours(&there) => Ok(true),
        Ok(_) => Err(Error::UnitInTheWay { path: path.to_owned() }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(st::Error::Io { path: path.to_owned(), source }.into()),
    }
}

fn remove_unit(path: &Path) -> Result<bool> {
    let is_there = exists(path)?;
    if is_there {
        let io = |source| st::Error::Io { path: path.to_owned(), source };
        durable::remove(path).map_err(io)?;
    }
    Ok(is_there)
}

fn name_of(root: &Path) -> String {
    format!("stvc-watch-{}", &Blake3::of(text(root).as_bytes()).to_string()[..8])
}

/// Returns whether the file contains [`UNIT_HEADER`], in UTF-8 or UTF-16.
fn is_ours(file: &[u8]) -> bool {
    let plain: Vec<u8> = file.iter().copied().filter(|byte| *byte != 0).collect();
    memchr::memmem::find(&plain, UNIT_HEADER.as_bytes()).is_some()
}

fn write_unit(path: &Path, unit: &[u8]) -> Result<()> {
    exists(path)?;
    let io = |source| st::Error::Io { path: path.to_owned(), source };
    let folder = durable::parent(path);
    durable::create_dir_all(folder).map_err(io)?;
    durable::clear_left_behind(folder);
    durable::write(path, unit, Existing::Replace).map_err(io)?;
    Ok(())
}

fn unit(root: &Path, words: &[String]) -> String {
    let line: Vec<String> = words.iter().map(|word| systemd_word(word)).collect();
    let root: String = text(root).chars().filter(|c| !c.is_control()).collect();
    format!(
        "{UNIT_HEADER}\n\
         [Unit]\n\
         Description=stvc: snapshots of the SillyTavern chats in {}\n\
         \n\
         [Service]\n\
         ExecStart={}\n\
         Restart=on-failure\n\
         RestartSec=30\n\
         Nice=10\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        root.replace('%', "%%"),
        line.join(" ")
    )
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

fn steps_to_start(
    starter: Starter,
    name: &str,
    words: &[String],
    unit: Option<&Path>,
) -> Vec<InstallStep> {
    let shell: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    let shell = shell.join(" ");
    match starter {
        Starter::Systemd => vec![
            say("Start it now and at every login:"),
            InstallStep::Type(format!(
                "systemctl --user daemon-reload && systemctl --user enable --now {name}"
            )),
            say("Keep it running while you are not logged in:"),
            InstallStep::Type("loginctl enable-linger".into()),
            say("Show its log:"),
            InstallStep::Type(format!("journalctl --user -u {name}")),
        ],
        Starter::TaskScheduler => vec![
            say("Start it at every login:"),
            InstallStep::Type(format!(
                "schtasks /Create /F /TN {name} /XML \"{}\"",
                unit.map(text).unwrap_or_default()
            )),
            say("Start it now:"),
            InstallStep::Type(format!("schtasks /Run /TN {name}")),
        ],
        Starter::Termux => vec![
            say("Install the app Termux:Boot and open it once. Then:"),
            InstallStep::Type(format!(
                "mkdir -p ~/.termux/boot && printf '%s\\n' '#!/data/data/com.termux/files/usr/bin/sh' termux-wake-lock {} > ~/.termux/boot/{name}",
                shell_word(&format!("exec {shell}"))
            )),
            say("It starts with the phone. Start it now:"),
            InstallStep::Type(format!("sh ~/.termux/boot/{name} &")),
        ],
        Starter::Launchd => {
            let word = |word: &String| format!("    <string>{}</string>\n", escape(word));
            let plist = format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict>\n  <key>Label</key><string>{name}</string>\n  \
                 <key>ProgramArguments</key><array>\n{}  </array>\n  <key>RunAtLoad</key><true/><key>KeepAlive</key><true/>\n</dict></plist>",
                words.iter().map(word).collect::<String>()
            );
            vec![
                InstallStep::Say(format!("Write this to ~/Library/LaunchAgents/{name}.plist:")),
                InstallStep::Type(plist),
                say("Start it now and at every login:"),
                InstallStep::Type(format!("launchctl load ~/Library/LaunchAgents/{name}.plist")),
            ]
        }
    }
}

fn shell_word(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Vec<String> {
        ["/opt/st vc/stvc", "--data", "/home/a/100% $ \"x\" \\ 'y' & <z>", "watch"]
            .map(str::to_owned)
            .to_vec()
    }

    #[test]
    fn arguments_are_escaped_for_systemd_and_launchd() {
        let unit = unit(Path::new("/home/a/100% $"), &words());
        let line = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
        assert_eq!(
            line,
            "ExecStart=\"/opt/st vc/stvc\" \"--data\" \"/home/a/100%% $$ \\\"x\\\" \\\\ 'y' & <z>\" \"watch\""
        );
        assert!(unit.contains("in /home/a/100%% $\n"));
        let steps = steps_to_start(Starter::Launchd, "n", &words(), None);
        assert!(
            matches!(&steps[1], InstallStep::Type(text) if text.contains("'y' &amp; &lt;z&gt;</string>"))
        );
    }

    #[cfg(unix)]
    #[test]
    fn termux_script_is_valid_shell_with_quoted_arguments() {
        let dir = tempfile::tempdir().unwrap();
        let steps = steps_to_start(Starter::Termux, "n", &words(), None);
        let InstallStep::Type(line) = &steps[1] else { panic!() };
        let run =
            std::process::Command::new("sh").arg("-c").arg(line).env("HOME", dir.path()).status();
        assert!(run.unwrap().success());
        let script = fs::read_to_string(dir.path().join(".termux/boot/n")).unwrap();
        let last = script.lines().last().unwrap();
        assert!(
            last.starts_with(
                "exec '/opt/st vc/stvc' '--data' '/home/a/100% $ \"x\" \\ '\\''y'\\'' & <z>'"
            ),
            "{last}"
        );
    }
}
