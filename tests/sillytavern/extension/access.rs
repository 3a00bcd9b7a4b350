//! A SillyTavern that lets not everybody in, and several users of it: each page gets its own user's answers.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::json;

use crate::stage::{Setup, Stage, again};

/// A password before anything is shown, which SillyTavern asks for only where it could be reached from elsewhere, and accounts.
const SERVER: &[(&str, &str)] = &[
    ("SILLYTAVERN_LISTEN", "true"),
    ("SILLYTAVERN_LISTENADDRESS_IPV4", "127.0.0.1"),
    ("SILLYTAVERN_BASICAUTHMODE", "true"),
    ("SILLYTAVERN_ENABLEUSERACCOUNTS", "true"),
];

#[test]
fn two_users_behind_a_password() {
    again(|| {
        // What stands in SillyTavern's own configuration.
        let browser = json!({ "httpCredentials": { "username": "user", "password": "password" } });
        let setup = Setup { server: SERVER, browser: browser.clone() };
        let Some(mut stage) = Stage::open_with("extension-access", "1.19.0", &setup, |_| {}) else {
            return;
        };
        let made = stage.writer.evaluate(
            "fetch('/api/users/create', { method: 'POST', headers: SillyTavern.getContext().getRequestHeaders(), \
             body: JSON.stringify({ handle: 'alice', name: 'Alice', password: 'tide' }) }).then((made) => made.status)",
        );
        assert_eq!(made, 200);
        let library = stage.sandbox.folder().join("alice");
        let all = stage.sandbox.folder().to_str().unwrap().to_owned();
        stage.stvc(&["--data", &all, "extension", "install", "--all-users"]).exits(0);
        for user in ["default-user", "alice"] {
            assert!(stage.sandbox.folder().join(user).join("extensions/stvc/index.js").exists());
        }
        let watching = stage.watch_with(&["--data", &all, "--all-users"]);

        stage.come_in();
        stage.writer.character("Mira Voss", "The tide is low.");
        stage.connect();
        stage.writer.say("My secret is a lantern.");
        // At the same time, in a browser of her own.
        let mut alice = stage.another(&browser);
        alice.login(&stage.url(), "Alice", "tide");
        alice.character("Wren", "Cold, cold, cold.");
        alice.connect(&stage.model.url());
        alice.say("My secret is a bell.");

        let (mine, hers) = (stage.writer.pipe("/stvc-snapshot"), alice.pipe("/stvc-snapshot"));
        assert_eq!((mine.len(), hers.len()), (40, 40), "{mine} {hers}");
        for (writer, own, other, others) in
            [(&mut stage.writer, "lantern", "bell", &hers), (&mut alice, "bell", "lantern", &mine)]
        {
            let found = writer.pipe("/stvc-search secret");
            assert!(found.contains(own) && !found.contains(other), "{found}");
            writer
                .until("document.getElementById('stvc_badge').textContent.startsWith('snapshot')");
            let timelines = writer.evaluate("stvc.state().then((told) => told.state)");
            let character = if own == "bell" { "Mira Voss" } else { "Wren" };
            assert!(!timelines.as_str().unwrap().contains(character), "{timelines}");
            // Nor by the other's own name for it.
            writer.complaints();
            assert_eq!(writer.pipe(&format!("/stvc-restore {others}")), "");
            let said = writer.complaints();
            assert!(said.iter().any(|line| line.contains(&others[..10])), "{said:?}");
        }
        // What one changes is the other's as it was.
        let before = stage.stories();
        assert_eq!(alice.pipe("/stvc-fork at=1 Elsewhere"), "Elsewhere");
        alice.settle();
        assert!(library.join("chats/Wren/Elsewhere.jsonl").exists());
        assert_eq!(stage.stories(), before);
        let operations = |user: &str| {
            let told = stage.json(&["--data", &all, "--user", user, "operations"]).exits(0);
            told.of_type("operation")
                .iter()
                .any(|line| line["command"].to_string().contains("restore"))
        };
        assert!(operations("alice") && !operations("default-user"));

        // Who does not know the password gets nothing of it.
        assert!(stage.path("user/files/stvc-status.json").exists());
        let turned_away = first_line(&stage.url(), "/user/files/stvc-status.json");
        assert!(turned_away.contains(" 401 "), "{turned_away}");
        watching.stop();
    });
}

/// How a server answers who says nothing about himself.
fn first_line(url: &str, path: &str) -> String {
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}
