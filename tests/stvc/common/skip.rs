//! Tests that cannot run on every machine. Each one prints why it was skipped.

use std::io::Write;

/// Makes `skip` a failure; `.ci/run` sets it.
const ALL: &str = "STVC_TEST_ALL";

/// Reports a skipped test: a tool is not installed or the system forbids its use. Fails with
/// `STVC_TEST_ALL=1`.
#[track_caller]
pub fn skip(why: &str) {
    assert!(std::env::var_os(ALL).is_none_or(|all| all != "1"), "{ALL} is 1, and {why}");
    skip_on_this_machine(why);
}

/// Reports a skipped test that this machine cannot run with any installed package. Never fails:
///
/// - the target for static programs exists only in rustup, and Rust may be installed in another
///   way;
/// - a case-insensitive file system has to be set up and named by `STVC_FOLDING_DIR`;
/// - root reads files that deny reading;
/// - some features exist only on Linux.
pub fn skip_on_this_machine(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    // The test harness captures `eprintln!` of a passing test, but not this.
    let _ = writeln!(std::io::stderr(), "{test}: not tried: {why}");
}

/// Whether the program runs under Wine or qemu (`packaging/test`).
pub fn is_emulated() -> bool {
    std::env::var_os("STVC_TEST_EMULATED").is_some()
}
