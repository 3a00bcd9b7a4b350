//! Damage to the files of a store.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Sandbox, Stored, assert_no_panic, chat, files_with_extension, make_writable, message};

/// Damage to one file.
#[derive(Clone, Copy, Debug)]
pub enum Damage {
    Deleted,
    CutTo(usize),
    /// Bytes removed from the end.
    CutBy(usize),
    Flipped(usize),
}

/// Damages a file, runs `look`, and repairs the file.
pub fn with_damage(path: &Path, damage: Damage, look: impl FnOnce()) {
    let whole = fs::read(path).unwrap();
    make_writable(path);
    damage_file(path, damage);
    look();
    // The command may have removed a folder that became empty.
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, whole).unwrap();
}

pub fn damage_file(path: &Path, damage: Damage) {
    let mut bytes = fs::read(path).unwrap();
    match damage {
        Damage::Deleted => return fs::remove_file(path).unwrap(),
        Damage::CutTo(length) => bytes.truncate(length),
        Damage::CutBy(length) => bytes.truncate(bytes.len() - length),
        Damage::Flipped(at) => bytes[at] ^= 0x15,
    }
    fs::write(path, bytes).unwrap();
}

/// Three timelines, each stored by its own command and therefore in its own pack. The middle one
/// has a lorebook and a tag.
pub struct ThreeTimelines {
    pub sandbox: Sandbox,
    pub stored: Vec<Stored>,
    pub packs: Vec<PathBuf>,
}

impl ThreeTimelines {
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
            let new = files_with_extension(&sandbox.store().join("objects/pack"), "pack");
            packs.push(new.into_iter().find(|pack| !packs.contains(pack)).unwrap());
        }
        sandbox.stvc(&["tag", "keep", &stored[1].id]).exits(0);
        Self { sandbox, stored, packs }
    }

    /// Asserts that the snapshots of the two other timelines restore.
    #[track_caller]
    pub fn assert_others_restore(&self) {
        self.stored[0].assert_restores(&self.sandbox);
        self.stored[2].assert_restores(&self.sandbox);
    }

    /// Runs every reading command on the damaged snapshot and on a valid one.
    #[track_caller]
    pub fn assert_no_command_panics(&self) {
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
            assert_no_panic(self.sandbox.stvc(arguments));
        }
    }

    /// Takes new snapshots, which must restore because the library is undamaged.
    #[track_caller]
    pub fn assert_new_snapshots_work(&self) {
        self.sandbox.append("chats/Mira/a.jsonl", &message("a", 99));
        for path in ["chats/Mira/a.jsonl", "chats/Mira/b.jsonl"] {
            Stored::take(&self.sandbox, path).assert_restores(&self.sandbox);
        }
        assert_no_panic(self.sandbox.stvc(&["snapshot"])).exits(0);
    }
}
