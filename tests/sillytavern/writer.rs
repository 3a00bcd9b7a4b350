//! Somebody who writes in SillyTavern: `driver.mjs`, asked line by line.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::equipment::Equipment;

pub struct Writer {
    child: Child,
    // Closed first when it is over: then the browser goes, too.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Writer {
    /// `browser`: what it is like, in playwright's words.
    pub fn new(equipment: &Equipment, profile: &Path, browser: &Value) -> Self {
        let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sillytavern/driver.mjs");
        let mut child = Command::new("node")
            .arg(driver)
            .args([&equipment.playwright, &equipment.chromium])
            .arg(profile)
            .arg(browser.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, requests, answers }
    }

    /// Do one thing; why it did not work.
    pub fn attempt(&mut self, request: &Value) -> Result<Value, String> {
        let requests = self.requests.as_mut().unwrap();
        writeln!(requests, "{request}").map_err(|error| error.to_string())?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|error| error.to_string())?;
        let mut answer: Value =
            serde_json::from_str(&line).map_err(|_| "the browser is gone".to_owned())?;
        match answer.get("error") {
            Some(error) => Err(error.as_str().unwrap_or_default().to_owned()),
            None => Ok(answer["ok"].take()),
        }
    }

    #[track_caller]
    fn ask(&mut self, verb: &str, mut request: Value) -> Value {
        request["do"] = verb.into();
        self.attempt(&request).unwrap_or_else(|why| panic!("{request}: {why}"))
    }

    #[track_caller]
    fn name(&mut self, verb: &str, request: Value) -> String {
        self.ask(verb, request).as_str().expect("the name of a chat").to_owned()
    }

    #[track_caller]
    pub fn start(&mut self, url: &str) {
        self.ask("start", json!({ "url": url }));
    }

    /// Open the page as one of several users.
    #[track_caller]
    pub fn login(&mut self, url: &str, user: &str, password: &str) {
        self.ask("login", json!({ "url": url, "user": user, "password": password }));
    }

    /// Close the page and forget all that SillyTavern keeps in the browser.
    #[track_caller]
    pub fn forget(&mut self, url: &str) {
        self.ask("forget", json!({ "url": url }));
    }

    /// Close the page in the middle of whatever it does.
    #[track_caller]
    pub fn vanish(&mut self) {
        self.ask("vanish", json!({}));
    }

    /// Close the page, as somebody does who goes to bed.
    #[track_caller]
    pub fn leave(&mut self) {
        self.ask("leave", json!({}));
    }

    #[track_caller]
    pub fn reload(&mut self) {
        self.ask("reload", json!({}));
    }

    /// The page reloads by itself: wait until it is there again.
    #[track_caller]
    pub fn returns(&mut self) {
        self.ask("returns", json!({}));
    }

    /// Wait until everything is saved.
    #[track_caller]
    pub fn settle(&mut self) {
        self.ask("settle", json!({}));
    }

    #[track_caller]
    pub fn connect(&mut self, url: &str) {
        self.ask("connect", json!({ "url": url }));
    }

    /// Type one of SillyTavern's commands.
    #[track_caller]
    pub fn command(&mut self, text: &str) {
        self.ask("command", json!({ "text": text }));
    }

    /// What a script of the page comes to.
    #[track_caller]
    pub fn evaluate(&mut self, script: &str) -> Value {
        self.ask("evaluate", json!({ "script": script }))
    }

    /// Run one of SillyTavern's commands; what it hands on.
    #[track_caller]
    pub fn pipe(&mut self, text: &str) -> String {
        let text = json!(text);
        let script = format!(
            "SillyTavern.getContext().executeSlashCommandsWithOptions({text}).then((done) => done.pipe ?? '')"
        );
        self.evaluate(&script).as_str().unwrap_or_default().to_owned()
    }

    /// Click on something.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        self.ask("click", json!({ "selector": selector }));
    }

    /// The same with a finger.
    #[track_caller]
    pub fn tap(&mut self, selector: &str) {
        self.ask("tap", json!({ "selector": selector }));
    }

    /// Everything the page asked of anybody since it was asked last: `method`, `url`, and `own` if the extension's own code did.
    #[track_caller]
    pub fn traffic(&mut self) -> Vec<Value> {
        serde_json::from_value(self.ask("traffic", json!({}))).unwrap()
    }

    /// Take a picture, if somebody wants to look at it: `STVC_PICTURES` is a folder.
    #[track_caller]
    pub fn picture(&mut self, name: &str) {
        if let Some(folder) = std::env::var_os("STVC_PICTURES") {
            let path = Path::new(&folder).join(format!("{name}.png"));
            self.ask("screenshot", json!({ "path": path }));
        }
    }

    /// Wait until a script of the page says so.
    #[track_caller]
    pub fn until(&mut self, script: &str) {
        self.ask("until", json!({ "script": script }));
    }

    /// A new character; the name of its first chat, which is open.
    #[track_caller]
    pub fn character(&mut self, name: &str, greeting: &str) -> String {
        self.name("character", json!({ "name": name, "greeting": greeting }))
    }

    /// A new group; the name of its first chat, which is open.
    #[track_caller]
    pub fn group(&mut self, name: &str, members: &[&str]) -> String {
        self.name("group", json!({ "name": name, "members": members }))
    }

    /// Choose a character or a group.
    #[track_caller]
    pub fn go(&mut self, name: &str) {
        self.ask("go", json!({ "name": name }));
    }

    /// Say something, and read the answer.
    #[track_caller]
    pub fn say(&mut self, text: &str) {
        self.ask("say", json!({ "text": text }));
    }

    /// A lorebook with one entry, bound to `to`: the open `character`, the `persona`, or `all` chats.
    #[track_caller]
    pub fn book(&mut self, name: &str, (key, content): (&str, &str), to: &str) {
        self.ask("book", json!({ "name": name, "key": key, "content": content, "to": to }));
    }

    /// Say something with a file.
    #[track_caller]
    pub fn attach(&mut self, text: &str, (name, kind): (&str, &str), bytes: &[u8]) {
        let bytes = STANDARD.encode(bytes);
        self.ask("attach", json!({ "text": text, "name": name, "type": kind, "bytes": bytes }));
    }

    /// How wide the pictures are that the open chat shows, and what the files say that its messages name.
    #[track_caller]
    pub fn attachments(&mut self) -> Value {
        self.ask("attachments", json!({}))
    }

    #[track_caller]
    pub fn edit(&mut self, message: usize, text: &str) {
        self.ask("edit", json!({ "message": message, "text": text }));
    }

    #[track_caller]
    pub fn swipe(&mut self) {
        self.ask("swipe", json!({}));
    }

    #[track_caller]
    pub fn checkpoint(&mut self, message: usize, name: &str) -> String {
        self.name("checkpoint", json!({ "message": message, "name": name }))
    }

    /// A branch, which is open then.
    #[track_caller]
    pub fn branch(&mut self, message: usize) -> String {
        self.name("branch", json!({ "message": message }))
    }

    /// "Back to parent chat".
    #[track_caller]
    pub fn back(&mut self) -> String {
        self.name("back", json!({}))
    }

    /// "Close chat".
    #[track_caller]
    pub fn close(&mut self) {
        self.ask("close", json!({}));
    }

    /// Open a chat under "Manage chat files".
    #[track_caller]
    pub fn open(&mut self, chat: &str) {
        self.ask("open", json!({ "chat": chat }));
    }

    /// Delete a chat there.
    #[track_caller]
    pub fn delete(&mut self, chat: &str) {
        self.ask("delete", json!({ "chat": chat }));
    }

    /// What the program itself sees of the open chat.
    #[track_caller]
    pub fn sees(&mut self) -> Value {
        self.ask("state", json!({}))
    }

    /// The text of the window that asks for something, if one does.
    #[track_caller]
    pub fn popup(&mut self) -> Option<String> {
        self.ask("popup", json!({})).as_str().map(str::to_owned)
    }

    /// Warnings and errors that the page showed since it was asked last.
    #[track_caller]
    pub fn complaints(&mut self) -> Vec<String> {
        serde_json::from_value(self.ask("complaints", json!({}))).unwrap()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.requests = None;
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(10) {
            if self.child.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
