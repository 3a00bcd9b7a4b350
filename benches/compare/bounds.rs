//! What may stand in the way where an aim is missed. These are suppositions from how the tools work, and the report
//! says so: whoever profiles one of them puts here what came out.

use crate::aims::Row;

/// How the row's name begins, the peer's name (any if empty), the supposition.
const BOUNDS: &[(&str, &str, &str)] = &[
    (
        "first snapshot",
        "git",
        "stvc hashes and compresses every message by itself, hashes the file a second time, and syncs; git compresses \
         one file a chat and does not sync",
    ),
    ("further snapshot after gc", "", NOISE),
    ("further snapshot, ", "", NOISE),
    (
        "further snapshot",
        "",
        "the others' time falls with the size of the chat, stvc's hardly does, so the ratio is the smaller the smaller \
         the chat. In (b) stvc also compresses every message that was added or hidden, each with a whole lorebook in it",
    ),
    (
        "restore",
        "git",
        "stvc puts the file together from its messages, holds it against the manifest, logs it and syncs; git writes \
         one blob and syncs nothing",
    ),
    ("size before gc", "", "until gc, stvc stores no deltas and compresses each message alone"),
    (
        "size after gc",
        "git",
        "git compresses a chat as one text, stvc in smaller pieces, each of which begins anew",
    ),
];

const NOISE: &str =
    "a time of a few milliseconds is noisy; compare the CPU row before believing it";

/// The supposition, if there is one.
pub fn of(row: &Row) -> Option<&'static str> {
    let fits = |(what, peer, _): &&(&str, &str, &str)| {
        row.what.starts_with(what) && (peer.is_empty() || row.peer == *peer)
    };
    BOUNDS.iter().find(fits).map(|(_, _, why)| *why)
}
