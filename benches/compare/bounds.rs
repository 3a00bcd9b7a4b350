//! Reasons for missed targets, from profiles of the program and counts of its stores (perf, strace,
//! `git verify-pack -v`). Update an entry when its cause changes.

use crate::targets::Row;

/// Workloads, prefix of the row's name, peer (empty: any), reason.
const BOUNDS: &[(&str, &str, &str, &str)] = &[
    (
        "h",
        "slowest answer",
        "",
        "the lanes of all 1,000 timelines, asked for while the browser starts on the same two cores; asked by curl alone it is 24 to 40 ms, \
         half of which is one `statx` for each file and reading the refs",
    ),
    (
        "i",
        "snapshot --at",
        "",
        "what it follows is looked for from the newest snapshot backward, 14 µs a commit: half of a thousand are read to get to the middle. Where the message is one of the last, it is flat",
    ),
    (
        "i",
        "further snapshot, no process",
        "",
        "seven syncs (1.2 ms), the second hash by folders, and memory that the system hands out for the file. Only what a process that stays could keep is not yet kept",
    ),
    (
        "i",
        "memory: sync",
        "",
        "no chat is in memory, but what is known of each is: its snapshots here and there, its plan, its lines in the log and in `packed-refs`, together 22 kB a timeline",
    ),
    (
        "c",
        "first snapshot",
        "",
        "borg and git compress a file a chat, borg with lz4; stvc makes a zlib stream of each of some 42,000 messages: half of the CPU, 0.6 s on both cores if nothing else is done, a fifth of it \
         for making libdeflate's tables anew for each. zlib's own level 1 would take as long and leave twice as much",
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
         with a whole lorebook in each, are compressed. A third is the joining of packs, which makes the store eight times smaller: in a store this young, every second save brings a fifth of it",
    ),
    (
        "c",
        "further snapshot",
        "",
        "10 ms of CPU: 2.3 ms to start a process (git: 1.5), of which 1 ms is its relocation and the pages that takes; 2 ms to look at 400 files; seven syncs; the rest is spread",
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
        "2.3 ms to start a process (git: 1.5); the file, its folder and the log are synced and the file is read back, and it is looked for a SillyTavern that may have it open. git writes one file and \
         syncs nothing",
    ),
    (
        "a",
        "size after gc",
        "git",
        "the messages take as much as in git's pack (1.04), but each has 28 bytes in the index and as many in its folder, of which 20 \
         are its hash and do not compress",
    ),
    (
        "c",
        "log",
        "git",
        "400 timelines have a branch and a commit each; git has ten commits of the whole library there. Asked for the same store, git takes 5.5 ms where stvc takes 8.7, of which the start of the process \
         is 1.8 and 3.0",
    ),
    (
        "b",
        "size after gc",
        "zstd",
        "zstd has all states in one stream, and no names for anything in it; a fifth of the store are the hashes of objects, in folders and in the index",
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
        "memory: gc",
        "",
        "the pages of packs that are being read, which the system lends and takes back when others need them, are more than half of it: the new pack is read back as a whole before the old ones go. \
         What is left are lists of all objects",
    ),
    (
        "abcde",
        "memory: backup",
        "",
        "18 MB for zstd on two cores, 16 MB for volumes of the pack, up to 64 MB of objects whose pack stays mapped, and lists of all snapshots and objects",
    ),
];

/// Returns the known reason for a row.
pub fn reason_for(row: &Row) -> Option<&'static str> {
    let fits = |(letters, what, peer, _): &&(&str, &str, &str, &str)| {
        letters.contains(row.letter)
            && row.what.starts_with(what)
            && (peer.is_empty() || row.peer == *peer)
    };
    BOUNDS.iter().find(fits).map(|(_, _, _, why)| *why)
}
