//! What stands in the way where an aim is missed.

use crate::aims::Row;

/// How the row's name begins, the peer's name, the reason.
const BOUNDS: &[(&str, &str, &str)] = &[
    (
        "first snapshot",
        "git",
        "stvc hashes and compresses every message by itself, hashes the file a second time with BLAKE3, and syncs; git \
         compresses one file a chat and does not sync",
    ),
    ("further snapshot after gc", "", FURTHER_LATER),
    ("further snapshot, ", "", FURTHER_LATER),
    (
        "further snapshot",
        "",
        "the other's time falls with the chat down to that of starting its processes; stvc's does not fall below its own \
         start and seven syncs, and it reads and hashes the whole chat. In (b) it also compresses every message that was \
         added or hidden, each with a whole lorebook in it",
    ),
    (
        "restore",
        "",
        "stvc puts the file together from its messages, holds it against the manifest, logs what it does and syncs; git \
         writes one blob and syncs nothing",
    ),
    ("gc", "", "the search for deltas, and compression"),
    (
        "size before gc",
        "",
        "until gc nothing is stored as a delta, and each message is compressed alone",
    ),
    (
        "size after gc",
        "",
        "git compresses a chat as one text, stvc its messages in smaller pieces, each of which has to begin anew",
    ),
    ("memory", "", "the largest chat is held more than three times"),
];

const FURTHER_LATER: &str = "a snapshot should not depend on what is stored already; look at the CPU row first, for the \
                             clock of a few milliseconds is noisy";

pub fn of(row: &Row) -> &'static str {
    let fits = |(what, peer, _): &&(&str, &str, &str)| {
        row.what.starts_with(what) && (peer.is_empty() || row.peer == *peer)
    };
    BOUNDS.iter().find(fits).map_or("not looked into yet", |(_, _, why)| why)
}
