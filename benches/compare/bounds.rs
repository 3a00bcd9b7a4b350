//! What stands in the way where an aim is missed: what profiles of the program and counts of its stores said (perf, strace, `git verify-pack -v`).
//! Whoever changes one of them puts here what comes out.

use crate::aims::Row;

/// The workloads, how the row's name begins, the peer's name (any if empty), what bounds it.
const BOUNDS: &[(&str, &str, &str, &str)] = &[
    (
        "h",
        "slowest answer",
        "",
        "the lanes of all 1,000 timelines, asked for while the browser starts on the same two cores; asked by curl alone it is 24 to 40 ms, \
         half of which is one `statx` for each file and reading the refs",
    ),
    (
        "c",
        "first snapshot",
        "git",
        "git compresses one file a chat and does not sync; stvc makes a zlib stream of each of some 42,000 messages, hashes every message and the file, and \
         syncs. It was 1.6 before libdeflate",
    ),
    (
        "abcde",
        "further snapshot after gc",
        "",
        "3 ms more of CPU, not profiled; supposed: the large index and its pack are mapped and faulted in by each command",
    ),
    (
        "abcde",
        "further snapshot, ",
        "",
        "a time of a few milliseconds is noisy; compare the CPU row before believing it",
    ),
    (
        "ad",
        "further snapshot",
        "",
        "for a chat of 3.6 MB, 7 ms of CPU: 1.6 ms to start a process, 1.2 ms for seven syncs (git makes none), 1.2 ms for BLAKE3 of \
         the file and of its folders, 0.9 ms to read it, the rest about 900 system calls that find out what changed. A fifteenth of \
         git's time would be less than the process and its syncs take",
    ),
    (
        "b",
        "further snapshot",
        "",
        "chats of up to 30 MB are read and hashed twice (for the manifest and by folders), and the messages that were added or hidden, \
         with a whole lorebook in each, are compressed. git looks at each chat once, and compresses it quickly because it repeats itself",
    ),
    (
        "c",
        "further snapshot",
        "",
        "200 chats are looked at: 1,000 files opened (branches, folders) and 1,300 looked up. git has the stamps of all in one file. \
         That was before branches came to stand in one file (`packed-refs`)",
    ),
    (
        "f",
        "further snapshot",
        "",
        "500 files are looked at, once each: 2.4 ms of the system's time where it was measured, shared by two cores. The rest is 9 million instructions for listing \
         them, for their branches and for what is known of them; it was 45 ms before refs were packed and the cache was read at once",
    ),
    (
        "e",
        "further snapshot",
        "",
        "100 MB are read and hashed twice. Already a copy by `cp` takes 49 ms; a fortieth of restic's time would be 27 ms",
    ),
    (
        "e",
        "restore",
        "restic",
        "43 % of the CPU goes into inflating one zlib stream a message, 22 % into handing out memory, 10 % into writing; the file is then \
         synced and read back",
    ),
    (
        "abcde",
        "restore",
        "git",
        "11 ms of CPU: 460 files are opened and 410 folders listed to find one of 200 branches; the file, its folder and the log are synced and the file is read \
         back. git writes one file and syncs nothing",
    ),
    (
        "b",
        "size before gc",
        "",
        "until gc there are no deltas: a message that is hidden is stored again, with the lorebook in it. Level 9 instead of 1 would \
         save 0.7 %",
    ),
    (
        "a",
        "size after gc",
        "git",
        "the messages take as much as in git's pack (1.04), but each has 28 bytes in the index and as many in its folder, of which 20 \
         are its hash and do not compress",
    ),
    (
        "b",
        "size after gc",
        "restic",
        "a twentieth would be near what zstd -19 makes of all states in one stream; a fifth of the store are the hashes of objects, in \
         folders and in the index",
    ),
    (
        "abcde",
        "memory: backup",
        "",
        "37 MB for zstd on two cores, 16 MB for volumes of the pack, the pack itself, which is mapped, and lists of all objects: 41 MB in all with 100 snapshots, 130 MB with 10,000",
    ),
];

/// What is known of it, if it was looked into.
pub fn of(row: &Row) -> Option<&'static str> {
    let fits = |(letters, what, peer, _): &&(&str, &str, &str, &str)| {
        letters.contains(row.letter)
            && row.what.starts_with(what)
            && (peer.is_empty() || row.peer == *peer)
    };
    BOUNDS.iter().find(fits).map(|(_, _, _, why)| *why)
}
