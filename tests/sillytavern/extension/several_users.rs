//! A SillyTavern with a password and several users: each page gets only the answers of its user.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::json;

use crate::session::{Session, Setup, with_retries};

/// Basic authentication and user accounts. SillyTavern asks for the password only if it listens for
/// other machines.
const SERVER: &[(&str, &str)] = &[
    ("SILLYTAVERN_LISTEN", "true"),
    ("SILLYTAVERN_LISTENADDRESS_IPV4", "127.0.0.1"),
    ("SILLYTAVERN_BASICAUTHMODE", "true"),
    ("SILLYTAVERN_ENABLEUSERACCOUNTS", "true"),
];

#[test]
fn each_user_sees_and_changes_only_their_own_chats() {
    with_retries(|| {
        // The default password in SillyTavern's configuration.
        let browser = json!({ "httpCredentials": { "username": "user", "password": "password" } });
        let setup = Setup { server: SERVER, browser: browser.clone() };
        let Some(mut session) =
            Session::open_with("extension-several-users", "1.19.0", &setup, |_| {})
        else {
            return;
        };
        let made = session.writer.evaluate(
            "fetch('/api/users/create', { method: 'POST', headers: SillyTavern.getContext().getRequestHeaders(), \
             body: JSON.stringify({ handle: 'alice', name: 'Alice', password: 'tide' }) }).then((made) => made.status)",
        );
        assert_eq!(made, 200);
        let library = session.sandbox.folder().join("alice");
        let all = session.sandbox.folder().to_str().unwrap().to_owned();
        session.stvc(&["--data", &all, "extension", "install", "--all-users"]).exits(0);
        for user in ["default-user", "alice"] {
            assert!(session.sandbox.folder().join(user).join("extensions/stvc/index.js").exists());
        }
        let watching = session.watch_with(&["--data", &all, "--all-users"]);

        session.open_page();
        session.writer.character("Mira Voss", "The tide is low.");
        session.connect_model();
        session.writer.say("My secret is a lantern.");
        // Alice uses another browser at the same time.
        let mut alice = session.new_browser(&browser);
        alice.login(&session.url(), "Alice", "tide");
        alice.character("Wren", "Cold, cold, cold.");
        alice.connect_model(&session.model.url());
        alice.say("My secret is a bell.");

        let (mine, hers) =
            (session.writer.run_command("/stvc-snapshot"), alice.run_command("/stvc-snapshot"));
        assert_eq!((mine.len(), hers.len()), (40, 40), "{mine} {hers}");
        for (writer, own, other, others) in [
            (&mut session.writer, "lantern", "bell", &hers),
            (&mut alice, "bell", "lantern", &mine),
        ] {
            let found = writer.run_command("/stvc-search secret");
            assert!(found.contains(own) && !found.contains(other), "{found}");
            writer.wait_until(
                "document.getElementById('stvc_badge').textContent.startsWith('snapshot')",
            );
            let timelines = writer.evaluate("stvc.state().then((status) => status.state)");
            let character = if own == "bell" { "Mira Voss" } else { "Wren" };
            assert!(!timelines.as_str().unwrap().contains(character), "{timelines}");
            // The id of the other user's snapshot is unknown to this user.
            writer.take_warnings();
            assert_eq!(writer.run_command(&format!("/stvc-restore {others}")), "");
            let warnings = writer.take_warnings();
            assert!(warnings.iter().any(|line| line.contains(&others[..10])), "{warnings:?}");
        }
        // A change of one user does not affect the other.
        let before = session.chats_and_lorebooks();
        assert_eq!(alice.run_command("/stvc-fork at=1 Elsewhere"), "Elsewhere");
        alice.settle();
        assert!(library.join("chats/Wren/Elsewhere.jsonl").exists());
        assert_eq!(session.chats_and_lorebooks(), before);
        let operations = |user: &str| {
            let answer = session.json(&["--data", &all, "--user", user, "operations"]).exits(0);
            answer
                .of_type("operation")
                .iter()
                .any(|line| line["command"].to_string().contains("restore"))
        };
        assert!(operations("alice") && !operations("default-user"));

        // Without the password, the status is not served.
        assert!(session.path("user/files/stvc-status.json").exists());
        let answer = first_line(&session.url(), "/user/files/stvc-status.json");
        assert!(answer.contains(" 401 "), "{answer}");
        watching.stop();
    });
}

/// Returns the first line of the answer to a request without authentication.
fn first_line(url: &str, path: &str) -> String {
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}
