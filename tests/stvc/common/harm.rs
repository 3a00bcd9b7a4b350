//! What can befall the files of a store.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Sandbox, Stored, calm, chat, files_of, make_writable, message};

/// What can befall a file.
#[derive(Clone, Copy, Debug)]
pub enum Harm {
    Deleted,
    CutTo(usize),
    /// So many bytes are gone from its end.
    CutBy(usize),
    Flipped(usize),
}

/// Hurt a file, look, and make it whole again.
pub fn hurt(path: &Path, harm: Harm, look: impl FnOnce()) {
    let whole = fs::read(path).unwrap();
    make_writable(path);
    hurt_for_good(path, harm);
    look();
    // A folder that was empty may be gone.
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, whole).unwrap();
}

/// Hurt a file.
pub fn hurt_for_good(path: &Path, harm: Harm) {
    let mut bytes = fs::read(path).unwrap();
    match harm {
        Harm::Deleted => return fs::remove_file(path).unwrap(),
        Harm::CutTo(length) => bytes.truncate(length),
        Harm::CutBy(length) => bytes.truncate(bytes.len() - length),
        Harm::Flipped(at) => bytes[at] ^= 0x15,
    }
    fs::write(path, bytes).unwrap();
}

/// Three timelines, each stored by a command of its own and so in a pack of its own; the middle one has a lorebook and a tag.
pub struct Three {
    pub sandbox: Sandbox,
    pub stored: Vec<Stored>,
    pub packs: Vec<PathBuf>,
}

impl Three {
    pub fn new() -> Self {
        let sandbox = Sandbox::empty();
        let entry = |uid: u32| serde_json::json!({ "uid": uid, "content": format!("fact {uid}") });
        let book = serde_json::json!({ "entries": { "0": entry(0), "7": entry(7) } });
        sandbox.write("worlds/Harbour.json", book.to_string());
        let (mut stored, mut packs) = (Vec::new(), Vec::<PathBuf>::new());
        for (n, (name, book)) in
            [("a", None), ("b", Some("Harbour")), ("c", None)].into_iter().enumerate()
        {
            let path = format!("chats/Mira/{name}.jsonl");
            sandbox.write(&path, chat(name, 5 + n, book));
            stored.push(Stored::take(&sandbox, &path));
            let new = files_of(&sandbox.store().join("objects/pack"), "pack");
            packs.push(new.into_iter().find(|pack| !packs.contains(pack)).unwrap());
        }
        sandbox.stvc(&["tag", "keep", &stored[1].id]).exits(0);
        Self { sandbox, stored, packs }
    }

    /// The snapshots that have nothing to do with the middle one.
    #[track_caller]
    pub fn others_come_back(&self) {
        self.stored[0].must_come_back(&self.sandbox);
        self.stored[2].must_come_back(&self.sandbox);
    }

    /// Every command that reads, on the hurt snapshot and on a whole one.
    #[track_caller]
    pub fn nothing_panics(&self) {
        let (a, b) = (self.stored[0].id.as_str(), self.stored[1].id.as_str());
        for arguments in [
            &["log"][..],
            &["log", "--graph"],
            &["timelines"],
            &["status"],
            &["tag"],
            &["show", b],
            &["show", "keep"],
            &["diff", b],
            &["diff", a, b],
            &["restore", b, "--dry-run"],
            &["restore", "Mira/b", "--dry-run"],
            &["restore", a, "--to", "../out"],
            &["check"],
        ] {
            calm(self.sandbox.stvc(arguments));
        }
    }

    /// Go on: the library is whole, so what is stored now must come back.
    #[track_caller]
    pub fn goes_on(&self) {
        self.sandbox.append("chats/Mira/a.jsonl", &message("a", 99));
        for path in ["chats/Mira/a.jsonl", "chats/Mira/b.jsonl"] {
            Stored::take(&self.sandbox, path).must_come_back(&self.sandbox);
        }
        calm(self.sandbox.stvc(&["snapshot"])).exits(0);
    }
}
