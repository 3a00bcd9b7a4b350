//! Lorebooks: SillyTavern's file, and the copies that ST-Auto-Recap writes into messages.

use crate::library::quoted;
use crate::prose::{Random, name, story};

/// Varying fields of an entry; the others have SillyTavern's defaults.
#[derive(Clone)]
pub struct Entry {
    pub uid: u64,
    pub comment: String,
    pub content: String,
    pub order: usize,
    pub disable: bool,
}

impl Entry {
    pub fn new(random: &mut Random, uid: u64) -> Self {
        let comment = name(random);
        let content = Self::text(random);
        Self { uid, comment, content, order: 100, disable: false }
    }

    pub fn text(random: &mut Random) -> String {
        let length = 30 + random.below(260);
        story(random, length)
    }

    /// Formats the entry for the file, indented by four.
    fn in_file(&self) -> String {
        format!(
            r#"        "{uid}": {{
            "uid": {uid},
            "key": [
                {title}
            ],
            "keysecondary": [],
            "comment": {title},
            "content": {content},
            "constant": false,
            "vectorized": false,
            "selective": true,
            "selectiveLogic": 0,
            "addMemo": true,
            "order": {order},
            "position": 0,
            "disable": {disable},
            "ignoreBudget": false,
            "excludeRecursion": false,
            "preventRecursion": false,
            "matchPersonaDescription": false,
            "matchCharacterDescription": false,
            "matchCharacterPersonality": false,
            "matchCharacterDepthPrompt": false,
            "matchScenario": false,
            "matchCreatorNotes": false,
            "delayUntilRecursion": 0,
            "probability": 100,
            "useProbability": true,
            "depth": 4,
            "outletName": "",
            "group": "",
            "groupOverride": false,
            "groupWeight": 100,
            "scanDepth": null,
            "caseSensitive": null,
            "matchWholeWords": null,
            "useGroupScoring": null,
            "automationId": "",
            "role": 0,
            "sticky": null,
            "cooldown": null,
            "delay": null,
            "triggers": []
        }}"#,
            uid = self.uid,
            title = quoted(&self.comment),
            content = quoted(&self.content),
            order = self.order,
            disable = self.disable,
        )
    }

    /// Formats the copy in a message that was sent with this lorebook.
    pub fn in_message(&self, world: &str) -> String {
        format!(
            r#"{{"comment":{title},"uid":{},"world":{},"key":[{title}],"position":0,"depth":4,"order":{},"role":0,"constant":false,"vectorized":false,"sticky":0,"strategy":"normal","content":{}}}"#,
            self.uid,
            quoted(world),
            self.order,
            quoted(&self.content),
            title = quoted(&self.comment),
        )
    }

    /// Formats the copy in a scene break, from which the lorebook can be reconstructed.
    pub fn in_scene_break(&self, world: &str) -> String {
        format!(
            r#"{{"comment":{title},"uid":{},"world":{},"key":[{title}],"keysecondary":[],"content":{},"position":0,"depth":4,"order":{},"role":0,"constant":false,"vectorized":false,"selective":true,"selectiveLogic":0,"sticky":0,"disable":{},"addMemo":true,"excludeRecursion":false,"preventRecursion":false,"ignoreBudget":false,"probability":100,"useProbability":true,"group":"","groupOverride":false,"groupWeight":100,"tags":[],"strategy":"normal"}}"#,
            self.uid,
            quoted(world),
            quoted(&self.content),
            self.order,
            self.disable,
            title = quoted(&self.comment),
        )
    }
}

pub fn file(entries: &[Entry]) -> String {
    let entries: Vec<_> = entries.iter().map(Entry::in_file).collect();
    format!("{{\n    \"entries\": {{\n{}\n    }}\n}}", entries.join(",\n"))
}
