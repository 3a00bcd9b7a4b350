//! A prepared case: its start state, its undisturbed result, every call it makes, and all points to
//! try.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;

use crate::cases::{Case, Scene};
use crate::disk::{Disk, Loss};
use crate::fingerprint::fingerprint;
use crate::judge::{Baseline, Judge, Violation};
use crate::point::{EINTR, ERRORS, Point, READ_ERRORS};
use crate::preload::{Fault, Preload};
use crate::stage::{Ack, Answer, Stage, copy_all};
use crate::state::State;
use crate::trace::{Call, Effect};

pub struct PreparedCase {
    pub case: Case,
    pub scene: Scene,
    pub baseline: Baseline,
    pub points: Vec<Point>,
    start: Stage,
    /// The stage after the undisturbed command.
    after: Stage,
    disk: Disk,
    calls: Vec<Call>,
    reads: Vec<Call>,
    answer: Answer,
    judged: Mutex<HashMap<(blake3::Hash, bool), Vec<Violation>>>,
}

impl PreparedCase {
    /// Prepares a case in its own folder. Fails if even the undisturbed command violates an
    /// invariant.
    pub fn new(case: Case, preload: &Preload, work: &Path) -> Result<Self, String> {
        let mut start = Stage::new(&work.join("start"));
        let scene = (case.make)(&mut start);
        start.now += 60;
        let after = start.copy(&work.join("after"));
        let disk = Disk::read(&after.disk(), "server.git");
        let command = after.command("one", &scene.command);
        let (answer, calls) =
            preload.record(&after, command, |command| scene.drive(&after, command));
        let (reads, calls): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|call| call.effect == Effect::Read);
        let mut replayed = disk.clone();
        calls.iter().for_each(|call| replayed.apply(call));
        let missed =
            replayed.current().differs_from(&Disk::read(&after.disk(), "server.git").current());
        if !missed.is_empty() {
            return Err(format!("calls were missed, which changed {missed:?}"));
        }
        let exit = answer.code.ok_or("the command was killed by another process")?;
        let (old, new) = (State::read(&start, &scene), State::read(&after, &scene));
        if old == new && case.verb != "gc" && !case.name.starts_with("backup-file") {
            return Err(format!("the command changes nothing: {}", answer.last_output()));
        }
        let files = |id: &str| after.snapshot_files("one", id);
        let mut acks = start.acks.clone();
        if scene.deletes_snapshots {
            acks.retain(|ack| files(&ack.id).is_ok_and(|found| found == ack.files));
        }
        let printed_ids = answer.of_type("snapshot").into_iter();
        let printed_ids = printed_ids.filter_map(|line| Some(line["id"].as_str()?.to_owned()));
        let printed = printed_ids
            .filter_map(|id| Some(Ack { files: files(&id).ok()?, id }))
            .collect::<Vec<_>>();
        let clock = start.now;
        let second = {
            let mut stage = start.copy(&work.join("second"));
            scene.run(&mut stage, clock);
            scene.run(&mut stage, clock).code
        };
        let baseline = Baseline { old, new, clock, exit, second, acks, printed };
        // The undisturbed result is judged like every point, on a copy.
        let mut stage = after.copy(&work.join("judged"));
        let judge = Judge {
            stage: &mut stage,
            scene: &scene,
            baseline: &baseline,
            all_snapshots: true,
            pick: 0,
            violations: Vec::new(),
        };
        if let Some(violation) = judge.judge(&answer).first() {
            return Err(format!(
                "it fails without a fault: {} {}",
                violation.class, violation.words
            ));
        }
        for done in ["second", "judged"] {
            let _ = std::fs::remove_dir_all(work.join(done));
        }
        let (points, judged) = (Vec::new(), Mutex::default());
        let mut prepared = Self {
            case,
            scene,
            baseline,
            points,
            start,
            after,
            disk,
            calls,
            reads,
            answer,
            judged,
        };
        prepared.points = prepared.list();
        Ok(prepared)
    }

    /// Lists all points, kills first.
    fn list(&self) -> Vec<Point> {
        let own = || self.calls.iter().filter(|call| call.number > 0);
        let mut points = Vec::new();
        // A kill before a sync and after it look the same.
        for call in own().filter(|call| call.effect != Effect::Sync) {
            points.push(Point::At(call.number, Fault::Kill));
            if call.effect == Effect::Write && call.data.len() > 1 {
                points.push(Point::At(call.number, Fault::Torn));
            }
        }
        for call in own() {
            let errors =
                ERRORS.iter().map(|(_, error)| Point::At(call.number, Fault::Error(*error)));
            points.extend(errors);
        }
        let mut disk = self.disk.clone();
        let mut seen = HashSet::new();
        for at in 0..=self.calls.len() {
            // SillyTavern's save is atomic, although it is recorded as three calls.
            let is_sync = |at: usize| {
                let call = self.calls.get(at);
                call.is_none_or(|call| call.effect == Effect::Sync && call.name != "save")
            };
            if is_sync(at) || at > 0 && is_sync(at - 1) {
                for loss in Loss::KINDS {
                    // The acknowledgement and the server's state matter too.
                    let end = at == self.calls.len();
                    if seen.insert((disk.after_power_cut(loss).hash(), end, self.was_sent(at))) {
                        points.push(Point::Cut(at, loss));
                    }
                }
            }
            if let Some(call) = self.calls.get(at) {
                disk.apply(call);
            }
        }
        // A long file is read in many parts: test the first two.
        let mut seen: HashMap<_, usize> = HashMap::new();
        for call in &self.reads {
            let times = seen.entry((call.name.as_str(), call.path.as_str())).or_default();
            *times += 1;
            if *times > 2 {
                continue;
            }
            let errors = READ_ERRORS.iter().filter(|(name, ..)| *name == call.name);
            points.extend(errors.map(|(.., error)| Point::At(call.value, Fault::Read(*error))));
        }
        points
    }

    /// Whether the server had received the data by then.
    fn was_sent(&self, at: usize) -> bool {
        let moved = |call: &Call| call.foreign && call.effect == Effect::Rename && !call.failed;
        let refs =
            |call: &Call| call.second.contains("/refs/") || call.second.contains("packed-refs");
        self.calls[..at].iter().any(|call| moved(call) && refs(call))
    }

    /// Tries a point. Returns the violations and the call at which the fault happened.
    pub fn attempt(
        &self,
        point: Point,
        preload: &Preload,
        work: &Path,
        all_snapshots: bool,
    ) -> (Vec<Violation>, String) {
        let (mut stage, answer, at, pick) = match point {
            Point::At(at, fault) => {
                let stage = self.start.copy(work);
                let command = stage.command("one", &self.scene.command);
                let run = |command| self.scene.drive(&stage, command);
                let (answer, hit) = preload.run(&stage, command, at, fault, run);
                let missed = || "(the command ended before this call)".to_owned();
                (stage, answer, hit.unwrap_or_else(missed), at as usize)
            }
            Point::Cut(at, loss) => {
                let mut disk = self.disk.clone();
                self.calls[..at].iter().for_each(|call| disk.apply(call));
                let mut stage = Stage::new(work);
                disk.after_power_cut(loss).write(&stage.disk());
                let server = if self.was_sent(at) { &self.after } else { &self.start };
                if server.server().exists() {
                    copy_all(&server.server(), &stage.server());
                }
                stage.now = self.start.now;
                let end = at == self.calls.len();
                let answer = if end { self.answer.clone() } else { Answer::default() };
                let words = |call: &Call| format!("before {} /{}", call.name, call.path);
                let at_end = || "at the end".to_owned();
                (stage, answer, self.calls.get(at).map_or_else(at_end, words), at)
            }
        };
        // Equal files and answers have equal verdicts, and many errors end alike.
        let interrupted = matches!(point, Point::At(_, Fault::Read(EINTR)));
        let print = (fingerprint(&stage, &answer), interrupted);
        if let Some(known) = self.judged.lock().unwrap().get(&print) {
            return (known.clone(), at);
        }
        let judge = Judge {
            stage: &mut stage,
            scene: &self.scene,
            baseline: &self.baseline,
            all_snapshots,
            pick,
            violations: Vec::new(),
        };
        let mut violations = judge.judge(&answer);
        // Git's calls vary in order, and not every call can be interrupted.
        if interrupted && at.starts_with("read ") && answer.code != Some(self.baseline.exit) {
            let words = answer.last_output();
            violations.push(Violation { class: "fails after an interrupted read", words });
        }
        self.judged.lock().unwrap().insert(print, violations.clone());
        (violations, at)
    }
}
