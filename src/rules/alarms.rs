//! Findings about a chat or lorebook that lost content since its latest snapshot. The new content
//! is stored anyway, and the finding says how to restore the snapshot before the loss.

use super::{Code, Finding};
use crate::archive::SnapshotId;

/// Change of a timeline since its last snapshot.
pub struct Passage<'a> {
    pub timeline: &'a str,
    /// Number of messages in the last snapshot.
    pub before: u64,
    /// Number of messages now.
    pub after: u64,
    /// Whether no message of the last snapshot is left.
    pub foreign: bool,
    /// Whether the last snapshot was a restore, and the content that this restore replaced was
    /// saved again.
    pub written_back: bool,
    /// Snapshot before the loss.
    pub last_good: SnapshotId,
}

pub fn alarm(passage: &Passage<'_>) -> Option<Finding> {
    let Passage { timeline, before, after, foreign, written_back, last_good } = *passage;
    let (code, what) = if written_back {
        let what = "the restored files were overwritten: SillyTavern's page still had the former content in memory";
        (Code::RestoreUndone, what.to_owned())
    } else if after <= 1 && before >= 3 {
        let left = if after == 0 { "only its header" } else { "only its greeting" };
        (Code::ChatShrank, format!("it had {before} messages and now has {left}"))
    } else if foreign && before >= 2 {
        (
            Code::ChatReplaced,
            format!("none of its {before} messages is left: it contains another chat"),
        )
    } else if after * 2 < before && before >= 4 {
        (Code::ChatShrank, format!("it had {before} messages and now has {after}"))
    } else {
        return None;
    };
    let id = &last_good.to_string()[..10];
    let remedy =
        format!("run `stvc restore {id} --overwrite` to restore the snapshot before this change");
    let finding = Finding::new(code, timeline, what);
    Some(finding.remedy(remedy).restorable_from(last_good.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ObjectId;

    fn code(before: u64, after: u64, foreign: bool) -> Option<Code> {
        found(before, after, foreign).map(|finding| finding.code)
    }

    fn found(before: u64, after: u64, foreign: bool) -> Option<Finding> {
        let (timeline, written_back) = ("t", false);
        alarm(&Passage { timeline, before, after, foreign, written_back, last_good: good() })
    }

    fn good() -> SnapshotId {
        SnapshotId(ObjectId::from([0x12; 20]))
    }

    #[test]
    fn req_75_alarm_is_raised_only_if_a_chat_shrinks_or_is_replaced() {
        assert_eq!(code(30, 1, false), Some(Code::ChatShrank));
        assert_eq!(code(30, 0, false), Some(Code::ChatShrank));
        assert_eq!(code(30, 14, false), Some(Code::ChatShrank));
        assert_eq!(code(30, 31, true), Some(Code::ChatReplaced));
        assert_eq!(code(30, 15, false), None);
        assert_eq!(code(2, 1, false), None);
        assert_eq!(code(1, 5, true), None);
    }

    #[test]
    fn req_92_alarm_names_the_id_of_the_snapshot_before_the_loss() {
        let alarm = found(38, 2, false).unwrap();
        assert_eq!(alarm.snapshot, Some(good().to_string()));
        assert!(alarm.remedy.unwrap().contains("`stvc restore 1212121212 --overwrite`"));
    }
}
