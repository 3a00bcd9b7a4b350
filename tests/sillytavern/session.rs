//! A test session: SillyTavern with new data, a browser, a fake language model, and stvc.

use std::collections::BTreeMap;
use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::common::watching::Watching;
use crate::common::{Answer, Sandbox, answer, assert_same, copy_folder, files};
use crate::equipment::{Equipment, equipment};
use crate::model::Model;
use crate::server::Server;
use crate::writer::Writer;

/// Content of the sticky entry that [`Session::add_chat_lorebook`] creates.
pub const LANTERN: &str = "The lantern burns green.";

pub struct Session {
    name: &'static str,
    pub model: Model,
    /// `None` only while the session is dropped.
    installation: Option<Installation>,
}

/// A running SillyTavern and a browser. Sessions with default settings reuse it one after another.
pub struct Installation {
    version: String,
    is_reusable: bool,
    // Dropped in this order: the browser, the server, the data.
    pub writer: Writer,
    server: Server,
    equipment: Equipment,
    pub sandbox: Sandbox,
}

/// Installations that no session uses. Their processes end with this one and remove their files.
static IDLE: Mutex<Vec<Installation>> = Mutex::new(Vec::new());

/// Name of the folder with a copy of the user's folder as SillyTavern creates it.
const PRISTINE: &str = "_fresh";

/// Settings of SillyTavern and the browser that differ from the defaults.
#[derive(Default)]
pub struct Setup {
    /// Environment variables that override SillyTavern's configuration.
    pub server: &'static [(&'static str, &'static str)],
    /// playwright's options of the browser.
    pub browser: Value,
}

/// Contents of files by their paths in the library.
pub type Files = BTreeMap<String, Vec<u8>>;

impl Session {
    /// Starts a session and opens SillyTavern's page. Returns `None` without SillyTavern.
    pub fn open(name: &'static str, version: &str) -> Option<Self> {
        let mut session = Self::without_page(name, version)?;
        session.open_page();
        Some(session)
    }

    /// Starts a session in which no page is open yet.
    pub fn without_page(name: &'static str, version: &str) -> Option<Self> {
        let mut idle = IDLE.lock().unwrap();
        let index = idle.iter().position(|installation| installation.version == version);
        let reused = index.map(|index| idle.remove(index));
        drop(idle);
        let mut installation = match reused {
            Some(installation) => installation,
            None => Installation::reusable(version)?,
        };
        installation.clear();
        Some(Self { name, model: Model::start(), installation: Some(installation) })
    }

    /// Starts a session with the extension and a watch that answers it.
    pub fn with_extension(name: &'static str, version: &str) -> Option<(Self, Watching)> {
        let mut session = Self::without_page(name, version)?;
        session.stvc(&["extension", "install"]).exits(0);
        let watching = session.watch();
        session.open_page();
        Some((session, watching))
    }

    /// Starts a session; `act` prepares the data before SillyTavern starts for the first time.
    pub fn open_prepared(
        name: &'static str,
        version: &str,
        act: impl FnOnce(&Sandbox),
    ) -> Option<Self> {
        let setup = Setup { browser: json!({}), ..Setup::default() };
        Self::open_with(name, version, &setup, act)
    }

    /// Starts a session with its own settings.
    pub fn open_with(
        name: &'static str,
        version: &str,
        setup: &Setup,
        act: impl FnOnce(&Sandbox),
    ) -> Option<Self> {
        let installation = Installation::build(version, setup, act)?;
        let mut session = Self { name, model: Model::start(), installation: Some(installation) };
        session.open_page();
        Some(session)
    }

    /// Starts another browser in which no page is open yet.
    pub fn new_browser(&self, browser: &Value) -> Writer {
        Writer::new(&self.equipment, &self.sandbox.folder().join("another browser"), browser)
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Opens SillyTavern's page.
    #[track_caller]
    pub fn open_page(&mut self) {
        let url = self.url();
        self.writer.start(&url);
    }

    /// Closes the page, calls `act`, opens the page again, selects a character or group, and
    /// connects the model again.
    pub fn with_page_closed<T>(&mut self, at: &str, act: impl FnOnce(&Self) -> T) -> T {
        self.writer.close_page();
        let done = act(self);
        self.open_page();
        self.writer.select(at);
        self.connect_model();
        done
    }

    #[track_caller]
    pub fn connect_model(&mut self) {
        let url = self.model.url();
        self.writer.connect_model(&url);
    }

    /// Gives the open chat a lorebook with three entries. Entry 1 is sticky for twenty messages.
    pub fn add_chat_lorebook(&mut self, name: &str) {
        self.writer.type_command(&format!("/getchatbook name=\"{name}\""));
        for (key, content) in
            [("ferry", "The ferry has no name."), ("lantern", LANTERN), ("bell", "It rings twice.")]
        {
            self.writer
                .type_command(&format!("/createentry file=\"{name}\" key=\"{key}\" {content}"));
        }
        self.writer.type_command(&format!("/setentryfield file=\"{name}\" uid=1 field=sticky 20"));
        self.writer.settle();
    }

    /// Runs stvc on the library, with the real clock.
    pub fn stvc(&self, arguments: &[&str]) -> Answer {
        stvc(&self.sandbox, arguments)
    }

    pub fn json(&self, arguments: &[&str]) -> Answer {
        self.stvc(&[&["--json"], arguments].concat())
    }

    /// Starts a watch on the library, with the real clock.
    pub fn watch(&self) -> Watching {
        self.watch_with(&[])
    }

    pub fn watch_with(&self, options: &[&str]) -> Watching {
        let all = [&["--json", "watch", "--settle", "150ms"], options].concat();
        let mut command = self.sandbox.command(&all);
        command.env_remove("SOURCE_DATE_EPOCH");
        Watching::start_command(command)
    }

    /// Waits until everything is saved and creates snapshots. Returns the new ids by chat name.
    #[track_caller]
    pub fn snapshot(&mut self) -> BTreeMap<String, String> {
        self.writer.settle();
        let taken = self.json(&["snapshot"]).exits(0);
        let fresh =
            taken.chat_lines("snapshot").into_iter().filter(|line| line["unchanged"] == false);
        fresh.map(|line| (chat_name(&line), line["id"].as_str().unwrap().to_owned())).collect()
    }

    /// Returns the files of chats, lorebooks and groups.
    pub fn files(&self) -> Files {
        let mut all = files(&self.sandbox.library());
        all.retain(|path, _| {
            ["chats/", "group chats/", "groups/", "worlds/"].iter().any(|dir| path.starts_with(dir))
        });
        all
    }

    /// Returns all files of the user, without the store and files that SillyTavern generates.
    pub fn user_files(&self) -> Files {
        let mut all = files(&self.sandbox.library());
        let is_generated = |path: &str| {
            ["thumbnails/", "backups/", "vectors/"].iter().any(|dir| path.starts_with(dir))
        };
        all.retain(|path, _| !is_generated(path) && !path.starts_with(".stvc"));
        all
    }

    /// Waits until everything is saved and returns the chats and lorebooks. Groups' files are left
    /// out, because SillyTavern records the open chat in them.
    pub fn chats_and_lorebooks(&mut self) -> Files {
        self.writer.settle();
        let mut all = self.files();
        all.retain(|path, _| !path.starts_with("groups/"));
        all
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.sandbox.path(path)
    }

    /// Calls `act` and returns the paths of the chats and lorebooks that it changed.
    #[track_caller]
    pub fn files_changed_by(&mut self, act: impl FnOnce(&mut Writer)) -> Vec<String> {
        let before = self.chats_and_lorebooks();
        act(&mut self.writer);
        let after = self.chats_and_lorebooks();
        let deleted = before.keys().filter(|path| !after.contains_key(*path));
        let written = after.iter().filter(|(path, bytes)| before.get(*path) != Some(bytes));
        deleted.chain(written.map(|(path, _)| path)).cloned().collect()
    }

    /// Opens a chat and returns the page's state. Fails if SillyTavern changes a chat or lorebook,
    /// or shows a warning.
    #[track_caller]
    pub fn open_without_changes(&mut self, chat: &str) -> Value {
        let before = self.chats_and_lorebooks();
        // Discards earlier warnings.
        self.writer.take_warnings();
        self.writer.open(chat);
        assert_same(&self.chats_and_lorebooks(), &before);
        assert_eq!(self.writer.take_warnings(), Vec::<String>::new(), "{chat}");
        assert_eq!(self.writer.popup(), None, "{chat}");
        self.writer.state()
    }

    /// Checks that the latest snapshot of every timeline equals the files that SillyTavern wrote,
    /// and that the store is valid.
    #[track_caller]
    pub fn assert_store_matches_library(&mut self) {
        self.snapshot();
        let current = files(&self.sandbox.library());
        let out = self.sandbox.folder().join("out");
        let timelines = self.json(&["timelines"]).exits(0).of_type("timeline");
        let mut compared = 0;
        // `stored` is the state of a timeline that this library does not include, such as settings.
        let is_here = |line: &&Value| line["state"] != "deleted" && line["state"] != "stored";
        for line in timelines.iter().filter(is_here) {
            let _ = fs::remove_dir_all(&out);
            // By name, because the chat's lorebook may be newer than its latest snapshot.
            let name = line["timeline"].as_str().unwrap();
            self.stvc(&["restore", name, "--to", out.to_str().unwrap()]).exits(0);
            for (path, bytes) in files(&out) {
                // SillyTavern records the open chat in cards and groups.
                let records_open_chat =
                    ["characters/", "groups/"].iter().any(|dir| path.starts_with(dir));
                let now = current.get(&path);
                assert!(
                    now == Some(&bytes) || records_open_chat && now.is_some(),
                    "{path} of {line}"
                );
                compared += 1;
            }
        }
        assert!(compared > 1, "nothing was compared");
        let is_chat = |path: &&String| path.ends_with(".jsonl") && !path.starts_with("backups/");
        let chats = current.keys().filter(is_chat).count();
        assert!(compared >= chats, "{compared} files compared, but there are {chats} chats");
        self.stvc(&["check"]).exits(0);
    }
}

/// Runs stvc on a library, with the real clock.
pub fn stvc(sandbox: &Sandbox, arguments: &[&str]) -> Answer {
    let mut command = sandbox.command(arguments);
    // Wide enough for the long names of branches in tables.
    answer(command.env_remove("SOURCE_DATE_EPOCH").env("STVC_COLUMNS", "200").output().unwrap())
}

/// Returns the name of the chat in a line of `--json`.
pub fn chat_name(line: &Value) -> String {
    line["timeline"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}

impl Installation {
    fn build(version: &str, setup: &Setup, act: impl FnOnce(&Sandbox)) -> Option<Self> {
        let equipment: Equipment = equipment(version)?;
        let sandbox = Sandbox::without_library();
        act(&sandbox);
        let server = Server::start(&equipment, sandbox.folder(), setup.server);
        // SillyTavern creates a thumbnail of each background when the page is first opened, which
        // takes six seconds.
        let backgrounds = sandbox.path("backgrounds");
        fs::remove_dir_all(&backgrounds).unwrap();
        fs::create_dir(&backgrounds).unwrap();
        let writer = Writer::new(&equipment, &sandbox.folder().join("browser"), &setup.browser);
        Some(Self {
            version: version.to_owned(),
            is_reusable: false,
            writer,
            server,
            equipment,
            sandbox,
        })
    }

    /// Starts an installation that several sessions can use.
    fn reusable(version: &str) -> Option<Self> {
        let setup = Setup { browser: json!({}), ..Setup::default() };
        let mut installation = Self::build(version, &setup, |_| {})?;
        installation.is_reusable = true;
        copy_folder(&installation.sandbox.library(), &installation.sandbox.folder().join(PRISTINE));
        Some(installation)
    }

    /// Removes everything that the previous session wrote.
    fn clear(&mut self) {
        let url = self.server.url();
        self.writer.clear_browser_data(&url);
        let library = self.sandbox.library();
        fs::remove_dir_all(&library).unwrap();
        copy_folder(&self.sandbox.folder().join(PRISTINE), &library);
    }
}

impl Deref for Session {
    type Target = Installation;

    fn deref(&self) -> &Installation {
        self.installation.as_ref().expect("the session is not dropped yet")
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Installation {
        self.installation.as_mut().expect("the session is not dropped yet")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let installation =
                self.installation.take().filter(|installation| installation.is_reusable);
            IDLE.lock().unwrap().extend(installation);
            return;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sillytavern");
        let _ = fs::create_dir_all(&folder);
        let path = folder.join(format!("{}.png", self.name));
        let taken = self.writer.attempt(&json!({ "do": "screenshot", "path": &path }));
        let warnings = self.writer.attempt(&json!({ "do": "take_warnings" }));
        eprintln!("Screenshot: {} ({taken:?})", path.display());
        eprintln!("Warnings of the page: {warnings:?}");
    }
}

/// Runs a scenario, and up to twice again from the beginning if it fails.
///
/// On a busy machine the real page loses one click in some thousands; a bug in stvc fails each
/// time.
pub fn with_retries(scenario: impl Fn()) {
    for left in (0..3).rev() {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&scenario));
        match result {
            Ok(()) => return,
            Err(panic) if left == 0 => std::panic::resume_unwind(panic),
            Err(_) => eprintln!("this scenario failed, and runs again"),
        }
    }
}
