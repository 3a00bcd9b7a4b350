//! Stand-ins for the commands of service managers. They record how they were called, and start and
//! stop the watch as the real ones do.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{Answer, Sandbox, answer, text};

/// Starts the command line in `$line`, unless it is running, and stops it.
const START_AND_STOP: &str = r#"
stop() {
    [ -e "$folder/pid" ] || return 0
    kill "$(cat "$folder/pid")" 2>/dev/null
    for n in 1 2 3 4 5 6 7 8 9 10; do
        kill -0 "$(cat "$folder/pid")" 2>/dev/null || break
        sleep 0.1
    done
    rm -f "$folder/pid"
}
start() {
    [ -e "$folder/pid" ] && kill -0 "$(cat "$folder/pid")" 2>/dev/null && return 0
    eval "exec $line" </dev/null >/dev/null 2>&1 &
    echo $! >"$folder/pid"
}
"#;

const SYSTEMCTL: &str = r#"
for name; do :; done
line=$(sed -n 's/^ExecStart=//p' "$folder/.config/systemd/user/$name.service" 2>/dev/null)
case "$*" in
*" disable "*) stop ;;
*" restart "*) stop; start ;;
*" enable "*) start ;;
esac
"#;

const LAUNCHCTL: &str = r#"
for unit; do :; done
line=$(sed -n 's/^    <string>\(.*\)<\/string>$/"\1"/p' "$unit" | tr '\n' ' ')
case "$1" in
unload) stop ;;
load) start ;;
esac
"#;

const SCHTASKS: &str = r#"
case "$1" in
/Create) for unit; do :; done; cp "$unit" "$folder/task.xml" ;;
/Run)
    line=$(tr -d '\000' <"$folder/task.xml" | sed -n 's/.*--headless \(.*\)<\/Arguments>.*/\1/p')
    start
    ;;
/End) stop ;;
/Delete) rm "$folder/task.xml" ;;
esac
"#;

/// The stand-ins of a sandbox. Stops the watch at the end.
pub struct Services<'s> {
    pub sandbox: &'s Sandbox,
}

impl<'s> Services<'s> {
    pub fn new(sandbox: &'s Sandbox) -> Self {
        let services = Self { sandbox };
        fs::create_dir_all(sandbox.folder().join("bin")).unwrap();
        for (name, script) in [
            ("systemctl", SYSTEMCTL),
            ("loginctl", ""),
            ("launchctl", LAUNCHCTL),
            ("schtasks", SCHTASKS),
        ] {
            services.set(name, &format!("{START_AND_STOP}{script}"));
        }
        services
    }

    /// Replaces a stand-in by a script.
    pub fn set(&self, name: &str, script: &str) {
        let folder = text(self.sandbox.folder());
        let head =
            format!("#!/bin/sh\nfolder='{folder}'\necho \"{name} $*\" >>\"$folder/calls\"\n");
        let path = self.sandbox.folder().join("bin").join(name);
        fs::write(&path, head + script).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns the search path with the stand-ins.
    pub fn path(&self) -> OsString {
        let bin = self.sandbox.folder().join("bin");
        let rest = std::env::var_os("PATH").unwrap_or_default();
        let all = [bin].into_iter().chain(std::env::split_paths(&rest));
        std::env::join_paths(all).unwrap()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(arguments);
        command.env("PATH", self.path());
        command
    }

    pub fn stvc(&self, arguments: &[&str]) -> Answer {
        answer(self.command(arguments).output().unwrap())
    }

    /// Returns the calls since the last time, with `UNIT` for the name of the unit.
    pub fn calls(&self) -> Vec<String> {
        let calls = self.sandbox.folder().join("calls");
        let text = fs::read_to_string(&calls).unwrap_or_default();
        let _ = fs::remove_file(calls);
        let name = regex::Regex::new("stvc-watch-[0-9a-f]{8}").unwrap();
        name.replace_all(&text, "UNIT").lines().map(str::to_owned).collect()
    }

    pub fn is_watched(&self) -> bool {
        let found = self.sandbox.json(&["extension"]).exits(0).of_type("extension");
        found[0]["watch"] == true
    }

    pub fn kill_watch(&self) {
        let process = self.sandbox.store().join("stvc/watch.pid");
        if let Ok(id) = fs::read_to_string(process) {
            let _ = Command::new("kill").args(["-KILL", id.trim()]).output();
        }
        // The process may stay as a zombie.
        let _ = fs::remove_file(self.sandbox.folder().join("pid"));
        while self.sandbox.store().is_dir() && self.is_watched() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

impl Drop for Services<'_> {
    fn drop(&mut self) {
        let process = self.sandbox.store().join("stvc/watch.pid");
        if let Ok(id) = fs::read_to_string(process) {
            let _ = Command::new("kill").args(["-KILL", id.trim()]).output();
        }
    }
}
