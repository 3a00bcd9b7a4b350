//! Storages of remotes against real servers on loopback: Apache with mod_dav over HTTPS,
//! `rclone serve`, and rclone with several kinds of remotes. Servers that misbehave are played by
//! `scripted.rs`.
//!
//! The tests fetch rclone once (`equipment.rs`). Without a tool they print a note and are skipped,
//! or fail if `STVC_REQUIRE_SILLYTAVERN` is set.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr
)]

// Other tests use the rest of it.
#[allow(dead_code, unused_imports)]
#[path = "../stvc/common/mod.rs"]
mod common;
#[allow(dead_code)]
#[path = "../sillytavern/equipment.rs"]
mod equipment;

mod apache;
mod contract;
mod failures;
mod folders;
mod garage;
mod http_servers;
mod rclone;
mod scripted;
mod servers;
mod synchroniser;

use std::time::Duration;

use stvc::storages::{Address, Credentials, Options, Password, Storage};

/// Returns a tool. If it is missing, prints why and returns `None`, or panics if it is required.
fn require<T>(found: Result<T, String>) -> Option<T> {
    let required = std::env::var_os("STVC_REQUIRE_SILLYTAVERN").is_some();
    match found {
        Ok(found) => Some(found),
        Err(why) => {
            assert!(!required, "{why}");
            eprintln!("\nSKIPPED, not tested with a server: {why}\n");
            None
        }
    }
}

/// Options for servers that answer at once.
fn options() -> Options {
    Options { patience: Duration::from_secs(20), retries: 1, ..Options::default() }
}

fn login(user: &str, password: &str) -> Credentials {
    Credentials {
        user: Some(user.into()),
        password: Some(Password::new(password)),
        ..Credentials::default()
    }
}

#[track_caller]
fn open(address: &str, login: &Credentials) -> Box<dyn Storage> {
    stvc::storages::open(&Address::parse(address).unwrap(), login, options()).unwrap()
}
