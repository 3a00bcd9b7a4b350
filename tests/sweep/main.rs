//! The sweep: every verb that writes, killed at every call that changes something, with every such call failing, and with the power
//! cut at every sync. docs/reliability.md says what must hold afterwards.
//!
//! `cargo test` tries a fixed sample; `cargo test --release --test sweep -- --whole` tries all of it, and `--quick` one point of
//! each case. `--case`, `--kind` and `--point` pick, with the words that a failure is reported in.

// clippy.toml allows these in tests, but not in what tests share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

// Half of it is for the other tests.
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
