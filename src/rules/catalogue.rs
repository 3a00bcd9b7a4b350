//! Every code that a finding may have. `docs/findings.md` is made from this table, and a test holds it against the source.

use super::Level::{self, Error, Info, Warning};

/// What is known of one code.
pub struct Rule {
    /// The code; it never changes its meaning.
    pub code: &'static str,
    /// How bad it may be.
    pub levels: &'static [Level],
    /// The commands that find it.
    pub from: &'static str,
    /// What was found.
    pub meaning: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

/// All codes, by subject.
pub const CATALOGUE: &[(&str, &[Rule])] = &[
    ("Chats", CHATS),
    ("Lorebooks", LOREBOOKS),
    ("What ST-Auto-Recap keeps", AUTO_RECAP),
    ("Checkpoints", CHECKPOINTS),
    ("Restored states", RESTORED),
    ("Merged lorebooks", MERGED),
    ("The library as a whole", LIBRARY),
    ("The store", STORE),
];

/// The commands that look at a timeline's own files.
const FILES: &str = "`snapshot`, `status`, `show`, `restore`, `doctor`";

const CHATS: &[Rule] = &[
    Rule {
        code: "unreadable",
        levels: &[Error],
        from: "`snapshot`, `status`, `timelines`",
        meaning: "a file or folder of the library cannot be read; it was not stored",
        remedy: "check its name and permissions",
    },
    Rule {
        code: "chat-shrank",
        levels: &[Warning],
        from: "`snapshot`",
        meaning: "the chat lost more than half its messages, or all but its greeting, since the last snapshot",
        remedy: "if you did not do that: `stvc restore` the snapshot that the finding names, with `--overwrite`",
    },
    Rule {
        code: "chat-replaced",
        levels: &[Warning],
        from: "`snapshot`",
        meaning: "none of the messages of the last snapshot is left",
        remedy: "if you did not do that: `stvc restore` the snapshot that the finding names, with `--overwrite`",
    },
    Rule {
        code: "chat-empty",
        levels: &[Warning],
        from: FILES,
        meaning: "the chat file is empty",
        remedy: "`stvc log` shows whether the store has an earlier state",
    },
    Rule {
        code: "chat-bom",
        levels: &[Warning],
        from: FILES,
        meaning: "it begins with a byte order mark; SillyTavern loses the header and message 0",
        remedy: "save the file as UTF-8 without a byte order mark",
    },
    Rule {
        code: "chat-header-broken",
        levels: &[Warning],
        from: FILES,
        meaning: "line 1 cannot be read; SillyTavern loses the chat's metadata",
        remedy: "mend line 1, or restore an earlier snapshot",
    },
    Rule {
        code: "chat-line-broken",
        levels: &[Warning],
        from: FILES,
        meaning: "lines that SillyTavern drops silently",
        remedy: "mend the line in a text editor, or restore an earlier snapshot",
    },
];

const LOREBOOKS: &[Rule] = &[
    Rule {
        code: "lorebook-missing",
        levels: &[Error],
        from: FILES,
        meaning: "the chat names a lorebook that does not exist; SillyTavern shows it as empty",
        remedy: "`stvc doctor --fix` brings it back if a snapshot has it; or choose another lorebook for the chat",
    },
    Rule {
        code: "lorebook-broken",
        levels: &[Warning],
        from: FILES,
        meaning: "it is not a readable lorebook; it is stored as one piece",
        remedy: "mend the file, or restore an earlier snapshot",
    },
    Rule {
        code: "lorebook-key-repeated",
        levels: &[Warning],
        from: FILES,
        meaning: "a key stands twice, so it is stored as one piece; SillyTavern keeps the last of the two",
        remedy: "nothing; the next save by SillyTavern leaves one of them",
    },
    Rule {
        code: "uid-repeated",
        levels: &[Error],
        from: FILES,
        meaning: "several entries of one lorebook have the same UID, so which one a registry or an extension means is chance. The same UID in two lorebooks, and gaps, are fine",
        remedy: "give all but one of them a UID of their own, or restore an earlier snapshot of the lorebook",
    },
    Rule {
        code: "lorebook-attached-differs",
        levels: &[Warning, Info],
        from: FILES,
        meaning: "ST-Auto-Recap has noted another lorebook (`auto_lorebooks.lorebookName`) than the one bound to the chat (`world_info`); in a fork, which the extension gives a new one without noting it, only info",
        remedy: "bind the lorebook that holds this chat's entries, and let the extension refresh its registry",
    },
    Rule {
        code: "lorebook-name-unexpected",
        levels: &[Info],
        from: FILES,
        meaning: "the lorebook is called by the extension's template (`z-AutoLB-…`), but after another chat, and the chat is no fork",
        remedy: "nothing, if the chat was renamed; else make sure that no other chat writes to it",
    },
];

const AUTO_RECAP: &[Rule] = &[
    Rule {
        code: "registry-dangling",
        levels: &[Warning],
        from: FILES,
        meaning: "a registry lists a UID that no entry of the lorebook has, or only a registry",
        remedy: "restore an earlier snapshot of the lorebook, or take the line out of the registry",
    },
    Rule {
        code: "registry-unreadable",
        levels: &[Error],
        from: FILES,
        meaning: "a registry is neither the extension's text nor JSON",
        remedy: "restore an earlier snapshot of the lorebook, or empty the entry: the extension writes it anew",
    },
    Rule {
        code: "registry-cache-dangling",
        levels: &[Warning],
        from: FILES,
        meaning: "the registry in the chat's metadata lists UIDs that the lorebook does not have; the extension will write them into the lorebook's registries",
        remedy: "make sure that the right lorebook is bound",
    },
    Rule {
        code: "queue-several",
        levels: &[Warning],
        from: FILES,
        meaning: "the lorebook has more than one queue; the extension uses the first",
        remedy: "delete the others in SillyTavern's lorebook editor",
    },
    Rule {
        code: "queue-unreadable",
        levels: &[Warning],
        from: FILES,
        meaning: "the queue cannot be read; the extension takes it for empty",
        remedy: "delete the entry; the extension makes a new one",
    },
    Rule {
        code: "queue-past-end",
        levels: &[Warning],
        from: FILES,
        meaning: "an operation that is still to be done is about a message that the chat does not have",
        remedy: "clear the extension's queue once the chat is open",
    },
    Rule {
        code: "recap-foreign",
        levels: &[Warning],
        from: FILES,
        meaning: "the running recap says it belongs to another chat. Unless the chat is a fork or its lorebook is missing, the extension resets it when the chat is opened",
        remedy: "before that, `stvc doctor --fix` tells it the chat's present name, unless there is a chat of the name that it has",
    },
    Rule {
        code: "recap-version-lost",
        levels: &[Error],
        from: FILES,
        meaning: "the running recap's version in use is not among its versions",
        remedy: "choose one of its versions in the extension, or restore an earlier snapshot",
    },
    Rule {
        code: "recap-unreadable",
        levels: &[Warning],
        from: FILES,
        meaning: "the running recap is no object, its versions are no list, or a version's number is no whole number",
        remedy: "restore an earlier snapshot, or clear the running recap in the extension",
    },
    Rule {
        code: "recap-past-end",
        levels: &[Warning],
        from: FILES,
        meaning: "versions of the running recap end with a message that the chat does not have",
        remedy: "choose an older version in the extension and delete these, if the chat was cut on purpose",
    },
    Rule {
        code: "recap-scene-missing",
        levels: &[Warning],
        from: FILES,
        meaning: "versions of the running recap end with a message that has no scene recap",
        remedy: "let the extension make the scene's recap again, or restore an earlier snapshot",
    },
    Rule {
        code: "scene-index-wrong",
        levels: &[Warning],
        from: FILES,
        meaning: "the version in use of a scene's recap is not among its versions",
        remedy: "choose a version in the extension; until then it shows the last one",
    },
    Rule {
        code: "scene-hash-differs",
        levels: &[Info],
        from: FILES,
        meaning: "a scene's recap was changed since the extension noted its hash, as its first stages do",
        remedy: "nothing",
    },
];

const CHECKPOINTS: &[Rule] = &[
    Rule {
        code: "message-not-found",
        levels: &[Error],
        from: "`snapshot --at`, `restore --at`",
        meaning: "the chat has no message of that number (exit 4)",
        remedy: "name one that is there",
    },
    Rule {
        code: "queue-active",
        levels: &[Error, Warning],
        from: "`snapshot`",
        meaning: "work is pending, in progress or to be tried again in the lorebook's queue, so the state is half of one (exit 4; a warning with `--allow-active-queue`)",
        remedy: "`--wait` waits for it; `--allow-active-queue` takes the state as it is and says so in the snapshot",
    },
    Rule {
        code: "scene-break-missing",
        levels: &[Warning, Error],
        from: "`snapshot --at`, `snapshot --scenes`, `snapshot --strict`",
        meaning: "no scene ends at the message (error with `--strict`)",
        remedy: "mark the end of the scene there first, or choose a message that ends one",
    },
    Rule {
        code: "scene-recap-missing",
        levels: &[Warning, Error],
        from: "`snapshot --at`, `snapshot --scenes`, `snapshot --strict`",
        meaning: "the message has no scene recap (error with `--strict`)",
        remedy: "let the extension write the scene's recap first",
    },
    Rule {
        code: "scene-lorebook-missing",
        levels: &[Warning, Error],
        from: "`snapshot --at`, `snapshot --scenes`, `snapshot --strict`",
        meaning: "the scene has no note of the lorebook's entries (error with `--strict`)",
        remedy: "let the extension finish the scene's lorebook entries first",
    },
    Rule {
        code: "running-recap-missing",
        levels: &[Warning, Error],
        from: "`snapshot --at`, `snapshot --scenes`, `snapshot --strict`",
        meaning: "the chat has no running recap (error with `--strict`)",
        remedy: "let the extension write the running recap first",
    },
    Rule {
        code: "scene-not-in-recap",
        levels: &[Warning, Error],
        from: "`snapshot --at`, `snapshot --scenes`, `snapshot --strict`",
        meaning: "the scene is not in the running recap's version in use (error with `--strict`)",
        remedy: "let the extension combine the scene with the running recap first",
    },
    Rule {
        code: "scenes-none",
        levels: &[Info],
        from: "`snapshot --scenes`",
        meaning: "no message of the chat ends a scene, so there is no checkpoint to take",
        remedy: "mark the ends of scenes in the extension",
    },
    Rule {
        code: "lorebook-of-now",
        levels: &[Info],
        from: "`snapshot --at`, `snapshot --scenes`",
        meaning: "a checkpoint at an earlier message has the lorebook as it is now",
        remedy: "for that of then: `stvc restore … --at N`, or `stvc reconstruct`",
    },
    Rule {
        code: "words-not-kept",
        levels: &[Info],
        from: "`snapshot -m`",
        meaning: "nothing changed, so there is no new snapshot to keep the words",
        remedy: "`--tag NAME` names a state that is there already",
    },
    Rule {
        code: "recap-from-future",
        levels: &[Warning],
        from: "`snapshot --at`, `snapshot --scenes`",
        meaning: "the running recap has versions that tell of what comes after the message",
        remedy: "nothing, if you know; `stvc restore --at` takes them out",
    },
];

const RESTORED: &[Rule] = &[
    Rule {
        code: "recap-version-mismatch",
        levels: &[Error],
        from: "`restore`, `show`",
        meaning: "the running recap's version in use is not the one that was recorded",
        remedy: "choose the right version in the extension, or restore another snapshot",
    },
    Rule {
        code: "combined-recap-mismatch",
        levels: &[Warning],
        from: "`restore`, `show`",
        meaning: "the combined recap does not tell of as many messages as was recorded",
        remedy: "let the extension make it again",
    },
    Rule {
        code: "lorebook-name-mismatch",
        levels: &[Warning],
        from: "`restore`, `show`",
        meaning: "the lorebook bound to the chat is not the one that was recorded, so the chat may share it with others",
        remedy: "`stvc doctor` tells which chats share a lorebook",
    },
    Rule {
        code: "checkpoint-state-missing",
        levels: &[Info],
        from: "`restore`, `show`",
        meaning: "nothing was recorded of the recaps' state when the snapshot was taken, so nothing could be compared",
        remedy: "nothing",
    },
    Rule {
        code: "lorebook-from-elsewhere",
        levels: &[Warning],
        from: "`restore --as`",
        meaning: "the snapshot has no lorebook, so the new chat got a copy of another snapshot's, or of the one of today",
        remedy: "look through it: it may know what had not happened yet",
    },
    Rule {
        code: "lorebook-then-unknown",
        levels: &[Error],
        from: "`restore --at`",
        meaning: "what the lorebook was like at that message is not known: no snapshot was taken there, and no scene up to it has a note (exit 4)",
        remedy: "`--only chat` brings the messages back without a lorebook",
    },
    Rule {
        code: "note-missing",
        levels: &[Warning],
        from: "`restore --at`",
        meaning: "the last scene has no note of the lorebook, so an earlier scene's was taken",
        remedy: "look through the lorebook: entries made between the two are missing",
    },
    Rule {
        code: "note-unreadable",
        levels: &[Warning],
        from: "`restore --at`",
        meaning: "some of the noted lorebook entries cannot be read and were left out",
        remedy: "look through the lorebook",
    },
    Rule {
        code: "uid-gaps",
        levels: &[Info],
        from: "`restore --at`",
        meaning: "UIDs that no entry has, because entries were deleted; they were kept as they are",
        remedy: "nothing",
    },
    Rule {
        code: "not-isolated",
        levels: &[Warning],
        from: "`restore --as`",
        meaning: "the new chat's header cannot be read, so it still names the lorebook of the chat it came from",
        remedy: "mend line 1 of the new file, and choose a lorebook for it in SillyTavern",
    },
    Rule {
        code: "group-not-edited",
        levels: &[Warning],
        from: "`restore`",
        meaning: "the group's file cannot be read, so the chat is not listed in it",
        remedy: "mend the group's file, then restore again",
    },
    Rule {
        code: "reload-sillytavern",
        levels: &[Info, Warning],
        from: "`restore`, `undo`, `doctor --fix`, `merge`",
        meaning: "files were written that SillyTavern may have in memory, and it writes back what it has; a warning if it is seen running on this library and files were replaced",
        remedy: "if it is running, reload its page (F5) before you go on; to replace the chat that is open in it, close the chat there first",
    },
];

const MERGED: &[Rule] = &[
    Rule {
        code: "merge-no-base",
        levels: &[Info],
        from: "`merge`",
        meaning: "no snapshot is known from which both lorebooks come, so it cannot be told who changed what: nothing is removed, and differences are conflicts",
        remedy: "settle the conflicts with `--ours` or `--theirs`, or by hand in SillyTavern",
    },
    Rule {
        code: "merge-queue-left",
        levels: &[Info],
        from: "`merge`",
        meaning: "work waits in the queue of the other lorebook; a queue belongs to its chat and is not merged",
        remedy: "let ST-Auto-Recap finish it in the other chat, then merge again",
    },
    Rule {
        code: "merge-registry",
        levels: &[Warning],
        from: "`merge`",
        meaning: "a registry lists entries by UIDs that are others in the merged lorebook, in a notation that is not changed",
        remedy: "look at the entry, and correct its UIDs",
    },
];

const LIBRARY: &[Rule] = &[
    Rule {
        code: "lorebook-shared",
        levels: &[Warning],
        from: "`doctor`, `restore`, `merge`",
        meaning: "several chats use one lorebook, and what changes in one changes in all",
        remedy: "`stvc doctor --fix` gives each fork a copy of its own",
    },
    Rule {
        code: "lorebook-orphaned",
        levels: &[Info],
        from: "`doctor`",
        meaning: "no chat, group, character, persona or setting uses the lorebook",
        remedy: "keep it for later, or remove it with `stvc doctor --fix --orphans`",
    },
    Rule {
        code: "checkpoint-link-dangling",
        levels: &[Warning],
        from: "`doctor`",
        meaning: "messages link to checkpoints that do not exist; SillyTavern would begin a new chat there",
        remedy: "`stvc restore` the checkpoint if the store has it, or remove the link in SillyTavern",
    },
    Rule {
        code: "parent-missing",
        levels: &[Warning],
        from: "`doctor`",
        meaning: "the chat that a fork names as its parent does not exist",
        remedy: "`stvc restore` it if the store has it; else only \"Back to parent chat\" does not work",
    },
    Rule {
        code: "settings-hash-differs",
        levels: &[Info],
        from: "`doctor`",
        meaning: "a fork was made with other settings of the extension than its parent",
        remedy: "nothing",
    },
    Rule {
        code: "references-unknown",
        levels: &[Warning],
        from: "`doctor`",
        meaning: "something that may use a lorebook cannot be read, so no lorebook is removed as unused",
        remedy: "mend or remove it",
    },
];

const STORE: &[Rule] = &[
    Rule {
        code: "operation-finished",
        levels: &[Warning],
        from: "every command that writes",
        meaning: "a command was interrupted before all its files were written (killed, a power cut); they are written now, before anything else",
        remedy: "none is needed; `stvc undo` with the number takes it back",
    },
    Rule {
        code: "operation-unfinished",
        levels: &[Info],
        from: "`status`, `timelines`",
        meaning: "a command was interrupted before all its files were written, or is at work just now",
        remedy: "the next command that writes finishes it, such as `stvc snapshot`",
    },
    Rule {
        code: "operation-taken-back",
        levels: &[Warning],
        from: "every command that writes",
        meaning: "a command was interrupted and cannot be finished, so its branches and files are as they were before it",
        remedy: "mend the cause that the finding names, then give the command again",
    },
    Rule {
        code: "saved-meanwhile",
        levels: &[Warning],
        from: "every command that writes",
        meaning: "a file that an interrupted command had to write was saved by another program since; it is left as it is, and its timeline goes on from the snapshot that it comes from",
        remedy: "none is needed; what was to be written is in the store",
    },
    Rule {
        code: "backup-old",
        levels: &[Info],
        from: "`status`",
        meaning: "the last backup is older than two weeks, and the store has moved on; who never made one is not told",
        remedy: "`stvc backup FILE.stvc`",
    },
    Rule {
        code: "backup-not-noted",
        levels: &[Warning],
        from: "`backup`",
        meaning: "the backup is there and sound, but the store could not be told of it",
        remedy: "nothing; `stvc backup --last` does not know of this one",
    },
    Rule {
        code: "lorebook-newer",
        levels: &[Warning],
        from: "`restore --all`",
        meaning: "two timelines have different states of one lorebook; that of the newer snapshot was written",
        remedy: "`stvc restore NAME --as OTHER` brings the other chat back with a lorebook of its own",
    },
    Rule {
        code: "packs-not-joined",
        levels: &[Info],
        from: "`snapshot`",
        meaning: "small packs could not be folded; nothing is lost",
        remedy: "nothing; the next snapshot tries again",
    },
    Rule {
        code: "store-file-damaged",
        levels: &[Error, Warning],
        from: "`check`",
        meaning: "a file of the store is damaged or missing",
        remedy: "as the finding says; what is a warning hurts no snapshot",
    },
    Rule {
        code: "object-damaged",
        levels: &[Error],
        from: "`check`",
        meaning: "an object is damaged or missing, and the snapshots that it hurts",
        remedy: "take a snapshot while the files are there: it writes again what can be written; or copy the object from a backup of the store",
    },
    Rule {
        code: "snapshot-damaged",
        levels: &[Error],
        from: "`check`, `backup`, `import`",
        meaning: "a snapshot cannot be rebuilt, or not as its commit says; `import` leaves it out and takes the others in",
        remedy: "take a new snapshot while the files are there",
    },
    Rule {
        code: "snapshot-odd",
        levels: &[Error, Warning],
        from: "`check`, `backup`, `import`, `show`, `restore`",
        meaning: "a snapshot is not as the format says, but its files come back byte for byte; what is an error no other store takes in: a wrong content id, unsafe names, trees that git refuses",
        remedy: "nothing, if it is a warning; else take a new snapshot while the files are there",
    },
    Rule {
        code: "snapshot-newer",
        levels: &[Error, Warning],
        from: "`check`, `backup`, `import`",
        meaning: "a snapshot is of a later format than this program knows; it is kept, backed up and taken in as it is, and cannot be shown or restored here",
        remedy: "update stvc",
    },
    Rule {
        code: "kept-damaged",
        levels: &[Error],
        from: "`check`",
        meaning: "something is damaged or missing that only `undo` needs, such as the former bytes of a file that was replaced",
        remedy: "if it is needed, copy the object from a backup of the store; `stvc gc --keep-undo 0s` lets go of all that could be undone",
    },
    Rule {
        code: "branch-set-back",
        levels: &[Warning],
        from: "`check`",
        meaning: "a branch leads to an older snapshot than the operation log says; another program moved it, or a command was cut short",
        remedy: "if you did not do that: `stvc tag NAME ID` keeps the later snapshot, `stvc restore ID` brings its files back",
    },
    Rule {
        code: "ref-left-out",
        levels: &[Error, Warning],
        from: "`import`, `sync`",
        meaning: "a branch or tag of a backup, or of what devices share, leads to a snapshot that was left out: the branch ends with an earlier one, or was left out, too; `sync` leaves the whole timeline alone",
        remedy: "`stvc check` on the backup or shared folder says what is wrong with the snapshot",
    },
    Rule {
        code: "ref-missing",
        levels: &[Error],
        from: "`check`",
        meaning: "a branch or tag that should be there by the operation log is gone or damaged",
        remedy: "the next snapshot of the timeline leads it there again; a tag: `stvc tag NAME ID`",
    },
    Rule {
        code: "history-broken",
        levels: &[Error],
        from: "`check`, `backup`, `import`",
        meaning: "a ref or commit cannot be read",
        remedy: "take a snapshot while the files are there, or copy the store from a backup",
    },
];

/// Every code.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    CATALOGUE.iter().flat_map(|(_, rules)| *rules)
}

/// Whether a finding may have that code and level.
pub(super) fn knows(code: &str, level: Level) -> bool {
    rules().any(|rule| rule.code == code && rule.levels.contains(&level))
}

/// `docs/findings.md`.
pub fn findings_page() -> String {
    let mut page = String::from(
        "# Findings\n\nWhat stvc finds odd or wrong in your data or its store. A finding never keeps a chat from being stored: bytes are bytes. \
         With `--json` each is one line of type `finding`, see [json.md](json.md).\n\n\
         An **error** says that something is lost or broken, a **warning** that something will not work as you expect, **info** what is worth knowing. \
         A finding about a chat's or lorebook's own files is told when they are looked at because they changed, not again at every command. \
         Made from `src/rules/catalogue.rs`; a test keeps it so.\n",
    );
    for (title, rules) in CATALOGUE {
        page.push_str(&format!(
            "\n## {title}\n\n| code | level | from | meaning | what to do |\n|---|---|---|---|---|\n"
        ));
        for rule in *rules {
            let levels: Vec<_> = rule.levels.iter().map(|level| level.as_str()).collect();
            page.push_str(&format!(
                "| `{}` | {} | {} | {} | {} |\n",
                rule.code,
                levels.join(", "),
                rule.from,
                rule.meaning,
                rule.remedy
            ));
        }
    }
    page
}
