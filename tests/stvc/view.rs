//! `stvc view` over HTTP: access, answers, and shutdown.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Sandbox, chat};

/// A running `stvc view`.
struct View {
    child: Child,
    port: u16,
    /// The code of the printed address, which works once.
    code: String,
    secret: String,
}

impl View {
    fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command: Command = sandbox.command(&[&["--json", "view"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let address = line["address"].as_str().unwrap();
        let (host, code) =
            address.strip_prefix("http://127.0.0.1:").unwrap().split_once("/#code=").unwrap();
        let code = code.split('/').next().unwrap().to_owned();
        let mut view = Self { child, port: host.parse().unwrap(), code, secret: String::new() };
        let entered = view.enter(&view.code);
        assert_eq!(status(&entered), 200, "{entered}");
        let body: Value = serde_json::from_str(entered.split_once("\r\n\r\n").unwrap().1).unwrap();
        view.secret = body["secret"].as_str().unwrap().to_owned();
        view
    }

    /// Exchanges the code of the address for a secret, as the viewer does.
    fn enter(&self, code: &str) -> String {
        let port = self.port;
        self.raw(&format!(
            "POST /enter HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nOrigin: http://127.0.0.1:{port}\r\nContent-Type: application/json\r\nX-Stvc-Code: {code}\r\nContent-Length: 0\r\n\r\n"
        ))
    }

    /// Sends these bytes and reads the complete answer.
    fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        // The server may refuse before everything is sent.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str, headers: &str) -> String {
        self.raw(&format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n{headers}\r\n",
            self.port
        ))
    }

    /// Returns the header that the viewer sends.
    fn known(&self) -> String {
        format!("X-Stvc: {}\r\n", self.secret)
    }

    fn ask(&self, request: &Value) -> Value {
        let (body, port) = (request.to_string(), self.port);
        let answer = self.raw(&format!(
            "POST /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nOrigin: http://127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{body}",
            body.len(),
            self.known(),
        ));
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/one.jsonl", chat("one", 3, None));
    sandbox.take(&[]);
    sandbox
}

#[test]
fn view_refuses_an_unknown_timeline_before_it_serves() {
    let sandbox = library();
    sandbox.stvc(&["view", "--no-open", "nosuch"]).exits(1);
}

#[test]
fn printed_address_opens_the_viewer() {
    let sandbox = library();
    let view = View::start(&sandbox, &["Mira/one"]);
    // The viewer itself is public and has no secret.
    let page = view.get("/", "");
    assert!(page.contains("<noscript>"), "{page}");
    assert!(!page.contains(&view.secret) && !page.to_lowercase().contains("set-cookie"));
    assert!(
        page.contains("default-src 'none'") && !page.to_lowercase().contains("access-control-")
    );
    // Every file of the viewer is served and names no other host.
    for asset in stvc::api::page::ASSETS {
        let is_module = asset.path.ends_with(".js");
        let is_there = if is_module { 404 } else { 200 };
        assert_eq!(status(&view.get(asset.path, "")), is_there, "{}", asset.path);
        let others = asset.text.replace("http://www.w3.org/2000/svg", "");
        assert!(!others.contains("http://") && !others.contains("https://"), "{}", asset.path);
        assert!(
            !asset.text.contains("innerHTML") && !asset.text.contains("eval("),
            "{}",
            asset.path
        );
    }
    assert_eq!(status(&view.get("/page.js", "")), 200, "the modules are one script");
    let answer = view.ask(&json!({ "verb": "timelines" }));
    assert_eq!(answer["lines"][0]["timeline"], "chats/Mira/one");
    // It cannot change anything, and sees new snapshots.
    assert_eq!(view.ask(&json!({ "verb": "snapshot" }))["exit"], 4);
    let state = |view: &View| {
        view.get("/state", &view.known()).split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    let before = state(&view);
    assert!(before.contains("\"write\":false"));
    sandbox.write("chats/Mira/two.jsonl", chat("two", 3, None));
    sandbox.take(&[]);
    assert_ne!(state(&view), before);
    assert_eq!(view.ask(&json!({ "verb": "timelines" }))["lines"].as_array().unwrap().len(), 3);
}

#[test]
fn requests_from_other_origins_or_without_the_secret_are_refused() {
    let sandbox = library();
    let view = View::start(&sandbox, &["--write"]);
    let (port, known) = (view.port, view.known());
    let files = sandbox.files();
    for (request, code) in [
        (
            format!("GET /state HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"),
            403,
        ),
        (
            format!(
                "GET /state HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Stvc: 00\r\nConnection: close\r\n\r\n"
            ),
            403,
        ),
        // A cookie, which the browser would send to every server on this computer, grants nothing.
        (
            format!(
                "GET /state HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: stvc{port}={}\r\nConnection: close\r\n\r\n",
                view.secret
            ),
            403,
        ),
        (format!("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n{known}\r\n"), 421),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://evil.example\r\nConnection: close\r\n{known}\r\n"
            ),
            403,
        ),
        (
            format!(
                "GET /../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{known}\r\n"
            ),
            404,
        ),
        (
            format!(
                "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{known}\r\n"
            ),
            404,
        ),
        (
            format!(
                "GET /main.js%00.html HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{known}\r\n"
            ),
            404,
        ),
        (
            format!(
                "GET /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{known}\r\n"
            ),
            404,
        ),
        // A form on another site.
        (
            format!(
                "POST /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://evil.example\r\nContent-Type: text/plain\r\nContent-Length: 19\r\nConnection: close\r\n{known}\r\n{{\"verb\":\"snapshot\"}}"
            ),
            403,
        ),
        (
            format!(
                "POST /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: 19\r\nConnection: close\r\n{known}\r\n{{\"verb\":\"snapshot\"}}"
            ),
            403,
        ),
        (
            format!(
                "POST /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 2\r\nConnection: close\r\n{known}\r\n{{}}"
            ),
            415,
        ),
        (
            format!(
                "DELETE /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{known}\r\n"
            ),
            405,
        ),
        // A claimed gigabyte.
        (
            format!(
                "POST /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: 1000000000\r\nConnection: close\r\n{known}\r\n{}",
                "x".repeat(100_000)
            ),
            413,
        ),
    ] {
        let answer = view.raw(&request);
        assert_eq!(status(&answer), code, "{request}\n{answer}");
        assert!(!answer.contains(&view.secret), "the secret is told to a stranger");
    }
    // Invalid HTTP, and endless headers.
    for garbage in [
        "\0\0\0\r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(200_000)),
    ] {
        let answer = view.raw(&garbage);
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(sandbox.files(), files);
    // The server still runs.
    assert_eq!(
        view.ask(&json!({ "verb": "tag", "args": { "name": "here", "snapshot": "Mira/one" } }))["exit"],
        0
    );
}

#[test]
fn two_views_can_run_and_a_used_port_is_reported() {
    let sandbox = library();
    let (one, two) = (View::start(&sandbox, &[]), View::start(&sandbox, &[]));
    assert_ne!(one.secret, two.secret);
    assert_eq!(status(&two.get("/state", &one.known())), 403);
    for view in [&one, &two] {
        assert_eq!(view.ask(&json!({ "verb": "log" }))["exit"], 0);
    }
    let port = one.port.to_string();
    let taken = sandbox.stvc(&["view", "--no-open", "--port", &port]).exits(1);
    assert!(taken.stderr.contains("omit `--port` to use a free port"), "{}", taken.stderr);
    // Without a store there is nothing to view.
    Sandbox::empty().stvc(&["view", "--no-open"]).exits(10);
}

/// The store may be collected or removed while the viewer is open.
#[test]
fn viewer_reports_a_removed_store() {
    let sandbox = library();
    let view = View::start(&sandbox, &[]);
    assert_eq!(view.ask(&json!({ "verb": "log" }))["exit"], 0);
    sandbox.stvc(&["gc"]).exits(0);
    assert_eq!(view.ask(&json!({ "verb": "show", "args": { "snapshot": "Mira/one" } }))["exit"], 0);
    std::fs::remove_dir_all(sandbox.store()).unwrap();
    let answer = view.ask(&json!({ "verb": "show", "args": { "snapshot": "Mira/one" } }));
    assert_eq!(answer["lines"][0]["type"], "error", "{answer}");
}

/// An incomplete request does not delay others.
#[test]
fn slow_request_does_not_block_others() {
    let sandbox = library();
    let view = View::start(&sandbox, &[]);
    let (port, known) = (view.port, view.known());
    let head = format!(
        "POST /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: 18\r\nConnection: close\r\n{known}\r\n{{"
    );
    std::thread::scope(|scope| {
        let half = scope.spawn(|| view.raw("GET / HTTP/1.1\r\nHost: "));
        let body = scope.spawn(|| view.raw(&head));
        assert_eq!(view.ask(&json!({ "verb": "log" }))["exit"], 0);
        let half = half.join().unwrap();
        assert!(half.is_empty() || status(&half) == 408, "{half}");
        assert_eq!(status(&body.join().unwrap()), 408);
    });
}

#[test]
fn printed_address_works_once() {
    let sandbox = library();
    let view = View::start(&sandbox, &[]);
    assert_ne!(view.code, view.secret);
    let again = view.enter(&view.code);
    assert_eq!(status(&again), 403, "{again}");
    assert!(again.contains("run `stvc view` again"), "{again}");
    // The viewer keeps its secret, also after a reload.
    for _ in 0..2 {
        assert_eq!(status(&view.get("/", "")), 200);
        assert_eq!(view.ask(&json!({ "verb": "log" }))["exit"], 0);
    }
}

/// Every user can read the arguments of a process.
#[cfg(unix)]
#[test]
fn browser_gets_the_secret_from_a_private_temporary_file() {
    use std::os::unix::fs::PermissionsExt;

    let sandbox = library();
    let (argument_file, browser) =
        (sandbox.folder().join("told"), sandbox.folder().join("browser"));
    let script = format!(
        "#!/bin/sh\nprintf '%s' \"$*\" > '{0}.new'\nmv '{0}.new' '{0}'\n",
        argument_file.display()
    );
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = sandbox.command(&["view", "Mira/one"]);
    command.env("BROWSER", &browser).env_remove("WSL_DISTRO_NAME");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut printed).unwrap();
    let until = |done: &dyn Fn() -> bool| {
        for _ in 0..200 {
            if done() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("nothing happened for 10 seconds");
    };
    until(&|| argument_file.exists());
    let argument = std::fs::read_to_string(&argument_file).unwrap();
    let file = std::path::Path::new(&argument);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(file), mode(file.parent().unwrap())), (0o600, 0o700), "{argument}");
    let page = std::fs::read_to_string(file).unwrap();
    let (_, rest) = page.split_once("url=http://127.0.0.1:").unwrap();
    let (port, rest) = rest.split_once("/#code=").unwrap();
    let (code, rest) = rest.split_once('/').unwrap();
    assert!(rest.starts_with("tree/Mira%2Fone\""), "{page}");
    let cmdline = std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap_or_default();
    let cmdline = String::from_utf8_lossy(&cmdline).into_owned();
    assert!(!argument.contains(code) && !cmdline.contains(code));
    assert!(!printed.contains(code), "each of both works once");
    let code = code.to_owned();
    let view = View { child, port: port.parse().unwrap(), code, secret: String::new() };
    assert_eq!(status(&view.enter(&view.code)), 200);
    until(&|| !file.exists() && !file.parent().unwrap().exists());
    let code = printed.trim().split_once("/#code=").unwrap().1.split('/').next().unwrap();
    assert_eq!(status(&view.enter(code)), 200, "the printed address works, too");
}

#[test]
fn clients_without_secret_cannot_use_all_connections() {
    let sandbox = library();
    let view = View::start(&sandbox, &[]);
    let connect = || TcpStream::connect(("127.0.0.1", view.port)).unwrap();
    let mut idle: Vec<_> = (0..150).map(|_| connect()).collect();
    for stream in &mut idle {
        let _ = stream.write_all(b"GET / HTTP/1.1\r\n");
    }
    assert_eq!(view.ask(&json!({ "verb": "log" }))["exit"], 0);
    assert_eq!(status(&view.get("/", "")), 200);
    drop(idle);
}

#[test]
fn client_that_does_not_read_its_answer_is_disconnected() {
    let sandbox = Sandbox::empty();
    let long = "a rather long message ".repeat(20_000);
    sandbox.write("chats/Mira/one.jsonl", chat(&long, 40, None));
    sandbox.take(&[]);
    let view = View::start(&sandbox, &[]);
    let (port, known) = (view.port, view.known());
    let body = json!({ "verb": "messages", "args": { "snapshot": "Mira/one" } }).to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = format!(
        "POST /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{known}\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = [0; 2000];
    stream.read_exact(&mut head).unwrap();
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.split_once("content-length: ").unwrap().1.split('\r').next().unwrap();
    // More than the system buffers.
    assert!(length.parse::<usize>().unwrap() > 16 << 20, "{length}");
    // Writes fail once the connection is closed.
    let begin = Instant::now();
    while stream.write_all(b" ").is_ok() {
        assert!(begin.elapsed() < Duration::from_secs(120), "the connection is still open");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(view.ask(&json!({ "verb": "log" }))["exit"], 0);
}

#[test]
fn request_head_is_limited_to_16_kb() {
    let sandbox = library();
    let view = View::start(&sandbox, &[]);
    let with =
        |length: usize| status(&view.get("/", &format!("X-Long: {}\r\n", "y".repeat(length))));
    assert_eq!(with(15_000), 200);
    for length in [17_000, 40_000, 60_000] {
        assert_eq!(with(length), 431);
    }
}
