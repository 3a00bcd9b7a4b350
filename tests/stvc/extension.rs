//! `stvc extension`: its files come out of the program, and what is not its own is left alone.

use std::fs;

use crate::common::{Sandbox, chat};

const FOLDER: &str = "extensions/stvc";

fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/one.jsonl", chat("one", 2, None));
    sandbox
}

#[test]
fn it_comes_and_goes() {
    let sandbox = library();
    let before = sandbox.files();
    let told = sandbox.json(&["extension"]).exits(0).of_type("extension");
    assert!(told[0]["installed"].is_null() && told[0]["watch"] == false);
    sandbox.stvc(&["extension", "install"]).exits(0);
    let manifest: serde_json::Value =
        serde_json::from_slice(&sandbox.read("extensions/stvc/manifest.json")).unwrap();
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    for (name, text) in stvc::api::extension::files() {
        assert_eq!(sandbox.read(&format!("{FOLDER}/{name}")), text.as_bytes());
        // It loads nothing from elsewhere, and makes no HTML of strings.
        let text = text.replace("http://www.w3.org/2000/svg", "");
        for word in ["http://", "https://", "innerHTML", "eval("] {
            assert!(!text.contains(word), "{name} has {word}");
        }
    }
    // Again changes nothing; an interrupted update is made whole.
    sandbox.stvc(&["extension", "update"]).exits(0);
    fs::remove_file(sandbox.path("extensions/stvc/deeds.js")).unwrap();
    sandbox.stvc(&["extension", "update"]).exits(0);
    assert!(sandbox.path("extensions/stvc/deeds.js").exists());
    sandbox.stvc(&["extension", "remove"]).exits(0);
    assert!(!sandbox.path(FOLDER).exists());
    let after = sandbox.files();
    assert_eq!(after, before);
    sandbox.stvc(&["extension", "remove"]).exits(0);
}

#[test]
fn what_is_not_its_own_stays() {
    let sandbox = library();
    sandbox.write("extensions/stvc/index.js", "// somebody else's");
    for deed in ["install", "update", "remove"] {
        let refused = sandbox.stvc(&["extension", deed]).exits(4);
        assert!(refused.stderr.contains("did not put it there"), "{}", refused.stderr);
    }
    fs::remove_dir_all(sandbox.path(FOLDER)).unwrap();
    sandbox.stvc(&["extension", "install"]).exits(0);
    sandbox.write("extensions/stvc/words.js", "// edited");
    sandbox.write("extensions/stvc/notes.txt", "mine");
    let refused = sandbox.stvc(&["extension", "update"]).exits(4);
    assert!(refused.stderr.contains("words.js"), "{}", refused.stderr);
    fs::remove_file(sandbox.path("extensions/stvc/words.js")).unwrap();
    sandbox.stvc(&["extension", "remove"]).exits(0);
    assert_eq!(sandbox.read("extensions/stvc/notes.txt"), b"mine");
}
