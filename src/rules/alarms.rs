//! Alarms: a chat or lorebook that lost content. It is stored all the same, and the finding says
//! how to restore the state before.

use super::{Code, Finding};
use crate::archive::SnapshotId;

/// How a chat changed since its last snapshot.
pub struct Passage<'a> {
    pub timeline: &'a str,
    /// Messages at the last snapshot, and now.
    pub before: u64,
    pub after: u64,
    /// Whether none of the former messages is left.
    pub foreign: bool,
    /// Whether the last snapshot was restored, and the state that it replaced is there again.
    pub written_back: bool,
    /// The snapshot before the loss.
    pub last_good: SnapshotId,
}

pub fn alarm(passage: &Passage<'_>) -> Option<Finding> {
    let Passage { timeline, before, after, foreign, written_back, last_good } = *passage;
    let (code, what) = if written_back {
        let what = "what was restored was overwritten: a page of SillyTavern still had the former state in memory";
        (Code::RestoreUndone, what.to_owned())
    } else if after <= 1 && before >= 3 {
        let left = if after == 0 { "nothing but its header" } else { "nothing but its greeting" };
        (Code::ChatShrank, format!("it had {before} messages and now has {left}"))
    } else if foreign && before >= 2 {
        (
            Code::ChatReplaced,
            format!("none of its {before} messages is left: it holds another chat's content"),
        )
    } else if after * 2 < before && before >= 4 {
        (Code::ChatShrank, format!("it had {before} messages and now has {after}"))
    } else {
        return None;
    };
    let id = &last_good.to_string()[..10];
    let remedy =
        format!("the state before is snapshot {id}: `stvc restore {id} --overwrite` restores it");
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
    fn req_75_loud_when_a_chat_shrinks_and_quiet_when_it_lives() {
        assert_eq!(code(30, 1, false), Some(Code::ChatShrank));
        assert_eq!(code(30, 0, false), Some(Code::ChatShrank));
        assert_eq!(code(30, 14, false), Some(Code::ChatShrank));
        assert_eq!(code(30, 31, true), Some(Code::ChatReplaced));
        assert_eq!(code(30, 15, false), None);
        assert_eq!(code(2, 1, false), None);
        assert_eq!(code(1, 5, true), None);
    }

    #[test]
    fn req_92_an_alarm_names_the_snapshot_before_the_loss_by_its_id() {
        let alarm = found(38, 2, false).unwrap();
        assert_eq!(alarm.snapshot, Some(good().to_string()));
        assert!(alarm.remedy.unwrap().contains("`stvc restore 1212121212 --overwrite`"));
    }
}
