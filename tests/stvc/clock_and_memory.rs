//! A wrong clock or too little memory causes a clear error and no loss of data.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{
    A, Sandbox, Stored, answer, assert_no_panic, assert_valid, chat, message, run_in_shell, skip,
    text,
};

/// Compiles a library for `LD_PRELOAD` that sets the year to 1969. `None` without a compiler.
fn clock_library_for_1969(sandbox: &Sandbox) -> Option<std::path::PathBuf> {
    let source = sandbox.folder().join("clock.c");
    let library = sandbox.folder().join("clock.so");
    let program = "#define _GNU_SOURCE\n#include <time.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
        int clock_gettime(clockid_t clock, struct timespec *time) {\n\
        long failed = syscall(SYS_clock_gettime, clock, time);\n\
        if (!failed && clock == CLOCK_REALTIME) time->tv_sec = -86400;\n\
        return failed;\n}\n";
    fs::write(&source, program).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let made = Command::new(compiler)
        .args(["-shared", "-fPIC", "-o", text(&library), text(&source)])
        .status();
    if !made.is_ok_and(|made| made.success()) {
        skip("there is no C compiler for a clock that is wrong");
        return None;
    }
    Some(library)
}

#[test]
fn clock_before_1970_is_an_error() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    let first = Stored::take(&sandbox, A);
    let Some(clock) = clock_library_for_1969(&sandbox) else { return };
    sandbox.append(A, &message("a", 9));
    let copy = sandbox.folder().join("copy.stvc");
    for arguments in [
        &["snapshot"][..],
        &["log"],
        &["status"],
        &["check"],
        &["gc"],
        &["undo"],
        &["doctor"],
        &["backup", text(&copy)],
        &["restore", "Mira/a@yesterday", "--overwrite"],
        &["watch"],
        &["view", "--no-open"],
        &["--json", "timelines"],
    ] {
        let mut command = sandbox.command(arguments);
        command.env("LD_PRELOAD", &clock).env_remove("SOURCE_DATE_EPOCH").stdin(Stdio::null());
        let result = assert_no_panic(answer(command.output().unwrap()));
        if arguments[0] == "view" && result.code == 2 {
            continue;
        }
        assert_eq!(result.code, 1, "{arguments:?}: {result:?}");
        let words = format!("{}{}", result.stdout, result.stderr);
        assert!(words.contains("the system clock is before 1970"), "{arguments:?}: {words}");
    }
    assert_eq!(sandbox.snapshot_ids(), [&*first.id]);
    Stored::take(&sandbox, A).assert_restores(&sandbox);
    assert_valid(&sandbox);
}

#[test]
fn every_command_refuses_invalid_source_date() {
    for moment in [
        "-1",
        "-62135596801",
        "253402300800",
        "8210266876799",
        "99999999999999",
        "9223372036854775808",
        "yesterday",
    ] {
        let sandbox = Sandbox::empty();
        sandbox.write(A, chat("a", 3, None));
        for arguments in [
            &["snapshot"][..],
            &["log"],
            &["status"],
            &["gc"],
            &["undo"],
            &["check"],
            &["operations"],
            &["backup", "copy.stvc"],
        ] {
            let mut command = sandbox.command(arguments);
            let result =
                assert_no_panic(answer(command.env("SOURCE_DATE_EPOCH", moment).output().unwrap()));
            assert_eq!(result.code, 1, "{moment} {arguments:?}: {result:?}");
            assert!(
                result.stderr.contains("SOURCE_DATE_EPOCH"),
                "{moment} {arguments:?}: {result:?}"
            );
        }
        assert!(!sandbox.store().exists(), "{moment}");
    }
}

#[test]
fn backup_with_maximal_source_date_is_readable() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 3, None));
    let copy = sandbox.folder().join("copy.stvc");
    let copy = copy.to_str().unwrap();
    for arguments in [&["snapshot"][..], &["backup", copy], &["check", copy]] {
        let mut command = sandbox.command(arguments);
        answer(command.env("SOURCE_DATE_EPOCH", "253402300799").output().unwrap()).exits(0);
    }
}

/// The words of an abort for lack of memory: a small allocation of Rust or of the C library failed,
/// or the start of a thread.
const ABORTS: [&str; 3] =
    ["memory allocation of", "out of memory", "failed to allocate an alternative stack"];

/// Rust and the C library abort when a small allocation fails. That is like a kill and loses
/// nothing. Every other failure is an error.
#[test]
fn too_little_memory_is_an_error() {
    let mut sandbox = Sandbox::empty();
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        format!("{state:016x}")
    };
    let mut long = String::from("{\"chat_metadata\":{}}");
    for _ in 0..800 {
        let words: Vec<_> = (0..100).map(|_| noise()).collect();
        long += &format!("\n{{\"mes\":\"{}\"}}", words.join(" "));
    }
    sandbox.write(A, &long);
    let first = Stored::take(&sandbox, A);
    let (mut failed, mut done) = (0, 0);
    for (n, kilobytes) in [50_000, 60_000, 70_000, 100_000, 250_000].into_iter().enumerate() {
        sandbox.wait(60);
        sandbox.append(A, &message("a", n));
        sandbox.write(&format!("chats/Mira/b{n}.jsonl"), format!("{long}\n{{\"mes\":\"{n}\"}}"));
        let out = sandbox.folder().join(format!("out-{n}"));
        for arguments in [
            &["snapshot"][..],
            &["check"],
            &["search", "nowhere"],
            &["restore", &first.id, "--to", text(&out)],
            &["gc", "--grace", "0s"],
        ] {
            let begin = Instant::now();
            let script = format!("ulimit -v {kilobytes}; timeout 120 \"$@\"; exit $?");
            let result = run_in_shell(&sandbox, &script, arguments);
            assert!(begin.elapsed() < Duration::from_secs(120), "{kilobytes} {arguments:?} hangs");
            let is_abort = ABORTS.iter().any(|words| result.stderr.contains(words));
            let panicked = result.stderr.contains("panicked") && !is_abort;
            assert!(!panicked, "{kilobytes} {arguments:?}: {result:?}");
            match result.code {
                0 => done += 1,
                1 | 3 => failed += 1,
                134 => assert!(is_abort, "{result:?}"),
                // The program could not even be loaded.
                code => {
                    assert!(matches!(code, 127 | 139) && result.stdout.is_empty(), "{result:?}")
                }
            }
        }
        assert_valid(&sandbox);
        first.assert_restores(&sandbox);
    }
    assert!(failed > 0 && done > 4, "{failed} failed, {done} done");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["gc"]).exits(0);
    assert_valid(&sandbox);
}
