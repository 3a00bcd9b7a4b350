//! Passes the build target and, for a release (packaging/build), the commit to `stvc --version`.

use std::env;

fn main() {
    println!("cargo:rerun-if-env-changed=STVC_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    let variable = |name| env::var(name).unwrap_or_default();
    let (version, target) = (variable("CARGO_PKG_VERSION"), variable("TARGET"));
    let commit = variable("STVC_COMMIT");
    let commit = if commit.is_empty() { commit } else { format!("{commit}, ") };
    println!("cargo:rustc-env=STVC_VERSION={version} ({commit}{target})");
}
