//! `stvc view` over the wire: who is let in, what is answered, and how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Sandbox, chat};

/// A view that is running.
struct View {
    child: Child,
    port: u16,
    token: String,
}

impl View {
    fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command: Command = sandbox.command(&[&["--json", "view"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let address = line["address"].as_str().unwrap();
        let (host, token) =
            address.strip_prefix("http://127.0.0.1:").unwrap().split_once("/?token=").unwrap();
        let token = token.split('#').next().unwrap();
        Self { child, port: host.parse().unwrap(), token: token.to_owned() }
    }

    /// What is answered to these bytes, until the other side has said all.
    fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        // It may have been turned away before all of it was said.
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

    fn cookie(&self) -> String {
        format!("Cookie: stvc{}={}\r\n", self.port, self.token)
    }

    fn ask(&self, request: &Value) -> Value {
        let (body, port) = (request.to_string(), self.port);
        let answer = self.raw(&format!(
            "POST /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nOrigin: http://127.0.0.1:{port}\r\nX-Stvc: 1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{body}",
            body.len(),
            self.cookie(),
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
fn the_address_opens_the_page_and_the_page_asks() {
    let sandbox = library();
    let view = View::start(&sandbox, &["Mira/one"]);
    let welcome = view.get(&format!("/?token={}", view.token), "");
    assert_eq!(status(&welcome), 303, "{welcome}");
    assert!(welcome.contains("location: /\r\n") && welcome.contains("HttpOnly; SameSite=Strict"));
    let page = view.get("/", &view.cookie());
    assert!(page.contains("<noscript>"), "{page}");
    assert!(
        page.contains("default-src 'none'") && !page.to_lowercase().contains("access-control-")
    );
    // Every file of the page is there, and names no place elsewhere.
    for asset in stvc::api::page::ASSETS {
        let is_module = asset.path.ends_with(".js");
        let is_there = if is_module { 404 } else { 200 };
        assert_eq!(status(&view.get(asset.path, &view.cookie())), is_there, "{}", asset.path);
        let others = asset.text.replace("http://www.w3.org/2000/svg", "");
        assert!(!others.contains("http://") && !others.contains("https://"), "{}", asset.path);
        assert!(
            !asset.text.contains("innerHTML") && !asset.text.contains("eval("),
            "{}",
            asset.path
        );
    }
    assert_eq!(status(&view.get("/page.js", &view.cookie())), 200, "the modules are one script");
    let answer = view.ask(&json!({ "verb": "timelines" }));
    assert_eq!(answer["lines"][0]["timeline"], "chats/Mira/one");
    // It only looks, and what was taken meanwhile is seen.
    assert_eq!(view.ask(&json!({ "verb": "snapshot" }))["exit"], 4);
    let state = |view: &View| {
        view.get("/state", &view.cookie()).split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    let before = state(&view);
    assert!(before.contains("\"write\":false"));
    sandbox.write("chats/Mira/two.jsonl", chat("two", 3, None));
    sandbox.take(&[]);
    assert_ne!(state(&view), before);
    assert_eq!(view.ask(&json!({ "verb": "timelines" }))["lines"].as_array().unwrap().len(), 3);
}

#[test]
fn whoever_does_not_belong_is_turned_away() {
    let sandbox = library();
    let view = View::start(&sandbox, &["--write"]);
    let (port, cookie) = (view.port, view.cookie());
    let files = sandbox.files();
    for (request, code) in [
        (format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"), 403),
        (
            format!(
                "GET /?token=00 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
            ),
            403,
        ),
        (format!("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n{cookie}\r\n"), 421),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://evil.example\r\nConnection: close\r\n{cookie}\r\n"
            ),
            403,
        ),
        (
            format!(
                "GET /../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{cookie}\r\n"
            ),
            404,
        ),
        (
            format!(
                "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{cookie}\r\n"
            ),
            404,
        ),
        (
            format!(
                "GET /main.js%00.html HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{cookie}\r\n"
            ),
            404,
        ),
        (
            format!(
                "GET /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{cookie}\r\n"
            ),
            404,
        ),
        // A form of another page.
        (
            format!(
                "POST /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://evil.example\r\nContent-Type: text/plain\r\nContent-Length: 19\r\nConnection: close\r\n{cookie}\r\n{{\"verb\":\"snapshot\"}}"
            ),
            403,
        ),
        (
            format!(
                "POST /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nX-Stvc: 1\r\nContent-Length: 19\r\nConnection: close\r\n{cookie}\r\n{{\"verb\":\"snapshot\"}}"
            ),
            403,
        ),
        (
            format!(
                "POST /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nContent-Type: application/x-www-form-urlencoded\r\nX-Stvc: 1\r\nContent-Length: 2\r\nConnection: close\r\n{cookie}\r\n{{}}"
            ),
            415,
        ),
        (
            format!(
                "DELETE /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{cookie}\r\n"
            ),
            405,
        ),
        // As much as a gigabyte.
        (
            format!(
                "POST /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nContent-Type: application/json\r\nX-Stvc: 1\r\nContent-Length: 1000000000\r\nConnection: close\r\n{cookie}\r\n{}",
                "x".repeat(100_000)
            ),
            413,
        ),
    ] {
        let answer = view.raw(&request);
        assert_eq!(status(&answer), code, "{request}\n{answer}");
        assert!(!answer.contains(&view.token), "the token is told to a stranger");
    }
    // What is no HTTP, and headers without end.
    for garbage in [
        "\0\0\0\r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(200_000)),
    ] {
        let answer = view.raw(&garbage);
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(sandbox.files(), files);
    // It goes on.
    assert_eq!(
        view.ask(&json!({ "verb": "tag", "args": { "name": "here", "snapshot": "Mira/one" } }))["exit"],
        0
    );
}

#[test]
fn two_views_do_not_meddle_and_a_port_can_be_taken() {
    let sandbox = library();
    let (one, two) = (View::start(&sandbox, &[]), View::start(&sandbox, &[]));
    assert_ne!(one.token, two.token);
    assert_eq!(status(&two.get("/", &format!("Cookie: stvc{}={}\r\n", two.port, one.token))), 403);
    for view in [&one, &two] {
        assert_eq!(view.ask(&json!({ "verb": "log" }))["exit"], 0);
    }
    let port = one.port.to_string();
    let taken = sandbox.stvc(&["view", "--no-open", "--port", &port]).exits(1);
    assert!(taken.stderr.contains("another program has that port"), "{}", taken.stderr);
    // Without a store there is nothing to see.
    Sandbox::empty().stvc(&["view", "--no-open"]).exits(10);
}

/// The store may be collected, or go, while the page is open.
#[test]
fn a_store_that_goes_is_told() {
    let sandbox = library();
    let view = View::start(&sandbox, &[]);
    assert_eq!(view.ask(&json!({ "verb": "log" }))["exit"], 0);
    sandbox.stvc(&["gc"]).exits(0);
    assert_eq!(view.ask(&json!({ "verb": "show", "args": { "snapshot": "Mira/one" } }))["exit"], 0);
    std::fs::remove_dir_all(sandbox.store()).unwrap();
    let answer = view.ask(&json!({ "verb": "show", "args": { "snapshot": "Mira/one" } }));
    assert_eq!(answer["lines"][0]["type"], "error", "{answer}");
}

/// Whoever begins a request and does not go on is not waited for; others are served meanwhile.
#[test]
fn who_is_slow_is_not_waited_for() {
    let sandbox = library();
    let view = View::start(&sandbox, &[]);
    let (port, cookie) = (view.port, view.cookie());
    let head = format!(
        "POST /api HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nContent-Type: application/json\r\nX-Stvc: 1\r\nContent-Length: 18\r\nConnection: close\r\n{cookie}\r\n{{"
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
