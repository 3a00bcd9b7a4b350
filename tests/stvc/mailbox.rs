//! The mailbox of `watch`: the API over files (docs/mailbox.md), and foreign files in its folder.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use stvc::api::mailbox::Mailbox;

use crate::common::watching::{LIMIT, Watching, signal};
use crate::common::{
    Sandbox, can_trace, chat, command_through, message, run_in_shell, skip, traced_with,
};

const CHAT: &str = "chats/Mira/one.jsonl";
const FOLDER: &str = "user/files";

fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    fs::create_dir_all(sandbox.path(FOLDER)).unwrap();
    sandbox.write(CHAT, chat("one", 4, None));
    // Without the extension, no status is written.
    sandbox.stvc(&["extension", "install"]).exits(0);
    sandbox
}

fn put(sandbox: &Sandbox, id: &str, bytes: impl AsRef<[u8]>) {
    sandbox.save(&format!("{FOLDER}/stvc-req-{id}.json"), bytes);
}

/// Waits for the answer to a request.
#[track_caller]
fn fetch(sandbox: &Sandbox, id: &str) -> Value {
    let path = sandbox.path(&format!("{FOLDER}/stvc-res-{id}.json"));
    let begin = Instant::now();
    loop {
        if let Ok(bytes) = fs::read(&path) {
            fs::remove_file(&path).unwrap();
            return serde_json::from_slice(&bytes).expect("an answer is never seen in halves");
        }
        assert!(begin.elapsed() < LIMIT, "no answer to {id}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn id(n: usize) -> String {
    format!("{n:032x}")
}

#[track_caller]
fn ask(sandbox: &Sandbox, n: usize, verb: &str, args: Value) -> Value {
    let hello = json!({ "protocol": 1, "verb": "hello" });
    put(sandbox, &id(n + 0x1000_0000), hello.to_string());
    let session = fetch(sandbox, &id(n + 0x1000_0000))["session"].clone();
    ask_in(sandbox, &session, n, verb, args)
}

#[track_caller]
fn ask_in(sandbox: &Sandbox, session: &Value, n: usize, verb: &str, args: Value) -> Value {
    let request = json!({ "protocol": 1, "session": session, "verb": verb, "args": args });
    put(sandbox, &id(n), request.to_string());
    fetch(sandbox, &id(n))
}

fn status(sandbox: &Sandbox) -> Value {
    serde_json::from_slice(&sandbox.read("user/files/stvc-status.json")).unwrap()
}

#[test]
fn mailbox_answers_requests() {
    let sandbox = library();
    let watching = Watching::start(&sandbox, &[]);
    watching.snapshot_of(4);
    let hello = ask(&sandbox, 1, "hello", json!({}));
    assert_eq!((&hello["protocol"], &hello["exit"]), (&json!(1), &json!(0)));
    assert_eq!(hello["program"], env!("CARGO_PKG_VERSION"));
    // The lines of `--json`, as over HTTP.
    let reply = ask(&sandbox, 2, "timelines", json!({}));
    assert_eq!(reply["lines"], json!(sandbox.json(&["timelines"]).lines()));
    // A change is logged with its origin and can be undone.
    let before = sandbox.read(CHAT);
    sandbox.append(CHAT, &message("one", 4));
    let longer = sandbox.read(CHAT);
    assert_eq!(ask(&sandbox, 3, "snapshot", json!({ "timelines": ["Mira/one"] }))["exit"], 0);
    let plan = ask(&sandbox, 4, "restore", json!({ "snapshot": "Mira/one~1", "dry_run": true }));
    let there =
        plan["lines"].as_array().unwrap().iter().find_map(|line| line["blake3_before"].as_str());
    let args = json!({ "snapshot": "Mira/one~1", "expect": [there.unwrap()] });
    assert_eq!(ask(&sandbox, 5, "restore", args)["exit"], 0);
    assert_eq!(sandbox.read(CHAT), before);
    let log = sandbox.json(&["operations"]).of_type("operation");
    let words: Vec<_> = log[0]["command"].as_array().unwrap().to_vec();
    assert_eq!(words[1..3], [json!("extension"), json!("restore")]);
    assert_eq!(ask(&sandbox, 6, "undo", json!({}))["exit"], 0);
    assert_eq!(sandbox.read(CHAT), longer);
    // The status is readable without a request.
    let current = status(&sandbox);
    assert_eq!(current["timelines"][0]["timeline"], "chats/Mira/one");
    assert!(current["alive"].is_number() && current["write"] == true, "{current}");
    watching.stop();
    // A killed process, as on Windows, cannot update it.
    assert!(cfg!(windows) || status(&sandbox)["alive"].is_null());
    let left: Vec<_> =
        fs::read_dir(sandbox.path(FOLDER)).unwrap().flatten().map(|it| it.file_name()).collect();
    assert_eq!(left, ["stvc-status.json"], "nothing else is left there");
}

#[test]
fn invalid_requests_are_answered_and_do_not_block_later_requests() {
    let sandbox = library();
    let watching = Watching::start(&sandbox, &[]);
    watching.snapshot_of(4);
    let valid = |verb: &str| json!({ "protocol": 1, "verb": verb }).to_string();
    let odd = [
        ("{".to_owned(), "invalid request"),
        ("[]".to_owned(), "invalid request"),
        (String::new(), "invalid request"),
        ("\u{0}".repeat(70_000), "longer than"),
        (json!({ "protocol": 9, "verb": "log" }).to_string(), "protocol 9"),
        (valid("gc"), "unknown verb \"gc\""),
        (valid("forget"), "unknown verb \"forget\""),
        (
            json!({ "protocol": 1, "verb": "show", "args": { "to": "/etc" } }).to_string(),
            "arguments",
        ),
    ];
    for (n, (bytes, words)) in odd.iter().enumerate() {
        put(&sandbox, &id(100 + n), bytes);
        let answer = fetch(&sandbox, &id(100 + n));
        let error = answer["lines"][0]["message"].as_str().unwrap_or_default();
        assert!(error.contains(words), "{words}: {answer}");
        assert_eq!(answer["exit"], 2);
    }
    let update = fs::read_dir(sandbox.path(FOLDER)).unwrap().count();
    assert_eq!(update, 1, "only the status is left");
    // An expired request.
    let path = sandbox.path("user/files/old");
    fs::write(&path, valid("log")).unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(90);
    fs::File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    fs::rename(&path, sandbox.path(&format!("{FOLDER}/stvc-req-{}.json", id(200)))).unwrap();
    let answer = fetch(&sandbox, &id(200));
    assert!(
        answer["lines"][0]["message"].as_str().unwrap().contains("it expired before it was served"),
        "{answer}"
    );
    // A link is not followed, a folder is ignored, and so is a foreign name.
    #[cfg(unix)]
    {
        let secret = sandbox.folder().join("secret");
        fs::write(&secret, valid("log")).unwrap();
        let link = sandbox.path(&format!("{FOLDER}/stvc-req-{}.json", id(201)));
        std::os::unix::fs::symlink(&secret, link).unwrap();
        let answer = fetch(&sandbox, &id(201));
        assert!(answer["lines"][0]["message"].as_str().unwrap().contains("a link"), "{answer}");
        assert!(secret.exists());
    }
    for n in 0..70 {
        fs::create_dir(sandbox.path(&format!("{FOLDER}/stvc-req-{}.json", id(5000 + n)))).unwrap();
    }
    sandbox.write("user/files/stvc-req-..json", valid("log"));
    sandbox.write("user/files/picture.png", "x");
    // A repeated id is not served again.
    assert_eq!(ask(&sandbox, 203, "log", json!({}))["exit"], 0);
    put(&sandbox, &id(203), valid("log"));
    assert_eq!(ask(&sandbox, 204, "log", json!({}))["exit"], 0);
    assert!(!sandbox.path(&format!("{FOLDER}/stvc-res-{}.json", id(203))).exists());
    assert!(sandbox.path("user/files/picture.png").exists());
    // Many requests at once are all answered.
    for n in 0..200 {
        put(&sandbox, &id(1000 + n), valid("hello"));
    }
    for n in 0..200 {
        assert_eq!(fetch(&sandbox, &id(1000 + n))["exit"], 0);
    }
    // The watch still runs.
    sandbox.append(CHAT, &message("one", 4));
    watching.snapshot_of(5);
    watching.stop();
}

#[test]
fn read_only_mailbox_changes_nothing_and_reports_alarms() {
    let sandbox = library();
    sandbox.write(CHAT, chat("one", 30, None));
    sandbox.take(&[]);
    let good = sandbox.chat_ids()[0].clone();
    sandbox.stvc(&["config", "extension.write", "false"]).exits(0);
    let watching = Watching::start(&sandbox, &["--poll", "200ms"]);
    for (n, verb) in ["snapshot", "undo"].into_iter().enumerate() {
        let answer = ask(&sandbox, n, verb, json!({}));
        assert_eq!(answer["exit"], 4, "{answer}");
    }
    assert_eq!(ask(&sandbox, 10, "log", json!({}))["exit"], 0);
    assert_eq!(status(&sandbox)["write"], false);
    // An unreadable configuration may forbid it.
    let configuration = sandbox.store().join("stvc/config.toml");
    let settings = fs::read_to_string(&configuration).unwrap();
    fs::write(&configuration, "[extension\nwrite = true").unwrap();
    assert_eq!(ask(&sandbox, 11, "snapshot", json!({}))["exit"], 4);
    fs::write(&configuration, settings).unwrap();
    // A destructive overwrite.
    sandbox.write(CHAT, chat("one", 2, None));
    watching.snapshot_of(2);
    let begin = Instant::now();
    let alarms = loop {
        let alarms = status(&sandbox)["alarms"].clone();
        if alarms.as_array().is_some_and(|alarms| !alarms.is_empty()) || begin.elapsed() > LIMIT {
            break alarms;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(alarms[0]["code"], "chat-shrank", "{alarms}");
    assert_eq!(alarms[0]["subject"], "chats/Mira/one");
    assert_eq!(alarms[0]["snapshot"], good);
    watching.stop();
}

#[test]
fn req_92_alarm_names_the_snapshot_before_the_loss_even_after_more_saves() {
    let sandbox = library();
    sandbox.write(CHAT, chat("one", 38, None));
    sandbox.take(&[]);
    let before = sandbox.read(CHAT);
    let watching = Watching::start(&sandbox, &["--poll", "200ms"]);
    sandbox.write(CHAT, chat("one", 2, None));
    watching.snapshot_of(2);
    for number in [2, 3] {
        sandbox.append(CHAT, &message("one", number));
        watching.snapshot_of(number as u64 + 1);
    }
    let alarm = status(&sandbox)["alarms"][0].clone();
    assert_eq!(alarm["message"], "it had 38 messages and now has 2");
    let plan = ask(
        &sandbox,
        1,
        "restore",
        json!({ "snapshot": alarm["snapshot"], "dry_run": true, "rereads": true }),
    );
    let expect: Vec<_> = plan["lines"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|line| line["type"] == "file")
        .map(|line| line["blake3_before"].clone())
        .collect();
    let done = ask(
        &sandbox,
        2,
        "restore",
        json!({ "snapshot": alarm["snapshot"], "expect": expect, "chat_closed": true }),
    );
    assert_eq!(done["exit"], 0, "{done}");
    assert_eq!(sandbox.read(CHAT), before);
    watching.stop();
}

/// Files of another user that cannot be read or removed: the first are answered, the second are
/// ignored, and the next request is served.
#[cfg(target_os = "linux")]
#[test]
fn foreign_files_in_the_mailbox_do_not_block_requests() {
    if !can_trace() {
        return;
    }
    let sandbox = library();
    let theirs = sandbox.path(&format!("{FOLDER}/stvc-req-{}.json", id(1)));
    let theirs = theirs.to_str().unwrap();
    // Files are opened relative to the open folder.
    let name = format!("stvc-req-{}.json", id(1));
    let request = json!({ "protocol": 1, "verb": "log" }).to_string();
    for calls in ["open,openat", "unlink,unlinkat"] {
        // The tracer is the child, so that signals reach the program.
        let inject = format!("inject={calls}:error=EACCES");
        let options = ["-D", "-P", theirs, "-P", &name, "-e", &inject];
        let arguments = ["--json", "watch", "--settle", "150ms"];
        let watching = Watching::start_command(traced_with(&sandbox, &options, &arguments));
        put(&sandbox, &id(1), &request);
        if calls.starts_with("open") {
            let answer = fetch(&sandbox, &id(1));
            let error = answer["lines"][0]["message"].as_str().unwrap();
            assert!(error.contains("Permission denied"), "{answer}");
        }
        assert_eq!(ask(&sandbox, 2, "log", json!({}))["exit"], 0);
        watching.stop();
    }
    assert!(std::path::Path::new(theirs).exists());
    assert!(!sandbox.path(&format!("{FOLDER}/stvc-res-{}.json", id(1))).exists());
}

/// Killed between a request and its answer, a watch leaves nothing that the next one does not
/// remove.
#[cfg(unix)]
#[test]
fn new_watch_answers_the_requests_of_a_killed_watch() {
    let sandbox = library();
    let mut watching = Watching::start(&sandbox, &[]);
    watching.snapshot_of(4);
    signal(&watching.child, "STOP");
    put(&sandbox, &id(1), json!({ "protocol": 1, "verb": "log" }).to_string());
    watching.kill();
    drop(watching);
    assert!(status(&sandbox)["alive"].is_number(), "it could not say that it goes");
    let watching = Watching::start(&sandbox, &[]);
    assert_eq!(fetch(&sandbox, &id(1))["exit"], 0);
    watching.stop();
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A request that panics is answered with an error, and the next one is served.
#[test]
fn panicking_request_does_not_end_the_watch() {
    let sandbox = library();
    sandbox.take(&[]);
    let workspace = sandbox.workspace();
    let [is_broken, has_news, is_over] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
    let (broken, now) = (Arc::clone(&is_broken), workspace.now);
    let clock = move || {
        // Simulates a defect.
        assert!(!broken.load(Ordering::Relaxed), "the clock is broken");
        now
    };
    let mut mailbox = Mailbox::new(workspace, Arc::new(clock)).unwrap();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let news = has_news.swap(false, Ordering::Relaxed).then(Vec::new);
                mailbox.step(news, LIMIT);
                std::thread::sleep(Duration::from_millis(20));
            }
            mailbox.end();
        });
        // A failed assertion must not leave the scope waiting for the mailbox.
        let _stop = StopOnDrop(&is_over);
        assert_eq!(ask(&sandbox, 1, "log", json!({}))["exit"], 0);
        is_broken.store(true, Ordering::Relaxed);
        for n in 2..4 {
            let answer = ask(&sandbox, n, "log", json!({}));
            let error = answer["lines"][0]["message"].as_str().unwrap();
            assert!(
                answer["exit"] == 1 && error.contains("crashed while it ran \"log\""),
                "{answer}"
            );
        }
        // A status that cannot be written does not stop the watch either.
        has_news.store(true, Ordering::Relaxed);
        assert_eq!(ask(&sandbox, 4, "hello", json!({}))["exit"], 0);
        is_broken.store(false, Ordering::Relaxed);
        assert_eq!(ask(&sandbox, 5, "log", json!({}))["exit"], 0);
        is_over.store(true, Ordering::Relaxed);
        serving.join().unwrap();
    });
    assert_eq!(status(&sandbox)["alive"], Value::Null);
}

/// If there is no space for an answer, the watch answers with an error or not at all, and then
/// continues.
#[cfg(unix)]
#[test]
fn full_disk_is_reported_and_the_watch_continues() {
    let sandbox = library();
    sandbox.write(CHAT, chat("one", 40, None));
    sandbox.take(&[]);
    let before = sandbox.files();
    // Files are limited to 4 kB. The signal is ignored, so that a write returns an error.
    let script = "trap '' XFSZ; ulimit -f 8 || exit 99; exec \"$@\"";
    let arguments = ["--json", "watch", "--settle", "150ms"];
    let watching =
        Watching::start_command(command_through(&sandbox, "sh", &["-c", script, "sh"], &arguments));
    let answer = ask(&sandbox, 1, "messages", json!({ "snapshot": "Mira/one" }));
    let error = answer["lines"][0]["message"].as_str().unwrap();
    assert!(answer["exit"] == 1 && error.contains("cannot be written"), "{answer}");
    // A short answer still fits.
    let short = json!({ "snapshot": "Mira/one", "count": 1 });
    assert_eq!(ask(&sandbox, 2, "messages", short)["lines"][0]["type"], "message");
    watching.stop();
    let mut after = sandbox.files();
    after.remove("user/files/stvc-status.json");
    assert_eq!(after, before, "nothing is left there");
}

/// A real full disk, until it has space again.
#[cfg(target_os = "linux")]
#[test]
fn mailbox_answers_again_after_a_full_disk() {
    let sandbox = library();
    sandbox.write(CHAT, chat("one", 40, None));
    sandbox.take(&[]);
    let disk = sandbox.folder().join("disk");
    fs::create_dir(&disk).unwrap();
    let request = sandbox.folder().join("request");
    let asked = json!({ "protocol": 1, "verb": "messages", "args": { "snapshot": "Mira/one" } });
    fs::write(&request, asked.to_string()).unwrap();
    let script = r#"
        exec unshare -rm sh -c '
            disk=$1; library=$2; request=$3; shift 3
            mount -t tmpfs -o size=3m none "$disk" 2>/dev/null || exit 99
            cp -a "$library" "$disk/u" && cd "$disk/u" || exit 99
            "$@" --data . --quiet watch --settle 150ms & watch=$!
            for n in 1 2 3; do cp "$request" "user/files/up$n"; done
            ask() {
                id=0000000000000000000000000000000$1
                mv "user/files/up$1" "user/files/stvc-req-$id.json"
                for try in $(seq 1 600); do
                    kill -0 $watch || break
                    [ -s "user/files/stvc-res-$id.json" ] && { cat "user/files/stvc-res-$id.json"; echo; return; }
                    sleep 0.1
                done
                echo "no answer to $1"
            }
            ask 1
            head -c 4000000 /dev/zero > ../filler 2>/dev/null
            ask 2
            rm ../filler
            ask 3
            kill $watch; wait $watch; echo "ended $?"
            ls -A user/files
        ' sh "#;
    let places = [&disk, &sandbox.library(), &request].map(|path| format!("'{}'", path.display()));
    let answer = run_in_shell(&sandbox, &format!("{script} {} \"$@\"", places.join(" ")), &[]);
    let output: Vec<_> = answer.stdout.lines().collect();
    let [first, second, third, ended, left] = output[..] else {
        assert!(output.is_empty(), "{answer:?}");
        return skip("the system lets no test have a disk of its own (unshare, mount)");
    };
    // Only the space of the request was free for the answer.
    assert!(second.contains("cannot be written: No space left"), "{second}");
    assert!(first.contains("\"exit\":0") && first == third, "{first}\n{third}");
    assert_eq!((ended, left), ("ended 0", "stvc-status.json"));
}

/// Neither its own reads nor its own writes wake an idle mailbox.
#[cfg(target_os = "linux")]
#[test]
fn idle_mailbox_writes_nothing() {
    let sandbox = library();
    assert_idle(&sandbox);
    // Also if the status cannot be written.
    fs::remove_file(sandbox.path("user/files/stvc-status.json")).unwrap();
    fs::create_dir(sandbox.path("user/files/stvc-status.json")).unwrap();
    assert_idle(&sandbox);
}

#[cfg(target_os = "linux")]
#[track_caller]
fn assert_idle(sandbox: &Sandbox) {
    let watching = Watching::start(sandbox, &[]);
    assert_eq!(ask(sandbox, 1, "log", json!({}))["exit"], 0);
    let used = || -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/stat", watching.child.id())).unwrap();
        let fields: Vec<_> = text.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    std::thread::sleep(Duration::from_millis(500));
    let before = used();
    std::thread::sleep(Duration::from_secs(3));
    // A busy loop would have used dozens.
    assert!(used() - before < 15, "{} hundredths of a second", used() - before);
    watching.stop();
}

/// Other pages with the chat in memory are notified, and asked before they save over it.
#[test]
fn restore_from_one_page_is_announced_to_others() {
    let sandbox = library();
    sandbox.write(
        CHAT,
        format!("{{\"chat_metadata\":{{\"integrity\":\"1\"}}}}\n{}", message("one", 1)),
    );
    let watching =
        Watching::start_command(sandbox.command(&["--json", "watch", "--settle", "50ms"]));
    // Only for the content that the page has in memory, by the id that git gives it.
    let id = sandbox.git(&["hash-object", sandbox.path(CHAT).to_str().unwrap()]);
    for (n, holds, exit) in
        [(7, "0".repeat(40), 4), (8, "x".into(), 4), (9, id.trim().to_owned(), 0)]
    {
        let reply = ask(&sandbox, n, "snapshot", json!({ "timelines": ["one"], "holds": holds }));
        assert_eq!(reply["exit"], exit, "{reply}");
    }
    let before = ask(&sandbox, 1, "snapshot", json!({}));
    assert!(before["operation"].is_u64(), "{before}");
    let first = sandbox.read(CHAT);
    sandbox.append(CHAT, &message("one", 2));
    ask(&sandbox, 2, "snapshot", json!({}));
    let plan = ask(
        &sandbox,
        3,
        "restore",
        json!({ "snapshot": "one~1", "rereads": true, "dry_run": true }),
    );
    let file = |answer: &Value| {
        answer["lines"]
            .as_array()
            .unwrap()
            .iter()
            .find(|line| line["type"] == "file")
            .unwrap()
            .clone()
    };
    let done = ask(
        &sandbox,
        4,
        "restore",
        json!({ "snapshot": "one~1", "rereads": true, "expect": [file(&plan)["blake3_before"]] }),
    );
    let mark = file(&done)["integrity"].as_str().unwrap().to_owned();
    assert_eq!(
        String::from_utf8(sandbox.read(CHAT)).unwrap().replace(&mark, "1").into_bytes(),
        first
    );
    // Notified before the next answer.
    ask(&sandbox, 5, "hello", json!({}));
    let written = status(&sandbox)["written"].clone();
    assert_eq!(
        written[0],
        json!({ "operation": done["operation"], "paths": [CHAT], "removed": [] })
    );
    assert_eq!(ask(&sandbox, 6, "library", json!({})).get("operation"), None);
    watching.stop();
}

/// A file that another program brings into the library, such as an unpacked archive, must not
/// trigger changes.
#[test]
fn change_request_of_another_session_is_refused() {
    let sandbox = library();
    let watching = Watching::start(&sandbox, &[]);
    watching.snapshot_of(4);
    let before = sandbox.json(&["operations"]).of_type("operation").len();
    let args = json!({ "timelines": ["Mira/one"] });
    for (n, session) in [(1, Value::Null), (2, json!("0".repeat(32)))] {
        let answer = ask_in(&sandbox, &session, n, "undo", json!({}));
        let error = answer["lines"][0]["message"].as_str().unwrap();
        assert!(answer["exit"] == 4 && error.contains("session"), "{answer}");
    }
    assert_eq!(sandbox.json(&["operations"]).of_type("operation").len(), before);
    // Reading requests need no session.
    let looked = ask_in(&sandbox, &Value::Null, 3, "timelines", json!({}));
    assert_eq!(looked["exit"], 0);
    assert_eq!(looked["session"], status(&sandbox)["session"]);
    assert_eq!(ask_in(&sandbox, &looked["session"], 4, "snapshot", args.clone())["exit"], 0);
    watching.stop();
    // Each watch has its own session.
    let watching = Watching::start(&sandbox, &[]);
    assert_eq!(ask_in(&sandbox, &looked["session"], 5, "snapshot", args)["exit"], 4);
    watching.stop();
}

/// SillyTavern may run as another user. Links that this user plants in place of an answer, the
/// status or a temporary file are not followed.
#[cfg(unix)]
#[test]
fn answers_and_status_are_not_written_through_planted_links() {
    use std::os::unix::fs::symlink;
    let sandbox = library();
    let victim = sandbox.folder().join("victim");
    fs::write(&victim, "mine").unwrap();
    let plant = |name: &str| symlink(&victim, sandbox.path(&format!("{FOLDER}/{name}"))).unwrap();
    plant("stvc-status.json");
    plant(&format!("stvc-res-{}.json", id(1)));
    let watching = Watching::start(&sandbox, &[]);
    watching.snapshot_of(4);
    plant(&format!(".stvc-mail-{}.tmp", watching.child.id()));
    for n in 0..20 {
        plant(&format!(".stvc-{}-{n}.tmp", watching.child.id()));
    }
    put(&sandbox, &id(1), json!({ "protocol": 1, "verb": "hello" }).to_string());
    let path = sandbox.path(&format!("{FOLDER}/stvc-res-{}.json", id(1)));
    let begin = Instant::now();
    while path.is_symlink() {
        assert!(begin.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(fetch(&sandbox, &id(1))["exit"], 0);
    watching.stop();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    assert!(!sandbox.path("user/files/stvc-status.json").is_symlink());
}

#[cfg(unix)]
#[test]
fn planted_pipes_do_not_block_the_mailbox() {
    let sandbox = library();
    let pipe = |name: &str| {
        let path = sandbox.path(&format!("{FOLDER}/{name}"));
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    pipe("stvc-status.json");
    let watching = Watching::start(&sandbox, &[]);
    watching.snapshot_of(4);
    pipe(&format!(".stvc-mail-{}.tmp", watching.child.id()));
    pipe(&format!("stvc-res-{}.json", id(2)));
    pipe(&format!("stvc-req-{}.json", id(3)));
    let answer = fetch(&sandbox, &id(3));
    assert!(answer["lines"][0]["message"].as_str().unwrap().contains("a pipe"), "{answer}");
    assert_eq!(ask(&sandbox, 1, "timelines", json!({}))["exit"], 0);
    put(&sandbox, &id(2), json!({ "protocol": 1, "verb": "hello" }).to_string());
    let path = sandbox.path(&format!("{FOLDER}/stvc-res-{}.json", id(2)));
    let begin = Instant::now();
    while !path.is_file() {
        assert!(begin.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(5));
    }
    watching.stop();
}
