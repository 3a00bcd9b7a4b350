//! The sweep: kills every writing verb at every call that changes something, makes every such call
//! fail, and cuts the power at every sync. docs/reliability.md lists the invariants that must hold
//! afterwards.
//!
//! `cargo test` tries a fixed sample; `cargo test --release --test sweep -- --whole` tries all
//! points, and `--quick` one point per case. `--case`, `--kind` and `--point` select points by the
//! names in a failure report.

// clippy.toml allows these only inside tests, not in their helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

// The other tests use the rest of it.
#[cfg(target_os = "linux")]
#[allow(dead_code, unused_imports)]
#[path = "../stvc/common/mod.rs"]
mod common;

#[cfg(target_os = "linux")]
mod cases;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
mod fingerprint;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
mod judge;
#[cfg(target_os = "linux")]
mod point;
#[cfg(target_os = "linux")]
mod preload;
#[cfg(target_os = "linux")]
mod prepare;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
mod state;
#[cfg(target_os = "linux")]
mod trace;
#[cfg(target_os = "linux")]
mod watching;
#[cfg(target_os = "linux")]
mod world;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    run::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    println!("The sweep is skipped: it needs Linux, where calls can be intercepted.");
    println!("0 passed, 0 failed");
    ExitCode::from(u8::from(std::env::var_os("STVC_REQUIRE_SWEEP").is_some()))
}
