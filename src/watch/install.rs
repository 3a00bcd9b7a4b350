//! Starts the watch at every login through the service manager of the system: systemd, launchd, the
//! Task Scheduler of Windows, or the app Termux:Boot.
//!
//! The unit file is written first, then the service manager starts it, and then the watch must hold
//! its lock. Every step can be repeated, so a second run repairs an incomplete installation.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::archive::Blake3;
use crate::durable::{self, Existing};
use crate::engine::Workspace;
use crate::st;
use crate::watch::error::{Error, Result};
use crate::watch::service_manager::{Host, ServiceManager};
use crate::watch::single_watcher;
use crate::watch::task_scheduler::{self, escape};

/// The longest wait until an installed watch holds its lock.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// The result of installing or uninstalling.
pub struct Installed {
    /// The file that the service manager reads.
    pub unit: PathBuf,
    /// Whether the file was written or removed. If not, it was so before.
    pub changed: bool,
    /// Whether a watch of this library is running now.
    pub running: bool,
    /// The reason why the watch was not started or stopped.
    pub failure: Option<String>,
    /// Explanations and commands for the user, in order.
    pub steps: Vec<InstallStep>,
}

/// A step for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallStep {
    /// An explanation.
    Say(String),
    /// A command to type.
    Type(String),
}

fn say(words: &str) -> InstallStep {
    InstallStep::Say(words.into())
}

/// The text that marks a unit that stvc wrote and may replace. Do not change this text, because it
/// is searched in existing files.
const UNIT_HEADER: &str = "# Written by `stvc watch --install`; the next time writes it anew.";

/// Installs the watch of this library and starts it. `program` and `options` form the command line
/// of the watch. Without `options`, an installed unit of this program keeps its own.
pub fn install(
    workspace: &Workspace,
    host: &Host,
    program: &Path,
    options: Option<&[String]>,
) -> Result<Installed> {
    refuse_temporary(program)?;
    let root = workspace.library()?.root().to_owned();
    let mut words = vec![text(program), "--data".into(), text(&root)];
    if let Some(store) = &workspace.store {
        words.extend(["--store".into(), text(store)]);
    }
    words.push("watch".into());
    words.extend(options.into_iter().flatten().cloned());
    let name = name_of(&root);
    let path = host.unit_file(&name)?;
    let unit = unit_text(host.manager, &name, &root, &words);
    let before = read(&path)?;
    let is_kept = options.is_none() && starts(host, before.as_deref(), program);
    let changed = !is_kept && before.as_deref() != Some(&*unit);
    if changed {
        write_unit(&path, &unit, host.manager)?;
    }
    let was_running = single_watcher::is_running(workspace);
    let mut installed = Installed {
        unit: path.clone(),
        changed,
        running: was_running,
        failure: None,
        steps: Vec::new(),
    };
    let calls = host.manager.start(&name, &path, changed && before.is_some());
    if changed || !was_running || host.manager == ServiceManager::Systemd {
        for (n, call) in calls.iter().enumerate() {
            let Err(why) = host.run(call) else { continue };
            if call.is_optional() {
                installed.steps.extend(call.purpose.map(say));
                installed.steps.extend(call.purpose.map(|_| InstallStep::Type(call.command())));
                continue;
            }
            installed.failure = Some(why);
            installed.steps.push(say("Start it now and at every login:"));
            let rest = calls[n..].iter().map(|call| InstallStep::Type(call.command()));
            installed.steps.extend(rest);
            return Ok(installed);
        }
        installed.running = wait_until_running(workspace);
    }
    if !installed.running {
        let seconds = START_TIMEOUT.as_secs();
        installed.failure = Some(format!("the watch did not start within {seconds} seconds"));
    }
    match host.manager {
        ServiceManager::Systemd if !installed.running => {
            installed.steps.push(say("Show its log:"));
            installed.steps.push(InstallStep::Type(format!("journalctl --user -u {name}")));
        }
        ServiceManager::Termux => installed.steps.push(say(
            "Install the app Termux:Boot and open it once, so that the watch starts with the phone.",
        )),
        _ => {}
    }
    Ok(installed)
}

/// Stops the watch of this library and removes its automatic start.
pub fn uninstall(workspace: &Workspace, host: &Host) -> Result<Installed> {
    let name = name_of(workspace.library()?.root());
    let path = host.unit_file(&name)?;
    let is_installed = read(&path)?.is_some();
    let mut removed = Installed {
        unit: path.clone(),
        changed: is_installed,
        running: false,
        failure: None,
        steps: Vec::new(),
    };
    if is_installed {
        let process = single_watcher::process(workspace);
        let (before, after) = host.manager.stop(&name, &path, process.as_deref());
        for call in &before {
            let Err(why) = host.run(call) else { continue };
            if !call.is_optional() {
                removed.failure = Some(why);
                removed.steps.push(say("Stop it, and do not start it at login any more:"));
                removed.steps.push(InstallStep::Type(call.command()));
            }
        }
        let io = |source| st::Error::Io { path: path.clone(), source };
        durable::remove(&path).map_err(io)?;
        for call in &after {
            let _ = host.run(call);
        }
        if host.manager == ServiceManager::Systemd {
            removed.steps.push(say("If no other service needs to run while you are logged out:"));
            removed.steps.push(InstallStep::Type("loginctl disable-linger".into()));
        }
    }
    removed.running = single_watcher::is_running(workspace);
    Ok(removed)
}

/// Returns whether the service manager has a unit that starts this program for the library.
pub fn is_installed(workspace: &Workspace, host: &Host, program: &Path) -> Result<bool> {
    let unit = read(&host.unit_file(&name_of(workspace.library()?.root()))?)?;
    Ok(starts(host, unit.as_deref(), program))
}

fn starts(host: &Host, unit: Option<&[u8]>, program: &Path) -> bool {
    let program = host.manager.quote(&text(program));
    unit.is_some_and(|unit| decode(unit).contains(&program))
}

/// Refuses a program in a place that is emptied automatically, because the service would then start
/// nothing.
pub fn refuse_temporary(program: &Path) -> Result<()> {
    let is_cache = |name: &str| {
        name == "_npx" || name.starts_with("dlx-") || name.starts_with("bunx-")
            // macOS starts downloaded programs from a random folder.
            || name == "AppTranslocation"
    };
    let mut names = program.iter().map(|name| name.to_string_lossy());
    // Windows starts a program inside an archive from the temporary folder.
    let in_archive = cfg!(windows) && program.starts_with(std::env::temp_dir());
    if in_archive || names.any(|name| is_cache(&name)) {
        return Err(Error::TemporaryProgram { path: program.to_owned() });
    }
    Ok(())
}

fn wait_until_running(workspace: &Workspace) -> bool {
    let begin = Instant::now();
    loop {
        if single_watcher::is_running(workspace) {
            return true;
        }
        if begin.elapsed() > START_TIMEOUT {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Reads a unit that stvc wrote; `None` if there is no file. Fails if stvc did not write it.
fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(unit) if decode(&unit).contains(UNIT_HEADER) => Ok(Some(unit)),
        Ok(_) => Err(Error::UnitInTheWay { path: path.to_owned() }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(st::Error::Io { path: path.to_owned(), source }.into()),
    }
}

/// Decodes UTF-16 with a byte order mark, or else UTF-8.
fn decode(file: &[u8]) -> String {
    let Some(units) = file.strip_prefix(&[0xFF, 0xFE]) else {
        return String::from_utf8_lossy(file).into_owned();
    };
    let units = units.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn name_of(root: &Path) -> String {
    format!("stvc-watch-{}", &Blake3::of(text(root).as_bytes()).to_string()[..8])
}

fn write_unit(path: &Path, unit: &[u8], manager: ServiceManager) -> Result<()> {
    let io = |source| st::Error::Io { path: path.to_owned(), source };
    let folder = durable::parent(path);
    durable::create_dir_all(folder).map_err(io)?;
    durable::clear_left_behind(folder);
    durable::write(path, unit, Existing::Replace).map_err(io)?;
    if manager == ServiceManager::Termux {
        make_executable(path).map_err(io)?;
    }
    Ok(())
}

#[cfg(unix)]
fn make_executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) -> std::io::Result<()> {
    Ok(())
}

fn unit_text(manager: ServiceManager, name: &str, root: &Path, words: &[String]) -> Vec<u8> {
    let line = words.iter().map(|word| manager.quote(word)).collect::<Vec<_>>().join(" ");
    let description = format!("stvc: snapshots of the SillyTavern chats in {}", text(root));
    let text = match manager {
        ServiceManager::Systemd => systemd_unit(&description, &line),
        ServiceManager::Launchd => property_list(name, words),
        ServiceManager::Termux => format!(
            "#!/data/data/com.termux/files/usr/bin/sh\n{UNIT_HEADER}\ntermux-wake-lock\nexec {line}\n"
        ),
        ServiceManager::TaskScheduler => {
            let description = format!("{UNIT_HEADER} {description}");
            return task_scheduler::task(&description, &line, task_scheduler::user().as_deref());
        }
    };
    text.into_bytes()
}

fn systemd_unit(description: &str, line: &str) -> String {
    let description: String = description.chars().filter(|c| !c.is_control()).collect();
    format!(
        "{UNIT_HEADER}\n\
         [Unit]\n\
         Description={}\n\
         \n\
         [Service]\n\
         ExecStart={line}\n\
         Restart=on-failure\n\
         RestartSec=30\n\
         Nice=10\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        description.replace('%', "%%"),
    )
}

/// Returns the property list for launchd. A watch that fails, for example because another one is
/// running, is started again.
fn property_list(name: &str, words: &[String]) -> String {
    let word = |word: &String| format!("    <string>{}</string>\n", escape(word));
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
  <key>Comment</key><string>{UNIT_HEADER}</string>
  <key>Label</key><string>{name}</string>
  <key>ProgramArguments</key><array>
{}  </array>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ThrottleInterval</key><integer>30</integer>
  <key>ProcessType</key><string>Background</string>
</dict></plist>
"#,
        words.iter().map(word).collect::<String>()
    )
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

    fn unit(manager: ServiceManager) -> String {
        decode(&unit_text(manager, "n", Path::new("/home/a/100% $"), &words()))
    }

    #[test]
    fn arguments_are_escaped_for_systemd_and_launchd() {
        let unit_of_systemd = unit(ServiceManager::Systemd);
        let line = unit_of_systemd.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
        assert_eq!(
            line,
            "ExecStart=\"/opt/st vc/stvc\" \"--data\" \"/home/a/100%% $$ \\\"x\\\" \\\\ 'y' & <z>\" \"watch\""
        );
        assert!(unit_of_systemd.contains("in /home/a/100%% $\n"));
        assert!(unit(ServiceManager::Launchd).contains("'y' &amp; &lt;z&gt;</string>"));
    }

    #[test]
    fn termux_script_quotes_arguments_for_the_shell() {
        let script = unit(ServiceManager::Termux);
        assert_eq!(
            script.lines().last().unwrap(),
            "exec '/opt/st vc/stvc' '--data' '/home/a/100% $ \"x\" \\ '\\''y'\\'' & <z>' 'watch'"
        );
    }

    #[test]
    fn every_unit_is_recognised_as_written_by_stvc() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("unit");
        for manager in ServiceManager::ALL {
            let unit = unit_text(manager, "n", Path::new("/雨"), &words());
            fs::write(&path, &unit).unwrap();
            assert_eq!(read(&path).unwrap(), Some(unit));
        }
        fs::write(&path, "[Unit]\n").unwrap();
        assert!(matches!(read(&path), Err(Error::UnitInTheWay { .. })));
    }

    #[test]
    fn program_in_a_cache_is_refused() {
        for path in [
            "/home/a/.npm/_npx/3f5a/node_modules/stvc/bin/stvc",
            "/home/a/.cache/pnpm/dlx-4711/node_modules/stvc/bin/stvc",
            "/tmp/bunx-1000-stvc@latest/node_modules/stvc/bin/stvc",
        ] {
            assert!(refuse_temporary(Path::new(path)).is_err(), "{path}");
        }
        refuse_temporary(Path::new("/usr/lib/node_modules/stvc/bin/stvc")).unwrap();
    }
}
