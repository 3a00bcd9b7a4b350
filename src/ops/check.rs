//! Is the store sound? Every object is read and hashed, every snapshot rebuilt and held against its manifest.

use std::collections::{BTreeMap, HashMap};

use super::settled::settled;
use super::{Result, Workspace};
use crate::archive::{History, Snapshot, Verifier};
use crate::progress::Monitor;
use crate::rules::{Finding, Level};
use crate::store::{EntryKind, Format, ObjectId, Store};

/// What was checked and found.
pub struct Report {
    /// How many objects were read.
    pub objects: u64,
    /// How many snapshots were rebuilt.
    pub snapshots: usize,
    /// How many of them are damaged.
    pub damaged: usize,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing is wrong that harms anybody.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.level < Level::Error)
    }
}

/// Check everything, whatever others do there meanwhile.
pub fn check(workspace: &Workspace, monitor: &mut dyn Monitor) -> Result<Report> {
    settled(workspace, |report: &Report| report.findings.is_empty(), |store| look(store, monitor))
}

fn look(store: &Store, monitor: &mut dyn Monitor) -> Result<Report> {
    let mut findings = check_files(store)?;
    let health = store.verify_objects(monitor)?;
    for file in &health.files {
        let level = if file.harmful { Level::Error } else { Level::Warning };
        findings.push(Finding::new(
            "store-file-damaged",
            level,
            file.path.display().to_string(),
            &*file.why,
        ));
    }

    let history = History::load(store)?;
    for broken in &history.broken {
        findings.push(Finding::new("history-broken", Level::Error, &broken.subject, &*broken.why));
    }
    let snapshots = history.newest_first();
    monitor.begin("rebuilding snapshots", Some(snapshots.len() as u64));
    let mut verifier = Verifier::new(store.reader());
    // Several snapshots may have one tree.
    let mut outcomes: HashMap<ObjectId, Option<String>> = HashMap::new();
    let mut hurt: BTreeMap<ObjectId, Vec<String>> = BTreeMap::new();
    let mut damaged = 0;
    // Timeline by timeline: neighbours share most of their messages.
    let mut order = snapshots.clone();
    order.sort_by_key(|snapshot| snapshot.timeline.clone());
    for snapshot in order {
        let outcome = outcomes
            .entry(snapshot.tree)
            .or_insert_with(|| verifier.verify(snapshot.tree).err().map(|error| error.to_string()));
        if let Some(why) = outcome {
            damaged += 1;
            findings.push(snapshot_finding(snapshot, why, &history));
            for object in unsound_objects(store, snapshot, |id| health.is_sound(id)) {
                hurt.entry(object).or_default().push(short(snapshot));
            }
        }
        monitor.advance(1);
    }
    for (id, why) in &health.damaged {
        hurt.entry(*id).or_default();
        findings.push(object_finding(*id, why, &hurt[id]));
    }
    for (id, snapshots) in hurt.iter().filter(|(id, _)| !health.damaged.contains_key(*id)) {
        findings.push(object_finding(*id, "it is missing from the store", snapshots));
    }
    // The next snapshot mends what it can. A store that cannot be written to can still be checked.
    let _ = store.mark_damaged(damaged > 0 || !hurt.is_empty() || !history.broken.is_empty());
    Ok(Report { objects: health.objects, snapshots: snapshots.len(), damaged, findings })
}

/// The repository's small files: git needs them, stvc can do without.
fn check_files(store: &Store) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut warn = |subject: &str, message: String, remedy: &str| {
        findings.push(
            Finding::new("store-file-damaged", Level::Warning, subject, message).remedy(remedy),
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
        let finding = Finding::new("ref-missing", Level::Error, name.as_str(), message);
        findings.push(finding.remedy(
            "the next snapshot of the timeline leads it there again; a tag: `stvc tag NAME ID`",
        ));
    }
    Ok(findings)
}

fn snapshot_finding(snapshot: &Snapshot, why: &str, history: &History) -> Finding {
    let finding = Finding::new(
        "snapshot-damaged",
        Level::Error,
        snapshot.id.to_string(),
        format!("{} ({} messages): {why}", snapshot.timeline, snapshot.messages),
    );
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
        [] => "no snapshot needs it".to_owned(),
        list => format!("it hurts {}", list.join(", ")),
    };
    Finding::new("object-damaged", Level::Error, id.to_string(), format!("{why}; {hurt}"))
}

/// The objects below a snapshot of which no sound copy was read.
fn unsound_objects(
    store: &Store,
    snapshot: &Snapshot,
    is_sound: impl Fn(ObjectId) -> bool,
) -> Vec<ObjectId> {
    let reader = store.reader();
    let mut unsound = Vec::new();
    let mut open = vec![snapshot.tree];
    while let Some(tree) = open.pop() {
        if !is_sound(tree) {
            unsound.push(tree);
        }
        for entry in reader.tree(tree).unwrap_or_default() {
            match entry.kind {
                EntryKind::Tree => open.push(entry.id),
                EntryKind::Blob if !is_sound(entry.id) => unsound.push(entry.id),
                EntryKind::Blob => {}
            }
        }
    }
    unsound
}

fn short(snapshot: &Snapshot) -> String {
    snapshot.id.to_string().chars().take(10).collect()
}
