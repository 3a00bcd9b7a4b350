//! A store that was hurt: every kind of file in it deleted, cut short or with one byte flipped. `check` must say so, whatever
//! was not hurt must come back, and nothing may panic.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Answer, Sandbox, git};

/// A chat with some messages; the lorebook, if it has one, is called `book`.
pub fn chat(name: &str, messages: usize, book: Option<&str>) -> Vec<u8> {
    let metadata = match book {
        Some(book) => serde_json::json!({ "world_info": book }),
        None => serde_json::json!({}),
    };
    let header = serde_json::json!({ "user_name": "You", "character_name": "Mira", "chat_metadata": metadata });
    let mut text = header.to_string();
    for n in 0..messages {
        text.push_str(&format!("\n{}", message(name, n)));
    }
    text.into_bytes()
}

/// Message `n` of the chat `name`.
pub fn message(name: &str, n: usize) -> String {
    let text = format!("{name} {n}: {}", blake(&format!("{name}/{n}")));
    serde_json::json!({ "name": "Mira", "is_user": n.is_multiple_of(2), "mes": text }).to_string()
}

fn blake(text: &str) -> String {
    // Words that do not compress to nothing.
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{state:016x} {:016x}", state.rotate_left(17).wrapping_mul(3))
}

/// A snapshot that was acknowledged, and the bytes it must give back.
#[derive(Clone, Debug)]
pub struct Stored {
    pub id: String,
    pub path: String,
    pub bytes: Vec<u8>,
}

impl Stored {
    /// The timeline's newest snapshot, which must be what its file holds.
    #[track_caller]
    pub fn take(sandbox: &Sandbox, path: &str) -> Self {
        let answer = sandbox.json(&["snapshot", path]).exits(0);
        let id = answer.of_type("snapshot")[0]["id"].as_str().unwrap().to_owned();
        Self { id, path: path.to_owned(), bytes: sandbox.read(path) }
    }

    /// Restore it into a folder of its own; whether that worked. Either all of it comes back or nothing does.
    #[track_caller]
    pub fn comes_back(&self, sandbox: &Sandbox) -> bool {
        let folder = tempfile::tempdir_in(sandbox.folder()).unwrap();
        let target = folder.path().join("out");
        let answer = calm(sandbox.stvc(&["restore", &self.id, "--to", target.to_str().unwrap()]));
        if answer.code == 0 {
            assert_eq!(fs::read(target.join(&self.path)).unwrap(), self.bytes, "{}", self.path);
            return true;
        }
        let left = fs::read_dir(&target).map_or(0, Iterator::count);
        assert_eq!(left, 0, "a restore that failed left files behind: {}", answer.stderr);
        false
    }

    #[track_caller]
    pub fn must_come_back(&self, sandbox: &Sandbox) {
        assert!(self.comes_back(sandbox), "{} {}", self.id, self.path);
    }
}

/// The answer of a program that did not panic and was not killed.
#[track_caller]
pub fn calm(answer: Answer) -> Answer {
    assert!(!matches!(answer.code, 101 | -1), "{answer:?}");
    assert!(!answer.stderr.contains("panicked"), "{answer:?}");
    answer
}

/// All that `check` says, and its exit code.
#[track_caller]
pub fn check(sandbox: &Sandbox) -> (i32, String) {
    let answer = calm(sandbox.json(&["check"]));
    let found: Vec<Value> =
        ["finding", "error"].iter().flat_map(|kind| answer.of_type(kind)).collect();
    let words = found.iter().map(|line| format!("{} {}\n", line["subject"], line["message"]));
    (answer.code, words.collect::<String>().replace("\\\\", "/"))
}

/// Three timelines, each stored by a command of its own and so in a pack of its own; the middle one has a lorebook and a tag.
pub struct Three {
    pub sandbox: Sandbox,
    pub stored: Vec<Stored>,
    packs: Vec<PathBuf>,
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

pub fn files_of(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_of(&path, extension));
        } else if path.extension().unwrap_or_default() == extension {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// What can befall a file.
#[derive(Clone, Copy, Debug)]
pub enum Harm {
    Deleted,
    CutTo(usize),
    Flipped(usize),
}

/// Hurt a file, look, and make it whole again.
pub fn hurt(path: &Path, harm: Harm, look: impl FnOnce()) {
    let whole = fs::read(path).unwrap();
    make_writable(path);
    match harm {
        Harm::Deleted => fs::remove_file(path).unwrap(),
        Harm::CutTo(length) => fs::write(path, &whole[..length]).unwrap(),
        Harm::Flipped(at) => {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x15;
            fs::write(path, bytes).unwrap();
        }
    }
    look();
    fs::write(path, whole).unwrap();
}

/// Git makes the files of its objects read-only.
fn make_writable(path: &Path) {
    let mut permissions = fs::metadata(path).unwrap().permissions();
    #[expect(clippy::permissions_set_readonly_false, reason = "a file in a temporary folder")]
    permissions.set_readonly(false);
    fs::set_permissions(path, permissions).unwrap();
}

pub fn len(path: &Path) -> usize {
    usize::try_from(fs::metadata(path).unwrap().len()).unwrap()
}

/// `check` finds the file, names the middle snapshot if and only if it does not come back, and the others do come back.
#[track_caller]
fn look_at_hurt_pack(three: &Three, file: &Path, harm: Harm) {
    let (code, words) = check(&three.sandbox);
    let stem = file.file_stem().unwrap().to_str().unwrap();
    assert_eq!(code, 1, "{harm:?}: {words}");
    assert!(words.contains(stem), "{harm:?}: {words}");
    three.others_come_back();
    let hurt = &three.stored[1];
    let named = words.contains(&hurt.id) || words.contains("refs/heads/chats/Mira/b");
    assert_eq!(!named, hurt.comes_back(&three.sandbox), "{harm:?}: {words}");
    for other in [&three.stored[0], &three.stored[2]] {
        assert!(!words.contains(&other.id), "{harm:?}: {words}");
    }
}

#[test]
fn a_byte_flipped_anywhere_in_a_pack_is_found() {
    let three = Three::new();
    let pack = &three.packs[1];
    for at in (0..len(pack)).step_by(29) {
        let harm = Harm::Flipped(at);
        hurt(pack, harm, || look_at_hurt_pack(&three, pack, harm));
    }
    for at in (0..len(pack)).step_by(307) {
        hurt(pack, Harm::Flipped(at), || three.nothing_panics());
    }
    assert_eq!(check(&three.sandbox), (0, String::new()));
}

#[test]
fn a_byte_flipped_anywhere_in_an_index_is_found() {
    let three = Three::new();
    let index = three.packs[1].with_extension("idx");
    for at in (0..len(&index)).step_by(41) {
        let harm = Harm::Flipped(at);
        hurt(&index, harm, || look_at_hurt_pack(&three, &index, harm));
    }
    for at in (0..len(&index)).step_by(307) {
        hurt(&index, Harm::Flipped(at), || three.nothing_panics());
    }
    assert_eq!(check(&three.sandbox), (0, String::new()));
}

#[test]
fn a_pack_or_index_that_is_gone_or_cut_short_is_found() {
    let three = Three::new();
    for file in [three.packs[1].clone(), three.packs[1].with_extension("idx")] {
        let whole = len(&file);
        let mut harms = vec![Harm::Deleted];
        harms.extend([0, 3, 12, 31, 32, 200, whole / 2, whole - 20, whole - 1].map(Harm::CutTo));
        for harm in harms {
            hurt(&file, harm, || {
                look_at_hurt_pack(&three, &file, harm);
                three.nothing_panics();
            });
        }
    }
    assert_eq!(check(&three.sandbox), (0, String::new()));
}

/// A new snapshot of whole files while the pack that held them is hurt in this way.
fn goes_on_after(extension: &str, harm: impl Fn(usize) -> Harm) {
    let three = Three::new();
    let file = three.packs[1].with_extension(extension);
    hurt(&file, harm(len(&file)), || {
        assert_eq!(check(&three.sandbox).0, 1);
        three.goes_on();
    });
}

#[test]
fn a_new_snapshot_after_a_pack_is_gone_comes_back() {
    goes_on_after("pack", |_| Harm::Deleted);
    goes_on_after("idx", |_| Harm::Deleted);
    goes_on_after("idx", |length| Harm::CutTo(length / 2));
}

/// What `check` advises about a damaged newest snapshot: take a new one while the files are there.
#[test]
fn a_new_snapshot_after_a_pack_is_damaged_comes_back() {
    goes_on_after("pack", |length| Harm::CutTo(length / 2));
    goes_on_after("pack", |_| Harm::CutTo(0));
    goes_on_after("pack", |_| Harm::Flipped(60));
}

/// Damage to what the newest snapshot shares with the next one must not keep the next one from being taken.
#[test]
fn a_chat_that_went_on_is_stored_whatever_was_damaged() {
    let three = Three::new();
    let pack = &three.packs[1];
    for at in (12..len(pack) - 20).step_by(131) {
        let three = Three::new();
        let pack = &three.packs[1];
        hurt(pack, Harm::Flipped(at), || {
            check(&three.sandbox);
            three.sandbox.append("chats/Mira/b.jsonl", &message("b", 70));
            calm(three.sandbox.stvc(&["snapshot"])).exits(0);
            Stored::take(&three.sandbox, "chats/Mira/b.jsonl").must_come_back(&three.sandbox);
        });
    }
}

#[test]
fn damaged_loose_objects_are_found() {
    let three = Three::new();
    let store = three.sandbox.store();
    let away = three.sandbox.folder().join("packs");
    fs::rename(store.join("objects/pack"), &away).unwrap();
    fs::create_dir(store.join("objects/pack")).unwrap();
    for pack in files_of(&away, "pack") {
        let unpack = format!("git unpack-objects -q < '{}'", pack.display());
        git(&store, &["-c", &format!("alias.unpack=!{unpack}"), "unpack"]);
    }
    assert_eq!(check(&three.sandbox), (0, String::new()));
    let of_b = git(&store, &["rev-list", "--objects", "--no-object-names", &three.stored[1].id]);
    let elsewhere = git(
        &store,
        &["rev-list", "--objects", "--no-object-names", &three.stored[0].id, &three.stored[2].id],
    );
    let elsewhere = String::from_utf8(elsewhere).unwrap();
    let of_b = String::from_utf8(of_b).unwrap();
    let own: Vec<_> = of_b.lines().filter(|id| !elsewhere.contains(id)).collect();
    assert!(own.len() > 10);
    for id in own {
        let file = store.join("objects").join(&id[..2]).join(&id[2..]);
        let length = len(&file);
        for harm in [Harm::Deleted, Harm::CutTo(length / 2), Harm::Flipped(length / 2)] {
            hurt(&file, harm, || {
                let (code, words) = check(&three.sandbox);
                assert_eq!(code, 1, "{harm:?} {id}: {words}");
                assert!(words.contains(id), "{harm:?} {id}: {words}");
                let hurt = &three.stored[1];
                assert!(words.contains(&hurt.id), "{harm:?} {id}: {words}");
                assert!(!hurt.comes_back(&three.sandbox), "{harm:?} {id}");
            });
        }
        hurt(&file, Harm::CutTo(length / 2), || {
            three.others_come_back();
            calm(three.sandbox.stvc(&["log"]));
            calm(three.sandbox.stvc(&["status"]));
            calm(three.sandbox.stvc(&["show", &three.stored[1].id]));
        });
    }
    assert_eq!(check(&three.sandbox), (0, String::new()));
}
