//! A git server, reached through the user's git. The way there is a script in the place of ssh, which runs what the server would run; the user's own configuration names it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Sandbox, git, text};

/// Let this sandbox's user reach the repository at `server`; its address.
pub fn reach(sandbox: &Sandbox, server: &Path) -> String {
    let ssh = sandbox.folder().join("ssh");
    // What `way` says happens on the way there.
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

/// What happens from now on on the way to the server.
pub fn way(sandbox: &Sandbox, what: &str) {
    fs::write(sandbox.folder().join("way"), what).unwrap();
}

/// A server's repository with nothing in it.
pub fn server(folder: &Path) -> PathBuf {
    let path = folder.join("server.git");
    git(folder, &["init", "-q", "--bare", text(&path)]);
    path
}
