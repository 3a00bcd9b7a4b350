//! Creates the seed corpora in `fuzz/corpus` from `fixtures/`. Run `fuzz/seeds` after a format or a
//! fixture has changed.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::api::VERBS;
use crate::archive::backup::{Decoder, Header, encode, objects_of};
use crate::archive::fuzzing::tree_as_text;
use crate::archive::{Snapshot, State, write};
use crate::engine::fuzzing::Scene;
use crate::fuzz_equipment::{copy_folder, fixture};
use crate::progress::NoProgress;
use crate::st::{LibraryPath, TimelineFiles, TimelineName};
use crate::store::fuzzing::{index_seeds, pack_seeds, raw_object};
use crate::store::{Kind, ObjectId, PackSlot, Store};

/// The maximum size of a fixture, in bytes. Longer fixtures slow fuzzing down without adding
/// coverage.
const MAX_FIXTURE_BYTES: usize = 6 << 10;

type Seeds = BTreeMap<String, Vec<u8>>;

#[test]
#[ignore = "writes fuzz/corpus"]
fn make_seeds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let store = sample_store();
    put(&folder, "json", json());
    put(&folder, "chat", fixtures_ending(".jsonl"));
    put(&folder, "lorebook", fixtures_in("worlds"));
    put(&folder, "card", cards());
    put(&folder, "pack", pack_seeds());
    put(&folder, "pack_index", index_seeds());
    put(&folder, "delta", deltas());
    put(
        &folder,
        "manifest",
        trees(&store.1, |text| {
            let text = String::from_utf8_lossy(text).into_owned();
            let manifest =
                text.split("=== 100644 ").find(|part| part.starts_with("snapshot.json\n"));
            manifest.unwrap().as_bytes()["snapshot.json\n".len()..].to_vec()
        }),
    );
    put(&folder, "snapshot", trees(&store.1, <[u8]>::to_vec));
    put(&folder, "tree", objects(&store.1));
    put(&folder, "backup", backups(&store.1));
    put(&folder, "operation_log", logs());
    put(&folder, "mailbox", letters());
    put(&folder, "http", requests());
    put(&folder, "moment", moments());
    put(&folder, "date", dates());
    put(&folder, "config", configs());
    put(&folder, "webdav_list", webdav_lists());
    put(&folder, "s3_list", s3_lists());
    put(&folder, "announcement", announcements());
    put(&folder, "remote_object", remote_objects());
}

fn put(folder: &Path, target: &str, seeds: Seeds) {
    let folder = folder.join(target);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for (name, bytes) in seeds {
        fs::write(folder.join(name), bytes).unwrap();
    }
}

fn numbered<B: AsRef<[u8]>>(seeds: impl IntoIterator<Item = B>) -> Seeds {
    let seeds = seeds.into_iter().enumerate();
    seeds.map(|(n, seed)| (format!("{n:02}"), seed.as_ref().to_vec())).collect()
}

fn fixture_files() -> Vec<PathBuf> {
    fn add(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { add(&path, files) } else { files.push(path) }
        }
    }
    let mut files = Vec::new();
    for library in ["1.12.6", "1.19.0", "odd"] {
        add(&fixture(library), &mut files);
    }
    files.sort();
    files
}

/// Returns the fixtures of at most [`MAX_FIXTURE_BYTES`] bytes, without duplicates.
fn fixtures(is_wanted: impl Fn(&Path) -> bool) -> Seeds {
    let files = fixture_files().into_iter().filter(|path| is_wanted(path));
    let mut known = HashSet::new();
    let texts = files.map(|path| fs::read(path).unwrap());
    numbered(texts.filter(|text| text.len() <= MAX_FIXTURE_BYTES && known.insert(text.clone())))
}

fn fixtures_ending(ending: &str) -> Seeds {
    fixtures(|path| path.to_str().unwrap().ends_with(ending))
}

fn fixtures_in(folder: &str) -> Seeds {
    fixtures(|path| path.parent().unwrap().ends_with(folder))
}

fn json() -> Seeds {
    let mut seeds = fixtures_ending(".json");
    let texts = [
        r#"{"a":1,"a":2,"\u0061":3,"b":{}}"#,
        "[1e999,-0,1.0,1E3,123456789012345678901234567890,0.1e-7,5e-324]",
        r#"["\ud83d\ude00\ud83d","\/\b\f\n\r\t\"\\","é\u00e9",""]"#,
        "\t{ \"10\" : null ,\n\"2\":[ true,false ],\"-1\":{ \"x\" :[ ] } }\r\n",
    ];
    seeds.extend(
        texts.iter().enumerate().map(|(n, text)| (format!("odd-{n}"), text.as_bytes().to_vec())),
    );
    let first = |text: &[u8]| text.split(|byte| *byte == b'\n').nth(1).unwrap_or_default().to_vec();
    let chats = fixtures_ending(".jsonl");
    seeds.extend(chats.iter().take(6).map(|(name, text)| (format!("message-{name}"), first(text))));
    seeds
}

fn cards() -> Seeds {
    use base64::Engine;
    let mut seeds = fixtures_ending(".png");
    let chunk = |kind: &[u8], data: &[u8]| {
        let body = [kind, data].concat();
        let check = crc32fast::hash(&body);
        [&(data.len() as u32).to_be_bytes()[..], &body, &check.to_be_bytes()].concat()
    };
    let long = "The tide is low. ".repeat(9);
    let text = format!(r#"{{"data":{{"name":"Mira","description":"{long}","tags":["{long}"]}}}}"#);
    let text = base64::engine::general_purpose::STANDARD.encode(text);
    let card = [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]),
        chunk(b"tEXt", format!("chara\0{text}").as_bytes()),
        chunk(b"tEXt", format!("CCV3\0{text}").as_bytes()),
        chunk(b"IEND", b""),
        b"behind the end".to_vec(),
    ];
    seeds.insert("small".into(), card.concat());
    seeds
}

fn deltas() -> Seeds {
    let base = b"The tide is low, and the ferry waits at the pier. ".repeat(3);
    let with = |second: &[u8]| [&(base.len() as u16).to_le_bytes()[..], &base, second].concat();
    let length = base.len() as u8;
    numbered([
        with(&base),
        with(b"The tide is high, and the ferry waits at the pier. The tide is low, and the ferry"),
        with(&[length | 0x80, 1, 20, 0x90, 16, 4, b'a', b'b', b'c', b'd']),
        with(&[length | 0x80, 1, 100, 0xb1, 8, 90, 0, 0x91, 3, 10]),
        vec![0, 0, 0, 3, 3, b'a', b'b', b'c'],
    ])
}

/// Returns a copy of the fixture `store-1`.
fn sample_store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    copy_folder(&fixture("store-1"), &path);
    let store = Store::open(&path).unwrap();
    (folder, store)
}

/// Returns the trees of the latest snapshots, and of a few other files, as seeds.
fn trees(store: &Store, what: impl Fn(&[u8]) -> Vec<u8>) -> Seeds {
    let mut texts = Vec::new();
    for (_, id) in &store.refs("refs/heads/").unwrap().refs {
        let snapshot = Snapshot::read(&store.reader().commit(*id).unwrap()).unwrap();
        texts.push(tree_as_text(store, snapshot.tree));
    }
    for (name, file) in [
        ("worlds/Snow Shrine", "worlds/Snow Shrine.json"),
        ("characters/Mira Voss", "characters/Mira Voss.png"),
        ("groups/1794700910763", "groups/1794700910763.json"),
        ("settings.json", "settings.json"),
    ] {
        let name = TimelineName::of_file(&LibraryPath::parse(file).unwrap())
            .unwrap_or_else(|| panic!("{name} is a timeline"));
        let bytes = fs::read(fixture("1.19.0/default-user").join(file)).unwrap();
        let files = TimelineFiles::alone(&name, bytes);
        let (state, mut pack) = (State::of(&files), store.pack_writer());
        let written = write(&state, &[], &mut pack).unwrap();
        pack.finish().unwrap();
        texts.push(tree_as_text(&Store::open(store.path()).unwrap(), written.tree));
    }
    texts.retain(|text| text.len() <= 4 * MAX_FIXTURE_BYTES);
    numbered(texts.iter().map(|text| what(text)))
}

fn objects(store: &Store) -> Seeds {
    let reader = store.reader();
    let mut found = Vec::new();
    for (_, id) in store.refs("refs/heads/").unwrap().refs.iter().take(4) {
        found.push(raw_object(store, *id, Kind::Commit));
        let tree = reader.commit(*id).unwrap().tree;
        found.push(raw_object(store, tree, Kind::Tree));
        for entry in reader.raw_tree(tree).unwrap().entries {
            if entry.mode == crate::store::Mode::Folder {
                found.push(raw_object(store, entry.id, Kind::Tree));
            }
        }
    }
    let entry = |mode: &str, name: &str| [format!("{mode} {name}\0").as_bytes(), &[7; 20]].concat();
    found.push([entry("100644", "a.b"), entry("40000", "a"), entry("100755", "a0")].concat());
    numbered(found)
}

/// Returns two seeds from a backup of one small snapshot: the backup file, and its records without
/// compression.
fn backups(store: &Store) -> Seeds {
    let refs = store.refs("refs/heads/").unwrap().refs;
    let (name, id) = refs.iter().find(|(name, _)| name.as_str().ends_with("45s139ms")).unwrap();
    let commit = store.reader().commit(*id).unwrap();
    let mut objects = vec![(*id, Kind::Commit)];
    objects.extend(objects_of(store, [commit.tree], HashSet::new()).unwrap());
    let header = Header {
        program: "stvc 0.1.0".into(),
        taken: "2026-11-15T09:00:00+01:00".into(),
        whole: true,
        timelines: vec![Snapshot::read(&commit).unwrap().timeline.as_str().to_owned()],
        snapshots: 1,
        objects: objects.len() as u64,
        refs: BTreeMap::from([(name.to_string(), id.to_string())]),
    };
    let placed = |(id, kind): &(ObjectId, Kind)| PackSlot { id: *id, kind: *kind, slot: 0 };
    let placed: Vec<_> = objects.iter().map(placed).collect();
    let (file, _) = encode(Vec::new(), &header, &placed, &store.reader(), &mut NoProgress).unwrap();
    let mut plain =
        file.split_inclusive(|byte| *byte == b'\n').take(2).flatten().copied().collect();
    let mut decoder = Decoder::new(file.as_slice()).unwrap();
    let number = |out: &mut Vec<u8>, mut n: u64| {
        while n >= 0x80 {
            out.push(n as u8 | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
    };
    let (mut count, mut bytes) = (0, 0);
    while let Some((kind, object)) = decoder.next_object().unwrap() {
        let kind = match kind {
            Kind::Commit => 1,
            Kind::Tree => 2,
            _ => 3,
        };
        Vec::push(&mut plain, kind);
        number(&mut plain, object.len() as u64);
        plain.extend_from_slice(object);
        (count, bytes) = (count + 1, bytes + object.len() as u64);
    }
    plain.push(0);
    number(&mut plain, count);
    number(&mut plain, bytes);
    numbered([file, plain])
}

fn logs() -> Seeds {
    let stored = fs::read_to_string(fixture("store-1/stvc/operations.jsonl")).unwrap();
    let branch = "refs/heads/chats/Mira%20Voss/probe%20cp";
    let probe = "dbe6ba603e422068c8ff7d7adc5dead22571c746";
    let file = "chats/Mira Voss/probe cp.jsonl";
    let small = "chats/Mira Voss/Mira Voss - 2026-11-15@00h00m45s139ms.jsonl";
    let small_id = "b0c29ad3f496f4f6a721fc87d57a2374e4e662cf";
    let head = r#""time":"2026-11-15T09:00:00Z","command":["stvc","restore","x"]"#;
    let restore = format!(
        r#"{{"number":4,{head},"refs":[],"files":[{{"path":"{file}","before":null,"after":{{"snapshot":"{probe}"}}}}]}}"#
    );
    let delete = format!(
        r#"{{"number":5,{head},"refs":[{{"ref":"{branch}","before":"{probe}","after":null}}],"files":[{{"path":"{small}","before":{{"snapshot":"{small_id}"}},"after":null}}],"unfinished":[4]}}"#
    );
    let elsewhere = restore.replace(r#""files""#, r#""library":"/tmp","files""#);
    let wrong = restore.replace(file, "../elsewhere.txt").replace("snapshot\":\"d", "blob\":\"d");
    let kept = format!(
        r#"{{"number":9,{head},"refs":[{{"ref":"refs/stvc/kept/{probe}","before":null,"after":"{probe}"}}],"undoes":4,"undoes_also":[3],"automatic":true}}"#
    );
    let summary = format!(r#"{{"number":1,{head},"summary":true}}"#);
    numbered([
        stored.clone(),
        format!("{restore}\n"),
        format!("{restore}\n{delete}\n"),
        format!("{summary}\n{restore}\n{{\"finished\":4}}\n{delete}\n{{\"finished\":5}}\n"),
        format!("{elsewhere}\n{wrong}\n"),
        format!("{kept}\n{delete}"),
        format!("{}\n{restore}\n", stored.lines().next().unwrap()),
    ])
}

fn letters() -> Seeds {
    let arguments = |verb: &str| match verb {
        "graph" => r#"{"timeline":"probe cp","scenes":true,"first":0,"count":5}"#,
        "log" => r#"{"timeline":"Snow shrine","message":1,"first":0,"count":3}"#,
        "show" => r#"{"snapshot":"probe cp~"}"#,
        "messages" => r#"{"snapshot":"probe cp","first":1,"count":2}"#,
        "lore" => r#"{"book":"Snow Shrine","entry":"0","blame":true,"all":true}"#,
        "diff" => r#"{"before":"probe cp","after":"Snow shrine","only":"chat","stat":true}"#,
        "search" => r#"{"text":"t[ie]de?","regex":true,"who":"Mira","count":2}"#,
        "snapshot" => r#"{"timelines":["Snow shrine"],"tag":"x","at":1,"wait":1}"#,
        "tag" => r#"{"name":"y","snapshot":"probe cp"}"#,
        "restore" => r#"{"snapshot":"probe cp","name":"z","expect":[],"chat_closed":true}"#,
        "undo" => r#"{"operation":1,"dry_run":true}"#,
        _ => "{}",
    };
    let letter = |verb: &str| {
        let args = arguments(verb);
        (verb.to_owned(), format!(r#"{{"protocol":1,"verb":"{verb}","args":{args}}}"#).into())
    };
    let mut seeds: Seeds = VERBS.iter().map(|verb| letter(verb.name)).collect();
    seeds.insert("hello".into(), br#"{"protocol":1,"verb":"hello","session":"x"}"#.to_vec());
    seeds
}

fn requests() -> Seeds {
    let head = "Host: 127.0.0.1:4711\r\nOrigin: http://127.0.0.1:4711\r\n";
    let post = |path: &str, secret: &str, body: &str| {
        let length = body.len();
        format!(
            "POST {path} HTTP/1.1\r\n{head}{secret}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    let secret = "X-Stvc: {SECRET}\r\n";
    let show = post("/api", secret, r#"{"verb":"show","args":{"snapshot":"probe cp"}}"#);
    let enter = post("/enter", "X-Stvc-Code: {CODE}\r\n", "");
    let chunked = format!(
        "POST /api HTTP/1.1\r\n{head}{secret}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n{{\"verb\":\"operations\"\r\n1\r\n}}\r\n0\r\n\r\n"
    );
    numbered([
        format!("GET / HTTP/1.1\r\n{head}\r\n"),
        format!("GET /main.js HTTP/1.1\r\n{head}Sec-Fetch-Site: none\r\n\r\n"),
        format!("GET /state HTTP/1.1\r\n{head}{secret}\r\n"),
        format!("HEAD /../x HTTP/1.0\r\n{head}\r\n"),
        format!("{enter}{enter}"),
        format!("{show}{}", post("/api", secret, r#"{"verb":"timelines"}"#)),
        post("/api", secret, r#"{"verb":"tag","args":{"name":"x"}}"#),
        post("/api", "", r#"{"verb":"timelines"}"#),
        chunked,
    ])
}

fn moments() -> Seeds {
    numbered([
        "probe cp",
        "probe cp~2",
        "probe cp:3",
        "part one",
        "Mira Voss/probe cp@2026-11-15",
        "Snow shrine@{2 weeks ago}~:#1",
        "dbe6ba60",
        "b3:00",
        "dbe6ba603e422068c8ff7d7adc5dead22571c746+b0c29ad3f496f4f6a721fc87d57a2374e4e662cf:2",
        "~3~@yesterday:12",
        "@2026-11-01T18:30:05+02:00",
    ])
}

fn dates() -> Seeds {
    numbered([
        "2026-11-01",
        "2026-11-01 18:30",
        "2026-11-01T18:30:05.123456789+02:00",
        " Yesterday ",
        "today",
        "now",
        "2 weeks ago",
        "30d",
        "5 min",
        "36h",
        "1 month ago",
        "November 15, 2026 12:22am",
        "1794702120000",
        "500ms",
    ])
}

fn configs() -> Seeds {
    numbered([
        "",
        "# Where\nbackup = \"/mnt/nas\" # here\ncolor = 'always'\n\n[retention]\n# few\nkeep-last = 3\nkeep-within = \"30d\"\nkeep-tag = true\n",
        "attachments = 12\n[include]\nsettings = true\ncharacters=false\n[extension]\nwrite = false\n",
        "retention.keep-daily = 7\npager = \"\"\"\nless\n\"\"\"\ndate = \"iso\"\n",
        "include = { groups = true }\nsync = \"x\"\ndevice = \"d\\u00e9\"\n",
    ])
}

fn webdav_lists() -> Seeds {
    let folder = "/dav/%e8%81%8a%e5%a4%a9/devices";
    let response = |href: &str, properties: &str| {
        format!(
            "<D:response><D:href>{href}</D:href><D:propstat><D:prop>{properties}</D:prop>\
             <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
        )
    };
    let list = |responses: &[String]| {
        let responses = responses.concat();
        format!(
            "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\">{responses}</D:multistatus>"
        )
    };
    let itself =
        response(&format!("{folder}/"), "<D:resourcetype><D:collection/></D:resourcetype>");
    let file = |name: &str| {
        let properties = "<D:resourcetype/><D:getcontentlength>7</D:getcontentlength>";
        response(&format!("{folder}/{name}"), properties)
    };
    numbered([
        list(&[itself.clone(), file("00112233445566aa-1"), file("00112233445566aa-2")]),
        list(&[itself.clone(), file("%2e%2e/x"), file("a%2F..%2Fb"), file("c&amp;d"), file("a%00")]),
        list(&[itself.clone(), response(&format!("http://x:80{folder}/a"), "<D:getcontentlength/>")]),
        list(&[itself, response("/dav/聊天/devices/b?c#d", "<D:resourcetype/>")]),
        "<multistatus xmlns=\"DAV:\" xmlns:o=\"o\"><response><href><![CDATA[/dav/聊天/devices/]]></href>\
         <propstat><prop><o:x/><getcontentlength>1<!-- -->2</getcontentlength></prop></propstat>\
         </response></multistatus>"
            .into(),
        "<https://a/x?p=1>; rel=\"prev\", <https://a/x?p=3>; title=x; rel=\"next\"".into(),
    ])
}

fn s3_lists() -> Seeds {
    let object = |key: &str| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>2026-11-19T10:10:10.000Z</LastModified>\
             <ETag>&quot;0f&quot;</ETag><Size>7</Size></Contents>"
        )
    };
    let list = |more: &str, keys: &[&str]| {
        let objects: String = keys.iter().map(|key| object(key)).collect();
        format!(
            "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             <Name>chats</Name>{more}{objects}</ListBucketResult>"
        )
    };
    let last = "<IsTruncated>false</IsTruncated>";
    let next =
        "<IsTruncated>true</IsTruncated><NextContinuationToken>a&lt;b</NextContinuationToken>";
    numbered([
        list(last, &["聊天/devices/00112233445566aa-1", "聊天/devices/00112233445566aa-2"]),
        list(next, &["聊天/devices/a", "聊天/devices/../x", "聊天/packs/b", "聊天/devices//c"]),
        list(
            last,
            &["聊", "聊天/", "", "../聊天/devices/a", "聊天/devices/b&amp;c", "聊天/devices/d/"],
        ),
        list("", &[]),
    ])
}

fn announcements() -> Seeds {
    use crate::engine::remotes::fuzzing::{BASE, DEVICE, NUMBER};
    let head = format!(
        r#"{{"format":1,"device":"{DEVICE}","name":"手机","number":{NUMBER},"clock":9,"time":1794700000,"seen":{{"ffeeddccbbaa9988":4}}"#
    );
    let (hash, id) = ("c".repeat(64), "1".repeat(40));
    let part = format!(r#"{{"name":"{hash}","bytes":10}}"#);
    let pack = format!(r#"{{"parts":[{part},{part}],"objects":3,"replaces":["{hash}"]}}"#);
    let refs = format!(
        r#""refs":{{"refs/heads/chats/Mira/a%20b":"{id}","refs/tags/x":"{id}","refs/stvc/kept/{id}":"{id}","refs/heads/gone":null}}"#
    );
    let complete = format!(
        r#"{head},{refs},"erased":{{"{id}":1,"{hash}":2}},"packs":[{pack}],"retired":[{{"pack":{pack},"since":5,"time":1794700000}}],"purged":"{hash}","damaged":["{hash}"]}}"#
    );
    let changes = format!(r#"{head},"base":{BASE},{refs},"packs":[{pack}],"dropped":["{hash}"]}}"#);
    let compressed = zstd::bulk::compress(complete.as_bytes(), 9).unwrap();
    numbered([complete.into_bytes(), changes.into_bytes(), format!("{head}}}").into(), compressed])
}

fn remote_objects() -> Seeds {
    use crate::engine::remotes::fuzzing::ID;
    use base64::Engine;
    let head = format!(
        r#"{{"format": "stvc remote", "version": 1, "id": "{ID}", "created": "2026-11-19T10:10:10Z""#
    );
    let with_key = |key: &[u8]| {
        let key = base64::engine::general_purpose::STANDARD.encode(key);
        format!(r#"{head}, "key": "{key}"}}"#)
    };
    let bare = b"AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQSPJZ2M7";
    numbered([format!("{head}}}"), with_key(b"age-encryption.org/v1\n-> scrypt "), with_key(bare)])
}

#[test]
fn log_seeds_are_json_and_name_existing_files() {
    let scene = Scene::new();
    for (_, log) in logs() {
        for line in log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            assert!(serde_json::from_slice::<serde_json::Value>(line).is_ok());
        }
    }
    assert!(scene.library().join("worlds/Snow Shrine.json").is_file());
}
