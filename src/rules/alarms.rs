//! Alarms: a chat or lorebook that lost what it had. It is stored all the same, and the finding says how to get the old state back.

use super::{Code, Finding, Level};

/// How a chat changed since its last snapshot.
pub struct Passage<'a> {
    pub timeline: &'a str,
    /// Messages at the last snapshot.
    pub before: u64,
    /// Messages now.
    pub after: u64,
    /// Whether none of the former messages is left.
    pub foreign: bool,
    /// Whether the last snapshot was brought back, and what it replaced is there again.
    pub written_back: bool,
    /// The last snapshot, as it can be typed.
    pub last_good: &'a str,
}

/// The alarm, if there is reason for one.
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
    let remedy = format!(
        "the state before is snapshot {last_good}: `stvc restore {last_good} --overwrite` brings it back"
    );
    Some(Finding::new(code, Level::Warning, timeline, what).remedy(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(before: u64, after: u64, foreign: bool) -> Option<Code> {
        let (timeline, last_good, written_back) = ("t", "1234", false);
        alarm(&Passage { timeline, before, after, foreign, written_back, last_good })
            .map(|finding| finding.code)
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
}
