//! What must hold after every point, whatever happened there.

use std::path::Path;

use crate::cases::{Driver, Scene};
use crate::stage::{Ack, Answer, Stage};
use crate::state::{State, both, is_temporary, left_over};

/// Something that must hold and does not.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// What kind of thing, for counting.
    pub class: &'static str,
    pub words: String,
}

/// What a verb begins with and ends with.
pub struct Ends {
    pub old: State,
    pub new: State,
    /// The moment of the command.
    pub clock: i64,
    /// How it exits when nothing is in its way, and how if it is run once more.
    pub exit: i32,
    pub second: Option<i32>,
    /// What must come back whatever happens, and what must if the verb said so.
    pub acks: Vec<Ack>,
    pub printed: Vec<Ack>,
}

/// The exit code of a command that did part of what it was asked for.
const PARTLY: i32 = 3;

/// A point that happened, to be judged.
pub struct Judge<'a> {
    pub stage: &'a mut Stage,
    pub scene: &'a Scene,
    pub ends: &'a Ends,
    /// Whether to bring back every snapshot, or some that this number picks.
    pub all_snapshots: bool,
    pub pick: usize,
    pub wrong: Vec<Wrong>,
}

impl Judge<'_> {
    fn say(&mut self, class: &'static str, words: impl Into<String>) {
        self.wrong.push(Wrong { class, words: words.into() });
    }

    /// Judge what `answer` left behind.
    pub fn judge(mut self, answer: &Answer) -> Vec<Wrong> {
        let (scene, ends) = (self.scene, self.ends);
        if answer.code == Some(101) || answer.stderr.contains("panicked") {
            self.say("panic", answer.stderr.lines().next().unwrap_or_default());
        }
        if answer.hung {
            self.say("hang", "it did not end");
        }
        let other = scene.remote.map(|_| {
            let folder = self.stage.beside().join("other");
            self.stage.copy(&folder)
        });
        let now = State::of(self.stage, scene);
        self.old_or_new(&now);
        let existed = |stage: &Stage| !ends.old.refs.is_empty() || stage.store("one").exists();
        if existed(self.stage) {
            self.sound("one");
            self.come_back(answer);
        }
        for copy in &scene.copies {
            if ends.old.copies.contains_key(copy) {
                self.copy_is_sound(copy);
            }
        }

        if answer.stdout.contains("othing was changed") && !ends.old.differs(&now, true).is_empty()
        {
            let says = answer.stdout.lines().find(|line| line.contains("othing was changed"));
            let words = format!("something was changed, and it said: {}", says.unwrap_or_default());
            self.say("untrue", words);
        }
        // A watch ends well also if it could not do all of it; what it did, it printed.
        let done = |answer: &Answer| answer.of_type("snapshot").len() >= ends.printed.len();
        let acknowledged =
            answer.code == Some(ends.exit) && (scene.driver == Driver::Once || done(answer));
        if acknowledged {
            let differs = ends.new.differs(&now, true);
            self.wrong.extend(differs.into_iter().map(|wrong| Wrong {
                class: match wrong.class {
                    "files" => "acknowledged, files not as they should be",
                    _ => "acknowledged, refs not as they should be",
                },
                ..wrong
            }));
        } else {
            self.again(&now, answer);
        }
        self.clean();
        if let (Some(remote), Some(other)) = (scene.remote, other) {
            self.devices(remote, other);
        }
        self.wrong
    }

    /// Each of the user's files is what it was or what it shall be; those of the extension are all of one version.
    fn old_or_new(&mut self, now: &State) {
        let (old, new) = (&self.ends.old, &self.ends.new);
        let modules = |path: &&&String| path.starts_with("extensions/stvc/");
        let is = |state: &State| {
            let all = both(&old.library, &new.library);
            let mut modules = all.iter().filter(modules);
            modules.all(|path| state.library.get(*path) == now.library.get(*path))
        };
        let is_removed = both(&new.library, &new.library).iter().filter(modules).count() == 0;
        if !is(old) && !is(new) && !is_removed {
            let words = "some modules of the old version and some of the new".to_owned();
            self.wrong.push(Wrong { class: "extension mixed", words });
        }
        for (old, new, now) in
            [(&old.library, &new.library, &now.library), (&old.out, &new.out, &now.out)]
        {
            for path in both(old, new).union(&both(now, now)) {
                let (was, will, is) = (old.get(*path), new.get(*path), now.get(*path));
                if is != was && is != will && !is_temporary(path) {
                    let class =
                        if is.is_some() { "file neither old nor new" } else { "file missing" };
                    self.say(class, format!("{path}: {:?} bytes", is.map(Vec::len)));
                }
            }
        }
    }

    /// The store is sound by stvc's own word and by git's.
    fn sound(&mut self, device: &str) {
        let check = self.stage.stvc(device, &["check"]);
        if check.code != Some(0) {
            let errors =
                check.of_type("finding").into_iter().filter(|line| line["level"] == "error");
            let words: Vec<_> =
                errors.map(|line| format!("{} {}", line["subject"], line["message"])).collect();
            self.say("check", format!("{} {}", check.words(), words.join("; ")));
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
            self.say(class, bad.join("; "));
        }
    }

    fn copy_is_sound(&mut self, copy: &str) {
        let place = match copy {
            "server.git" => crate::cases::SERVER.to_owned(),
            copy => format!("../../{copy}"),
        };
        let check = self.stage.stvc("one", &["check", &place]);
        if check.code != Some(0) {
            self.say("copy not sound", format!("{copy}: {}", check.words()));
        }
        let folder = self.stage.disk().join(copy);
        if folder.is_dir() {
            self.fsck(&folder, "git fsck of the copy");
        }
    }

    /// Every acknowledged snapshot gives its bytes back.
    fn come_back(&mut self, answer: &Answer) {
        let said: Vec<_> =
            answer.of_type("snapshot").iter().map(|line| line["id"].to_string()).collect();
        let printed = self
            .ends
            .printed
            .iter()
            .filter(|ack| said.iter().any(|id| id.trim_matches('"') == ack.id));
        let acks: Vec<_> = self.ends.acks.iter().chain(printed).cloned().collect();
        for (n, ack) in acks.iter().enumerate() {
            if !self.all_snapshots && (n + self.pick) % acks.len() > 1 {
                continue;
            }
            match self.stage.snapshot_files("one", &ack.id) {
                Ok(found) if found == ack.files => {}
                Ok(_) => self.say("snapshot has other bytes", ack.id.clone()),
                Err(why) => self.say("snapshot lost", format!("{}: {why}", ack.id)),
            }
        }
    }

    /// The same command once more ends as it would have.
    fn again(&mut self, before: &State, answer: &Answer) {
        let ends = self.ends;
        let done = ends.new.differs(before, true).is_empty();
        if done && self.scene.once {
            return;
        }
        let again = self.scene.run(self.stage, self.ends.clock);
        let fits = again.code == Some(ends.exit) || done && again.code == ends.second;
        if !fits {
            self.say("again: fails", again.words());
        }
        // A command that was interrupted may have stored one state more than one that was not.
        let now = State::of(self.stage, self.scene);
        let mut differs = ends.new.differs(&now, self.scene.history);
        if answer.code == Some(PARTLY) {
            // It did part of it, and named the rest: done in two goes, the same files are other snapshots.
            differs.retain(|wrong| wrong.class == "files");
        }
        self.wrong.extend(differs.into_iter().map(|wrong| Wrong {
            class: match wrong.class {
                "files" => "again: other files",
                _ => "again: other refs",
            },
            ..wrong
        }));
    }

    /// Nothing is left over after the next collection, and nothing that matters went with it.
    fn clean(&mut self) {
        if !self.stage.store("one").exists() {
            return;
        }
        let gc = self.stage.stvc("one", &["gc", "--grace", "0s"]);
        if gc.code != Some(0) {
            self.say("gc fails", gc.words());
        }
        for copy in self.scene.copies.clone() {
            self.copy_is_sound(copy);
        }
        let mut left = Vec::new();
        left_over(&self.stage.disk(), &mut left);
        let server = self.stage.server();
        for path in left.iter().filter(|path| !path.starts_with(&server)) {
            let path = path.strip_prefix(self.stage.disk()).unwrap().display().to_string();
            self.say("left over", path);
        }
        // In the sample only now and then: it is what takes the most time.
        if self.all_snapshots || self.pick.is_multiple_of(2) {
            self.sound("one");
            self.come_back(&Answer::default());
        }
    }

    /// This device goes on as if nothing had happened, and the other loses nothing by it.
    fn devices(&mut self, remote: &str, mut stage: Stage) {
        let mut failed = |answer: Answer, what: &str| {
            if !matches!(answer.code, Some(0 | 3)) {
                self.say("devices: fails", format!("{what}: {}", answer.words()));
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
                        format!("{name} ({} bytes) is nowhere on {device}: {is:?}", bytes.len());
                    self.say("devices: newest bytes lost", words);
                }
            }
            for word in &self.scene.words {
                let has = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).contains(word.as_str());
                if !files.values().any(has) {
                    self.say("devices: words lost", format!("{word:?} is nowhere on {device}"));
                }
            }
        }
        for device in ["one", "two"] {
            let check = stage.stvc(device, &["check"]);
            if check.code != Some(0) {
                self.say("devices: check", format!("{device}: {}", check.words()));
            }
        }
    }
}

impl Scene {
    /// Run the command to its end, at that moment: what it makes may depend on it.
    pub fn run(&self, stage: &mut Stage, clock: i64) -> Answer {
        let later = std::mem::replace(&mut stage.now, clock);
        let command = stage.command("one", &self.command);
        stage.now = later;
        self.drive(stage, command)
    }

    /// See a started command to its end.
    pub fn drive(&self, stage: &Stage, command: std::process::Command) -> Answer {
        match self.driver {
            Driver::Once => crate::stage::run(command, &stage.beside()),
            Driver::Watch => crate::watching::run(command, stage),
        }
    }
}
