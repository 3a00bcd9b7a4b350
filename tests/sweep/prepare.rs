//! A case made ready: its start state, how it goes when nothing happens, every call it makes, and all points to try.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;

use crate::cases::{Case, Scene};
use crate::disk::{Disk, Loss};
use crate::fingerprint::fingerprint;
use crate::judge::{Ends, Judge, Wrong};
use crate::point::{EINTR, ERRORS, Point, READ_ERRORS};
use crate::preload::{Fault, Preload};
use crate::stage::{Ack, Answer, Stage, copy_all};
use crate::state::State;
use crate::trace::{Call, Did};

/// A case that points can be tried on.
pub struct Ready {
    pub case: Case,
    pub scene: Scene,
    pub ends: Ends,
    pub points: Vec<Point>,
    start: Stage,
    /// The server's folder when all was over.
    after: Stage,
    disk: Disk,
    calls: Vec<Call>,
    reads: Vec<Call>,
    answer: Answer,
    judged: Mutex<HashMap<(blake3::Hash, bool), Vec<Wrong>>>,
}

impl Ready {
    /// Make a case ready in a folder of its own; if it does not even go right when nothing happens, why.
    pub fn new(case: Case, preload: &Preload, work: &Path) -> Result<Self, String> {
        let mut start = Stage::new(&work.join("start"));
        let scene = (case.make)(&mut start);
        start.now += 60;
        let after = start.copy(&work.join("after"));
        let disk = Disk::of(&after.disk(), "server.git");
        let command = after.command("one", &scene.command);
        let (answer, calls) =
            preload.record(&after, command, |command| scene.drive(&after, command));
        let (reads, calls): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|call| call.did == Did::Read);
        let mut replayed = disk.clone();
        calls.iter().for_each(|call| replayed.apply(call));
        let missed = replayed.whole().differs_from(&Disk::of(&after.disk(), "server.git").whole());
        if !missed.is_empty() {
            return Err(format!("calls were missed, which changed {missed:?}"));
        }
        let exit = answer.code.ok_or("the command was killed, and by nobody here")?;
        let (old, new) = (State::of(&start, &scene), State::of(&after, &scene));
        if old == new && case.verb != "gc" && !case.name.starts_with("backup-file") {
            return Err(format!("the command changes nothing: {}", answer.words()));
        }
        let files = |id: &str| after.snapshot_files("one", id);
        let mut acks = start.acks.clone();
        if scene.forgets {
            acks.retain(|ack| files(&ack.id).is_ok_and(|found| found == ack.files));
        }
        let said = answer.of_type("snapshot").into_iter();
        let said = said.filter_map(|line| Some(line["id"].as_str()?.to_owned()));
        let printed =
            said.filter_map(|id| Some(Ack { files: files(&id).ok()?, id })).collect::<Vec<_>>();
        let clock = start.now;
        let second = {
            let mut stage = start.copy(&work.join("second"));
            scene.run(&mut stage, clock);
            scene.run(&mut stage, clock).code
        };
        let ends = Ends { old, new, clock, exit, second, acks, printed };
        // The end of it must stand before the judge like every point, on a copy: `after` stays as it is.
        let mut stage = after.copy(&work.join("judged"));
        let judge = Judge {
            stage: &mut stage,
            scene: &scene,
            ends: &ends,
            all_snapshots: true,
            pick: 0,
            wrong: Vec::new(),
        };
        if let Some(wrong) = judge.judge(&answer).first() {
            return Err(format!("it does not go right by itself: {} {}", wrong.class, wrong.words));
        }
        for done in ["second", "judged"] {
            let _ = std::fs::remove_dir_all(work.join(done));
        }
        let (points, judged) = (Vec::new(), Mutex::default());
        let mut ready =
            Self { case, scene, ends, points, start, after, disk, calls, reads, answer, judged };
        ready.points = ready.list();
        Ok(ready)
    }

    /// All points, kills first.
    fn list(&self) -> Vec<Point> {
        let own = || self.calls.iter().filter(|call| call.number > 0);
        let mut points = Vec::new();
        // A sync changes nothing that a kill could show.
        for call in own().filter(|call| call.did != Did::Sync) {
            points.push(Point::At(call.number, Fault::Kill));
            if call.did == Did::Write && call.data.len() > 1 {
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
            // A save by SillyTavern is a rename, done or not done, though it stands here as three calls.
            let is_sync = |at: usize| {
                let call = self.calls.get(at);
                call.is_none_or(|call| call.did == Did::Sync && call.name != "save")
            };
            if is_sync(at) || at > 0 && is_sync(at - 1) {
                for loss in Loss::KINDS {
                    // Acknowledged or not, and what the server has, make a difference, too.
                    let end = at == self.calls.len();
                    if seen.insert((disk.cut(loss).hash(), end, self.was_sent(at))) {
                        points.push(Point::Cut(at, loss));
                    }
                }
            }
            if let Some(call) = self.calls.get(at) {
                disk.apply(call);
            }
        }
        // A long file is read in many parts: the first of them and the one after it stand for all.
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

    /// Whether the server had taken what it was sent by then.
    fn was_sent(&self, at: usize) -> bool {
        let moved = |call: &Call| call.foreign && call.did == Did::Rename && !call.failed;
        let refs =
            |call: &Call| call.second.contains("/refs/") || call.second.contains("packed-refs");
        self.calls[..at].iter().any(|call| moved(call) && refs(call))
    }

    /// Bring a point about and judge what it leaves; what is wrong, and the call it happened at.
    pub fn attempt(
        &self,
        point: Point,
        preload: &Preload,
        work: &Path,
        all_snapshots: bool,
    ) -> (Vec<Wrong>, String) {
        let (mut stage, answer, at, pick) = match point {
            Point::At(at, fault) => {
                let stage = self.start.copy(work);
                let command = stage.command("one", &self.scene.command);
                let run = |command| self.scene.drive(&stage, command);
                let (answer, hit) = preload.run(&stage, command, at, fault, run);
                let missed = || "(the command ended before it came to it)".to_owned();
                (stage, answer, hit.unwrap_or_else(missed), at as usize)
            }
            Point::Cut(at, loss) => {
                let mut disk = self.disk.clone();
                self.calls[..at].iter().for_each(|call| disk.apply(call));
                let mut stage = Stage::new(work);
                disk.cut(loss).write(&stage.disk());
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
        // The same files and the same answer deserve the same judgement, and many errors end alike.
        let interrupted = matches!(point, Point::At(_, Fault::Read(EINTR)));
        let print = (fingerprint(&stage, &answer), interrupted);
        if let Some(known) = self.judged.lock().unwrap().get(&print) {
            return (known.clone(), at);
        }
        let judge = Judge {
            stage: &mut stage,
            scene: &self.scene,
            ends: &self.ends,
            all_snapshots,
            pick,
            wrong: Vec::new(),
        };
        let mut wrong = judge.judge(&answer);
        // Git's own calls come in another order now and then, and not every call can be interrupted.
        if interrupted && at.starts_with("read ") && answer.code != Some(self.ends.exit) {
            let words = answer.words();
            wrong.push(Wrong { class: "fails after a read that was only interrupted", words });
        }
        self.judged.lock().unwrap().insert(print, wrong.clone());
        (wrong, at)
    }
}
