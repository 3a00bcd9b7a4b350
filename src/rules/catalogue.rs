//! Every code that a finding may have. `docs/findings.md` is made from this table.

use serde::Serialize;

use Level::{Error, Info, Warning};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing.
    Info,
    /// Something will not work as the user expects.
    Warning,
    /// Something is lost or broken.
    Error,
}

impl Level {
    /// Returns its name in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Info => "info",
            Warning => "warning",
            Error => "error",
        }
    }
}

/// A row of the table.
pub struct Rule {
    /// Names the rule.
    pub code: Code,
    name: &'static str,
    /// The levels that it may have; the first unless the finding sets another.
    pub levels: &'static [Level],
    /// The commands that report it.
    pub from: &'static str,
    /// A sentence about what was found.
    pub meaning: &'static str,
    /// A sentence about what to do.
    pub remedy: &'static str,
}

/// Each row: name, code in output, levels and commands; meaning; remedy.
macro_rules! catalogue {
    ($($title:literal => {$(
        $name:ident $code:literal [$($level:ident),+] $from:expr; $meaning:literal; $remedy:literal;
    )*})*) => {
        /// Names a rule. Its name in output never changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $meaning] #[serde(rename = $code)] $name,)*)*
        }

        impl Code {
            pub(super) fn rule(self) -> &'static Rule {
                match self {
                    $($(Code::$name => &Rule {
                        code: Code::$name,
                        name: $code,
                        levels: &[$($level),+],
                        from: $from,
                        meaning: $meaning,
                        remedy: $remedy,
                    },)*)*
                }
            }
        }

        /// All codes, by subject.
        pub const CATALOGUE: &[(&str, &[Code])] = &[$(($title, &[$(Code::$name),*])),*];
    };
}

impl Code {
    /// Returns its name in output.
    pub fn as_str(self) -> &'static str {
        self.rule().name
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Commands that make a checkpoint at a message.
const CHECKPOINTS: &str =
    "`snapshot --at`, `snapshot --scenes`, `snapshot --strict`, `fork --at`, `restore --at --as`";

/// Commands that read a timeline's own files.
const FILES: &str = "`snapshot`, `status`, `show`, `restore`, `doctor`";

catalogue! {
    "Chats" => {
        OtherUsers "other-users" [Info] "`snapshot`, `status`, `watch`, `backup`, `check`, `doctor`, `stats`";
            "SillyTavern has several users, and only the chats of `default-user` are looked at";
            "`--user NAME` for another one, `--all-users` for all: each keeps a store of their own";
        Unreadable "unreadable" [Error] "`snapshot`, `status`, `timelines`, `doctor`, `sync`, `watch`";
            "a file or folder of the library cannot be read; it was not stored, and the chats in such a folder do not count as deleted";
            "check its name, its permissions and the disk; a link must lead to a folder that is mounted";
        BackupAmbiguous "backup-ambiguous" [Warning] "`import`";
            "a backup of SillyTavern can be of several characters: their backups have one key in the file name, and the messages do not tell";
            "`stvc restore` it, and move the file to the folder of the right character";
        BackupUndated "backup-undated" [Warning] "`import`";
            "the name of a backup of SillyTavern gives a date that does not exist";
            "nothing; the snapshot has the time at which the file was written";
        ChatShrank "chat-shrank" [Warning] "`snapshot`";
            "the chat lost more than half its messages, or all but its greeting, since the last snapshot";
            "if you did not do that: `stvc restore` the snapshot that the finding names, with `--overwrite`";
        ChatReplaced "chat-replaced" [Warning] "`snapshot`";
            "none of the messages of the last snapshot is left";
            "if you did not do that: `stvc restore` the snapshot that the finding names, with `--overwrite`";
        RestoreUndone "restore-undone" [Warning] "`snapshot`";
            "the chat or lorebook was brought back, and then what that had replaced was written again: a page of SillyTavern still had it in memory";
            "reload that page, then `stvc restore` the snapshot that the finding names, with `--overwrite`";
        ChatEmpty "chat-empty" [Error, Warning] FILES;
            "the chat file is empty; of a group chat that was never stored with messages only a warning";
            "`stvc restore NAME --overwrite` goes back to its latest valid snapshot, if there is one";
        ChatDamaged "chat-damaged" [Error] FILES;
            "the chat file holds zero bytes where text should be, or no line of it can be read";
            "`stvc restore NAME --overwrite` goes back to its latest valid snapshot, if there is one";
        FileDamaged "file-damaged" [Error] FILES;
            "the file of a group, the settings, a character card or the picture of a persona is empty, holds zero bytes or cannot be read";
            "`stvc restore NAME --overwrite` goes back to its latest valid snapshot, if there is one; `stvc doctor --fix` does it after asking";
        DamagePassedOver "damage-passed-over" [Warning] "`restore`, `fork`";
            "the timeline was named without a moment, and its latest snapshots are of a damaged file: the latest valid one is used";
            "`stvc restore ID` restores exactly the snapshot with that id";
        ChatBom "chat-bom" [Warning] FILES;
            "it begins with a byte order mark; SillyTavern loses the header and message 0";
            "save the file as UTF-8 without a byte order mark";
        ChatHeaderBroken "chat-header-broken" [Warning] FILES;
            "line 1 cannot be read; SillyTavern loses the chat's metadata, and mostly message 0";
            "mend line 1, or restore an earlier snapshot";
        ChatHeaderMissing "chat-header-missing" [Warning] FILES;
            "line 1 is a message, where the header should be; SillyTavern drops it unread, and it is gone with the next save";
            "put a header before it, such as `{\"user_name\":\"unused\",\"character_name\":\"unused\",\"chat_metadata\":{}}`";
        NotUtf8 "not-utf8" [Warning] FILES;
            "some bytes of the chat or lorebook are no UTF-8; SillyTavern reads them as � and writes that back with its next save";
            "restore an earlier snapshot, or save the file as UTF-8";
        ChatLineBroken "chat-line-broken" [Warning] FILES;
            "lines that SillyTavern drops silently";
            "mend the line in a text editor, or restore an earlier snapshot";
    }

    "Lorebooks" => {
        LorebookMissing "lorebook-missing" [Error] FILES;
            "the chat names a lorebook that does not exist; SillyTavern shows it as empty";
            "`stvc doctor --fix` brings it back if a snapshot has it; or choose another lorebook for the chat";
        LorebookUnread "lorebook-unread" [Warning] "`snapshot`, `status`";
            "the file of the chat's lorebook exists and cannot be read; a snapshot has the chat alone, and its latest moment has the last lorebook that was stored";
            "check the permissions of the lorebook's file, and the disk; the next snapshot after that has both";
        CharacterMissing "character-missing" [Warning] "`doctor`";
            "chats lie in a folder for which there is no character's card; SillyTavern does not show them";
            "`stvc restore characters/NAME` brings the card back if it was ever stored";
        CardLorebookMissing "card-lorebook-missing" [Warning] "`doctor`";
            "a character's card names a lorebook that does not exist";
            "`stvc restore worlds/NAME` brings it back if it was ever stored; or choose another in SillyTavern";
        LorebookBroken "lorebook-broken" [Error, Warning] FILES;
            "the lorebook is empty, holds zero bytes or is not JSON with entries; a warning if only single bytes of it are not UTF-8. It is stored as one piece";
            "`stvc restore worlds/NAME --overwrite` goes back to its latest valid snapshot, if there is one; `stvc doctor --fix` does it after asking";
        LorebookKeyRepeated "lorebook-key-repeated" [Warning] FILES;
            "a key stands twice, so it is stored as one piece; SillyTavern keeps the last of the two";
            "nothing; the next save by SillyTavern leaves one of them";
        UidRepeated "uid-repeated" [Error] FILES;
            "several entries of one lorebook have the same UID, so which one a registry or an extension means is chance. The same UID in two lorebooks, and gaps, are fine";
            "give all but one of them a UID of their own, or restore an earlier snapshot of the lorebook";
        LorebookAttachedDiffers "lorebook-attached-differs" [Warning, Info] FILES;
            "ST-Auto-Recap has noted another lorebook (`auto_lorebooks.lorebookName`) than the one bound to the chat (`world_info`); in a fork, which the extension gives a new one without noting it, only info";
            "bind the lorebook that holds this chat's entries, and let the extension refresh its registry";
        LorebookNameUnexpected "lorebook-name-unexpected" [Info] FILES;
            "the extension uses the lorebook, and does not call this chat's so (by the template in its settings, else `z-AutoLB-{{char}}-{{chat}}`); not told of forks";
            "nothing, if the chat was renamed or you chose the lorebook; else make sure that no other chat writes to it";
    }

    "What ST-Auto-Recap keeps" => {
        RegistryDangling "registry-dangling" [Warning] FILES;
            "a registry lists a UID that no entry of the lorebook has, or only a registry";
            "restore an earlier snapshot of the lorebook, or take the line out of the registry";
        RegistryUnreadable "registry-unreadable" [Error] FILES;
            "a registry is neither the extension's text nor JSON";
            "restore an earlier snapshot of the lorebook, or empty the entry: the extension writes it anew";
        RegistryCacheDangling "registry-cache-dangling" [Warning] FILES;
            "the registry in the chat's metadata lists UIDs that the lorebook does not have; the extension will write them into the lorebook's registries";
            "make sure that the right lorebook is bound";
        QueueSeveral "queue-several" [Warning] FILES;
            "the lorebook has more than one queue; the extension uses the first";
            "delete the others in SillyTavern's lorebook editor";
        QueueUnreadable "queue-unreadable" [Warning] FILES;
            "the queue cannot be read; the extension takes it for empty";
            "delete the entry; the extension makes a new one";
        QueuePastEnd "queue-past-end" [Warning] FILES;
            "an operation that is still to be done is about a message that the chat does not have";
            "clear the extension's queue once the chat is open";
        RecapForeign "recap-foreign" [Warning] FILES;
            "the running recap says it belongs to another chat. Unless the chat is a fork or its lorebook is missing, the extension resets it when the chat is opened";
            "before that, `stvc doctor --fix` tells it the chat's present name, unless there is a chat of the name that it has";
        RecapVersionLost "recap-version-lost" [Error] FILES;
            "the running recap's version in use is not among its versions";
            "choose one of its versions in the extension, or restore an earlier snapshot";
        RecapUnreadable "recap-unreadable" [Warning] FILES;
            "the running recap is no object, its versions are no list, or a version's number is no whole number";
            "restore an earlier snapshot, or clear the running recap in the extension";
        RecapPastEnd "recap-past-end" [Warning] FILES;
            "versions of the running recap end with a message that the chat does not have";
            "choose an older version in the extension and delete these, if the chat was cut on purpose";
        RecapSceneMissing "recap-scene-missing" [Warning] FILES;
            "versions of the running recap end with a message that has no scene recap";
            "let the extension make the scene's recap again, or restore an earlier snapshot";
        SceneIndexWrong "scene-index-wrong" [Warning] FILES;
            "the version in use of a scene's recap is not among its versions";
            "choose a version in the extension; until then it shows the last one";
        SceneHashDiffers "scene-hash-differs" [Info] FILES;
            "a scene's recap was changed since the extension noted its hash, as its first stages do";
            "nothing";
    }

    "Checkpoints" => {
        MessageNotFound "message-not-found" [Error] "`snapshot --at`, `fork --at`, `restore --at`";
            "the chat has no message of that number (exit 4)";
            "name one that is there";
        QueueActive "queue-active" [Error, Warning] "`snapshot`, `fork`, `watch`, `backup`, `sync`, `restore`, `reconstruct`, `import`, `merge`, `doctor --fix`";
            "work is pending, in progress or to be tried again in the lorebook's queue: the state is half of one, a copy would do another chat's work, a book in its place would get what it was not meant for (exit 4; a warning with `--allow-active-queue`, when a state with such a queue comes back, and for the snapshot that `reconstruct` and `import` create first, which is marked as an autosave)";
            "give the command again when the queue is empty; `--wait` of `snapshot`, `fork` and `restore --as` waits for it; `--allow-active-queue` does it all the same";
        SceneBreakMissing "scene-break-missing" [Warning, Error] CHECKPOINTS;
            "no scene ends at the message (error with `--strict` or `--require-scene-break`)";
            "mark the end of the scene there first, or choose a message that ends one";
        SceneRecapMissing "scene-recap-missing" [Warning] CHECKPOINTS;
            "the message has no scene recap";
            "let the extension write the scene's recap first";
        SceneLorebookMissing "scene-lorebook-missing" [Warning, Error] CHECKPOINTS;
            "the scene has no note of the lorebook's entries (error with `--strict`)";
            "let the extension finish the scene's lorebook entries first";
        RunningRecapMissing "running-recap-missing" [Warning] CHECKPOINTS;
            "the chat has no running recap";
            "let the extension write the running recap first";
        SceneNotInRecap "scene-not-in-recap" [Warning, Error] CHECKPOINTS;
            "the scene is not in the running recap's version in use (error with `--strict`)";
            "let the extension combine the scene with the running recap first";
        ScenesNone "scenes-none" [Info] "`snapshot --scenes`";
            "no message of the chat ends a scene, so there is no checkpoint to take";
            "mark the ends of scenes in the extension";
        LorebookOfNow "lorebook-of-now" [Info] "`snapshot --at`, `snapshot --scenes`";
            "a checkpoint at an earlier message has the lorebook as it is now";
            "for that of then: `stvc restore … --at N`, or `stvc reconstruct`";
        WordsNotKept "words-not-kept" [Info] "`snapshot -m`";
            "nothing changed, so there is no new snapshot to keep the words";
            "`--tag NAME` names a state that is there already";
        RecapFromFuture "recap-from-future" [Warning] "`snapshot --at`, `snapshot --scenes`";
            "the running recap has versions that tell of what comes after the message";
            "nothing, if you know; `stvc restore --at` takes them out";
    }

    "Restored states" => {
        RecapVersionMismatch "recap-version-mismatch" [Error] "`restore`, `show`";
            "the running recap's version in use is not the one that was recorded of this very state; the record in the header of a fork counts until the story goes on";
            "choose the right version in the extension, or restore another snapshot";
        CombinedRecapMismatch "combined-recap-mismatch" [Warning] "`restore`, `show`";
            "the combined recap does not tell of as many messages as was recorded";
            "let the extension make it again";
        LorebookNameMismatch "lorebook-name-mismatch" [Warning] "`restore`, `show`";
            "the lorebook bound to the chat is not the one that was recorded, so the chat may share it with others";
            "`stvc doctor` tells which chats share a lorebook";
        CheckpointStateMissing "checkpoint-state-missing" [Info] "`restore`, `show`";
            "nothing was recorded of the recaps' state when the snapshot was taken, so nothing could be compared";
            "nothing";
        LorebookFromElsewhere "lorebook-from-elsewhere" [Warning, Error] "`restore --as`";
            "the snapshot has no lorebook, so the new chat got a copy of another snapshot's, or of the one of today (an error if the snapshot with the lorebook of that moment is damaged)";
            "look through it: it may know what had not happened yet";
        LorebookThenUnknown "lorebook-then-unknown" [Error] "`restore --at`";
            "what the lorebook was like at that message is not known: no snapshot was taken there, and no scene up to it has a note (exit 4)";
            "`--only chat` brings the messages back without a lorebook";
        NoteMissing "note-missing" [Warning] "`restore --at`";
            "the last scene has no note of the lorebook, so an earlier scene's was taken";
            "look through the lorebook: entries made between the two are missing";
        NoteUnreadable "note-unreadable" [Warning] "`restore --at`";
            "some of the noted lorebook entries cannot be read and were left out";
            "look through the lorebook";
        UidGaps "uid-gaps" [Info] "`restore --at`";
            "UIDs that no entry has, because entries were deleted; they were kept as they are";
            "nothing";
        NotIsolated "not-isolated" [Warning] "`restore --as`";
            "the new chat's header cannot be read, so it still names the lorebook of the chat it came from";
            "mend line 1 of the new file, and choose a lorebook for it in SillyTavern";
        GroupChatUnlisted "group-chat-unlisted" [Warning] "`doctor`";
            "no group lists the group chat, so SillyTavern does not show it";
            "`stvc doctor --fix` lists it in its group, where the store, its parent or its speakers tell which; else name the group with `--group`";
        GroupNotEdited "group-not-edited" [Warning] "`restore`";
            "the group's file cannot be read, so the chat is not listed in it";
            "mend the group's file, then restore again";
        ReloadSillytavern "reload-sillytavern" [Info, Warning] "`restore`, `undo`, `doctor --fix`, `merge`";
            "files were written that SillyTavern may have in memory, and it writes back what it has; a warning if it is seen running on this library and files were replaced";
            "if it is running, reload its page (F5) before you go on; to replace the chat that is open in it, close the chat there first";
    }

    "Merged lorebooks" => {
        MergeNoBase "merge-no-base" [Info] "`merge`";
            "no snapshot is known from which both lorebooks come, so it cannot be told who changed what: nothing is removed, and differences are conflicts";
            "settle the conflicts with `--keep`, or by hand in SillyTavern";
        MergeQueueLeft "merge-queue-left" [Info] "`merge`";
            "work waits in the queue of the other lorebook; a queue belongs to its chat and is not merged";
            "let ST-Auto-Recap finish it in the other chat, then merge again";
        MergeRegistry "merge-registry" [Warning] "`merge`";
            "a registry lists entries by UIDs that are others in the merged lorebook, in a notation that is not changed";
            "look at the entry, and correct its UIDs";
    }

    "The library as a whole" => {
        LorebookNone "lorebook-none" [Info] "`doctor TIMELINE`";
            "no lorebook is bound to the chat, which is allowed";
            "nothing";
        LorebookShared "lorebook-shared" [Warning] "`doctor`, `restore`, `merge`";
            "several chats use one lorebook, and what changes in one changes in all";
            "`stvc doctor --fix` gives each fork a copy of its own";
        LorebookOrphaned "lorebook-orphaned" [Warning, Info] "`doctor`, `status`";
            "no chat, group, character, persona or setting uses the lorebook; a warning (also of `status` and the viewer) if a chat that is gone left it behind, else a note of `doctor`";
            "`stvc doctor --fix` removes what was left behind, with its entry in the map of checkpoints; any other is kept for later, or removed with `--orphans`";
        CheckpointLinkDangling "checkpoint-link-dangling" [Warning] "`doctor`";
            "messages link to checkpoints that do not exist; SillyTavern would begin a new chat there";
            "`stvc restore` the checkpoint if the store has it, or remove the link in SillyTavern";
        ParentMissing "parent-missing" [Warning] "`doctor`";
            "the chat that a fork names as its parent does not exist";
            "`stvc restore` it if the store has it; else only \"Back to parent chat\" does not work";
        SettingsHashDiffers "settings-hash-differs" [Info] "`doctor`";
            "a fork was made with other settings of the extension than its parent";
            "nothing";
        ReferencesUnknown "references-unknown" [Warning] "`doctor`";
            "something that may use a lorebook cannot be read, so no lorebook is removed as unused";
            "mend or remove it";
    }

    "The store" => {
        OperationFinished "operation-finished" [Warning] "every command that writes";
            "a command was interrupted before all its files were written (killed, a power cut); they are written now, before anything else";
            "none is needed; `stvc undo` with the number takes it back";
        OperationUnfinished "operation-unfinished" [Info] "`status`, `timelines`";
            "a command was interrupted before all its files were written, or is at work just now";
            "the next command that writes finishes it, such as `stvc snapshot`";
        OperationTakenBack "operation-taken-back" [Warning] "every command that writes";
            "a command was interrupted and cannot be finished, so its branches and files are as they were before it";
            "mend the cause that the finding names, then give the command again";
        OperationSetAside "operation-set-aside" [Warning] "every command that writes";
            "the operation log ends with an operation that cannot be carried out: it names a file that stvc never writes, or a branch that cannot be; nothing of it is done, and its line is moved to `stvc/operations-set-aside.jsonl` in the store";
            "run `stvc check` to look for other damage";
        SavedMeanwhile "saved-meanwhile" [Warning] "every command that writes";
            "a file that an interrupted command had to write was saved by another program since; it is left as it is, and its timeline goes on from the snapshot that it comes from";
            "none is needed; what was to be written is in the store";
        BackupOld "backup-old" [Info] "`status`";
            "the last backup is older than two weeks, and the store has moved on; who never made one is not told";
            "`stvc backup FILE.stvc`";
        BackupNotNoted "backup-not-noted" [Warning] "`backup`";
            "the backup is there and sound, but the store could not be told of it";
            "nothing; `stvc backup --last` does not know of this one";
        NotStored "not-stored" [Warning] "`backup`";
            "the store cannot be written, because its disk is full or it is read-only; the backup has the snapshots that were stored before, and not what changed since";
            "make room, or let stvc write to the store, and take another backup";
        RemovedHere "removed-here" [Info] "`backup`, `sync`";
            "a backup or remote had snapshots that `forget`, `erase` or `undo` removed here since; a file is replaced without them, a folder or server keeps them out of sight";
            "nothing; `stvc backup` to a folder or server with `--prune` removes them there, too";
        ErasedLeft "erased-left" [Warning] "`backup`, `sync`";
            "the folder still has objects of a chat that was erased; nothing there leads to them, but they could not be removed";
            "the next `stvc backup` or `stvc sync` to it tries again; if that fails, too, `stvc check FOLDER` says what is damaged";
        LorebookInUse "lorebook-in-use" [Warning] "`undo`";
            "the undone operation wrote this lorebook, and a chat uses it that did not before, such as a fork that was renamed since; the lorebook stays";
            "nothing; delete the lorebook in SillyTavern if no chat needs it";
        LorebookNewer "lorebook-newer" [Warning] "`restore --all`";
            "two timelines have different states of one lorebook; that of the newer snapshot was written";
            "`stvc restore NAME --as OTHER` brings the other chat back with a lorebook of its own";
        AttachmentDiffers "attachment-differs" [Warning] "`restore`, `sync`";
            "another file is there under the name of one that a message names; it stays";
            "move it away and give the command again";
        AttachmentLost "attachment-lost" [Error] "`check`, `backup`, `import`, `sync`, `restore`, `undo`, `show`";
            "a picture or file that messages name is missing from the store or damaged there, or differs from the snapshot's list; everything else of the chat is restored and copied";
            "if the file is in the library, `stvc check` and then `stvc snapshot` store it again; else copy it from a backup";
        AttachmentListLost "attachment-list-lost" [Error] "`check`, `backup`, `import`, `sync`, `restore`, `show`";
            "the list of the pictures and files that messages name is lost or damaged, so that none of them can be restored; everything else of the chat is restored and copied";
            "`stvc check` and then `stvc snapshot` store the files that are in the library again";
        AttachmentRefused "attachment-refused" [Warning] "`snapshot`, `check`, `backup`, `import`, `sync`, `restore`, `show`";
            "a file that messages name is not written: its name belongs to stvc (`stvc-…`, `.stvc-…`), or it came from a backup or another device and is of a kind that may run code, such as `html`, `svg` or a script; everything else of the chat is stored and restored";
            "if you know the file, `stvc restore CHAT --any-attachments` writes one that was refused for its kind";
        AttachmentMissing "attachment-missing" [Warning] "`doctor`";
            "messages of the chat name pictures or files that are not there";
            "`stvc restore CHAT` brings back those that were stored; the chat itself stays as it is";
        AttachmentsLeftOut "attachments-left-out" [Warning] "`snapshot`";
            "pictures and files that messages name are not kept: they are more than the limit, or cannot be read";
            "`stvc config attachments BYTES` sets the limit";
        LeftOut "left-out" [Info] "the first `snapshot`, `backup`, `stats`";
            "what of the user's folder is not kept, with its size";
            "copy what you want to keep of it by other means; `stvc config include.…` keeps more";
        ConfigurationBroken "configuration-broken" [Warning] "every command, `watch`";
            "`stvc/config.toml` cannot be understood; the defaults are used, and what only it could say is refused: `forget` and `backup` without options, changes from SillyTavern's page";
            "correct the line that the finding names, or move the file away";
        PacksNotJoined "packs-not-joined" [Info] "`snapshot`";
            "small packs could not be folded; nothing is lost";
            "nothing; the next snapshot tries again";
        StoreFileDamaged "store-file-damaged" [Error, Warning] "`check`";
            "a file of the store is damaged or missing";
            "as the finding says; what is a warning hurts no snapshot";
        ObjectDamaged "object-damaged" [Error] "`check`";
            "an object is damaged or missing, and the snapshots that it hurts";
            "take a snapshot while the files are there: it writes again what can be written; or copy the object from a backup of the store";
        SnapshotDamaged "snapshot-damaged" [Error] "`check`, `backup`, `import`";
            "a snapshot cannot be rebuilt, or not as its commit says; `import` leaves it out and takes the others in";
            "take a new snapshot while the files are there";
        SnapshotOdd "snapshot-odd" [Error, Warning] "`check`, `backup`, `import`, `show`, `restore`";
            "a snapshot is not as the format says, but its files come back byte for byte; what is an error no other store takes in: a wrong content id, unsafe names, trees that git refuses";
            "nothing, if it is a warning; else take a new snapshot while the files are there";
        SnapshotNewer "snapshot-newer" [Error, Warning] "`check`, `backup`, `import`";
            "a snapshot is of a later format than this program knows; it is kept, backed up and taken in as it is, and cannot be shown or restored here";
            "update stvc";
        KeptDamaged "kept-damaged" [Error] "`check`, every command that writes";
            "something is damaged or missing that only `undo` or an interrupted command needs, such as the former bytes of a file that was replaced";
            "if it is needed, copy the object from a backup of the store; `stvc gc --keep-undo 0s` lets go of all that could be undone";
        BranchSetBack "branch-set-back" [Warning] "`check`";
            "a branch leads to an older snapshot than the operation log says; another program moved it, or a command was cut short";
            "if you did not do that: `stvc tag NAME ID` keeps the later snapshot, `stvc restore ID` brings its files back";
        RefLeftOut "ref-left-out" [Error, Warning] "`import`, `sync`";
            "a branch or tag of a backup, or of what devices share, leads to a snapshot that was left out: the branch ends with an earlier one, or was left out, too; `sync` leaves the whole timeline alone";
            "`stvc check` on the backup or shared folder says what is wrong with the snapshot";
        RefMissing "ref-missing" [Error] "`check`";
            "a branch or tag that should be there by the operation log is gone or damaged";
            "the next snapshot of the timeline leads it there again; a tag: `stvc tag NAME ID`";
        HistoryBroken "history-broken" [Error] "`check`, `backup`, `import`";
            "a ref or commit cannot be read";
            "take a snapshot while the files are there, or copy the store from a backup";
    }
}

/// Returns every rule, by subject.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    CATALOGUE.iter().flat_map(|(_, codes)| *codes).map(|code| code.rule())
}

/// Returns the text of `docs/findings.md`.
pub fn findings_page() -> String {
    let mut page = String::from(
        "# Findings\n\nWhat stvc finds odd or wrong in your data or its store. A finding never keeps a chat from being stored: bytes are bytes. \
         With `--json` each is one line of type `finding`, see [json.md](json.md).\n\n\
         An **error** says that something is lost or broken, a **warning** that something will not work as you expect, **info** what is worth knowing. \
         A finding about a chat's or lorebook's own files is told when they are looked at because they changed, not again at every command. \
         Made from `src/rules/catalogue.rs`; a test keeps it so.\n",
    );
    for (title, codes) in CATALOGUE {
        page.push_str(&format!(
            "\n## {title}\n\n| code | level | from | meaning | what to do |\n|---|---|---|---|---|\n"
        ));
        for rule in codes.iter().map(|code| code.rule()) {
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
