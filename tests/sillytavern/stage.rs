//! All that a scenario needs: a SillyTavern with fresh data, somebody who writes in it, a model that answers, and stvc.

use std::collections::BTreeMap;
use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::common::watching::Watching;
use crate::common::{Answer, Sandbox, answer, assert_same, copy, files};
use crate::equipment::{Equipment, equipment};
use crate::model::Model;
use crate::tavern::Tavern;
use crate::writer::Writer;

/// What the sticky entry tells the model.
pub const LANTERN: &str = "The lantern burns green.";

pub struct Stage {
    name: &'static str,
    pub model: Model,
    /// There until the scenario ends.
    venue: Option<Venue>,
}

/// A SillyTavern that runs, and a browser. Scenarios that need nothing unusual use one after another.
pub struct Venue {
    version: String,
    is_usual: bool,
    // In this order they go: the browser, the server, the data.
    pub writer: Writer,
    tavern: Tavern,
    equipment: Equipment,
    pub sandbox: Sandbox,
}

/// Venues that no scenario uses at present. The processes end with this one, and remove their files.
static FREE: Mutex<Vec<Venue>> = Mutex::new(Vec::new());

/// A copy of a user's folder as SillyTavern creates it.
const FRESH: &str = "_fresh";

/// How SillyTavern and the browser are set, where a scenario wants them otherwise.
#[derive(Default)]
pub struct Setup {
    /// SillyTavern's configuration, as environment variables.
    pub server: &'static [(&'static str, &'static str)],
    /// What the browser is like, in playwright's words.
    pub browser: Value,
}

/// Files of the library with their bytes.
pub type Files = BTreeMap<String, Vec<u8>>;

impl Stage {
    /// `None` if there is no SillyTavern to be had here.
    pub fn open(name: &'static str, version: &str) -> Option<Self> {
        let mut stage = Self::closed(name, version)?;
        stage.come_in();
        Some(stage)
    }

    /// Returns a stage on which no page is open yet.
    pub fn closed(name: &'static str, version: &str) -> Option<Self> {
        let mut free = FREE.lock().unwrap();
        let used = free.iter().position(|venue| venue.version == version);
        let used = used.map(|index| free.remove(index));
        drop(free);
        let mut venue = match used {
            Some(venue) => venue,
            None => Venue::usual(version)?,
        };
        venue.clear();
        Some(Self { name, model: Model::start(), venue: Some(venue) })
    }

    /// With the extension in its page and a watch that answers it.
    pub fn inside(name: &'static str, version: &str) -> Option<(Self, Watching)> {
        let mut stage = Self::closed(name, version)?;
        stage.stvc(&["extension", "install"]).exits(0);
        let watching = stage.watch();
        stage.come_in();
        Some((stage, watching))
    }

    /// The same, where something happens before SillyTavern is started for the first time.
    pub fn open_after(
        name: &'static str,
        version: &str,
        act: impl FnOnce(&Sandbox),
    ) -> Option<Self> {
        let setup = Setup { browser: json!({}), ..Setup::default() };
        Self::open_with(name, version, &setup, act)
    }

    /// The same, with these settings.
    pub fn open_with(
        name: &'static str,
        version: &str,
        setup: &Setup,
        act: impl FnOnce(&Sandbox),
    ) -> Option<Self> {
        let venue = Venue::build(version, setup, act)?;
        let mut stage = Self { name, model: Model::start(), venue: Some(venue) };
        stage.come_in();
        Some(stage)
    }

    /// Somebody else with a browser of their own, in which no page is open yet.
    pub fn another(&self, browser: &Value) -> Writer {
        Writer::new(&self.equipment, &self.sandbox.folder().join("another browser"), browser)
    }

    pub fn url(&self) -> String {
        self.tavern.url()
    }

    /// Open the page.
    #[track_caller]
    pub fn come_in(&mut self) {
        let url = self.url();
        self.writer.start(&url);
    }

    /// Close the page, do something, and open it again at a character or group. The model must be asked for again, too.
    pub fn while_away<T>(&mut self, at: &str, act: impl FnOnce(&Self) -> T) -> T {
        self.writer.leave();
        let done = act(self);
        self.come_in();
        self.writer.go(at);
        self.connect();
        done
    }

    #[track_caller]
    pub fn connect(&mut self) {
        let url = self.model.url();
        self.writer.connect(&url);
    }

    /// Give the open chat a lorebook with three entries: uid 1 is sticky for twenty messages.
    pub fn bind_book(&mut self, name: &str) {
        self.writer.command(&format!("/getchatbook name=\"{name}\""));
        for (key, content) in
            [("ferry", "The ferry has no name."), ("lantern", LANTERN), ("bell", "It rings twice.")]
        {
            self.writer.command(&format!("/createentry file=\"{name}\" key=\"{key}\" {content}"));
        }
        self.writer.command(&format!("/setentryfield file=\"{name}\" uid=1 field=sticky 20"));
        self.writer.settle();
    }

    /// Run stvc on the library, by the real clock.
    pub fn stvc(&self, arguments: &[&str]) -> Answer {
        stvc(&self.sandbox, arguments)
    }

    pub fn json(&self, arguments: &[&str]) -> Answer {
        self.stvc(&[&["--json"], arguments].concat())
    }

    /// A watch on the library, by the real clock.
    pub fn watch(&self) -> Watching {
        self.watch_with(&[])
    }

    pub fn watch_with(&self, options: &[&str]) -> Watching {
        let all = [&["--json", "watch", "--settle", "150ms"], options].concat();
        let mut command = self.sandbox.command(&all);
        command.env_remove("SOURCE_DATE_EPOCH");
        Watching::of(command)
    }

    /// Wait until everything is saved, and take a snapshot of what changed: the ids, by the chats' names.
    #[track_caller]
    pub fn snapshot(&mut self) -> BTreeMap<String, String> {
        self.writer.settle();
        let taken = self.json(&["snapshot"]).exits(0);
        let fresh =
            taken.of_chats("snapshot").into_iter().filter(|line| line["unchanged"] == false);
        fresh.map(|line| (chat_of(&line), line["id"].as_str().unwrap().to_owned())).collect()
    }

    /// The chats, lorebooks and groups.
    pub fn files(&self) -> Files {
        let mut all = files(&self.sandbox.library());
        all.retain(|path, _| {
            ["chats/", "group chats/", "groups/", "worlds/"].iter().any(|dir| path.starts_with(dir))
        });
        all
    }

    /// All that is in the user's folder, apart from the store and what SillyTavern makes of other files.
    pub fn all_files(&self) -> Files {
        let mut all = files(&self.sandbox.library());
        let is_made = |path: &str| {
            ["thumbnails/", "backups/", "vectors/"].iter().any(|dir| path.starts_with(dir))
        };
        all.retain(|path, _| !is_made(path) && !path.starts_with(".stvc"));
        all
    }

    /// The chats and lorebooks, without groups, in which SillyTavern notes what is open and when.
    pub fn stories(&mut self) -> Files {
        self.writer.settle();
        let mut all = self.files();
        all.retain(|path, _| !path.starts_with("groups/"));
        all
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.sandbox.path(path)
    }

    /// Do something in SillyTavern; which chats and lorebooks have other bytes then.
    #[track_caller]
    pub fn changed_by(&mut self, act: impl FnOnce(&mut Writer)) -> Vec<String> {
        let before = self.stories();
        act(&mut self.writer);
        let after = self.stories();
        let gone = before.keys().filter(|path| !after.contains_key(*path));
        let other = after.iter().filter(|(path, bytes)| before.get(*path) != Some(bytes));
        gone.chain(other.map(|(path, _)| path)).cloned().collect()
    }

    /// Open a chat; neither that nor anything that SillyTavern does by itself may change a byte of any chat or lorebook. What it sees is returned.
    #[track_caller]
    pub fn opens_unchanged(&mut self, chat: &str) -> Value {
        let before = self.stories();
        // What came before is another matter.
        self.writer.complaints();
        self.writer.open(chat);
        assert_same(&self.stories(), &before);
        assert_eq!(self.writer.complaints(), Vec::<String>::new(), "{chat}");
        assert_eq!(self.writer.popup(), None, "{chat}");
        self.writer.sees()
    }

    /// Every timeline's newest snapshot holds, byte for byte, what SillyTavern last wrote; and the store is sound.
    #[track_caller]
    pub fn store_holds_what_is_there(&mut self) {
        self.snapshot();
        let here = files(&self.sandbox.library());
        let out = self.sandbox.folder().join("out");
        let timelines = self.json(&["timelines"]).exits(0).of_type("timeline");
        let mut seen = 0;
        // Settings are in the store, and this device does not keep them.
        let is_here = |line: &&Value| line["state"] != "deleted" && line["state"] != "stored";
        for line in timelines.iter().filter(is_here) {
            let _ = fs::remove_dir_all(&out);
            // A chat's lorebook goes on without it: what it has now is both as they are now.
            let name = line["timeline"].as_str().unwrap();
            self.stvc(&["restore", name, "--to", out.to_str().unwrap()]).exits(0);
            for (path, bytes) in files(&out) {
                // Which chat is open, SillyTavern notes in cards and groups.
                let is_used = ["characters/", "groups/"].iter().any(|dir| path.starts_with(dir));
                let now = here.get(&path);
                assert!(now == Some(&bytes) || is_used && now.is_some(), "{path} of {line}");
                seen += 1;
            }
        }
        assert!(seen > 1, "nothing was compared");
        let is_chat = |path: &&String| path.ends_with(".jsonl") && !path.starts_with("backups/");
        let unseen = here.keys().filter(is_chat).count();
        assert!(seen >= unseen, "{seen} files compared, but there are {unseen} chats");
        self.stvc(&["check"]).exits(0);
    }
}

/// Run stvc on a library, by the real clock.
pub fn stvc(sandbox: &Sandbox, arguments: &[&str]) -> Answer {
    let mut command = sandbox.command(arguments);
    // Wide enough for the long names of branches.
    answer(command.env_remove("SOURCE_DATE_EPOCH").env("STVC_COLUMNS", "200").output().unwrap())
}

/// The chat that a line is about.
pub fn chat_of(line: &Value) -> String {
    line["timeline"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}

impl Venue {
    fn build(version: &str, setup: &Setup, act: impl FnOnce(&Sandbox)) -> Option<Self> {
        let equipment: Equipment = equipment(version)?;
        let sandbox = Sandbox::bare();
        act(&sandbox);
        let tavern = Tavern::start(&equipment, sandbox.folder(), setup.server);
        // SillyTavern makes a small picture of each background when the page is first opened, which takes six seconds.
        let backgrounds = sandbox.path("backgrounds");
        fs::remove_dir_all(&backgrounds).unwrap();
        fs::create_dir(&backgrounds).unwrap();
        let writer = Writer::new(&equipment, &sandbox.folder().join("browser"), &setup.browser);
        Some(Self {
            version: version.to_owned(),
            is_usual: false,
            writer,
            tavern,
            equipment,
            sandbox,
        })
    }

    /// Starts a venue that several scenarios can use.
    fn usual(version: &str) -> Option<Self> {
        let setup = Setup { browser: json!({}), ..Setup::default() };
        let mut venue = Self::build(version, &setup, |_| {})?;
        venue.is_usual = true;
        copy(&venue.sandbox.library(), &venue.sandbox.folder().join(FRESH));
        Some(venue)
    }

    /// Removes everything that the last scenario wrote.
    fn clear(&mut self) {
        let url = self.tavern.url();
        self.writer.forget(&url);
        let library = self.sandbox.library();
        fs::remove_dir_all(&library).unwrap();
        copy(&self.sandbox.folder().join(FRESH), &library);
    }
}

impl Deref for Stage {
    type Target = Venue;

    fn deref(&self) -> &Venue {
        self.venue.as_ref().expect("a venue until the end")
    }
}

impl DerefMut for Stage {
    fn deref_mut(&mut self) -> &mut Venue {
        self.venue.as_mut().expect("a venue until the end")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let venue = self.venue.take().filter(|venue| venue.is_usual);
            FREE.lock().unwrap().extend(venue);
            return;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sillytavern");
        let _ = fs::create_dir_all(&folder);
        let path = folder.join(format!("{}.png", self.name));
        let taken = self.writer.attempt(&json!({ "do": "screenshot", "path": &path }));
        let complaints = self.writer.attempt(&json!({ "do": "complaints" }));
        eprintln!("What SillyTavern showed: {} ({taken:?})", path.display());
        eprintln!("What it complained about: {complaints:?}");
    }
}

/// Play a scenario; if it fails, again from the beginning, at most twice. The browser and SillyTavern's page are real, and on a busy machine one click in some thousands is lost. What stvc does wrong, it does wrong each time.
pub fn again(scenario: impl Fn()) {
    for left in (0..3).rev() {
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&scenario));
        match played {
            Ok(()) => return,
            Err(panic) if left == 0 => std::panic::resume_unwind(panic),
            Err(_) => eprintln!("this scenario failed, and is played again"),
        }
    }
}
