//! Checks the store: hashes every object, judges every snapshot, the data for `undo`, and the
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
use crate::words::short;

/// Numbers of checked objects and snapshots, and problems.
pub struct Report {
    pub objects: u64,
    pub snapshots: usize,
    /// Snapshots that cannot be restored.
    pub damaged: usize,
    /// Snapshots of a later format than this program knows.
    pub newer: usize,
    pub findings: Vec<Finding>,
}

impl Report {
    fn of(objects: u64, tally: Tally, findings: Vec<Finding>) -> Self {
        let Tally { all, damaged, newer } = tally;
        Self { objects, snapshots: all, damaged, newer, findings }
    }

    /// Returns whether there is no error among the findings.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.level < Level::Error)
    }
}

/// Checks everything, while others may write.
pub fn check(workspace: &Workspace, monitor: &mut dyn Monitor) -> verbs::Result<Report> {
    Ok(undisturbed(
        workspace,
        |report: &Report| report.findings.is_empty(),
        |store| look(store, monitor),
    )?)
}

struct Checking<'a> {
    store: &'a Store,
    reader: Reader,
    health: &'a Health,
    validator: Validator,
    /// By object: the snapshots, or other things, that need it.
    hurt: BTreeMap<ObjectId, Vec<String>>,
    findings: Vec<Finding>,
}

fn look(store: &Store, monitor: &mut dyn Monitor) -> Result<Report> {
    let mut findings = check_files(store)?;
    let listed = undo_data::Listed::of(store)?;
    let health = store.verify_objects(monitor)?;
    findings.extend(health.files.iter().map(file_finding));
    let history = History::load(store)?;
    for broken in &history.broken {
        findings.push(Finding::new(Code::HistoryBroken, &broken.subject, &*broken.why));
    }
    let (reader, validator) = (store.reader(), Validator::new(store.reader()));
    let hurt = BTreeMap::new();
    let mut checking = Checking { store, reader, health: &health, validator, hurt, findings };
    let tally = checking.snapshots(&history, monitor)?;
    checking.undo_data(&listed, &history)?;
    let Checking { mut hurt, mut findings, .. } = checking;
    findings.extend(branches_set_back::check(store, &listed.operations)?);
    for (id, why) in &health.damaged {
        findings.push(object_finding(*id, why, &hurt.remove(id).unwrap_or_default()));
    }
    for (id, snapshots) in &hurt {
        findings.push(object_finding(*id, "it is missing from the store", snapshots));
    }
    Ok(Report::of(health.objects, tally, verdict_findings::checked(findings)))
}

impl Checking<'_> {
    fn snapshots(&mut self, history: &History, monitor: &mut dyn Monitor) -> Result<Tally> {
        let mut tally = Tally::default();
        monitor.begin("rebuilding snapshots", Some(history.len() as u64));
        let mut damaged = Vec::new();
        let mut lost_attachments = LostAttachments::default();
        // Timeline by timeline, because neighbours share most of their messages.
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
        // Recorded, so that the next snapshot repairs what it can. A read-only store can still be
        // checked.
        let is_damaged = tally.damaged > 0
            || !self.hurt.is_empty()
            || lost_attachments.has_damage()
            || !self.health.damaged.is_empty()
            || !history.broken.is_empty();
        let store = self.store;
        let _ = if is_damaged { store.mark_damaged(&damaged) } else { store.mark_sound() };
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

    /// Returns the objects of a tree, itself included, of which no valid copy can be read.
    fn lost_below(&self, tree: ObjectId) -> Result<Vec<ObjectId>> {
        lost_objects::below(&self.reader, tree, |id| self.health.is_sound(id))
    }
}

fn file_finding(file: &DamagedFile) -> Finding {
    let level = if file.harmful { Level::Error } else { Level::Warning };
    let subject = file.path.display().to_string();
    Finding::new(Code::StoreFileDamaged, subject, &*file.why).at(level)
}

/// Checks the repository's small files: git needs them, stvc does not.
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
        // A clone has none of stvc's own files until something is written to it.
        Format::Missing if !store.private_dir().exists() => {}
        format => {
            let what = if let Format::Missing = format { "missing" } else { "damaged" };
            warn("stvc/format", format!("it is {what}"), "the next snapshot writes it anew");
        }
    }
    match store.head()? {
        Some(head)
            if store.ref_target(&head)?.is_some() || store.refs("refs/heads/")?.refs.is_empty() => {
        }
        _ => warn("HEAD", "it names no branch".into(), "the next snapshot writes it anew"),
    }
    if let Some(why) = store.config_problem() {
        warn("config", why, "git cannot work on the store until it is mended; stvc can");
    }
    let (operations, unreadable) = store.operations()?;
    let log = "stvc/operations.jsonl";
    let is_clone = matches!(store.format()?, Format::Missing);
    if operations.is_empty() && !is_clone && !store.refs("refs/heads/")?.refs.is_empty() {
        let remedy = "what was done before cannot be undone; nothing else is lost";
        warn(log, "it is missing or empty".into(), remedy);
    }
    if unreadable > 0 {
        let message = format!("{unreadable} lines cannot be read");
        warn(log, message, "those operations cannot be undone; nothing else is lost");
    }
    for (name, id) in store.missing_refs()? {
        let message = format!("it should lead to {id} and is gone or damaged");
        let finding = Finding::new(Code::RefMissing, name.as_str(), message);
        findings.push(finding.remedy(
            "the next snapshot of the timeline leads it there again; a tag: `stvc tag NAME ID`",
        ));
    }
    Ok(findings)
}

/// The remedy depends on whether the snapshot is the latest.
fn with_remedy(finding: Finding, snapshot: &Snapshot, history: &History) -> Finding {
    if finding.remedy.is_some() {
        return finding;
    }
    match history.head(&snapshot.timeline) {
        Some(head) if head.id == snapshot.id => {
            finding.remedy("take a new snapshot while the files are there")
        }
        _ => finding
            .remedy("other snapshots of the timeline are not affected unless they are listed here"),
    }
}

fn object_finding(id: ObjectId, why: &str, snapshots: &[String]) -> Finding {
    let hurt = match snapshots {
        [] => "nothing needs it".to_owned(),
        list => format!("it hurts {}", list.join(", ")),
    };
    Finding::new(Code::ObjectDamaged, id.to_string(), format!("{why}; {hurt}"))
}

/// A checked backup.
pub struct Checked {
    pub header: Header,
    pub report: Report,
}

/// Reads a backup to its end, hashes every object and judges every snapshot. Anything but a folder
/// is unpacked into a temporary one for that.
pub fn check_copy(
    workspace: &Workspace,
    place: &CopyPlace,
    passphrase: Option<&Passphrase>,
    asks: bool,
    monitor: &mut dyn Monitor,
) -> Result<Checked> {
    let found = receive::look_at(workspace, place, passphrase, asks, monitor)?;
    let mut tally = Tally::default();
    found.judged.snapshots().for_each(|(_, verdict)| tally.count(verdict));
    let findings = verdict_findings::checked(found.findings());
    let objects = found.judged.objects as u64;
    let report = Report::of(objects, tally, findings);
    Ok(Checked { header: found.header, report })
}
