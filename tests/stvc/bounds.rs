//! Sizes and counts that a pack, a backup or a manifest claims are limited by its actual bytes: the
//! file may be malicious or damaged.

use std::fs;
use std::path::Path;

use crate::common::{A, Answer, Sandbox, Stored, assert_no_panic, chat, run_in_shell};

/// A pack that is written by hand and may be invalid.
#[derive(Default)]
struct HandMade {
    pack: Vec<u8>,
    /// Id, checksum and offset of each object.
    entries: Vec<(gix::ObjectId, u32, u64)>,
}

const COMMIT: u8 = 1;

const BLOB: u8 = 3;

const OFS_DELTA: u8 = 6;

const REF_DELTA: u8 = 7;

impl HandMade {
    fn new() -> Self {
        Self { pack: b"PACK\0\0\0\x02\0\0\0\0".to_vec(), entries: Vec::new() }
    }

    /// Adds an entry: kind, claimed size, base, and compressed bytes.
    fn add(&mut self, id: gix::ObjectId, kind: u8, size: u64, base: &[u8], stream: &[u8]) -> u64 {
        let at = self.pack.len();
        let mut rest = size >> 4;
        let mut byte = kind << 4 | (size & 0xf) as u8;
        while rest > 0 {
            self.pack.push(byte | 0x80);
            byte = (rest & 0x7f) as u8;
            rest >>= 7;
        }
        self.pack.push(byte);
        self.pack.extend_from_slice(base);
        self.pack.extend_from_slice(stream);
        self.entries.push((id, crc32fast::hash(&self.pack[at..]), at as u64));
        at as u64
    }

    /// Writes the pack into a store.
    fn put(mut self, store: &Path) {
        let count = u32::try_from(self.entries.len()).unwrap();
        self.pack[8..12].copy_from_slice(&count.to_be_bytes());
        let sum = sha1(&self.pack);
        self.pack.extend_from_slice(sum.as_slice());
        self.entries.sort();
        let mut index = b"\xfftOc\0\0\0\x02".to_vec();
        for byte in 0..=255_u8 {
            let below = self.entries.iter().filter(|(id, ..)| id.as_slice()[0] <= byte).count();
            index.extend((below as u32).to_be_bytes());
        }
        self.entries.iter().for_each(|(id, ..)| index.extend(id.as_slice()));
        self.entries.iter().for_each(|(_, crc, _)| index.extend(crc.to_be_bytes()));
        self.entries.iter().for_each(|(.., at)| index.extend((*at as u32).to_be_bytes()));
        index.extend(sum.as_slice());
        let own = sha1(&index);
        index.extend(own.as_slice());
        let pack = store.join(format!("objects/pack/pack-{sum}.pack"));
        fs::write(&pack, self.pack).unwrap();
        fs::write(pack.with_extension("idx"), index).unwrap();
    }
}

fn sha1(bytes: &[u8]) -> gix::ObjectId {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(bytes);
    hasher.try_finalize().unwrap()
}

fn id_of(kind: &str, bytes: &[u8]) -> gix::ObjectId {
    sha1(&[format!("{kind} {}\0", bytes.len()).as_bytes(), bytes].concat())
}

fn some_id(n: u8) -> gix::ObjectId {
    gix::ObjectId::try_from(&[n; 20][..]).unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut deflate = libdeflater::Compressor::new(libdeflater::CompressionLvl::new(1).unwrap());
    let mut out = vec![0; deflate.zlib_compress_bound(bytes.len())];
    let length = deflate.zlib_compress(bytes, &mut out).unwrap();
    out.truncate(length);
    out
}

/// Encodes the distance to a base as in a pack.
fn distance(mut back: u64) -> Vec<u8> {
    let mut bytes = vec![(back & 0x7f) as u8];
    while back >> 7 > 0 {
        back = (back >> 7) - 1;
        bytes.insert(0, 0x80 | (back & 0x7f) as u8);
    }
    bytes
}

fn library() -> (Sandbox, Stored) {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 4, None));
    let stored = Stored::take(&sandbox, A);
    (sandbox, stored)
}

/// Runs the program with `mib` MiB of address space beyond its start. The system refuses more.
#[cfg(unix)]
fn run_with_memory_limit(sandbox: &Sandbox, mib: u64, arguments: &[&str]) -> Answer {
    let program = sandbox.command(arguments);
    let size = fs::metadata(program.get_program()).unwrap().len() >> 10;
    // Each thread has its own stack and heap.
    let limit = size + 400_000 + (mib << 10);
    let script = format!("ulimit -v {limit} || exit 99; export MALLOC_ARENA_MAX=2; exec \"$@\"");
    run_in_shell(sandbox, &script, arguments)
}

#[cfg(not(unix))]
fn run_with_memory_limit(sandbox: &Sandbox, _mib: u64, arguments: &[&str]) -> Answer {
    sandbox.stvc(arguments)
}

fn point_branch_at(sandbox: &Sandbox, id: gix::ObjectId) {
    let path = sandbox.store().join("refs/heads/chats/Mira/odd");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{id}\n")).unwrap();
}

#[test]
fn commit_that_claims_a_huge_size_is_refused() {
    let (sandbox, stored) = library();
    let mut made = HandMade::new();
    // Claims four gigabytes; another really has 32 megabytes, compressed to 32 kilobytes.
    let zeros = vec![0; 32 << 20];
    made.add(some_id(1), COMMIT, 4 << 30, &[], &deflate(b"tree "));
    made.add(id_of("commit", &zeros), COMMIT, zeros.len() as u64, &[], &deflate(&zeros));
    made.put(&sandbox.store());
    for id in [some_id(1), id_of("commit", &zeros)] {
        point_branch_at(&sandbox, id);
        for arguments in [&["log"][..], &["snapshot"], &["check"], &["timelines"]] {
            let answer = assert_no_panic(run_with_memory_limit(&sandbox, 512, arguments));
            assert_ne!(answer.code, -1, "{arguments:?}");
        }
        let errors = run_with_memory_limit(&sandbox, 512, &["check"]).exits(1).stderr;
        assert!(
            errors.contains("its recorded length exceeds the limit for such objects"),
            "{errors}"
        );
        stored.assert_restores(&sandbox);
    }
}

/// The size field claims gigabytes, but no data follows.
#[test]
fn memory_grows_with_bytes_read_not_with_claimed_sizes() {
    let (sandbox, stored) = library();
    let mut made = HandMade::new();
    let noise: Vec<u8> =
        (0..2_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (n, size) in [(1, 110 << 30), (2, 500 << 20), (3, 20 << 20), (4, 7)] {
        made.add(some_id(n), BLOB, size, &[], &deflate(b"short"));
    }
    made.add(id_of("blob", &noise), BLOB, noise.len() as u64, &[], &deflate(&noise));
    made.put(&sandbox.store());
    let answer = run_with_memory_limit(&sandbox, 128, &["check"]).exits(1);
    let errors = answer.stderr;
    assert!(errors.contains("its recorded length exceeds the limit for such objects"), "{errors}");
    for n in 1..=4 {
        assert!(errors.contains(&some_id(n).to_string()), "{errors}");
    }
    assert!(!errors.contains(&id_of("blob", &noise).to_string()), "{errors}");
    stored.assert_restores(&sandbox);
}

/// Builds an object of 64 bytes: a number and a common rest.
fn numbered(n: u32) -> Vec<u8> {
    [&u64::from(n).to_le_bytes()[..], &[b'='; 56]].concat()
}

/// Builds the delta between two such objects: eight new bytes and a copy of the rest.
fn step(n: u32) -> Vec<u8> {
    [&[64, 64, 8][..], &u64::from(n).to_le_bytes(), &[0x91, 8, 56]].concat()
}

/// Writes a pack in which each object is a delta of the previous one. Returns the last one.
fn put_chain(store: &Path, deltas: u32) -> gix::ObjectId {
    let mut made = HandMade::new();
    let mut last = made.add(id_of("blob", &numbered(0)), BLOB, 64, &[], &deflate(&numbered(0)));
    for n in 1..=deltas {
        let back = distance(made.pack.len() as u64 - last);
        let delta = step(n);
        let id = id_of("blob", &numbered(n));
        last = made.add(id, OFS_DELTA, delta.len() as u64, &back, &deflate(&delta));
    }
    made.put(store);
    id_of("blob", &numbered(deltas))
}

/// Whether the finding reports a pack that is too deep.
fn names_deep_pack(finding: &serde_json::Value) -> bool {
    let message = finding["message"].as_str().unwrap();
    message.contains("pack-") && message.contains(".pack has a chain of more than 4096 deltas")
}

#[test]
fn delta_chains_are_limited() {
    // The depth that git writes.
    let (sandbox, stored) = library();
    put_chain(&sandbox.store(), 4096);
    assert_no_panic(sandbox.json(&["check"])).exits(0);
    stored.assert_restores(&sandbox);
    // Deeper objects are not read.
    let (sandbox, stored) = library();
    put_chain(&sandbox.store(), 4097);
    let found = assert_no_panic(sandbox.json(&["check"])).exits(1).of_type("finding");
    assert_eq!(found.iter().filter(|found| names_deep_pack(found)).count(), 4097 - 63);
    stored.assert_restores(&sandbox);
}

#[test]
fn pack_with_60000_chained_deltas_is_refused_early() {
    let (sandbox, stored) = library();
    let last = put_chain(&sandbox.store(), 60_000);
    point_branch_at(&sandbox, last);
    let other = Sandbox::empty();
    let store = sandbox.store();
    let import = ["--json", "import", store.to_str().unwrap()];
    let begin = std::time::Instant::now();
    let answer = assert_no_panic(run_with_memory_limit(&other, 64, &import));
    // Resolving each object separately would take minutes.
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
    let lines: Vec<serde_json::Value> =
        answer.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let findings = lines.iter().filter(|line| line["type"] == "finding");
    assert_eq!(findings.filter(|found| names_deep_pack(found)).count(), 1, "{answer:?}");
    // The rest is imported.
    other.stvc(&["restore", "Mira/a"]).exits(0);
    assert_eq!(other.read(A), sandbox.read(A));
    stored.assert_restores(&sandbox);
}

/// Two objects that are deltas of each other.
#[test]
fn circular_deltas_are_refused() {
    let (sandbox, stored) = library();
    let mut made = HandMade::new();
    for (n, other) in [(1, 2), (2, 1)] {
        let delta = step(u32::from(n));
        made.add(
            some_id(n),
            REF_DELTA,
            delta.len() as u64,
            some_id(other).as_slice(),
            &deflate(&delta),
        );
    }
    made.put(&sandbox.store());
    let answer = assert_no_panic(sandbox.json(&["check"])).exits(1);
    assert_eq!(answer.of_type("finding").len(), 2, "{answer:?}");
    point_branch_at(&sandbox, some_id(1));
    assert_no_panic(sandbox.stvc(&["log"]));
    stored.assert_restores(&sandbox);
}

/// A short delta that expands a base of 16 megabytes to half a gigabyte, and one that exceeds the
/// limit of objects.
#[test]
fn small_delta_cannot_expand_beyond_the_limit() {
    let (sandbox, stored) = library();
    let base = vec![b'x'; 16 << 20];
    let mut made = HandMade::new();
    let at = made.add(id_of("blob", &base), BLOB, base.len() as u64, &[], &deflate(&base));
    for (n, copies) in [(1_u8, 33_u64), (2, 1 << 20)] {
        let mut delta = Vec::new();
        for mut size in [base.len() as u64, copies * 0xff_ffff] {
            while size > 0x7f {
                delta.push(size as u8 | 0x80);
                size >>= 7;
            }
            delta.push(size as u8);
        }
        // Each instruction copies 16 megabytes minus one byte.
        delta.extend([0xf0, 0xff, 0xff, 0xff].repeat(copies as usize));
        let back = distance(made.pack.len() as u64 - at);
        made.add(some_id(n), OFS_DELTA, delta.len() as u64, &back, &deflate(&delta));
    }
    made.put(&sandbox.store());
    let answer = run_with_memory_limit(&sandbox, 256, &["check"]).exits(1);
    for n in 1..=2 {
        assert!(answer.stderr.contains(&some_id(n).to_string()), "{answer:?}");
    }
    stored.assert_restores(&sandbox);
}

/// Encodes the records of a backup as in docs/backup.md.
fn backup(records: &[(u8, u64, &[u8])], refs: &serde_json::Value) -> Vec<u8> {
    let number = |out: &mut Vec<u8>, mut n: u64| {
        while n >= 0x80 {
            out.push(n as u8 | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
    };
    let header = serde_json::json!({
        "program": "by hand", "taken": "2026-11-15T00:00:00Z", "whole": true, "timelines": [],
        "snapshots": 1, "objects": records.len(), "refs": refs,
    });
    let mut content = Vec::new();
    for (kind, length, bytes) in records {
        content.push(*kind);
        number(&mut content, *length);
        content.extend_from_slice(bytes);
    }
    content.push(0);
    number(&mut content, records.len() as u64);
    number(&mut content, records.iter().map(|(_, length, _)| length).sum());
    let mut file = format!("stvc backup 1\n{header}\n").into_bytes();
    file.extend(zstd::encode_all(&content[..], 3).unwrap());
    let sum = blake3::hash(&file);
    file.extend_from_slice(sum.as_bytes());
    file
}

#[test]
fn backup_with_oversized_commit_or_tree_is_refused() {
    let (sandbox, _) = library();
    let zeros = vec![0; 17 << 20];
    let file = sandbox.folder().join("odd.stvc");
    let none = serde_json::json!({});
    for (kind, length, words) in [
        (1, zeros.len() as u64, "a commit in it is longer than 16 MiB"),
        (2, 129 << 20, "a tree in it is longer than 128 MiB"),
        (3, 513 << 20, "a blob in it is longer than 512 MiB"),
        (3, 400 << 20, "it is truncated"),
    ] {
        fs::write(&file, backup(&[(kind, length, &zeros[..])], &none)).unwrap();
        for command in ["import", "check"] {
            let answer = assert_no_panic(run_with_memory_limit(
                &sandbox,
                512,
                &[command, file.to_str().unwrap()],
            ))
            .exits(1);
            assert!(answer.stderr.contains(words), "{command}: {answer:?}");
        }
    }
}

/// A chat that repeats one long message, with a manifest that claims a short file.
#[test]
fn chat_longer_than_its_manifest_is_refused() {
    let (sandbox, stored) = library();
    let store = sandbox.store();
    let git =
        |arguments: &[&str]| String::from_utf8(crate::common::git(&store, arguments)).unwrap();
    let write = |kind: &str, bytes: &[u8]| {
        let file = sandbox.folder().join("object");
        fs::write(&file, bytes).unwrap();
        let arguments = ["hash-object", "-w", "--literally", "-t", kind, file.to_str().unwrap()];
        git(&arguments).trim().to_owned()
    };
    let entry = |mode: &str, name: &str, id: &str| {
        let id = gix::ObjectId::from_hex(id.as_bytes()).unwrap();
        [format!("{mode} {name}\0").as_bytes(), id.as_slice()].concat()
    };
    let message = write("blob", &vec![b' '; 8 << 20]);
    let folder: Vec<u8> =
        (0..100).flat_map(|n| entry("100644", &format!("{n:05}.json"), &message)).collect();
    let messages = entry("40000", "000", &write("tree", &folder));
    let chat = entry("40000", "messages", &write("tree", &messages));
    let manifest = git(&["rev-parse", &format!("{}:snapshot.json", stored.id)]);
    let root = [
        entry("40000", "chat", &write("tree", &chat)),
        entry("100644", "snapshot.json", manifest.trim()),
    ];
    let commit = git(&["cat-file", "commit", &stored.id]);
    let (_, rest) = commit.split_once('\n').unwrap();
    let forged = format!("tree {}\n{rest}", write("tree", &root.concat()));
    let forged = write("commit", forged.as_bytes());
    git(&["update-ref", "refs/heads/chats/Mira/forged", &forged]);
    for arguments in [&["show", &forged][..], &["restore", &forged, "--to", "out"]] {
        let answer = assert_no_panic(run_with_memory_limit(&sandbox, 256, arguments)).exits(1);
        assert!(answer.stderr.contains("does not match the manifest"), "{answer:?}");
    }
}

/// A file that SillyTavern cannot read is not loaded into memory and does not prevent other
/// snapshots.
#[test]
fn oversized_file_is_reported_and_skipped() {
    let (sandbox, _) = library();
    let long = "chats/Mira/long.jsonl";
    sandbox.write(long, "{}");
    // A sparse file.
    let file = fs::OpenOptions::new().write(true).open(sandbox.path(long)).unwrap();
    file.set_len(600 << 20).unwrap();
    sandbox.write("chats/Mira/b.jsonl", chat("b", 3, None));
    let answer = run_with_memory_limit(&sandbox, 256, &["snapshot"]).exits(3);
    assert!(answer.stderr.contains("512 MiB"), "{}", answer.stderr);
    assert!(answer.stdout.contains("Mira / b"), "{}", answer.stdout);
}
