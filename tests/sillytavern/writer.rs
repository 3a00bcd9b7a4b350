//! A writer in SillyTavern: controls `driver.mjs` by lines of JSON.

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
    // Dropped first: the driver ends when its stdin is closed.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Writer {
    /// Starts a browser. `browser` has playwright's options.
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

    /// Sends a request to the driver. Returns its error as text.
    pub fn attempt(&mut self, request: &Value) -> Result<Value, String> {
        let requests = self.requests.as_mut().unwrap();
        writeln!(requests, "{request}").map_err(|error| error.to_string())?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|error| error.to_string())?;
        let mut answer: Value =
            serde_json::from_str(&line).map_err(|_| "the browser has ended".to_owned())?;
        match answer.get("error") {
            Some(error) => Err(error.as_str().unwrap_or_default().to_owned()),
            None => Ok(answer["ok"].take()),
        }
    }

    #[track_caller]
    fn send(&mut self, verb: &str, mut request: Value) -> Value {
        request["do"] = verb.into();
        self.attempt(&request).unwrap_or_else(|why| panic!("{request}: {why}"))
    }

    #[track_caller]
    fn send_for_name(&mut self, verb: &str, request: Value) -> String {
        self.send(verb, request).as_str().expect("the name of a chat").to_owned()
    }

    #[track_caller]
    pub fn start(&mut self, url: &str) {
        self.send("start", json!({ "url": url }));
    }

    /// Opens the page as one of several users.
    #[track_caller]
    pub fn login(&mut self, url: &str, user: &str, password: &str) {
        self.send("login", json!({ "url": url, "user": user, "password": password }));
    }

    /// Closes the page and removes what SillyTavern stores in the browser.
    #[track_caller]
    pub fn clear_browser_data(&mut self, url: &str) {
        self.send("clear_browser_data", json!({ "url": url }));
    }

    /// Closes the page immediately, in the middle of an action.
    #[track_caller]
    pub fn abandon_page(&mut self) {
        self.send("abandon_page", json!({}));
    }

    /// Waits until everything is saved and closes the page.
    #[track_caller]
    pub fn close_page(&mut self) {
        self.send("close_page", json!({}));
    }

    #[track_caller]
    pub fn reload(&mut self) {
        self.send("reload", json!({}));
    }

    /// Waits until the page has reloaded itself.
    #[track_caller]
    pub fn wait_for_reload(&mut self) {
        self.send("wait_for_reload", json!({}));
    }

    /// Waits until everything is saved.
    #[track_caller]
    pub fn settle(&mut self) {
        self.send("settle", json!({}));
    }

    #[track_caller]
    pub fn connect_model(&mut self, url: &str) {
        self.send("connect_model", json!({ "url": url }));
    }

    /// Types a slash command into the message field.
    #[track_caller]
    pub fn type_command(&mut self, text: &str) {
        self.send("type_command", json!({ "text": text }));
    }

    /// Evaluates a script in the page.
    #[track_caller]
    pub fn evaluate(&mut self, script: &str) -> Value {
        self.send("evaluate", json!({ "script": script }))
    }

    /// Runs a slash command and returns its result (the pipe).
    #[track_caller]
    pub fn run_command(&mut self, text: &str) -> String {
        let text = json!(text);
        let script = format!(
            "SillyTavern.getContext().executeSlashCommandsWithOptions({text}).then((done) => done.pipe ?? '')"
        );
        self.evaluate(&script).as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        self.send("click", json!({ "selector": selector }));
    }

    /// Clicks the element that an expression returns, as soon as it exists. Unlike
    /// [`Self::click`], this also clicks hidden elements and elements in the viewer.
    #[track_caller]
    pub fn click_element(&mut self, expression: &str) {
        self.wait_until(&format!(
            "(() => {{ const found = {expression}; found?.click(); return !!found; }})()"
        ));
    }

    /// Clicks an entry of stvc in the menu of extensions.
    #[track_caller]
    pub fn click_menu_entry(&mut self, position: usize) {
        self.click_element(&format!(
            "document.querySelectorAll('#stvc_wand .stvc-menu-item')[{position}]"
        ));
    }

    /// Enters text into the open popup, as soon as its field exists.
    #[track_caller]
    pub fn fill_popup(&mut self, text: &str) {
        self.wait_until(&format!(
            "(() => {{ const field = document.querySelector('dialog.popup[open] .popup-input'); if (!field) return false; field.value = {}; field.dispatchEvent(new Event('input')); return true; }})()",
            json!(text)
        ));
    }

    /// Clicks by touch.
    #[track_caller]
    pub fn tap(&mut self, selector: &str) {
        self.send("tap", json!({ "selector": selector }));
    }

    /// Returns the requests of the page since the last call: `method`, `url`, and `own`, which is
    /// true for the extension's own code.
    #[track_caller]
    pub fn take_requests(&mut self) -> Vec<Value> {
        serde_json::from_value(self.send("take_requests", json!({}))).unwrap()
    }

    /// Takes a screenshot into the folder `STVC_PICTURES`, if that is set.
    #[track_caller]
    pub fn screenshot(&mut self, name: &str) {
        if let Some(folder) = std::env::var_os("STVC_PICTURES") {
            let path = Path::new(&folder).join(format!("{name}.png"));
            self.send("screenshot", json!({ "path": path }));
        }
    }

    /// Waits until a script in the page returns true.
    #[track_caller]
    pub fn wait_until(&mut self, script: &str) {
        self.send("wait_until", json!({ "script": script }));
    }

    /// Creates a character and opens its first chat. Returns the chat's name.
    #[track_caller]
    pub fn character(&mut self, name: &str, greeting: &str) -> String {
        self.send_for_name("character", json!({ "name": name, "greeting": greeting }))
    }

    /// Creates a group and opens its first chat. Returns the chat's name.
    #[track_caller]
    pub fn group(&mut self, name: &str, members: &[&str]) -> String {
        self.send_for_name("group", json!({ "name": name, "members": members }))
    }

    /// Selects a character or a group.
    #[track_caller]
    pub fn select(&mut self, name: &str) {
        self.send("select", json!({ "name": name }));
    }

    /// Sends a message and waits for the answer.
    #[track_caller]
    pub fn say(&mut self, text: &str) {
        self.send("say", json!({ "text": text }));
    }

    /// Creates a lorebook with one entry and binds it to the open `character`, the `persona`, or
    /// `all` chats.
    #[track_caller]
    pub fn add_lorebook(&mut self, name: &str, (key, content): (&str, &str), to: &str) {
        self.send(
            "add_lorebook",
            json!({ "name": name, "key": key, "content": content, "to": to }),
        );
    }

    /// Sends a message with an attached file.
    #[track_caller]
    pub fn attach(&mut self, text: &str, (name, kind): (&str, &str), bytes: &[u8]) {
        let bytes = STANDARD.encode(bytes);
        self.send("attach", json!({ "text": text, "name": name, "type": kind, "bytes": bytes }));
    }

    /// Returns the widths of the pictures and the contents of the files in the open chat.
    #[track_caller]
    pub fn attachments(&mut self) -> Value {
        self.send("attachments", json!({}))
    }

    #[track_caller]
    pub fn edit(&mut self, message: usize, text: &str) {
        self.send("edit", json!({ "message": message, "text": text }));
    }

    #[track_caller]
    pub fn swipe(&mut self) {
        self.send("swipe", json!({}));
    }

    #[track_caller]
    pub fn checkpoint(&mut self, message: usize, name: &str) -> String {
        self.send_for_name("checkpoint", json!({ "message": message, "name": name }))
    }

    /// Creates and opens a branch. Returns its name.
    #[track_caller]
    pub fn branch(&mut self, message: usize) -> String {
        self.send_for_name("branch", json!({ "message": message }))
    }

    /// Clicks "Back to parent chat". Returns the chat's name.
    #[track_caller]
    pub fn back(&mut self) -> String {
        self.send_for_name("back", json!({}))
    }

    /// Clicks "Close chat".
    #[track_caller]
    pub fn close_chat(&mut self) {
        self.send("close_chat", json!({}));
    }

    /// Opens a chat in "Manage chat files".
    #[track_caller]
    pub fn open(&mut self, chat: &str) {
        self.send("open", json!({ "chat": chat }));
    }

    /// Deletes a chat in "Manage chat files".
    #[track_caller]
    pub fn delete(&mut self, chat: &str) {
        self.send("delete", json!({ "chat": chat }));
    }

    /// Returns the open chat, its metadata and its lorebook as SillyTavern has them in memory.
    #[track_caller]
    pub fn state(&mut self) -> Value {
        self.send("state", json!({}))
    }

    /// Returns the text of the open popup, if any.
    #[track_caller]
    pub fn popup(&mut self) -> Option<String> {
        self.send("popup", json!({})).as_str().map(str::to_owned)
    }

    /// Returns the warnings and errors that the page showed since the last call.
    #[track_caller]
    pub fn take_warnings(&mut self) -> Vec<String> {
        serde_json::from_value(self.send("take_warnings", json!({}))).unwrap()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.requests = None;
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            if self.child.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
