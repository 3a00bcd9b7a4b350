//! The extension sends requests only to SillyTavern, and does not change prompts.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::model::Model;
use crate::session::{LANTERN, Session, with_retries};

/// Returns whether the extension's own code may send a request: to SillyTavern's file API, for a
/// lorebook, or for its own files.
fn is_allowed(method: &str, path: &str) -> bool {
    let own_files = "/scripts/extensions/third-party/stvc/";
    match method {
        "POST" => ["/api/files/upload", "/api/files/delete", "/api/worldinfo/get"].contains(&path),
        // Modules of SillyTavern that it imports may be loaded already.
        "GET" => {
            path.starts_with("/user/files/stvc-")
                || path.starts_with(own_files)
                || path.starts_with("/scripts/")
        }
        _ => false,
    }
}

/// Splits requests into those to this server, as method and path, and the addresses of all others.
fn split(traffic: &[Value], url: &str) -> (BTreeSet<(String, String)>, BTreeSet<String>) {
    let (mut here, mut elsewhere) = (BTreeSet::new(), BTreeSet::new());
    for one in traffic {
        let (method, to) = (one["method"].as_str().unwrap(), one["url"].as_str().unwrap());
        match to.strip_prefix(url) {
            Some(path) => {
                let path = path.split(['?', '#']).next().unwrap();
                here.insert((method.to_owned(), format!("/{path}")));
            }
            None => drop(elsewhere.insert(to.to_owned())),
        }
    }
    (here, elsewhere)
}

/// Types a story, and calls `meanwhile` twice in between.
fn story(session: &mut Session, meanwhile: impl Fn(&mut Session)) {
    session.writer.character("Mira Voss", "The tide is low.");
    session.connect_model();
    session.add_chat_lorebook("Tide Office");
    session.writer.say("I see a lantern.");
    meanwhile(session);
    session.writer.say("The ferry comes.");
    session.writer.swipe();
    session.writer.edit(1, "I see a lantern and hear a bell.");
    meanwhile(session);
    session.writer.say("Good night.");
    session.writer.settle();
}

#[test]
fn extension_changes_no_prompt_and_contacts_only_sillytavern() {
    with_retries(|| {
        let Some(mut session) = Session::open("extension-prompts", "1.19.0") else { return };
        let url = session.url();
        session.writer.take_requests();
        session.open_page();
        story(&mut session, |_| {});
        let without = session.model.bodies();
        let (here_without, elsewhere_without) = split(&session.writer.take_requests(), &url);
        assert!(without.len() >= 4, "{}", without.len());
        assert!(String::from_utf8_lossy(&without[1]).contains(LANTERN));

        // Repeat the story with the extension.
        session.writer.close_page();
        for folder in ["chats/Mira Voss", "worlds", "characters", "thumbnails/avatar"] {
            fs::remove_dir_all(session.path(folder)).unwrap();
            fs::create_dir(session.path(folder)).unwrap();
        }
        session.model = Model::start();
        session.stvc(&["extension", "install"]).exits(0);
        let watching = session.watch();
        session.writer.take_requests();
        session.open_page();
        let tag = std::cell::Cell::new(0);
        story(&mut session, |session| {
            assert_eq!(session.writer.run_command("/stvc-snapshot").len(), 40);
            tag.set(tag.get() + 1);
            let name = format!("moment {}", tag.get());
            assert_eq!(session.writer.run_command(&format!("/stvc-tag {name}")), name);
        });
        assert_eq!(tag.get(), 2);
        let with = session.model.bodies();
        let readable = |bodies: &[Vec<u8>]| -> Vec<String> {
            bodies.iter().map(|body| String::from_utf8_lossy(body).into_owned()).collect()
        };
        assert_eq!(readable(&with), readable(&without));
        assert_eq!(with, without);

        // The viewer sends no other requests either.
        session.writer.click_menu_entry(1);
        session.writer.wait_until("document.querySelector('iframe.stvc-viewer')?.contentDocument?.querySelector('svg .lane')");
        session.writer.click("dialog.popup[open] .popup-button-ok");
        let traffic = session.writer.take_requests();
        let (here, elsewhere) = split(&traffic, &url);
        let own: Vec<_> = traffic.iter().filter(|one| one["own"] == true).cloned().collect();
        let (own_here, own_elsewhere) = split(&own, &url);
        assert_eq!(own_elsewhere, BTreeSet::new());
        assert!(elsewhere.is_subset(&elsewhere_without), "{elsewhere:?}");
        for (method, path) in &own_here {
            assert!(is_allowed(method, path), "{method} {path}");
        }
        for wanted in ["/api/files/upload", "/api/files/delete", "/api/worldinfo/get"] {
            assert!(own_here.contains(&("POST".into(), wanted.into())), "{own_here:?}");
        }
        // SillyTavern itself sends the same requests as without the extension.
        let extra = here.difference(&here_without);
        let extra: Vec<_> = extra.filter(|(method, path)| !is_allowed(method, path)).collect();
        assert!(extra.is_empty(), "{extra:?}");
        watching.stop();
    });
}
