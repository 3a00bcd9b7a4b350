//! A chat with recaps of ST-Auto-Recap and its lorebook, in the formats of the extension and of
//! SillyTavern.
//!
//! [`RecapLibrary::default`] has no finding. A test changes a field and writes it:
//!
//! ```ignore
//! let mut library = RecapLibrary::default();
//! library.queue = Some(vec![Operation::new("pending").about(7)]);
//! library.write(&sandbox);
//! ```
//!
//! `more` contains members that have no field. They are written last and override earlier members
//! of the same name.

#[derive(Clone, Debug)]
pub struct RecapLibrary {
    pub folder: String,
    /// File name of the chat without its extension.
    pub chat: String,
    pub messages: usize,
    /// Text of the messages; chats with the same story have equal messages.
    pub story: String,
    pub scenes: Vec<Scene>,
    /// `None`: the member is missing.
    pub recap: Option<Recap>,
    /// Text and message count of the combined recap.
    pub combined: Option<(String, i64)>,
    /// Parent of a fork.
    pub main_chat: Option<String>,
    /// `world_info`, the lorebook's name.
    pub book: Option<String>,
    /// `auto_lorebooks.lorebookName`.
    pub attached: Option<String>,
    /// `auto_lorebooks.registry.index`: UID, type, name.
    pub cache: Vec<(i64, String, String)>,
    pub entries: Vec<Entry>,
    /// `None`: the book has no queue entry.
    pub queue: Option<Vec<Operation>>,
    /// Further members of `chat_metadata`: key and JSON.
    pub more: Vec<(String, String)>,
}

/// A message that ends a scene.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Index of the message.
    pub at: usize,
    /// `scene_break_name`; [`Scene::new`] writes it into the recap too.
    pub name: String,
    /// JSON text; empty without a recap.
    pub recap: String,
    /// `allEntries`, the lorebook at that message.
    pub entries: Vec<Entry>,
    /// `totalActivatedEntries`.
    pub activated: i64,
    /// `chatLorebookName`.
    pub book: String,
    /// Further members of `auto_recap_memory`: key and JSON.
    pub more: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub struct Recap {
    pub chat_id: Option<String>,
    pub current: i64,
    /// Version number, and the message that ends its last scene.
    pub versions: Vec<(i64, i64)>,
    /// Further members: key and JSON.
    pub more: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub struct Entry {
    /// Mostly the UID.
    pub key: String,
    /// Compact JSON.
    pub json: String,
}

/// An operation in the extension's queue.
#[derive(Clone, Debug)]
pub struct Operation {
    pub id: String,
    pub kind: String,
    pub status: String,
    /// JSON.
    pub params: String,
    /// JSON.
    pub metadata: String,
}

impl Default for RecapLibrary {
    /// 12 messages, scenes that end at 3 and 7, two versions of the running recap, and a lorebook
    /// with gaps between its UIDs.
    fn default() -> Self {
        Self::new("Mira", "Harbour nights")
    }
}

impl RecapLibrary {
    /// Creates a library without findings.
    pub fn new(folder: &str, chat: &str) -> Self {
        let book = book_name(folder, chat);
        let early = vec![
            Entry::new(0, "location-Quay", "Wet stones."),
            Entry::registry(1, "location", &[(0, "location-Quay")]),
        ];
        let mut entries = early.clone();
        entries.push(Entry::new(5, "character-Mira", "She keeps the charts."));
        entries.push(Entry::registry(6, "character", &[(5, "character-Mira")]));
        let scene = |at, name: &str, entries: &[Entry]| Scene {
            book: book.clone(),
            ..Scene::new(at, name, entries.to_vec())
        };
        Self {
            folder: folder.into(),
            chat: chat.into(),
            messages: 12,
            story: "harbour".into(),
            scenes: vec![scene(3, "The quay", &early), scene(7, "The ferry", &entries)],
            recap: Some(Recap {
                chat_id: Some(chat.into()),
                current: 1,
                versions: vec![(0, 3), (1, 7)],
                more: Vec::new(),
            }),
            combined: None,
            main_chat: None,
            book: Some(book.clone()),
            attached: Some(book),
            cache: vec![
                (0, "location".into(), "Quay".into()),
                (5, "character".into(), "Mira".into()),
            ],
            entries,
            queue: Some(Vec::new()),
            more: Vec::new(),
        }
    }

    /// Forks the chat after message `at` as SillyTavern does: the fork has its parent's lorebook,
    /// `chat_id` and complete recap.
    pub fn fork(&self, chat: &str, at: usize) -> Self {
        let mut fork = self.clone();
        fork.main_chat = Some(self.chat.clone());
        fork.chat = chat.into();
        fork.messages = at + 1;
        fork.scenes.retain(|scene| scene.at <= at);
        fork
    }

    pub fn chat_path(&self) -> String {
        format!("chats/{}/{}.jsonl", self.folder, self.chat)
    }

    pub fn book_path(&self) -> String {
        format!("worlds/{}.json", self.book.as_deref().unwrap_or_default())
    }

    pub fn chat_bytes(&self) -> String {
        let mut lines = vec![format!(
            r#"{{"chat_metadata":{},"user_name":"unused","character_name":"unused"}}"#,
            self.metadata()
        )];
        lines.extend((0..self.messages).map(|n| self.message(n)));
        lines.join("\n")
    }

    fn metadata(&self) -> String {
        let mut members =
            vec![("integrity".to_owned(), quoted("66adfc4f-2db0-4526-bd6a-13e6945c6df4"))];
        let mut put = |key: &str, json: String| members.push((key.to_owned(), json));
        if let Some(book) = &self.book {
            put("world_info", quoted(book));
        }
        if let Some(main_chat) = &self.main_chat {
            put("main_chat", quoted(main_chat));
        }
        if let Some(recap) = &self.recap {
            put("auto_recap_running_scene_recaps", recap.json());
        }
        if self.attached.is_some() || !self.cache.is_empty() {
            let index = self.cache.iter().map(|(uid, kind, name)| {
                let item = format!(
                    r#"{{"uid":{uid},"id":"{uid}","type":{},"name":{},"comment":{},"synopsis":"","aliases":[]}}"#,
                    quoted(kind),
                    quoted(name),
                    quoted(&format!("{kind}-{name}")),
                );
                (uid.to_string(), item)
            });
            let name = self.attached.as_deref().map(quoted).unwrap_or_else(|| "null".into());
            let index = object(&index.collect::<Vec<_>>());
            put(
                "auto_lorebooks",
                format!(
                    r#"{{"lorebookName":{name},"attachedAt":1763632702000,"registry":{{"index":{index}}}}}"#
                ),
            );
        }
        if let Some((text, count)) = &self.combined {
            let text = quoted(text);
            put(
                "auto_recap",
                format!(
                    r#"{{"combined_recap":{{"content":{text},"message_count":{count},"timestamp":1763632702000}}}}"#
                ),
            );
        }
        members.extend(self.more.iter().cloned());
        object(&members)
    }

    pub fn message(&self, n: usize) -> String {
        let (name, is_user) =
            if n.is_multiple_of(2) { (self.folder.as_str(), false) } else { ("Wren", true) };
        let scene = self.scenes.iter().find(|scene| scene.at == n);
        let extra = match scene {
            Some(scene) => format!(r#"{{"auto_recap_memory":{}}}"#, scene.json()),
            None => r#"{"auto_recap_memory":{"auto_scene_break_checked":true}}"#.to_owned(),
        };
        format!(
            r#"{{"name":{},"is_user":{is_user},"is_system":false,"send_date":"2026-11-14T23:{:02}:{:02}.000Z","mes":{},"extra":{extra}}}"#,
            quoted(name),
            n / 60 % 60,
            n % 60,
            quoted(&format!("Message {n} of the story {}.", self.story)),
        )
    }

    pub fn book_bytes(&self) -> String {
        let mut entries: Vec<_> =
            self.entries.iter().map(|entry| (entry.key.clone(), entry.json.clone())).collect();
        entries.extend(self.queue.as_ref().map(|queue| {
            let entry = Entry::queue(1_763_632_702_906, queue);
            (entry.key, entry.json)
        }));
        // JavaScript orders integer keys first, by number, and keeps the order of the others.
        entries.sort_by_key(|(key, _)| key.parse::<u32>().unwrap_or(u32::MAX));
        pretty(&format!(r#"{{"entries":{}}}"#, object(&entries)), 4)
    }
}

impl Scene {
    /// Creates a scene with a recap and a copy of the lorebook.
    pub fn new(at: usize, name: &str, entries: Vec<Entry>) -> Self {
        let recap = format!(
            r#"{{"scene_name":{},"stage4":{{"recap":"It came to an end."}}}}"#,
            quoted(name)
        );
        let (name, activated) = (name.to_owned(), entries.len() as i64);
        Self { at, name, recap, entries, activated, book: "Lore".into(), more: Vec::new() }
    }

    /// `auto_recap_memory` of the message.
    fn json(&self) -> String {
        let all: Vec<_> = self.entries.iter().map(|entry| entry.json.as_str()).collect();
        let metadata = format!(
            r#"{{"timestamp":1763632702000,"startIdx":0,"endIdx":{},"sceneMessageCount":{},"totalActivatedEntries":{},"totalBeforeFiltering":{},"chatLorebookName":{},"suppressOtherLorebooks":true,"allEntries":[{}],"entries":[],"created_entry_uids":[]}}"#,
            self.at,
            self.at + 1,
            self.activated,
            self.activated,
            quoted(&self.book),
            all.join(","),
        );
        let recap = quoted(&self.recap);
        let mut members = vec![
            ("scene_break", "true".to_owned()),
            ("scene_break_visible", "true".to_owned()),
            ("scene_break_name", quoted(&self.name)),
            ("scene_recap_versions", format!(r#"["",{recap}]"#)),
            ("scene_recap_current_index", "1".to_owned()),
            ("scene_recap_memory", recap.clone()),
            ("scene_recap_hash", quoted(&hash(&self.recap))),
            ("scene_break_recap", recap),
            ("scene_recap_metadata", format!(r#"{{"1":{metadata}}}"#)),
        ]
        .into_iter()
        .map(|(key, json)| (key.to_owned(), json))
        .collect::<Vec<_>>();
        members.extend(self.more.iter().cloned());
        object(&members)
    }
}

impl Recap {
    fn json(&self) -> String {
        let versions = self.versions.iter().enumerate().map(|(n, (version, end))| {
            let before = n.checked_sub(1).map_or(0, |before| self.versions[before].1);
            format!(
                r#"{{"version":{version},"timestamp":1763632702000,"content":"The story so far, {version}.","scene_count":{},"excluded_count":0,"prev_scene_index":{before},"new_scene_index":{end},"event_keys":[]}}"#,
                n + 1,
            )
        });
        let versions = versions.collect::<Vec<_>>().join(",");
        let mut members = Vec::new();
        members.extend(self.chat_id.as_ref().map(|id| ("chat_id".to_owned(), quoted(id))));
        members.push(("current_version".to_owned(), self.current.to_string()));
        members.push(("versions".to_owned(), format!("[{versions}]")));
        members.extend(self.more.iter().cloned());
        object(&members)
    }
}

impl Entry {
    pub fn new(uid: i64, title: &str, content: &str) -> Self {
        Self::with(uid, title, content, false, "[]")
    }

    /// Builds the registry of a type from UIDs and names.
    pub fn registry(uid: i64, kind: &str, items: &[(i64, &str)]) -> Self {
        let lines = items.iter().map(|(uid, name)| {
            format!("- UID={uid} | name: {name} | aliases: — | synopsis: Somebody knows | more.")
        });
        let head = format!("[Registry: {kind}]");
        let content = [head].into_iter().chain(lines).collect::<Vec<_>>().join("\n");
        Self::registry_of(uid, kind, &content)
    }

    /// Builds a registry with this content.
    pub fn registry_of(uid: i64, kind: &str, content: &str) -> Self {
        let title = format!("_registry_{kind}");
        Self::with(uid, &title, content, true, r#"["auto_lorebooks_registry"]"#)
    }

    pub fn queue(uid: i64, operations: &[Operation]) -> Self {
        let current = operations.first().map_or("null".into(), |operation| quoted(&operation.id));
        let operations: Vec<_> = operations.iter().map(Operation::json).collect();
        let content = format!(
            r#"{{"queue":[{}],"current_operation_id":{current},"paused":false,"version":1,"queueVersion":3}}"#,
            operations.join(","),
        );
        Self::with(uid, "__operation_queue", &pretty(&content, 2), true, "[]")
    }

    pub fn raw(key: &str, json: &str) -> Self {
        Self { key: key.into(), json: json.into() }
    }

    fn with(uid: i64, title: &str, content: &str, disable: bool, tags: &str) -> Self {
        let (title, content) = (quoted(title), quoted(content));
        let json = format!(
            r#"{{"uid":{uid},"key":[],"keysecondary":[],"comment":{title},"content":{content},"constant":false,"vectorized":false,"selective":true,"selectiveLogic":0,"addMemo":true,"order":100,"position":0,"disable":{disable},"excludeRecursion":false,"preventRecursion":false,"probability":100,"useProbability":true,"depth":4,"group":"","tags":{tags},"displayIndex":{}}}"#,
            uid % 1000,
        );
        Self { key: uid.to_string(), json }
    }
}

impl Operation {
    /// Creates an operation without a message.
    pub fn new(status: &str) -> Self {
        Self {
            id: "op_1763632702906_1eddtmv8r".into(),
            kind: "GENERATE_SCENE_RECAP".into(),
            status: status.into(),
            params: "{}".into(),
            metadata: "{}".into(),
        }
    }

    /// Sets the message that the operation is about.
    pub fn about(mut self, message: i64) -> Self {
        self.params = format!(r#"{{"index":{message}}}"#);
        self.metadata = format!(r#"{{"scene_index":{message}}}"#);
        self
    }

    fn json(&self) -> String {
        format!(
            r#"{{"id":{},"type":{},"params":{},"status":{},"created_at":1763632702906,"started_at":null,"completed_at":null,"error":null,"retries":0,"priority":0,"dependencies":[],"metadata":{},"queueVersion":3,"pauseBeforeExecution":false}}"#,
            quoted(&self.id),
            quoted(&self.kind),
            self.params,
            quoted(&self.status),
            self.metadata,
        )
    }
}

/// Returns the name that the extension gives a chat's lorebook.
pub fn book_name(folder: &str, chat: &str) -> String {
    format!("z-AutoLB-{folder}-{chat}")
}

/// Computes the extension's hash of a recap.
pub fn hash(text: &str) -> String {
    let mut hash: i32 = 0;
    for unit in text.trim().encode_utf16() {
        hash = (hash << 5).wrapping_sub(hash).wrapping_add(i32::from(unit));
    }
    let mut rest = hash.unsigned_abs();
    let mut digits = Vec::new();
    while rest > 0 || digits.is_empty() {
        digits.push(char::from_digit(rest % 36, 36).unwrap());
        rest /= 36;
    }
    digits.iter().rev().collect()
}

pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

pub fn object(members: &[(String, String)]) -> String {
    let members: Vec<_> =
        members.iter().map(|(key, json)| format!("{}:{json}", quoted(key))).collect();
    format!("{{{}}}", members.join(","))
}

/// Formats compact JSON like `JSON.stringify(…, null, indent)`.
pub fn pretty(json: &str, indent: usize) -> String {
    let mut out = String::new();
    let mut depth = 0;
    let mut in_string = false;
    let mut chars = json.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&" ".repeat(depth * indent));
    };
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => {
                out.push(c);
                out.extend(chars.next());
            }
            '"' => {
                in_string = !in_string;
                out.push(c);
            }
            _ if in_string => out.push(c),
            '{' | '[' => {
                out.push(c);
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => out.push(c),
        }
    }
    out
}
