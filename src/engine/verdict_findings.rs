//! Converts the verdict about a snapshot into findings for `check`, `backup`, `import` and `show`.
//! The code and level depend only on the verdict, so that all commands report the same.

use std::collections::BTreeMap;

use crate::archive::{AttachmentLoss, LossCause, Problems, Severity, Snapshot, Verdict};
use crate::rules::{Code, Finding, Level};
use crate::st::TimelineName;
use crate::words::{count, listed};

pub(crate) fn finding(snapshot: &Snapshot, verdict: &Verdict) -> Option<Finding> {
    match verdict {
        Verdict::Valid => None,
        Verdict::Newer { format } => Some(newer(snapshot, *format)),
        Verdict::Invalid(problems) => invalid_snapshot(snapshot, problems),
    }
}

/// Raises the level of findings about unsupported snapshots to error, for `check`: a snapshot that
/// this version of stvc cannot restore is not valid.
pub(crate) fn checked(mut findings: Vec<Finding>) -> Vec<Finding> {
    for finding in findings.iter_mut().filter(|finding| finding.code == NEWER) {
        finding.level = Level::Error;
    }
    findings
}

const NEWER: Code = Code::SnapshotNewer;

fn newer(snapshot: &Snapshot, format: u64) -> Finding {
    let why = format!("it has format {format}, which this version of stvc does not support");
    let message = about(snapshot, &why);
    Finding::new(NEWER, snapshot.id.to_string(), message)
        .at(Level::Warning)
        .remedy("update stvc to use this snapshot")
}

pub(crate) fn invalid_snapshot(snapshot: &Snapshot, problems: &Problems) -> Option<Finding> {
    let (code, level) = match problems.worst()? {
        Severity::Fatal => (Code::SnapshotDamaged, Level::Error),
        Severity::Unsafe => (Code::SnapshotOdd, Level::Error),
        Severity::Flaw => (Code::SnapshotOdd, Level::Warning),
    };
    let message = about(snapshot, &problems.to_string());
    let finding = Finding::new(code, snapshot.id.to_string(), message).at(level);
    Some(match problems.worst()? {
        Severity::Fatal => finding,
        Severity::Unsafe => finding
            .remedy("run `stvc snapshot` while its files exist: this snapshot can be restored, but not imported into another store"),
        Severity::Flaw => finding.remedy("no action is needed: its files can be restored byte for byte"),
    })
}

pub(crate) fn all(
    snapshot: &Snapshot,
    timeline: &TimelineName,
    problems: &Problems,
) -> Vec<Finding> {
    let mut lost = LostAttachments::default();
    lost.note(timeline, problems.lost_attachments());
    invalid_snapshot(snapshot, problems).into_iter().chain(lost.findings()).collect()
}

/// Attachments that cannot be restored. Snapshots of one chat share most attachments, so each
/// attachment is reported once.
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

    /// Returns whether an attachment is missing or damaged in the store. Refused attachments do not
    /// count.
    pub(crate) fn has_damage(&self) -> bool {
        self.losses.keys().any(|key| key.cause == LossCause::Lost)
    }

    pub(crate) fn findings(self) -> impl Iterator<Item = Finding> {
        self.losses.into_iter().map(|(LossKey { is_list, cause, subject, why }, timelines)| {
            let first = timelines.keys().next().map(ToString::to_string).unwrap_or_default();
            let snapshots = |(name, n): (&TimelineName, &usize)| format!("{name} ({})", count(n, "snapshot"));
            let of = listed(&timelines.iter().map(snapshots).collect::<Vec<_>>());
            let message = if is_list {
                format!("the list of attachments of {of} is lost: {why}")
            } else {
                format!("attachment of {of}: {why}")
            };
            let (code, remedy) = match cause {
                _ if is_list => (Code::AttachmentListLost, "run `stvc check` and then `stvc snapshot` to store the attachments that are in the library again; the chat itself can be restored".to_owned()),
                LossCause::Lost => (Code::AttachmentLost, "run `stvc check` and then `stvc snapshot` to store it again if the file is in the library; otherwise copy the file from a backup; the chat itself can be restored".to_owned()),
                LossCause::Kind => (Code::AttachmentRefused, format!("run `stvc restore \"{first}\" --any-attachments` to restore it, if you trust the file")),
                _ => (Code::AttachmentRefused, "no action is needed: SillyTavern does not create files with such names, and the rest of the chat can be restored".to_owned()),
            };
            Finding::new(code, subject, message).remedy(remedy)
        })
    }
}

fn about(snapshot: &Snapshot, why: &str) -> String {
    format!("{} ({}): {why}", snapshot.timeline, count(snapshot.messages, "message"))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub all: usize,
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
