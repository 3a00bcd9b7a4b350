//! A host with many users: one watch serves all of them, and no user harms the others.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::watching::Watching;
use crate::common::{Answer, Sandbox, answer, chat};

/// An installation with users whose names are numbers.
struct Hosted {
    sandbox: Sandbox,
}

impl Hosted {
    fn new(users: usize) -> Self {
        let hosted = Self { sandbox: Sandbox::without_library() };
        (0..users).for_each(|number| hosted.add(&name(number)));
        hosted
    }

    fn add(&self, user: &str) {
        for folder in ["chats/Mira", "worlds", "user/files"] {
            fs::create_dir_all(self.path(user, folder)).unwrap();
        }
        fs::write(self.path(user, "settings.json"), "{}").unwrap();
        self.save(user, 1);
    }

    fn path(&self, user: &str, path: &str) -> PathBuf {
        self.sandbox.folder().join("data").join(user).join(path)
    }

    fn save(&self, user: &str, messages: usize) {
        fs::write(self.path(user, "chats/Mira/one.jsonl"), chat(user, messages, None)).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Answer {
        let mut command = self.sandbox.command(arguments);
        answer(command.current_dir(self.sandbox.folder()).output().unwrap())
    }

    fn watch(&self, options: &[&str]) -> UserEvents {
        let arguments = [&["--json", "watch", "--all-users", "--settle", "50ms"], options].concat();
        let mut command = self.sandbox.command(&arguments);
        command.current_dir(self.sandbox.folder());
        UserEvents { watching: Watching::start_command(command), user: RefCell::default() }
    }
}

fn name(number: usize) -> String {
    format!("user-{number:02}")
}

/// The events of a watch, with the user of each.
struct UserEvents {
    watching: Watching,
    user: RefCell<String>,
}

impl UserEvents {
    #[track_caller]
    fn wait_for(&self, fits: impl Fn(&str, &Value) -> bool) -> Value {
        self.watching.wait_for(|event| {
            if event["type"] == "user" {
                self.user.replace(event["user"].as_str().unwrap().to_owned());
                return false;
            }
            fits(&self.user.borrow(), event)
        })
    }

    #[track_caller]
    fn snapshot_of(&self, user: &str, messages: usize) {
        self.wait_for(|of, event| {
            of == user && event["type"] == "snapshot" && event["messages"] == messages
        });
    }

    /// Waits for a snapshot of each user.
    #[track_caller]
    fn snapshots_of(&self, mut users: BTreeSet<String>) {
        while !users.is_empty() {
            self.wait_for(|of, event| event["type"] == "snapshot" && users.contains(of));
            users.remove(&*self.user.borrow());
        }
    }
}

#[test]
fn users_that_fail_do_not_affect_the_others() {
    let hosted = Hosted::new(60);
    // No store, a store of a later version, folders that cannot be read, an invalid configuration.
    fs::write(hosted.path("user-00", ".stvc"), "no store").unwrap();
    hosted.run(&["snapshot", "--user", "user-01"]).exits(0);
    fs::write(hosted.path("user-01", ".stvc/stvc/format"), later_format()).unwrap();
    fs::remove_dir_all(hosted.path("user-02", "chats")).unwrap();
    fs::write(hosted.path("user-02", "chats"), "no folder").unwrap();
    fs::write(hosted.path("user-02", "worlds/Sea.json"), r#"{"entries":{}}"#).unwrap();
    hosted.run(&["snapshot", "--user", "user-03"]).exits(0);
    fs::write(hosted.path("user-03", ".stvc/stvc/config.toml"), "nonsense").unwrap();
    hosted.save("user-03", 2);
    // Another watch serves this user.
    let mut own = hosted.sandbox.command(&["--json", "watch", "--user", "user-04"]);
    own.current_dir(hosted.sandbox.folder());
    let mut own = Watching::start_command(own);
    own.snapshot_of(1);
    let host = hosted.watch(&[]);
    host.snapshots_of((5..60).chain([2, 3]).map(name).collect());
    // A folder that disappears, and one that is saved to.
    if cfg!(unix) {
        fs::remove_dir_all(hosted.path("user-05", "")).unwrap();
        host.wait_for(|of, event| of == "user-05" && event["event"] == "gone");
    }
    hosted.save("user-59", 2);
    host.snapshot_of("user-59", 2);
    // The watch takes over when the other watch has ended.
    own.kill();
    hosted.save("user-04", 2);
    host.snapshot_of("user-04", 2);
    let summary = host.stop_with_failures();
    assert!(cfg!(windows) || summary["users"] == 60, "{summary}");
    assert!(cfg!(windows) || summary["failed"] == 3, "{summary}");
    for user in [2, 3, 4, 6, 59] {
        hosted.run(&["check", "--user", &name(user)]).exits(0);
    }
}

impl UserEvents {
    /// Stops a watch that cannot watch some of the users.
    #[track_caller]
    fn stop_with_failures(mut self) -> Value {
        if cfg!(windows) {
            self.watching.kill();
            return Value::Null;
        }
        crate::common::watching::signal(&self.watching.child, "TERM");
        let summary = self.wait_for(|_, event| event["type"] == "summary");
        assert_eq!(self.watching.child.wait().unwrap().code(), Some(3));
        summary
    }
}

/// Returns the content of a format file of a later version, with its checksum.
fn later_format() -> String {
    let words = "stvc store format 999";
    let check = stvc::snapshots::Blake3::of(words.as_bytes()).to_string();
    format!("{words} {}\n", &check[..8])
}

#[cfg(target_os = "linux")]
#[test]
fn number_of_threads_does_not_depend_on_the_number_of_users() {
    let threads = |users: usize| {
        let hosted = Hosted::new(users);
        let host = hosted.watch(&[]);
        host.snapshots_of((0..users).map(name).collect());
        let folder = format!("/proc/{}", host.watching.child.id());
        let count = |part: &str| fs::read_dir(format!("{folder}/{part}")).unwrap().count();
        // Workers may run on all cores for a moment.
        let threads = (0..20).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            count("task")
        });
        let (threads, files) = (threads.min().unwrap(), count("fd"));
        host.watching.stop();
        (threads, files)
    };
    let ((few, files), (many, more_files)) = (threads(2), threads(50));
    assert_eq!(few, many);
    // One lock for each user.
    assert!(more_files <= files + 48 + 5, "{files} open files, {more_files} with 48 more users");
}

#[test]
fn user_created_later_is_watched() {
    let hosted = Hosted::new(2);
    let host = hosted.watch(&["--poll", "100ms"]);
    hosted.add("zoe");
    host.snapshot_of("zoe", 1);
    hosted.save("zoe", 2);
    host.snapshot_of("zoe", 2);
    host.watching.stop();
}

#[test]
fn requests_of_each_user_are_answered() {
    let hosted = Hosted::new(3);
    let host = hosted.watch(&[]);
    host.snapshots_of((0..3).map(name).collect());
    for user in (0..3).map(name) {
        let file = |kind: &str| {
            hosted.path(&user, &format!("user/files/stvc-{kind}-{}.json", "0".repeat(32)))
        };
        fs::write(file("req"), r#"{"protocol":1,"verb":"hello"}"#).unwrap();
        let begin = std::time::Instant::now();
        while !file("res").exists() {
            assert!(begin.elapsed() < crate::common::watching::LIMIT, "no answer for {user}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    host.watching.stop();
}

#[test]
fn store_over_its_limit_gets_no_snapshots() {
    let hosted = Hosted::new(2);
    hosted.run(&["snapshot", "--all-users"]).exits(0);
    hosted.run(&["config", "limits.store-size", "10000000", "--all-users"]).exits(0);
    hosted.run(&["config", "limits.store-size", "1000", "--user", "user-00"]).exits(0);
    let request = hosted.path("user-00", &format!("user/files/stvc-req-{}.json", "0".repeat(32)));
    fs::write(request, r#"{"protocol":1,"verb":"hello"}"#).unwrap();
    (0..2).for_each(|user| hosted.save(&name(user), 2));
    let host = hosted.watch(&[]);
    let over = |of: &str, event: &Value| of == "user-00" && event["code"] == "store-over-limit";
    host.wait_for(over);
    // The page learns of it.
    let status = || fs::read(hosted.path("user-00", "user/files/stvc-status.json"));
    let has_alarm = || {
        let status: Option<Value> = serde_json::from_slice(&status().ok()?).ok();
        Some(status?["alarms"].as_array()?.iter().any(|it| it["code"] == "store-over-limit"))
    };
    let begin = std::time::Instant::now();
    while has_alarm() != Some(true) {
        assert!(begin.elapsed() < crate::common::watching::LIMIT, "{:?}", status());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let snapshots =
        || hosted.run(&["--json", "log", "--user", "user-00"]).of_type("snapshot").len();
    let before = snapshots();
    hosted.save("user-00", 3);
    hosted.save("user-01", 3);
    host.snapshot_of("user-01", 3);
    assert_eq!(snapshots(), before);
    // A user may create a snapshot, and the watch continues with a higher limit.
    hosted.run(&["snapshot", "--user", "user-00"]).exits(0);
    assert!(snapshots() > before);
    hosted.run(&["config", "limits.store-size", "10000000", "--user", "user-00"]).exits(0);
    hosted.save("user-00", 4);
    host.snapshot_of("user-00", 4);
    host.watching.stop();
}

#[test]
fn file_over_the_memory_limit_is_reported_and_other_files_are_stored() {
    let hosted = Hosted::new(1);
    hosted.run(&["snapshot", "--all-users"]).exits(0);
    hosted.run(&["config", "limits.memory", "30000", "--all-users"]).exits(0);
    let long = format!("{{\"chat_metadata\":{{}}}}\n{{\"mes\":\"{}\"}}", "sea ".repeat(5000));
    fs::write(hosted.path("user-00", "chats/Mira/long.jsonl"), &long).unwrap();
    hosted.save("user-00", 2);
    let host = hosted.watch(&[]);
    let failed = host.wait_for(|_, event| event["type"] == "failed");
    assert!(failed["message"].as_str().unwrap().contains("limits.memory"), "{failed}");
    host.snapshot_of("user-00", 2);
    host.watching.stop();
    // A user may store it.
    hosted.run(&["snapshot", "--user", "user-00"]).exits(0);
    let log = hosted.run(&["--json", "log", "Mira/long", "--user", "user-00"]).exits(0);
    assert_eq!(log.of_type("snapshot").len(), 1);
}

/// Sends a request and returns the answer.
fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut answer = String::new();
    // The server may close the connection before it has read everything.
    let _ = stream.write_all(request.as_bytes());
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn get(address: &str) -> String {
    ask(address, &format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"))
}

/// Returns the value of a sample. Panics if a line is not in the text format of Prometheus.
fn sample(text: &str, wanted: &str) -> Option<u64> {
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let mut found = None;
    for line in
        body.lines().filter(|line| !line.starts_with("# HELP") && !line.starts_with("# TYPE"))
    {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let metric = name.split('{').next().unwrap();
        assert!(body.contains(&format!("# TYPE {metric} ")), "{line}");
        let value: u64 = value.parse().unwrap();
        found = found.or((name == wanted).then_some(value));
    }
    found
}

#[test]
fn metrics_are_served_to_this_machine() {
    let hosted = Hosted::new(3);
    let strange = if cfg!(windows) { "zoe {b}" } else { "zoe \"b\\" };
    hosted.add(strange);
    fs::write(hosted.path("user-02", ".stvc"), "no store").unwrap();
    let mut command = hosted.sandbox.command(&[
        "--json",
        "watch",
        "--all-users",
        "--settle",
        "50ms",
        "--metrics",
        "0",
    ]);
    command.current_dir(hosted.sandbox.folder());
    let watching = Watching::start_until(command, |event| event["type"] == "metrics");
    let (watching, line) = watching;
    let host = UserEvents { watching, user: RefCell::default() };
    let address = line["address"].as_str().unwrap();
    let address = address.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    host.snapshots_of([name(0), name(1), strange.to_owned()].into());
    let text = get(address);
    let label = strange.replace('\\', r"\\").replace('"', "\\\"");
    for (name, value) in [
        ("stvc_users", 4),
        ("stvc_users_watched", 3),
        ("stvc_users_failing", 1),
        ("stvc_snapshots_total{user=\"user-00\"}", 1),
        ("stvc_user_watched{user=\"user-02\"}", 0),
        (&format!("stvc_snapshots_total{{user=\"{label}\"}}"), 1),
    ] {
        assert_eq!(sample(&text, name), Some(value), "{name}: {text}");
    }
    assert!(sample(&text, "stvc_queue_length").is_some());
    assert!(sample(&text, "stvc_store_bytes{user=\"user-00\"}") > Some(1000), "{text}");
    assert!(sample(&text, "stvc_last_snapshot_timestamp_seconds{user=\"user-00\"}").is_some());
    assert_eq!(sample(&text, "stvc_last_backup_timestamp_seconds{user=\"user-00\"}"), None);
    // Hostile requests are refused, and do not prevent others.
    let idle: Vec<_> = (0..50).map(|_| TcpStream::connect(address).unwrap()).collect();
    let long =
        format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    assert!(!ask(address, &long).contains(" 200 "));
    let foreign = "GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert!(ask(address, foreign).starts_with("HTTP/1.1 421 "));
    let post = format!(
        "POST /metrics HTTP/1.1\r\nHost: {address}\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"
    );
    assert!(ask(address, &post).starts_with("HTTP/1.1 405 "));
    let other = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    assert!(ask(address, &other).starts_with("HTTP/1.1 404 "));
    assert!(get(address).starts_with("HTTP/1.1 200 "));
    drop(idle);
    hosted.save("user-00", 2);
    host.snapshot_of("user-00", 2);
    host.stop_with_failures();
}

#[test]
fn backup_of_all_users_continues_after_a_failure() {
    let hosted = Hosted::new(12);
    hosted.run(&["snapshot", "--all-users"]).exits(0);
    fs::remove_dir_all(hosted.path("user-03", ".stvc")).unwrap();
    fs::write(hosted.path("user-03", ".stvc"), "no store").unwrap();
    let mirror = hosted.sandbox.folder().join("mirror");
    fs::create_dir(&mirror).unwrap();
    let backup = ["--json", "backup", mirror.to_str().unwrap(), "--all-users"];
    let result = hosted.run(&backup).exits(3);
    let lines = result.lines();
    // The lines of each user are together.
    let mut users = BTreeSet::new();
    let mut open = None;
    for line in &lines[..lines.len() - 1] {
        match line["type"].as_str().unwrap() {
            "user" => {
                assert_eq!(open, None);
                open = Some(line["user"].as_str().unwrap().to_owned());
            }
            "summary" => {
                let user = open.take().unwrap();
                assert_eq!(line["ok"], user != "user-03", "{user}");
                users.insert(user);
            }
            _ => assert!(open.is_some(), "{line}"),
        }
    }
    assert_eq!(users, (0..12).map(name).collect());
    let last = lines.last().unwrap();
    assert_eq!((&last["users"], &last["failed"]), (&12.into(), &1.into()));
    assert!(mirror.join("user-11/HEAD").exists() && !mirror.join("user-03/HEAD").exists());
    // The next backup copies only what is new.
    hosted.save("user-07", 2);
    let again = hosted.run(&backup).exits(3).lines();
    let copied: Vec<_> = again.iter().filter_map(|line| line["new_snapshots"].as_u64()).collect();
    assert_eq!(copied.iter().sum::<u64>(), 1, "{copied:?}");
}
