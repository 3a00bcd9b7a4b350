//! Checks the store: hashes every object and validates every snapshot, the undo data and the
//! targets of branches.

mod branches_set_back;
mod undo_data;

use std::collections::BTreeMap;

use crate::archive::backup::{Header, Passphrase};
use crate::archive::{Snapshot, Validator};
use crate::engine::copies::CopyPlace;
use crate::engine::undisturbed_read::undisturbed;
use crate::engine::verdict_findings::{self, LostAttachments, Tally};
use crate::engine::{Result, Workspace, lost_objects, receive};
use crate::history::History;
use crate::progress::Monitor;
use crate::rules::{Code, Finding, Level};
use crate::store::verify::{DamagedFile, Health};
use crate::store::{Format, ObjectId, Reader, Store};
use crate::verbs;
use crate::words::{count, short};

/// Counts of checked objects and snapshots, and the problems found.
#[non_exhaustive]
pub struct Report {
    /// Number of objects that were hashed.
    pub objects: u64,
    /// Number of snapshots that were validated.
    pub snapshots: usize,
    /// Number of snapshots that cannot be restored.
    pub damaged: usize,
    /// Number of snapshots whose format is newer than this program supports.
    pub newer: usize,
    /// Damage to the store and its snapshots.
    pub findings: Vec<Finding>,
}

impl Report {
    fn of(objects: u64, tally: Tally, findings: Vec<Finding>) -> Self {
        let Tally { all, damaged, newer } = tally;
        Self { objects, snapshots: all, damaged, newer, findings }
    }

    /// Returns whether none of the findings is an error.
    pub fn is_valid(&self) -> bool {
        self.findings.iter().all(|finding| finding.level < Level::Error)
    }
}

/// Checks the complete store. Other processes may write to the store during the check.
pub fn check(workspace: &Workspace, monitor: &mut dyn Monitor) -> verbs::Result<Report> {
    Ok(undisturbed(
        workspace,
        |report: &Report| report.findings.is_empty(),
        |store| look(store, monitor),
    )?)
}

struct StoreCheck<'a> {
    store: &'a Store,
    reader: Reader,
    health: &'a Health,
    validator: Validator,
    /// For each lost object: the snapshots or undo data that need this object.
    hurt: BTreeMap<ObjectId, Vec<String>>,
    findings: Vec<Finding>,
}

fn look(store: &Store, monitor: &mut dyn Monitor) -> Result<Report> {
    let mut findings = check_files(store)?;
    let listed = undo_data::UndoRecords::of(store)?;
    let health = store.verify_objects(monitor)?;
    findings.extend(health.files.iter().map(file_finding));
    let history = History::load(store)?;
    for broken in &history.broken {
        findings.push(Finding::new(Code::HistoryBroken, &broken.subject, &*broken.why));
    }
    let (reader, validator) = (store.reader(), Validator::new(store.reader()));
    let hurt = BTreeMap::new();
    let mut checking = StoreCheck { store, reader, health: &health, validator, hurt, findings };
    let tally = checking.snapshots(&history, monitor)?;
    checking.undo_data(&listed, &history)?;
    let StoreCheck { mut hurt, mut findings, .. } = checking;
    findings.extend(branches_set_back::check(store, &listed.operations)?);
    for (id, why) in &health.damaged {
        findings.push(object_finding(*id, why, &hurt.remove(id).unwrap_or_default()));
    }
    for (id, snapshots) in &hurt {
        findings.push(object_finding(*id, "it is missing from the store", snapshots));
    }
    Ok(Report::of(health.objects, tally, verdict_findings::checked(findings)))
}

impl StoreCheck<'_> {
    fn snapshots(&mut self, history: &History, monitor: &mut dyn Monitor) -> Result<Tally> {
        let mut tally = Tally::default();
        monitor.begin("rebuilding snapshots", Some(history.len() as u64));
        let mut damaged = Vec::new();
        let mut lost_attachments = LostAttachments::default();
        // Snapshots are checked timeline by timeline, because consecutive snapshots share most of
        // their messages.
        let mut order = history.newest_first();
        order.sort_by_key(|snapshot| snapshot.timeline.clone());
        for snapshot in order {
            let verdict = self.validator.judge(snapshot)?;
            tally.count(&verdict);
            damaged.extend(verdict.is_damaged().then_some(snapshot.id.0));
            let found = verdict_findings::finding(snapshot, &verdict);
            self.findings.extend(found.map(|finding| with_remedy(finding, snapshot, history)));
            lost_attachments.note(&snapshot.timeline, verdict.lost_attachments());
            let lost = verdict.lost_attachments().iter().filter_map(|loss| loss.object);
            let mut lost: Vec<_> = lost.map(|(object, _)| object).collect();
            if !verdict.may_be_taken_in() {
                lost.extend(self.lost_below(snapshot.tree)?);
            }
            lost.into_iter().for_each(|object| self.note(object, &short(snapshot.id)));
            monitor.advance(1);
        }
        // Damage is recorded so that the next snapshot repairs as much as it can. Errors are
        // ignored, because a read-only store can also be checked.
        let is_damaged = tally.damaged > 0
            || !self.hurt.is_empty()
            || lost_attachments.has_damage()
            || !self.health.damaged.is_empty()
            || !history.broken.is_empty();
        let store = self.store;
        let _ = if is_damaged { store.mark_damaged(&damaged) } else { store.mark_valid() };
        if is_damaged {
            self.findings.extend(self.health.without_pack.iter().map(file_finding));
        }
        self.findings.extend(lost_attachments.findings());
        Ok(tally)
    }

    fn note(&mut self, object: ObjectId, user: &str) {
        let users = self.hurt.entry(object).or_default();
        if users.last().is_none_or(|last| last != user) {
            users.push(user.to_owned());
        }
    }

    /// Returns the objects of a tree, including the tree itself, of which no valid copy can be
    /// read.
    fn lost_below(&self, tree: ObjectId) -> Result<Vec<ObjectId>> {
        lost_objects::below(&self.reader, tree, |id| self.health.is_valid(id))
    }
}

fn file_finding(file: &DamagedFile) -> Finding {
    let level = if file.harmful { Level::Error } else { Level::Warning };
    let subject = file.path.display().to_string();
    Finding::new(Code::StoreFileDamaged, subject, &*file.why).at(level)
}

/// Checks the small files of the repository: format, `HEAD`, git's configuration, operation log and
/// refs.
fn check_files(store: &Store) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut warn = |subject: &str, message: String, remedy: &str| {
        findings.push(
            Finding::new(Code::StoreFileDamaged, subject, message)
                .at(Level::Warning)
                .remedy(remedy),
        );
    };
    match store.format()? {
        Format::Known => {}
        // A git clone has no files of stvc until stvc writes to the clone.
        Format::Missing if !store.private_dir().exists() => {}
        format => {
            let what = if let Format::Missing = format { "missing" } else { "damaged" };
            warn("stvc/format", format!("it is {what}"), "run `stvc snapshot` to write it again");
        }
    }
    match store.head()? {
        Some(head)
            if store.ref_target(&head)?.is_some() || store.refs("refs/heads/")?.refs.is_empty() => {
        }
        _ => warn(
            "HEAD",
            "it does not name an existing branch".into(),
            "run `stvc snapshot` to write it again",
        ),
    }
    if let Some(why) = store.config_problem() {
        warn("config", why, "repair the file: until then git cannot use the store, but stvc can");
    }
    let (operations, unreadable) = store.operations()?;
    let log = "stvc/operations.jsonl";
    let is_clone = matches!(store.format()?, Format::Missing);
    if operations.is_empty() && !is_clone && !store.refs("refs/heads/")?.refs.is_empty() {
        let remedy = "earlier operations cannot be undone; nothing else is lost";
        warn(log, "it is missing or empty".into(), remedy);
    }
    if unreadable > 0 {
        let message = format!("{} cannot be read", count(unreadable, "line"));
        warn(log, message, "those operations cannot be undone; nothing else is lost");
    }
    for (name, id) in store.missing_refs()? {
        let message = format!("it should point to {id}, but is missing or damaged");
        let finding = Finding::new(Code::RefMissing, name.as_str(), message);
        findings.push(finding.remedy(
            "run `stvc snapshot` to restore a branch; run `stvc tag NAME ID` to restore a tag",
        ));
    }
    Ok(findings)
}

/// Adds a remedy to a finding about a snapshot. The remedy depends on whether the snapshot is the
/// latest of its timeline.
fn with_remedy(finding: Finding, snapshot: &Snapshot, history: &History) -> Finding {
    if finding.remedy.is_some() {
        return finding;
    }
    match history.head(&snapshot.timeline) {
        Some(head) if head.id == snapshot.id => {
            finding.remedy("run `stvc snapshot` while the files still exist")
        }
        _ => {
            finding.remedy("use another snapshot of the timeline: those not listed here are valid")
        }
    }
}

fn object_finding(id: ObjectId, why: &str, snapshots: &[String]) -> Finding {
    let hurt = match snapshots {
        [] => "nothing uses it".to_owned(),
        list => format!("it affects {}", list.join(", ")),
    };
    Finding::new(Code::ObjectDamaged, id.to_string(), format!("{why}; {hurt}"))
}

/// The result of checking a backup.
pub struct CheckedBackup {
    /// Contents of the backup, as its header lists them.
    pub header: Header,
    /// Damage to the backup.
    pub report: Report,
}

/// Reads a complete backup, hashes every object and validates every snapshot. A backup that is not
/// a folder is unpacked into a temporary folder.
pub fn check_copy(
    workspace: &Workspace,
    place: &CopyPlace,
    passphrase: Option<&Passphrase>,
    monitor: &mut dyn Monitor,
) -> Result<CheckedBackup> {
    let found = receive::look_at(workspace, place, passphrase, monitor)?;
    let mut tally = Tally::default();
    found.judged.snapshots().for_each(|(_, verdict)| tally.count(verdict));
    let findings = verdict_findings::checked(found.findings());
    let objects = found.judged.objects as u64;
    let report = Report::of(objects, tally, findings);
    Ok(CheckedBackup { header: found.header, report })
}
