//! What a test needs that is not on every machine. Whoever runs the tests is told what was not tried.

use std::io::Write;

/// The variable that makes `cannot` a failure; `.ci/run` sets it.
const ALL: &str = "STVC_TEST_ALL";

/// Something is not tried because a tool is not installed, or because the system does not let us use it. With `STVC_TEST_ALL=1` that is a failure.
#[track_caller]
pub fn cannot(why: &str) {
    assert!(std::env::var_os(ALL).is_none_or(|all| all != "1"), "{ALL} is 1, and {why}");
    cannot_here(why);
}

/// Something is not tried because this machine is not one on which it could be, and no package changes that. It is never a failure:
///
/// - the target for static programs: only rustup has it, and Rust may come from elsewhere;
/// - a file system that does not tell upper from lower case: somebody has to set one up, and `STVC_FOLDING_DIR` has to name it;
/// - a file that may not be read: root reads it all the same;
/// - what only Linux has, on other systems.
pub fn cannot_here(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    // Past the test harness, which keeps what a passing test prints to itself.
    let _ = writeln!(std::io::stderr(), "{test}: not tried: {why}");
}

/// Whether this runs on another system than that which built it, under Wine or qemu (`packaging/test`).
pub fn is_emulated() -> bool {
    std::env::var_os("STVC_TEST_EMULATED").is_some()
}
