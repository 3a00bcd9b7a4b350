//! A scan of a library that creates snapshots, and the limits of a user.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::front_end::Event;
use super::library_watch::LibraryWatch;
use super::scan_state::Unready;
use crate::engine::gate::GatePolicy;
use crate::progress::NoProgress;
use crate::rules::{Code, Finding};
use crate::verbs;
use crate::verbs::snapshot::{self, Report, SnapshotResult, Subject, TimelineResult};
use crate::words::format_size;

/// The time after a failed write before which no wait for a queue ends.
const WRITE_AGAIN: Duration = Duration::from_secs(5);

impl LibraryWatch<'_> {
    /// Creates snapshots of changed timelines, unless the store is over its limit.
    pub(super) fn look(&mut self, unready: Unready) {
        if self.is_over_limit() {
            return;
        }
        let begin = Instant::now();
        self.take_snapshots(unready);
        let (took, limit) = (begin.elapsed(), self.configuration.limits.time);
        let was_slow = std::mem::replace(&mut self.is_slow, took > limit);
        if self.is_slow && !was_slow {
            let [took, limit] = [took, limit].map(|span| span.as_secs());
            let message = format!("a scan took {took} s, and the limit is {limit} s");
            let finding = Finding::new(Code::SlowScan, self.subject(), message)
                .remedy("no action needed: the next scans do not delay those of other users");
            self.link.tell(Event::Noticed(&[finding]));
        }
    }

    fn subject(&self) -> String {
        self.workspace.store_path().map_or_else(|_| String::new(), |it| it.display().to_string())
    }

    /// Returns whether the store may not grow. Measures the store again before it says so, because
    /// snapshots may have been removed.
    fn is_over_limit(&mut self) -> bool {
        let gauges = &self.link.gauges;
        let bytes = || gauges.store_bytes.load(Ordering::Relaxed);
        let limit = self.configuration.limits.store_size.unwrap_or(u64::MAX);
        if bytes() > limit {
            self.measure_store();
        }
        let is_over = bytes() > limit;
        let was_over = gauges.is_over_limit.swap(is_over, Ordering::Relaxed);
        if is_over && !was_over {
            let [bytes, limit] = [bytes(), limit].map(format_size);
            let message = format!("the store has {bytes}, and `limits.store-size` is {limit}");
            let finding = Finding::new(Code::StoreOverLimit, self.subject(), message).remedy(
                "remove old snapshots with `stvc forget` and `stvc gc`, or raise the limit",
            );
            self.link.tell(Event::OverLimit(&finding));
        }
        is_over
    }

    fn take_snapshots(&mut self, unready: Unready) {
        self.begin_command();
        let looked =
            snapshot::snapshot(&self.workspace, &snapshot::Options::default(), &mut NoProgress);
        let notices = self.workspace.take_notices();
        if !notices.is_empty() {
            self.link.tell(Event::Noticed(&notices));
        }
        match looked {
            Ok(report) => {
                self.waiting.not_before = None;
                self.note(&report);
                let here: BTreeSet<_> =
                    report.timelines.iter().map(|found| &found.timeline).collect();
                self.waiting.since.retain(|timeline, _| here.contains(timeline));
            }
            Err(error) => return self.failed(&error),
        }
        let (now, patience) = (Instant::now(), self.options().patience);
        let is_late = |since: &Instant| unready == Unready::All || now >= *since + patience;
        let late = self.waiting.since.iter().filter(|(_, since)| is_late(since));
        let late: Vec<_> = late.map(|(timeline, _)| timeline.clone()).collect();
        if late.is_empty() {
            return;
        }
        let options = snapshot::Options {
            subject: Subject::Named(late.iter().map(ToString::to_string).collect()),
            gate: GatePolicy { allow_active_queue: true, ..GatePolicy::default() },
            autosave: true,
            ..snapshot::Options::default()
        };
        match snapshot::snapshot(&self.workspace, &options, &mut NoProgress) {
            Ok(report) => {
                self.autosaves += taken(&report);
                self.note(&report);
                // These timelines no longer wait. If one is refused again, a new wait begins.
                self.waiting.since.retain(|timeline, _| !late.contains(timeline));
            }
            Err(error) => self.failed(&error),
        }
    }

    fn note(&mut self, report: &Report) {
        let gauges = &self.link.gauges;
        gauges.is_failing.store(false, Ordering::Relaxed);
        let taken = taken(report);
        self.taken += taken;
        gauges.snapshots.fetch_add(taken as u64, Ordering::Relaxed);
        if taken > 0 {
            gauges.last_snapshot.store(self.workspace.now.timestamp(), Ordering::Relaxed);
            self.measure_store();
        }
        let mut begin_to_wait = Vec::new();
        let unreadable = report.unreadable.iter();
        let mut failed: BTreeSet<_> =
            unreadable.map(|found| (found.subject.clone(), found.message.clone())).collect();
        for TimelineResult { timeline, result } in &report.timelines {
            match result {
                SnapshotResult::Refused(_) => {
                    self.waiting.since.entry(timeline.clone()).or_insert_with(|| {
                        begin_to_wait.push(timeline.clone());
                        Instant::now()
                    });
                }
                SnapshotResult::Failed(why) => {
                    failed.insert((timeline.to_string(), why.clone()));
                }
                _ => {
                    self.waiting.since.remove(timeline);
                }
            }
        }
        // After a new failure, scan again soon, because the file may have been incomplete during a
        // save. A file that stays unreadable is reported once.
        let new = failed.iter().filter(|failure| !self.reported.failures.contains(failure));
        let new = new.count();
        if new > 0 {
            self.due.note(Instant::now());
            self.link.gauges.failures.fetch_add(new as u64, Ordering::Relaxed);
        }
        self.reported.failures = failed;
        if taken > 0 || new > 0 || !report.newly_deleted.is_empty() {
            self.link.tell(Event::Looked(report));
        }
        if !begin_to_wait.is_empty() {
            self.link.tell(Event::Waiting(&begin_to_wait));
        }
    }

    /// Reports a failure once. The next scan retries.
    pub(super) fn failed(&mut self, error: &verbs::Error) {
        self.waiting.not_before = Some(Instant::now() + WRITE_AGAIN);
        self.link.gauges.is_failing.store(true, Ordering::Relaxed);
        let message = error.to_string();
        if self.reported.failures.insert((String::new(), message.clone())) {
            self.link.gauges.count_failure();
            self.link.tell(Event::Failed(message));
            self.due.note(Instant::now());
        }
    }
}

fn taken(report: &Report) -> usize {
    report.timelines.iter().filter(|found| matches!(found.result, SnapshotResult::New(..))).count()
}
