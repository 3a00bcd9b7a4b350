//! Invariants that must hold after every point.

use std::path::{Path, PathBuf};

use crate::cases::{Driver, Scene};
use crate::stage::{Ack, Answer, Stage};
use crate::state::{State, all_keys, collect_leftovers, is_temporary};

/// A violated invariant.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Kind of violation, for counting.
    pub class: &'static str,
    pub words: String,
}

/// The states before and after a command that succeeds.
pub struct Baseline {
    pub old: State,
    pub new: State,
    /// Clock of the command.
    pub clock: i64,
    /// Exit code of the undisturbed command, and of a second run.
    pub exit: i32,
    pub second: Option<i32>,
    /// Snapshots that must always restore, and those that must restore if the command printed them.
    pub acks: Vec<Ack>,
    pub printed: Vec<Ack>,
}

/// Exit code of a command that did part of its work.
const PARTLY: i32 = 3;

/// A point to be judged.
pub struct Judge<'a> {
    pub stage: &'a mut Stage,
    pub scene: &'a Scene,
    pub baseline: &'a Baseline,
    /// Restore every snapshot, or a selection by `pick`.
    pub all_snapshots: bool,
    pub pick: usize,
    pub violations: Vec<Violation>,
}

impl Judge<'_> {
    fn report(&mut self, class: &'static str, words: impl Into<String>) {
        self.violations.push(Violation { class, words: words.into() });
    }

    /// Checks the state that `answer` left behind.
    pub fn judge(mut self, answer: &Answer) -> Vec<Violation> {
        let (scene, baseline) = (self.scene, self.baseline);
        if answer.code == Some(101) || answer.stderr.contains("panicked") {
            self.report("panic", answer.stderr.lines().next().unwrap_or_default());
        }
        if answer.hung {
            self.report("hang", "it did not end");
        }
        let other = scene.remote.map(|_| {
            let folder = self.stage.outside().join("other");
            self.stage.copy(&folder)
        });
        let now = State::read(self.stage, scene);
        self.check_files(&now);
        let existed = |stage: &Stage| !baseline.old.refs.is_empty() || stage.store("one").exists();
        if existed(self.stage) {
            self.check_stores("one");
            self.check_snapshots(answer);
        }
        for copy in &scene.backups {
            if baseline.old.backups.contains_key(copy) {
                self.check_backup(copy);
            }
        }

        if answer.stdout.contains("othing was changed")
            && !baseline.old.differences(&now, true).is_empty()
        {
            let says = answer.stdout.lines().find(|line| line.contains("othing was changed"));
            let words = format!("changed, but it printed: {}", says.unwrap_or_default());
            self.report("untrue", words);
        }
        // A watch exits with 0 even if some saves failed; it prints each snapshot that it created.
        let done = |answer: &Answer| answer.of_type("snapshot").len() >= baseline.printed.len();
        let acknowledged =
            answer.code == Some(baseline.exit) && (scene.driver == Driver::Once || done(answer));
        if acknowledged {
            let differs = baseline.new.differences(&now, true);
            self.violations.extend(differs.into_iter().map(|violation| Violation {
                class: match violation.class {
                    "files" => "acknowledged, wrong files",
                    _ => "acknowledged, wrong refs",
                },
                ..violation
            }));
        } else {
            self.check_second_run(&now, answer);
        }
        self.check_leftovers();
        if let (Some(remote), Some(other)) = (scene.remote, other) {
            self.check_devices(remote, other);
        }
        self.violations
    }

    /// Checks that each of the user's files is old or new, and that all files of the extension have
    /// one version.
    fn check_files(&mut self, now: &State) {
        let (old, new) = (&self.baseline.old, &self.baseline.new);
        let modules = |path: &&&String| path.starts_with("extensions/stvc/");
        let is = |state: &State| {
            let all = all_keys(&old.library, &new.library);
            let mut modules = all.iter().filter(modules);
            modules.all(|path| state.library.get(*path) == now.library.get(*path))
        };
        let is_removed = all_keys(&new.library, &new.library).iter().filter(modules).count() == 0;
        if !is(old) && !is(new) && !is_removed {
            let words = "some modules of the old version and some of the new".to_owned();
            self.violations.push(Violation { class: "extension mixed", words });
        }
        for (old, new, now) in
            [(&old.library, &new.library, &now.library), (&old.out, &new.out, &now.out)]
        {
            for path in all_keys(old, new).union(&all_keys(now, now)) {
                let (was, will, is) = (old.get(*path), new.get(*path), now.get(*path));
                if is != was && is != will && !is_temporary(path) {
                    let class =
                        if is.is_some() { "file neither old nor new" } else { "file missing" };
                    self.report(class, format!("{path}: {:?} bytes", is.map(Vec::len)));
                }
            }
        }
    }

    /// Checks the store with `stvc check` and `git fsck`.
    fn check_stores(&mut self, device: &str) {
        let check = self.stage.stvc(device, &["check"]);
        if check.code != Some(0) {
            let errors =
                check.of_type("finding").into_iter().filter(|line| line["level"] == "error");
            let words: Vec<_> =
                errors.map(|line| format!("{} {}", line["subject"], line["message"])).collect();
            self.report("check", format!("{} {}", check.last_output(), words.join("; ")));
        }
        let store = self.stage.store(device);
        self.fsck(&store, "git fsck");
    }

    fn fsck(&mut self, repository: &Path, class: &'static str) {
        let fsck = self.stage.git(repository, &["fsck", "--strict", "--full", "--no-progress"]);
        let lines = fsck.stdout.lines().chain(fsck.stderr.lines());
        let bad: Vec<_> = lines
            .filter(|line| !line.starts_with("dangling ") && !line.starts_with("notice: "))
            .collect();
        if fsck.code != Some(0) || !bad.is_empty() {
            self.report(class, bad.join("; "));
        }
    }

    fn check_backup(&mut self, copy: &str) {
        let place = match copy {
            "server.git" => crate::cases::SERVER.to_owned(),
            copy => format!("../../{copy}"),
        };
        let check = self.stage.stvc("one", &["check", &place]);
        if check.code != Some(0) {
            self.report("backup invalid", format!("{copy}: {}", check.last_output()));
        }
        let folder = self.stage.disk().join(copy);
        if folder.is_dir() {
            self.fsck(&folder, "git fsck of the copy");
        }
    }

    /// Checks that every acknowledged snapshot restores its bytes.
    fn check_snapshots(&mut self, answer: &Answer) {
        let printed_ids: Vec<_> =
            answer.of_type("snapshot").iter().map(|line| line["id"].to_string()).collect();
        let printed = self
            .baseline
            .printed
            .iter()
            .filter(|ack| printed_ids.iter().any(|id| id.trim_matches('"') == ack.id));
        let acks: Vec<_> = self.baseline.acks.iter().chain(printed).cloned().collect();
        for (n, ack) in acks.iter().enumerate() {
            if !self.all_snapshots && (n + self.pick) % acks.len() > 1 {
                continue;
            }
            match self.stage.snapshot_files("one", &ack.id) {
                Ok(found) if found == ack.files => {}
                Ok(_) => self.report("snapshot has other bytes", ack.id.clone()),
                Err(why) => self.report("snapshot lost", format!("{}: {why}", ack.id)),
            }
        }
    }

    /// Checks that running the command again completes it.
    fn check_second_run(&mut self, before: &State, answer: &Answer) {
        let baseline = self.baseline;
        let done = baseline.new.differences(before, true).is_empty();
        if done && self.scene.not_repeatable {
            return;
        }
        let again = self.scene.run(self.stage, self.baseline.clock);
        let fits = again.code == Some(baseline.exit) || done && again.code == baseline.second;
        if !fits {
            self.report("again: fails", again.last_output());
        }
        // An interrupted command may have created one more snapshot.
        let now = State::read(self.stage, self.scene);
        let mut differs = baseline.new.differences(&now, self.scene.compare_history);
        if answer.code == Some(PARTLY) {
            // The command did part of its work and named the rest: two runs create other snapshots
            // of the same files.
            differs.retain(|violation| violation.class == "files");
        }
        self.violations.extend(differs.into_iter().map(|violation| Violation {
            class: match violation.class {
                "files" => "again: other files",
                _ => "again: other refs",
            },
            ..violation
        }));
    }

    /// Checks that the next garbage collection removes every leftover and nothing else.
    fn check_leftovers(&mut self) {
        if !self.stage.store("one").exists() {
            return;
        }
        let gc = self.stage.stvc("one", &["gc", "--grace", "0s"]);
        if gc.code != Some(0) {
            self.report("gc fails", gc.last_output());
        }
        for copy in self.scene.backups.clone() {
            self.check_backup(copy);
        }
        let mut left = Vec::new();
        collect_leftovers(&self.stage.disk(), &mut left);
        // A temporary file in the folder of a remote may belong to another device, so it is removed
        // only after days.
        let mut others = vec![self.stage.server()];
        if self.scene.remote == Some(crate::cases::REMOTE) {
            others.push(self.stage.disk().join("shared"));
        }
        let is_own = |path: &&PathBuf| !others.iter().any(|other| path.starts_with(other));
        for path in left.iter().filter(is_own) {
            let path = path.strip_prefix(self.stage.disk()).unwrap().display().to_string();
            self.report("left over", path);
        }
        // This check is the slowest, so the sample runs it for half of the points.
        if self.all_snapshots || self.pick.is_multiple_of(2) {
            self.check_stores("one");
            self.check_snapshots(&Answer::default());
        }
    }

    /// Checks that this device can go on syncing and that the other one loses nothing.
    fn check_devices(&mut self, remote: &str, mut stage: Stage) {
        let mut failed = |answer: Answer, what: &str| {
            if !matches!(answer.code, Some(0 | 3)) {
                self.report("devices: fails", format!("{what}: {}", answer.last_output()));
            }
        };
        failed(stage.stvc("one", &["snapshot"]), "snapshot");
        for device in ["one", "two", "one"] {
            failed(stage.stvc(device, &["sync", remote]), &format!("sync of {device}"));
        }
        for device in ["one", "two"] {
            let files = stage.files(device);
            for (name, bytes) in &self.scene.contents {
                if !files.values().any(|found| found == bytes) {
                    let is = files.get(name).map(Vec::len);
                    let words =
                        format!("{name} ({} bytes) is missing on {device}: {is:?}", bytes.len());
                    self.report("devices: newest bytes lost", words);
                }
            }
            for word in &self.scene.words {
                let has = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).contains(word.as_str());
                if !files.values().any(has) {
                    self.report("devices: words lost", format!("{word:?} is missing on {device}"));
                }
            }
        }
        for device in ["one", "two"] {
            let check = stage.stvc(device, &["check"]);
            if check.code != Some(0) {
                self.report("devices: check", format!("{device}: {}", check.last_output()));
            }
        }
    }
}

impl Scene {
    /// Runs the command at time `clock`, because its result may depend on the time.
    pub fn run(&self, stage: &mut Stage, clock: i64) -> Answer {
        let later = std::mem::replace(&mut stage.now, clock);
        let command = stage.command("one", &self.command);
        stage.now = later;
        self.drive(stage, command)
    }

    /// Waits for a started command.
    pub fn drive(&self, stage: &Stage, command: std::process::Command) -> Answer {
        match self.driver {
            Driver::Once => crate::stage::run(command, &stage.outside()),
            Driver::Watch => crate::watching::run(command, stage),
        }
    }
}
