//! Table of all findings, with their codes. `docs/findings.md` is generated from this table.

use serde::Serialize;

use Level::{Error, Info, Warning};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The finding is worth knowing, but is not a problem.
    Info,
    /// Something will not work as the user expects.
    Warning,
    /// Something is lost or broken.
    Error,
}

impl Level {
    /// Returns the name that output uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Info => "info",
            Warning => "warning",
            Error => "error",
        }
    }
}

/// Description of a finding: a row of `docs/findings.md`.
pub struct Rule {
    /// The identifier by which scripts recognise the finding.
    pub code: Code,
    name: &'static str,
    /// Levels that the finding can have. The first is the default.
    pub levels: &'static [Level],
    /// Commands that report the finding.
    pub from: &'static str,
    /// Description of the problem, in complete sentences.
    pub meaning: &'static str,
    /// Advice in the imperative, lower case, without a final full stop.
    pub remedy: &'static str,
}

/// Defines all codes and their rules. A row has three parts: first the name in Rust, the name in
/// output, the levels and the commands; then the meaning; then the remedy.
macro_rules! catalogue {
    ($($title:literal => {$(
        $name:ident $code:literal [$($level:ident),+] $from:expr; $meaning:literal; $remedy:literal;
    )*})*) => {
        /// Code of a finding. The meaning of a code in output never changes.
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

        /// All codes, grouped by the titles in `docs/findings.md`.
        pub const CATALOGUE: &[(&str, &[Code])] = &[$(($title, &[$(Code::$name),*])),*];
    };
}

impl Code {
    /// Returns the name that output uses.
    pub fn as_str(self) -> &'static str {
        self.rule().name
    }

    /// Returns the command that lists all findings with this code, if there is one.
    pub fn listed_by(self) -> Option<&'static str> {
        let reports = |name: &str| self.rule().from.contains(&format!("`{name}`"));
        let commands = [("doctor", "doctor"), ("check", "check"), ("status", "status -v")];
        commands.into_iter().find(|(name, _)| reports(name)).map(|(_, command)| command)
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Commands that create a checkpoint at a message.
const CHECKPOINTS: &str =
    "`snapshot --at`, `snapshot --scenes`, `snapshot --strict`, `fork --at`, `restore --at --as`";

/// Commands that read a timeline's own files.
const FILES: &str = "`snapshot`, `status`, `show`, `restore`, `doctor`";

catalogue! {
    "Chats" => {
        OtherUsers "other-users" [Info] "`snapshot`, `status`, `watch`, `backup`, `check`, `doctor`, `stats`";
            "SillyTavern has several users, and only the data of `default-user` is used.";
            "use `--user NAME` for another user; use `--all-users` for all users: each has a separate store";
        Unreadable "unreadable" [Error] "`snapshot`, `status`, `timelines`, `doctor`, `sync`, `watch`";
            "A file or folder of the library cannot be read. It was not stored. Chats in an unreadable folder are not treated as deleted.";
            "check its name, its permissions and the disk; if it is a link, mount the folder that it points to";
        BackupAmbiguous "backup-ambiguous" [Warning] "`import`";
            "A SillyTavern backup may belong to several characters. The backups of these characters have the same key in their file names, and the messages do not identify the character.";
            "run `stvc restore NAME` to write the chat, then move the file to the folder of the right character";
        BackupUndated "backup-undated" [Warning] "`import`";
            "The file name of a SillyTavern backup contains a date that does not exist.";
            "no action needed; the snapshot has the time at which the file was written";
        ChatShrank "chat-shrank" [Warning] "`snapshot`";
            "Since the latest snapshot, the chat lost more than half of its messages, or every message except the greeting.";
            "if this was not intended, run `stvc restore ID --overwrite` with the id of the snapshot that the finding names";
        ChatReplaced "chat-replaced" [Warning] "`snapshot`";
            "The chat no longer contains any message of the latest snapshot.";
            "if this was not intended, run `stvc restore ID --overwrite` with the id of the snapshot that the finding names";
        RestoreUndone "restore-undone" [Warning] "`snapshot`";
            "SillyTavern overwrote a restored chat or lorebook with its former content, which SillyTavern's page still had in memory.";
            "reload SillyTavern's page, then run `stvc restore ID --overwrite` with the id of the snapshot that the finding names";
        ChatEmpty "chat-empty" [Error, Warning] FILES;
            "The chat file is empty. This is only a warning if it is a group chat and no snapshot of it has messages.";
            "run `stvc restore NAME --overwrite` to restore its latest valid snapshot, if there is one";
        ChatDamaged "chat-damaged" [Error] FILES;
            "The chat file contains zero bytes instead of text, or none of its lines can be read.";
            "run `stvc restore NAME --overwrite` to restore its latest valid snapshot, if there is one";
        FileDamaged "file-damaged" [Error] FILES;
            "The file of a group, the settings, a character card or the picture of a persona is empty, contains zero bytes or cannot be read.";
            "run `stvc restore NAME --overwrite` to restore its latest valid snapshot, if there is one; run `stvc doctor --fix` to do this after confirmation";
        DamagePassedOver "damage-passed-over" [Warning] "`restore`, `fork`";
            "The file is damaged in the latest snapshots of the timeline. No moment was given, so the latest valid snapshot is used.";
            "run `stvc restore ID` to restore a particular snapshot, even if it is damaged";
        ChatBom "chat-bom" [Warning] FILES;
            "The chat file begins with a byte order mark, so SillyTavern loses the header and message 0.";
            "save the file as UTF-8 without a byte order mark";
        ChatHeaderBroken "chat-header-broken" [Warning] FILES;
            "Line 1, the header, cannot be read. SillyTavern loses the chat's metadata, and usually message 0.";
            "repair line 1, or restore an earlier snapshot";
        ChatHeaderMissing "chat-header-missing" [Warning] FILES;
            "The header is missing: line 1 is a message. SillyTavern ignores this message, and its next save deletes it.";
            "insert a header line before it, such as `{\"user_name\":\"unused\",\"character_name\":\"unused\",\"chat_metadata\":{}}`";
        NotUtf8 "not-utf8" [Warning] FILES;
            "Some bytes of the chat or lorebook are not UTF-8. SillyTavern reads them as � and writes � back with its next save.";
            "restore an earlier snapshot, or save the file as UTF-8";
        ChatLineBroken "chat-line-broken" [Warning] FILES;
            "Some lines of the chat file cannot be read. SillyTavern drops them silently.";
            "repair the lines in a text editor, or restore an earlier snapshot";
    }

    "Lorebooks" => {
        LorebookMissing "lorebook-missing" [Error] FILES;
            "The lorebook that the chat names does not exist. SillyTavern shows it as empty.";
            "run `stvc doctor --fix` to restore it if a snapshot has it; or choose another lorebook for the chat";
        LorebookUnread "lorebook-unread" [Warning] "`snapshot`, `status`, `sync`";
            "The file of the chat's lorebook exists but cannot be read. A new snapshot contains only the chat; restoring the chat uses the last stored lorebook.";
            "check the disk and the permissions of the lorebook's file; the next snapshot then contains both";
        CharacterMissing "character-missing" [Warning] "`doctor`";
            "A folder of chats has no character card, so SillyTavern does not show these chats.";
            "run `stvc restore characters/NAME` to restore the card if it was ever stored";
        CardLorebookMissing "card-lorebook-missing" [Warning] "`doctor`";
            "A character card names a lorebook that does not exist.";
            "run `stvc restore worlds/NAME` to restore it if it was ever stored; or choose another lorebook in SillyTavern";
        LorebookBroken "lorebook-broken" [Error, Warning] FILES;
            "The lorebook is empty, contains zero bytes or is not JSON with entries. It is stored as a single file, not entry by entry. This is a warning if invalid UTF-8 is the only problem.";
            "run `stvc restore worlds/NAME --overwrite` to restore its latest valid snapshot, if there is one; run `stvc doctor --fix` to do this after confirmation";
        LorebookKeyRepeated "lorebook-key-repeated" [Warning] FILES;
            "A key occurs more than once in the lorebook. SillyTavern uses the last value. The lorebook is stored as a single file, not entry by entry.";
            "no action needed; the next save by SillyTavern keeps only the last value";
        UidRepeated "uid-repeated" [Error] FILES;
            "Several entries of a lorebook have the same UID, so a registry or an extension may use the wrong entry. Two lorebooks may use the same UID, and UIDs may have gaps.";
            "give each of these entries a different UID, or restore an earlier snapshot of the lorebook";
        LorebookAttachedDiffers "lorebook-attached-differs" [Warning, Info] FILES;
            "The lorebook that ST-Auto-Recap recorded (`auto_lorebooks.lorebookName`) is not the one bound to the chat (`world_info`). For a fork, the level is info, because the extension binds a new lorebook to a fork without recording it.";
            "bind the lorebook that contains this chat's entries to the chat, and let the extension refresh its registry";
        LorebookNameUnexpected "lorebook-name-unexpected" [Info] FILES;
            "ST-Auto-Recap uses the lorebook, but the lorebook's name does not match the extension's name template for this chat (from the extension's settings, by default `z-AutoLB-{{char}}-{{chat}}`). This is not reported for forks.";
            "no action needed if the chat was renamed or if you chose the lorebook yourself; otherwise make sure that no other chat writes to it";
    }

    "Data of ST-Auto-Recap" => {
        RegistryDangling "registry-dangling" [Warning] FILES;
            "A registry lists a UID that no entry of the lorebook has, or that is the UID of a registry.";
            "restore an earlier snapshot of the lorebook, or delete the line from the registry";
        RegistryUnreadable "registry-unreadable" [Error] FILES;
            "A registry is neither in the extension's text format nor JSON.";
            "restore an earlier snapshot of the lorebook, or clear the content of the registry, so that the extension writes it again";
        RegistryCacheDangling "registry-cache-dangling" [Warning] FILES;
            "The registry in the chat's metadata lists UIDs that the lorebook does not have. The extension will write them to the lorebook's registries.";
            "make sure that the right lorebook is bound to the chat";
        QueueSeveral "queue-several" [Warning] FILES;
            "The lorebook has more than one queue. The extension uses the first.";
            "delete the other queue entries in SillyTavern's lorebook editor";
        QueueUnreadable "queue-unreadable" [Warning] FILES;
            "The queue cannot be read. The extension treats it as empty.";
            "delete the queue entry from the lorebook; the extension creates a new one";
        QueuePastEnd "queue-past-end" [Warning] FILES;
            "A pending operation of the queue refers to a message that the chat does not have.";
            "open the chat and clear the extension's queue";
        RecapForeign "recap-foreign" [Warning] FILES;
            "The running recap records the name of another chat. The extension resets it when the chat is opened, unless the chat is a fork or its lorebook is missing.";
            "if no chat with the recorded name exists, run `stvc doctor --fix` to assign the recap to this chat before you open it";
        RecapVersionLost "recap-version-lost" [Error] FILES;
            "The running recap refers to a version that does not exist.";
            "choose one of its versions in the extension, or restore an earlier snapshot";
        RecapUnreadable "recap-unreadable" [Warning] FILES;
            "The running recap is not an object, its versions are not a list, or a version number is not an integer.";
            "restore an earlier snapshot, or clear the running recap in the extension";
        RecapPastEnd "recap-past-end" [Warning] FILES;
            "Some versions of the running recap end at a message that the chat does not have.";
            "if you removed messages on purpose, choose an older version in the extension and delete these versions";
        RecapSceneMissing "recap-scene-missing" [Warning] FILES;
            "Some versions of the running recap end at a message that has no scene recap.";
            "let the extension create the scene recap again, or restore an earlier snapshot";
        SceneIndexWrong "scene-index-wrong" [Warning] FILES;
            "A scene recap refers to a version that does not exist.";
            "choose a version of the scene recap in the extension; until then, the extension shows the last version";
        SceneHashDiffers "scene-hash-differs" [Info] FILES;
            "A scene recap changed after the extension recorded its hash. The extension itself does this in its first processing stages.";
            "no action needed";
    }

    "Checkpoints" => {
        MessageNotFound "message-not-found" [Error] "`snapshot --at`, `fork --at`, `restore --at`";
            "The chat has no message with that number (exit code 4).";
            "name a message that exists";
        QueueActive "queue-active" [Error, Warning] "`snapshot`, `fork`, `watch`, `backup`, `sync`, `restore`, `reconstruct`, `import`, `merge`, `doctor --fix`";
            "Operations in the lorebook's queue are pending, in progress or being retried (exit code 4). A snapshot would be incomplete, a copied lorebook would run the operations of another chat, and a replaced lorebook would receive results that were not meant for it. This is a warning in three cases: with `--allow-active-queue`, if a restored snapshot contains such a queue, and for the snapshot that `reconstruct` and `import` create first, which is marked as an autosave.";
            "repeat the command when the queue is empty; use `--wait` with `snapshot`, `fork` or `restore --as` to wait until then; use `--allow-active-queue` to continue anyway";
        SceneBreakMissing "scene-break-missing" [Warning, Error] CHECKPOINTS;
            "No scene ends at the message. This is an error with `--strict` or `--require-scene-break`.";
            "mark the end of the scene there first, or choose a message that ends a scene";
        SceneRecapMissing "scene-recap-missing" [Warning] CHECKPOINTS;
            "The message has no scene recap.";
            "let the extension write the scene recap first";
        SceneLorebookMissing "scene-lorebook-missing" [Warning, Error] CHECKPOINTS;
            "The scene has no record of the lorebook's entries. This is an error with `--strict`.";
            "let the extension finish the scene's lorebook entries first";
        RunningRecapMissing "running-recap-missing" [Warning] CHECKPOINTS;
            "The chat has no running recap.";
            "let the extension write the running recap first";
        SceneNotInRecap "scene-not-in-recap" [Warning, Error] CHECKPOINTS;
            "The current version of the running recap does not contain the scene. This is an error with `--strict`.";
            "let the extension combine the scene with the running recap first";
        ScenesNone "scenes-none" [Info] "`snapshot --scenes`";
            "No message of the chat ends a scene, so no checkpoint can be created.";
            "mark the ends of scenes in the extension";
        LorebookOfNow "lorebook-of-now" [Info] "`snapshot --at`, `snapshot --scenes`";
            "The checkpoint is at an earlier message, but contains the current lorebook.";
            "run `stvc restore … --at N` or `stvc reconstruct` to get the lorebook at that message";
        WordsNotKept "words-not-kept" [Info] "`snapshot -m`";
            "The description was not stored, because nothing changed and no snapshot was created.";
            "use `--tag NAME` to name the existing snapshot";
        RecapFromFuture "recap-from-future" [Warning] "`snapshot --at`, `snapshot --scenes`";
            "The running recap has versions that describe messages after the checkpoint.";
            "no action needed if this is intended; run `stvc restore --at` to restore the chat without these versions";
    }

    "Restored snapshots" => {
        RecapVersionMismatch "recap-version-mismatch" [Error] "`restore`, `show`";
            "The current version of the running recap is not the version recorded for this snapshot. For a fork, the version recorded in its header is compared only until the fork gets new messages.";
            "choose the right version in the extension, or restore another snapshot";
        CombinedRecapMismatch "combined-recap-mismatch" [Warning] "`restore`, `show`";
            "The combined recap does not cover the recorded number of messages.";
            "let the extension create it again";
        LorebookNameMismatch "lorebook-name-mismatch" [Warning] "`restore`, `show`";
            "The lorebook bound to the chat is not the one recorded for this snapshot, so the chat may share it with other chats.";
            "run `stvc doctor` to list the chats that share a lorebook";
        CheckpointStateMissing "checkpoint-state-missing" [Info] "`restore`, `show`";
            "The state of the recaps was not recorded when the snapshot was created, so it could not be compared.";
            "no action needed";
        LorebookFromElsewhere "lorebook-from-elsewhere" [Warning, Error] "`restore --as`";
            "The snapshot has no lorebook, so the new chat got a copy of the current lorebook or of the lorebook of another snapshot. This is an error if the snapshot that contains the right lorebook is damaged.";
            "check the entries of the lorebook: they may describe later events";
        LorebookThenUnknown "lorebook-then-unknown" [Error] "`restore --at`";
            "The lorebook at that message is unknown: no snapshot was created at that message, and no scene that ends there or earlier has a record of the lorebook (exit code 4).";
            "use `--only chat` to restore the messages without a lorebook";
        NoteMissing "note-missing" [Warning] "`restore --at`";
            "The last scene up to the message has no record of the lorebook, so the record of an earlier scene was used.";
            "check the lorebook: entries created between the two scenes are missing";
        NoteUnreadable "note-unreadable" [Warning] "`restore --at`";
            "Some of the recorded lorebook entries cannot be read and were left out.";
            "check the entries of the lorebook";
        UidGaps "uid-gaps" [Info] "`restore --at`";
            "Some UIDs are not used by any entry, because entries were deleted. The other UIDs were not changed.";
            "no action needed";
        NotIsolated "not-isolated" [Warning] "`restore --as`";
            "The header of the new chat cannot be read, so the chat still names the lorebook of its parent.";
            "repair line 1 of the new file, and choose a lorebook for it in SillyTavern";
        GroupChatUnlisted "group-chat-unlisted" [Warning] "`doctor`";
            "The group chat is not listed in any group, so SillyTavern does not show it.";
            "run `stvc doctor --fix` to add it to its group, which stvc finds from the store, the parent or the speakers; add `--group` to name the group yourself";
        GroupNotEdited "group-not-edited" [Warning] "`restore`";
            "The group's file cannot be read, so the chat was not added to the group.";
            "repair the group's file, then restore again";
        ReloadSillytavern "reload-sillytavern" [Info, Warning] "`restore`, `undo`, `doctor --fix`, `merge`";
            "SillyTavern may have older versions of the written files in memory, and may overwrite the files with them. This is a warning if SillyTavern is running on this library and files were replaced.";
            "if SillyTavern is running, reload its page (F5) before you continue; before you replace a chat that is open in SillyTavern, close it there";
    }

    "Merged lorebooks" => {
        MergeNoBase "merge-no-base" [Info] "`merge`";
            "No common ancestor of the two lorebooks is known, so stvc cannot tell which side changed an entry. No entry is removed, and every difference is a conflict.";
            "resolve the conflicts with `--keep`, or by hand in SillyTavern";
        MergeQueueLeft "merge-queue-left" [Info] "`merge`";
            "The queue of the other lorebook has pending operations. A queue belongs to its chat and is not merged.";
            "let ST-Auto-Recap finish the queue in the other chat, then merge again";
        MergeRegistry "merge-registry" [Warning] "`merge`";
            "A registry lists UIDs that changed in the merged lorebook. The registry was not updated, because its format is unsupported.";
            "open the registry in SillyTavern's lorebook editor and correct the UIDs";
    }

    "The library" => {
        LorebookNone "lorebook-none" [Info] "`doctor TIMELINE`";
            "No lorebook is bound to the chat. This is allowed.";
            "no action needed";
        LorebookShared "lorebook-shared" [Warning] "`doctor`, `restore`, `merge`";
            "Several chats use the same lorebook, so a change in one chat affects all of them.";
            "run `stvc doctor --fix` to give each fork its own copy";
        LorebookOrphaned "lorebook-orphaned" [Warning, Info] "`doctor`, `status`";
            "No chat, group, character, persona or setting uses the lorebook. If it belonged to a deleted chat, this is a warning, and `status` and the viewer report it too. Otherwise only `doctor` reports it, as info.";
            "run `stvc doctor --fix` to remove the lorebook of a deleted chat and its entry in the checkpoint map; add `--orphans` to remove other unused lorebooks too";
        CheckpointLinkDangling "checkpoint-link-dangling" [Warning] "`doctor`";
            "Messages link to checkpoints that do not exist. SillyTavern would create a new chat for such a link.";
            "run `stvc restore NAME` to restore the checkpoint if the store has it; or remove the link in SillyTavern";
        ParentMissing "parent-missing" [Warning] "`doctor`";
            "The chat that a fork names as its parent does not exist.";
            "run `stvc restore NAME` to restore the parent if the store has it; otherwise no action needed: only SillyTavern's \"Back to parent chat\" uses the parent's name";
        SettingsHashDiffers "settings-hash-differs" [Info] "`doctor`";
            "The settings of ST-Auto-Recap in the fork differ from those in its parent.";
            "no action needed";
        ReferencesUnknown "references-unknown" [Warning] "`doctor`";
            "A file that may use a lorebook cannot be read, so stvc cannot tell which lorebooks are unused, and removes none.";
            "repair or remove the file";
    }

    "The store" => {
        OperationFinished "operation-finished" [Warning] "every command that writes";
            "A command was interrupted, for example by a power cut, before all its files were written. The remaining files have been written now.";
            "no action needed; run `stvc undo NUMBER` to undo the operation";
        OperationUnfinished "operation-unfinished" [Info] "`status`, `timelines`";
            "A command was interrupted before all its files were written, or is still running.";
            "run a command that writes, such as `stvc snapshot`, to finish it";
        OperationTakenBack "operation-taken-back" [Warning] "every command that writes";
            "A command was interrupted and cannot be finished, so all its changes to branches and files were reverted.";
            "fix the cause that the finding names, then repeat the command";
        OperationSetAside "operation-set-aside" [Warning] "every command that writes";
            "The operation log ends with an invalid operation: it names a file that stvc never writes, or an invalid branch. The operation was not executed, and its line was moved to `stvc/operations-set-aside.jsonl` in the store.";
            "run `stvc check` to look for other damage";
        SavedMeanwhile "saved-meanwhile" [Warning] "every command that writes";
            "An interrupted command still had to write a file, but another program saved that file first. stvc did not overwrite the file. The next snapshot of its timeline continues from the snapshot that the file is based on.";
            "no action needed; the store contains the content that was not written";
        BackupOld "backup-old" [Info] "`status`";
            "The last backup is more than two weeks old, and the store has changed since. This is not reported if there was never a backup.";
            "run `stvc backup FILE.stvc`";
        BackupSameDisk "backup-same-disk" [Warning] "`backup`, `setup`, `watch`";
            "The backup is on the same disk as the store, or inside SillyTavern's data folder, so it is lost together with the chats. This is reported with the first backup to each file or folder.";
            "back up to another drive or to a git server, too";
        BackupNotNoted "backup-not-noted" [Warning] "`backup`";
            "The backup is complete and valid, but it could not be recorded in the store.";
            "no action needed; `stvc backup --last` ignores this backup";
        NotStored "not-stored" [Warning] "`backup`";
            "The store cannot be written, because its disk is full or it is read-only. The backup contains the existing snapshots, but not the changes since the last snapshot.";
            "free disk space, or let stvc write to the store, then create another backup";
        StoreOverLimit "store-over-limit" [Warning] "`watch`";
            "The store is larger than `limits.store-size`. The watch creates no snapshots until it is smaller. Existing snapshots, backups and the chats themselves are not changed, and a snapshot that the user requests is created.";
            "remove old snapshots with `stvc forget` and `stvc gc`, or raise the limit with `stvc config limits.store-size BYTES`";
        SlowScan "slow-scan" [Info] "`watch`";
            "A scan for changed files took longer than `limits.time`. The next scans of this library run one after another with those of other slow libraries, so that they do not delay other users, until a scan is fast again.";
            "no action needed";
        RemovedHere "removed-here" [Info] "`backup`, `sync`";
            "A backup or remote has snapshots that `forget`, `erase` or `undo` removed from this store. A new backup file does not contain them. A mirror or server keeps them hidden.";
            "no action needed; run `stvc backup DESTINATION --prune` to remove them from a mirror or server too";
        RemoteDamaged "remote-damaged" [Error] "`sync`, `check`";
            "An object of a remote on plain storage is missing or damaged. Everything that does not need it was synced.";
            "wait until the storage has synchronised; then run `stvc sync` here, on the device that wrote the object, and here again";
        RemoteDivided "remote-divided" [Error] "`sync`";
            "Two devices created a remote in one storage at the same time, for example in a folder that was not synchronised yet. Each device uses its own key and does not read what the other one wrote. Nothing is lost.";
            "run `stvc remote remove REMOTE`, then `stvc remote add ADDRESS` with the same passphrase, on the device that the finding names";
        RemoteWentBack "remote-went-back" [Warning] "`sync`";
            "A remote on plain storage no longer has the latest announcement of a device. It was deleted or replaced by an older one, or the storage has not synchronised yet. This device keeps what it has received.";
            "run `stvc sync` on that device; if this happens again, find out who else can write to the storage";
        SynchronisedFolder "synchronised-folder" [Warning] "`sync`";
            "A program such as Syncthing, Dropbox or OneDrive synchronises this folder. A git repository in such a folder breaks if two devices write at the same time.";
            "run `stvc remote add FOLDER` once on each device: it makes a remote in this folder that several devices can write to";
        ErasedLeft "erased-left" [Warning] "`backup`, `sync`";
            "Some objects of an erased chat could not be removed from the mirror. They are unreachable there.";
            "run `stvc backup` or `stvc sync` with this mirror again; if that fails too, run `stvc check FOLDER` to list the damage";
        LorebookInUse "lorebook-in-use" [Warning] "`undo`";
            "The undone operation created this lorebook, but another chat uses it now, for example a fork that was renamed later. The lorebook was not removed.";
            "no action needed; delete the lorebook in SillyTavern if no chat needs it";
        LorebookNewer "lorebook-newer" [Warning] "`restore --all`";
            "Two timelines have different versions of one lorebook. The version of the newer snapshot was written.";
            "run `stvc restore NAME --as OTHER` to restore the other chat with its own lorebook";
        AttachmentDiffers "attachment-differs" [Warning] "`restore`, `sync`";
            "A different file with the name of an attachment exists. The existing file was not replaced.";
            "move the existing file away, then repeat the command";
        AttachmentLost "attachment-lost" [Error] "`check`, `backup`, `import`, `sync`, `restore`, `undo`, `show`";
            "An attachment of a message is missing from the store, is damaged there, or differs from the snapshot's list of attachments. The rest of the chat is restored and copied.";
            "if the library has the file, run `stvc check`, then `stvc snapshot`, to store it again; otherwise copy it from a backup";
        AttachmentListLost "attachment-list-lost" [Error] "`check`, `backup`, `import`, `sync`, `restore`, `show`";
            "The list of the chat's attachments is missing or damaged, so none of them can be restored. The rest of the chat is restored and copied.";
            "run `stvc check`, then `stvc snapshot`, to store again those attachments that exist in the library";
        AttachmentRefused "attachment-refused" [Warning] "`snapshot`, `check`, `backup`, `import`, `sync`, `restore`, `show`";
            "An attachment of a message is not written, for one of two reasons: its name is reserved for stvc (`stvc-…`, `.stvc-…`), or it comes from a backup or another device and has a type that may run code, such as `html`, `svg` or a script. The rest of the chat is stored and restored.";
            "if you trust the file, run `stvc restore CHAT --any-attachments` to write an attachment that was refused for its type";
        AttachmentMissing "attachment-missing" [Warning] "`doctor`";
            "Messages of the chat name attachments that do not exist.";
            "run `stvc restore CHAT` to restore those that were stored; the chat itself is not changed";
        AttachmentsLeftOut "attachments-left-out" [Warning] "`snapshot`";
            "Attachments were not stored: they exceed the size limit, or cannot be read.";
            "run `stvc config attachments BYTES` to change the size limit";
        LeftOut "left-out" [Info] "the first `snapshot`, `backup`, `stats`";
            "Some files in the user's folder are not stored. The finding lists them with their sizes.";
            "back up these files by other means if you need them; run `stvc config include.…` to store more of them";
        ConfigurationBroken "configuration-broken" [Warning] "every command, `watch`";
            "`stvc/config.toml` is not valid. The defaults are used. Commands that depend on the file are refused: `forget` and `backup` without options, and changes from SillyTavern's page.";
            "correct the line that the finding names, or move the file away";
        PacksNotJoined "packs-not-joined" [Info] "`snapshot`";
            "Small packs could not be combined. No data is lost.";
            "no action needed; the next snapshot tries again";
        StoreFileDamaged "store-file-damaged" [Error, Warning] "`check`";
            "A file of the store is damaged or missing. If this is a warning, no snapshot is affected.";
            "follow the remedy in the finding";
        ObjectDamaged "object-damaged" [Error] "`check`";
            "An object is damaged or missing. The finding lists the affected snapshots.";
            "create a snapshot while the library still has the files, to store them again; or copy the object from a backup of the store";
        SnapshotDamaged "snapshot-damaged" [Error] "`check`, `backup`, `import`";
            "A snapshot cannot be rebuilt, or differs from its commit. `import` skips it and imports the others.";
            "create a new snapshot while the library still has the files";
        SnapshotOdd "snapshot-odd" [Error, Warning] "`check`, `backup`, `import`, `show`, `restore`";
            "A snapshot does not follow the format, but its files can be restored byte for byte. This is an error if other stores would refuse the snapshot because of a wrong content id, unsafe names, or trees that git refuses.";
            "no action needed for a warning; for an error, create a new snapshot while the library still has the files";
        SnapshotNewer "snapshot-newer" [Error, Warning] "`check`, `backup`, `import`";
            "A snapshot has a newer format than this program supports. It is kept, backed up and imported unchanged, but cannot be shown or restored.";
            "update stvc";
        KeptDamaged "kept-damaged" [Error] "`check`, every command that writes";
            "Data that only `undo` or an interrupted command needs is damaged or missing, such as the former content of a replaced file.";
            "if you need it, copy the object from a backup of the store; run `stvc gc --keep-undo 0s` to delete all undo data";
        BranchSetBack "branch-set-back" [Warning] "`check`";
            "A branch points to an older snapshot than the operation log says. Another program moved it, or a command was interrupted.";
            "if this was not intended, run `stvc tag NAME ID` to keep the later snapshot; run `stvc restore ID` to restore its files";
        RefLeftOut "ref-left-out" [Error, Warning] "`import`, `sync`";
            "A branch or tag of a backup or remote has an invalid or unsupported snapshot, which was not imported. `import` ends the branch with an earlier snapshot, or skips the branch or tag. `sync` skips the timeline.";
            "run `stvc check` on the backup or shared folder to list the problems";
        RefMissing "ref-missing" [Error] "`check`";
            "A branch or tag that the operation log names is missing or damaged.";
            "create a snapshot of the timeline to restore its branch; run `stvc tag NAME ID` to restore a tag";
        HistoryBroken "history-broken" [Error] "`check`, `backup`, `import`";
            "A ref or commit cannot be read.";
            "create a snapshot while the library still has the files, or copy the store from a backup";
    }
}

/// Returns all rules, in the order of `docs/findings.md`.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    CATALOGUE.iter().flat_map(|(_, codes)| *codes).map(|code| code.rule())
}

/// Returns the text of `docs/findings.md`.
pub fn findings_page() -> String {
    let mut page = String::from(
        "# Findings\n\nFindings are problems that stvc reports in your data or in its store. Most findings do not prevent a snapshot. \
         The exceptions are files that cannot be read (`unreadable`) and the readiness check (section *Checkpoints*, exit code 4). \
         With `--json`, each finding is one line of type `finding` ([json.md](json.md)).\n\n\
         An **error** means that data is lost or damaged, a **warning** that something will not work as you expect, and **info** is worth knowing. \
         Findings about the files of a chat or lorebook are reported when the files have changed, not by every command. \
         This page is generated from `src/rules/catalogue.rs`; a test compares them.\n",
    );
    for (title, codes) in CATALOGUE {
        page.push_str(&format!(
            "\n## {title}\n\n| code | level | reported by | meaning | remedy |\n|---|---|---|---|---|\n"
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
