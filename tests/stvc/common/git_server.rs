//! A git server that is reached through the user's git. `core.sshCommand` in the user's
//! configuration names a script that runs the server's command locally.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Sandbox, git, text};

/// Configures the sandbox's user to reach `create_server` and returns its address.
pub fn configure_ssh(sandbox: &Sandbox, server: &Path) -> String {
    let ssh = sandbox.folder().join("ssh");
    // Reads the failure that `set_connection` chose.
    let script = r#"#!/bin/sh
here=$(dirname "$0")
for last; do :; done
case $(cat "$here/way" 2>/dev/null) in
    down) echo "ssh: Could not resolve hostname server: Name or service not known" >&2; exit 255;;
    cut) case $last in *receive-pack*) head -c 400 | sh -c "$last"; exit 255;; esac;;
    race) case $last in *receive-pack*) sh "$here/race.sh"; rm "$here/way";; esac;;
esac
exec sh -c "$last"
"#;
    fs::write(&ssh, script).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let config = format!("[core]\n\tsshCommand = {}\n[ssh]\n\tvariant = ssh\n", ssh.display());
    fs::write(sandbox.folder().join(".gitconfig"), config).unwrap();
    format!("ssh://server{}", server.display())
}

/// Chooses how the next connections to the server fail: `down`, `cut` or `race`.
pub fn set_connection(sandbox: &Sandbox, what: &str) {
    fs::write(sandbox.folder().join("way"), what).unwrap();
}

/// Creates an empty bare repository.
pub fn create_server(folder: &Path) -> PathBuf {
    let path = folder.join("server.git");
    git(folder, &["init", "-q", "--bare", text(&path)]);
    path
}
