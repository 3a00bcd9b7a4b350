//! A verdict in words: the findings that `check`, `backup`, `import` and `show` tell of a snapshot.
//! Code and level follow the verdict's weight, so that all say the same of the same snapshot.

use std::collections::BTreeMap;

use crate::archive::{AttachmentLoss, LossCause, Problems, Snapshot, Verdict, Weight};
use crate::rules::{Code, Finding, Level};
use crate::st::TimelineName;
use crate::words::listed;

pub(crate) fn finding(snapshot: &Snapshot, verdict: &Verdict) -> Option<Finding> {
    match verdict {
        Verdict::Sound => None,
        Verdict::Newer { format } => Some(newer(snapshot, *format)),
        Verdict::Unsound(problems) => unsound(snapshot, problems),
    }
}

/// Raises the level of unsupported snapshots: for `check`, only what this program can restore is
/// valid.
pub(crate) fn checked(mut findings: Vec<Finding>) -> Vec<Finding> {
    for finding in findings.iter_mut().filter(|finding| finding.code == NEWER) {
        finding.level = Level::Error;
    }
    findings
}

const NEWER: Code = Code::SnapshotNewer;

fn newer(snapshot: &Snapshot, format: u64) -> Finding {
    let why = format!("it has format {format}, which is newer than this program");
    let message = about(snapshot, &why);
    Finding::new(NEWER, snapshot.id.to_string(), message)
        .at(Level::Warning)
        .remedy("update stvc; until then it is kept as it is")
}

pub(crate) fn unsound(snapshot: &Snapshot, problems: &Problems) -> Option<Finding> {
    let (code, level) = match problems.worst()? {
        Weight::Fatal => (Code::SnapshotDamaged, Level::Error),
        Weight::Unsafe => (Code::SnapshotOdd, Level::Error),
        Weight::Flaw => (Code::SnapshotOdd, Level::Warning),
    };
    let message = about(snapshot, &problems.to_string());
    let finding = Finding::new(code, snapshot.id.to_string(), message).at(level);
    Some(match problems.worst()? {
        Weight::Fatal => finding,
        Weight::Unsafe => finding
            .remedy("its files can be restored; no other store takes it in: take a new snapshot"),
        Weight::Flaw => finding.remedy("nothing; its files come back byte for byte"),
    })
}

pub(crate) fn all(
    snapshot: &Snapshot,
    timeline: &TimelineName,
    problems: &Problems,
) -> Vec<Finding> {
    let mut lost = LostAttachments::default();
    lost.note(timeline, problems.lost_attachments());
    unsound(snapshot, problems).into_iter().chain(lost.findings()).collect()
}

/// Attachments that cannot be restored. Snapshots of one chat share most of them, so each is
/// reported once.
#[derive(Default)]
pub(crate) struct LostAttachments {
    losses: BTreeMap<LossKey, BTreeMap<TimelineName, usize>>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct LossKey {
    is_list: bool,
    cause: LossCause,
    subject: String,
    why: String,
}

impl LostAttachments {
    pub(crate) fn note(&mut self, timeline: &TimelineName, losses: &[AttachmentLoss]) {
        for loss in losses {
            let (is_list, subject) = match &loss.path {
                Some(path) => (false, path.to_string()),
                None => (true, timeline.to_string()),
            };
            let key = LossKey { is_list, cause: loss.cause, subject, why: loss.why.clone() };
            let timelines = self.losses.entry(key).or_default();
            *timelines.entry(timeline.clone()).or_default() += 1;
        }
    }

    /// Returns whether something is missing or damaged in the store, and not only refused.
    pub(crate) fn has_damage(&self) -> bool {
        self.losses.keys().any(|key| key.cause == LossCause::Lost)
    }

    pub(crate) fn findings(self) -> impl Iterator<Item = Finding> {
        self.losses.into_iter().map(|(LossKey { is_list, cause, subject, why }, timelines)| {
            let first = timelines.keys().next().map(ToString::to_string).unwrap_or_default();
            let timelines = timelines.iter().map(|(name, snapshots)| match snapshots {
                1 => format!("{name} (1 snapshot)"),
                many => format!("{name} ({many} snapshots)"),
            });
            let of = listed(&timelines.collect::<Vec<_>>());
            if is_list {
                let message = format!("the list of attachments of {of} is lost: {why}");
                Finding::new(Code::AttachmentListLost, subject, message).remedy(
                    "the chat itself can be restored; `stvc check` and then `stvc snapshot` store the attachments that are in the library again",
                )
            } else if cause != LossCause::Lost {
                let message = format!("attachment of {of}: {why}");
                let finding =
                    Finding::new(Code::AttachmentRefused, subject, message);
                finding.remedy(match cause {
                    LossCause::Kind => format!("if you know the file, `stvc restore \"{first}\" --any-attachments` writes it"),
                    _ => "nothing; SillyTavern gives no file such a name. The rest of the chat is restored".to_owned(),
                })
            } else {
                let message = format!("attachment of {of}: {why}");
                Finding::new(Code::AttachmentLost, subject, message).remedy(
                    "the chat itself can be restored; if the file is in the library, `stvc check` and then `stvc snapshot` store it again, else copy it from a backup",
                )
            }
        })
    }
}

fn about(snapshot: &Snapshot, why: &str) -> String {
    format!("{} ({} messages): {why}", snapshot.timeline, snapshot.messages)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub all: usize,
    /// Snapshots that are damaged.
    pub damaged: usize,
    pub newer: usize,
}

impl Tally {
    pub(crate) fn count(&mut self, verdict: &Verdict) {
        self.all += 1;
        self.newer += usize::from(matches!(verdict, Verdict::Newer { .. }));
        self.damaged += usize::from(verdict.is_damaged());
    }
}
