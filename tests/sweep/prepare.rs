//! A case made ready: its start state, how it goes when nothing happens, every call it makes, and all points to try.

use std::collections::HashSet;
use std::path::Path;

use crate::cases::{Case, Scene};
use crate::disk::{Disk, Loss};
use crate::judge::{Ends, Judge, State};
use crate::preload::{Fault, Preload};
use crate::stage::{Ack, Answer, Stage, copy_all};
use crate::trace::{Call, Did};

/// The errors that every call fails with, once each.
pub const ERRORS: [(&str, i32); 3] = [("ENOSPC", 28), ("EIO", 5), ("EACCES", 13)];

/// What is done to a case at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Kill,
    Error,
    Cut,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Kill, Self::Error, Self::Cut];

    pub fn words(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Error => "error",
            Self::Cut => "cut",
        }
    }
}

/// A point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A fault at a call.
    At(u64, Fault),
    /// A cut after so many calls of the recording.
    Cut(usize, Loss),
}

impl Point {
    pub fn kind(self) -> Kind {
        match self {
            Self::At(_, Fault::Error(_)) => Kind::Error,
            Self::At(..) => Kind::Kill,
            Self::Cut(..) => Kind::Cut,
        }
    }

    /// As `--point` takes it.
    pub fn words(self) -> String {
        match self {
            Self::At(at, Fault::Kill) => at.to_string(),
            Self::At(at, Fault::Torn) => format!("{at}:torn"),
            Self::At(at, Fault::Error(error)) => {
                let name = ERRORS.iter().find(|(_, number)| *number == error);
                format!("{at}:{}", name.map_or("?", |(name, _)| name))
            }
            Self::Cut(at, loss) => format!("{at}:{}", loss.words()),
        }
    }
}

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
    answer: Answer,
}

impl Ready {
    /// Make a case ready in a folder of its own; if it does not even go right when nothing happens, why.
    pub fn new(case: Case, preload: &Preload, work: &Path) -> Result<Self, String> {
        let mut start = Stage::new(&work.join("start"));
        let scene = (case.make)(&mut start);
        start.now += 60;
        let mut after = start.copy(&work.join("after"));
        let disk = Disk::of(&after.disk(), "server.git");
        let command = after.command("one", &scene.command);
        let (answer, calls) =
            preload.record(&after, command, |command| scene.drive(&after, command));
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
        let second = start.copy(&work.join("second"));
        let second = {
            let mut stage = second;
            scene.run(&mut stage);
            scene.run(&mut stage).code
        };
        let ends = Ends { old, new, exit, second, acks, printed };
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
        after.acks.clear();
        let mut ready =
            Self { case, scene, ends, points: Vec::new(), start, after, disk, calls, answer };
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
            let is_sync = |at: usize| self.calls.get(at).is_none_or(|call| call.did == Did::Sync);
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
    ) -> (Vec<crate::judge::Wrong>, String) {
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
        let judge = Judge {
            stage: &mut stage,
            scene: &self.scene,
            ends: &self.ends,
            all_snapshots,
            pick,
            wrong: Vec::new(),
        };
        (judge.judge(&answer), at)
    }
}
