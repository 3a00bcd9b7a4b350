//! Is the store sound? Every object is read and hashed, every snapshot judged; so is what only `undo` needs, and where the branches lead.

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
use crate::store::{Format, Kind, ObjectId, Reader, Store};
use crate::verbs;

/// What was checked and found.
pub struct Report {
    /// How many objects were read.
    pub objects: u64,
    /// How many snapshots were judged.
    pub snapshots: usize,
    /// How many of them cannot be restored, because something is wrong with them.
    pub damaged: usize,
    /// How many are of a later format than this program knows.
    pub newer: usize,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Report {
    fn of(objects: u64, tally: Tally, findings: Vec<Finding>) -> Self {
        let Tally { all, damaged, newer } = tally;
        Self { objects, snapshots: all, damaged, newer, findings }
    }

    /// Whether nothing is wrong that harms anybody.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.level < Level::Error)
    }
}

/// By object: what cannot be had without it, in words.
type Hurt = BTreeMap<ObjectId, Vec<String>>;

/// Check everything, whatever others do there meanwhile.
pub fn check(workspace: &Workspace, monitor: &mut dyn Monitor) -> verbs::Result<Report> {
    Ok(undisturbed(
        workspace,
        |report: &Report| report.findings.is_empty(),
        |store| look(store, monitor),
    )?)
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
    let mut tally = Tally::default();
    monitor.begin("rebuilding snapshots", Some(history.len() as u64));
    let mut validator = Validator::new(store.reader());
    let mut hurt = Hurt::new();
    let mut damaged = Vec::new();
    let mut lost_attachments = LostAttachments::default();
    // Timeline by timeline: neighbours share most of their messages.
    let mut order = history.newest_first();
    order.sort_by_key(|snapshot| snapshot.timeline.clone());
    for snapshot in order {
        let verdict = validator.judge(snapshot)?;
        tally.count(&verdict);
        if verdict.is_damaged() {
            damaged.push(snapshot.id.0);
        }
        let found = verdict_findings::finding(snapshot, &verdict);
        findings.extend(found.map(|finding| with_remedy(finding, snapshot, &history)));
        lost_attachments.note(&snapshot.timeline, verdict.lost_attachments());
        for (object, _) in verdict.lost_attachments().iter().filter_map(|loss| loss.object) {
            hurt.entry(object).or_default().push(short(snapshot));
        }
        if !verdict.may_be_taken_in() {
            for object in lost_objects(&store.reader(), &health, snapshot.tree)? {
                let (hurt, snapshot) = (hurt.entry(object).or_default(), short(snapshot));
                if hurt.last() != Some(&snapshot) {
                    hurt.push(snapshot);
                }
            }
        }
        monitor.advance(1);
    }
    // The next snapshot mends what it can of the timelines. A store that cannot be written to can still be checked.
    let is_damaged = tally.damaged > 0
        || !hurt.is_empty()
        || lost_attachments.has_damage()
        || !health.damaged.is_empty()
        || !history.broken.is_empty();
    let _ = if is_damaged { store.mark_damaged(&damaged) } else { store.mark_sound() };
    if is_damaged {
        findings.extend(health.without_pack.iter().map(file_finding));
    }
    findings.extend(lost_attachments.findings());
    findings.extend(undo_data::check(
        store,
        &listed,
        &history,
        &health,
        &mut validator,
        &mut hurt,
    )?);
    findings.extend(branches_set_back::check(store, &listed.operations)?);
    for (id, why) in &health.damaged {
        hurt.entry(*id).or_default();
        findings.push(object_finding(*id, why, &hurt[id]));
    }
    for (id, snapshots) in hurt.iter().filter(|(id, _)| !health.damaged.contains_key(*id)) {
        findings.push(object_finding(*id, "it is missing from the store", snapshots));
    }
    Ok(Report::of(health.objects, tally, verdict_findings::checked(findings)))
}

fn file_finding(file: &DamagedFile) -> Finding {
    let level = if file.harmful { Level::Error } else { Level::Warning };
    let subject = file.path.display().to_string();
    Finding::new(Code::StoreFileDamaged, subject, &*file.why).at(level)
}

/// The repository's small files: git needs them, stvc can do without.
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
        Format::Missing => {
            warn("stvc/format", "it is missing".into(), "the next snapshot writes it anew")
        }
        Format::Damaged => {
            warn("stvc/format", "it is damaged".into(), "the next snapshot writes it anew")
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
        warn(
            log,
            "it is missing or empty".into(),
            "what was done before cannot be undone; nothing else is lost",
        );
    }
    if unreadable > 0 {
        let message = format!("{unreadable} lines cannot be read");
        warn(
            "stvc/operations.jsonl",
            message,
            "those operations cannot be undone; nothing else is lost",
        );
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

/// What to do about a damaged snapshot depends on whether it is the newest.
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

/// The objects of a tree of which no sound copy can be read, the tree included.
fn lost_objects(reader: &Reader, health: &Health, tree: ObjectId) -> Result<Vec<ObjectId>> {
    lost_objects::below(reader, tree, |id| health.is_sound(id))
}

/// Whether no sound copy of an object can be read. What came into the store since it was read through, or is in another that it borrows from, is not lost.
fn is_lost(reader: &Reader, health: &Health, id: ObjectId, kind: Kind) -> Result<bool> {
    Ok(!health.is_sound(id) && lost_objects::is_lost(reader, id, kind)?)
}

fn short(snapshot: &Snapshot) -> String {
    snapshot.id.to_string().chars().take(10).collect()
}

/// What a check of a backup says: what one of a store does, and what the backup says of itself.
pub struct Checked {
    /// What it says of itself.
    pub header: Header,
    /// What was checked and found.
    pub report: Report,
}

/// Read a backup to its end, hash every object and judge every snapshot. What is not a folder is unpacked into a temporary one for that.
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
