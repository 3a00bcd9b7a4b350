//! Have the system start the watch: a unit for systemd or a task for Windows is written; elsewhere the user is told what to do.

use std::fs;
use std::path::{Path, PathBuf};

use crate::archive::Blake3;
use crate::durable::{self, Existing};
use crate::engine::Workspace;
use crate::st;
use crate::watch::error::{Error, Result};
use crate::watch::task_scheduler::{self, escape};

/// What starts programs here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starter {
    /// Linux.
    Systemd,
    /// Android.
    Termux,
    /// macOS.
    Launchd,
    /// Windows.
    TaskScheduler,
}

impl Starter {
    /// What this system has.
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
}

/// What was done, and what is left to the user.
pub struct Installed {
    /// The file that was written.
    pub written: Option<PathBuf>,
    /// Lines of text and commands, in order.
    pub steps: Vec<InstallStep>,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallStep {
    /// In words.
    Say(String),
    /// A command, or a line of a file.
    Type(String),
}

/// The first line of a unit that may be written anew.
const OURS: &str = "# Written by `stvc watch --install`; the next time writes it anew.";

/// Have the watch of this library started by `starter`. `program` and `options` are how it is called.
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
    match starter {
        Starter::Systemd => {
            let dir = configuration.ok_or(Error::NoHome)?.join("systemd").join("user");
            let path = dir.join(format!("{name}.service"));
            write_unit(&dir, &path, unit(&root, &words).as_bytes())?;
            let say = |words: &str| InstallStep::Say(words.into());
            let steps = vec![
                say("Start it now and at every login:"),
                InstallStep::Type(format!(
                    "systemctl --user daemon-reload && systemctl --user enable --now {name}"
                )),
                say("Also while you are not logged in:"),
                InstallStep::Type("loginctl enable-linger".into()),
                say("What it did:"),
                InstallStep::Type(format!("journalctl --user -u {name}")),
            ];
            Ok(Installed { written: Some(path), steps })
        }
        Starter::TaskScheduler => {
            let dir = configuration.ok_or(Error::NoHome)?.join("stvc");
            let path = dir.join(format!("{name}.xml"));
            let description =
                format!("{OURS} Snapshots of the SillyTavern chats in {}", text(&root));
            let task =
                task_scheduler::task(&description, &words, task_scheduler::user().as_deref());
            write_unit(&dir, &path, &task)?;
            let say = |words: &str| InstallStep::Say(words.into());
            let steps = vec![
                say("Start it at every login:"),
                InstallStep::Type(format!(
                    "schtasks /Create /F /TN {name} /XML \"{}\"",
                    text(&path)
                )),
                say("Start it now:"),
                InstallStep::Type(format!("schtasks /Run /TN {name}")),
            ];
            Ok(Installed { written: Some(path), steps })
        }
        other => Ok(Installed { written: None, steps: by_hand(other, &name, &words) }),
    }
}

/// Have the watch of this library started no more.
pub fn uninstall(
    workspace: &Workspace,
    starter: Starter,
    configuration: Option<&Path>,
) -> Result<Installed> {
    let name = name_of(workspace.library()?.root());
    let say = |words: &str| InstallStep::Say(words.into());
    let stop = match starter {
        Starter::Systemd => {
            let dir = configuration.ok_or(Error::NoHome)?.join("systemd").join("user");
            let path = dir.join(format!("{name}.service"));
            let removed = remove_unit(&path)?.then_some(path);
            let steps = match removed {
                None => vec![say("Nothing was installed for this library.")],
                Some(_) => vec![
                    say("Stop it, and have it started no more:"),
                    InstallStep::Type(format!(
                        "systemctl --user disable --now {name}; systemctl --user daemon-reload"
                    )),
                ],
            };
            return Ok(Installed { written: removed, steps });
        }
        Starter::Termux => format!("rm ~/.termux/boot/{name}"),
        Starter::Launchd => {
            let plist = format!("~/Library/LaunchAgents/{name}.plist");
            format!("launchctl unload {plist} && rm {plist}")
        }
        Starter::TaskScheduler => {
            let dir = configuration.ok_or(Error::NoHome)?.join("stvc");
            remove_unit(&dir.join(format!("{name}.xml")))?;
            format!("schtasks /Delete /TN {name} /F")
        }
    };
    let steps = vec![say("Have it started no more:"), InstallStep::Type(stop)];
    Ok(Installed { written: None, steps })
}

/// Whether there was one, and it was ours.
fn remove_unit(path: &Path) -> Result<bool> {
    let io = |source| st::Error::Io { path: path.to_owned(), source };
    match fs::read(path) {
        Ok(there) if !is_ours(&there) => Err(Error::UnitInTheWay { path: path.to_owned() }),
        Ok(_) => {
            durable::remove(path).map_err(io)?;
            Ok(true)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io(error).into()),
    }
}

/// What the system calls the watch of a library.
fn name_of(root: &Path) -> String {
    format!("stvc-watch-{}", &Blake3::of(text(root).as_bytes()).to_string()[..8])
}

/// Whether it says so, in either encoding.
fn is_ours(file: &[u8]) -> bool {
    let plain: Vec<u8> = file.iter().copied().filter(|byte| *byte != 0).collect();
    memchr::memmem::find(&plain, OURS.as_bytes()).is_some()
}

fn write_unit(dir: &Path, path: &Path, unit: &[u8]) -> Result<()> {
    let io = |source| st::Error::Io { path: path.to_owned(), source };
    match fs::read(path) {
        Ok(there) if !is_ours(&there) => {
            return Err(Error::UnitInTheWay { path: path.to_owned() });
        }
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(io(error).into()),
    }
    durable::create_dir_all(dir).map_err(io)?;
    durable::clear_left_behind(durable::parent(path));
    durable::write(path, unit, Existing::Replace).map_err(io)?;
    Ok(())
}

fn unit(root: &Path, words: &[String]) -> String {
    let line: Vec<String> = words.iter().map(|word| systemd_word(word)).collect();
    let root: String = text(root).chars().filter(|c| !c.is_control()).collect();
    format!(
        "{OURS}\n\
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

/// As systemd reads a command line: quoted, with `%` and `$` doubled.
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

fn by_hand(starter: Starter, name: &str, words: &[String]) -> Vec<InstallStep> {
    let say = |words: &str| InstallStep::Say(words.into());
    let shell: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    let shell = shell.join(" ");
    match starter {
        Starter::Termux => vec![
            say("Install the app Termux:Boot and open it once. Then:"),
            InstallStep::Type(format!(
                "mkdir -p ~/.termux/boot && printf '%s\\n' '#!/data/data/com.termux/files/usr/bin/sh' termux-wake-lock {} > ~/.termux/boot/{name}",
                shell_word(&format!("exec {shell}"))
            )),
            say("It starts with the phone; to start it now:"),
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
        // Those for which a file is written.
        Starter::Systemd | Starter::TaskScheduler => Vec::new(),
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
    fn words_reach_the_program_as_they_are() {
        let unit = unit(Path::new("/home/a/100% $"), &words());
        let line = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
        assert_eq!(
            line,
            "ExecStart=\"/opt/st vc/stvc\" \"--data\" \"/home/a/100%% $$ \\\"x\\\" \\\\ 'y' & <z>\" \"watch\""
        );
        assert!(unit.contains("in /home/a/100%% $\n"));
        let steps = by_hand(Starter::Launchd, "n", &words());
        assert!(
            matches!(&steps[1], InstallStep::Type(text) if text.contains("'y' &amp; &lt;z&gt;</string>"))
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_shell_understands_the_script_for_termux() {
        let dir = tempfile::tempdir().unwrap();
        let steps = by_hand(Starter::Termux, "n", &words());
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
