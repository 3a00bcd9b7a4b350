//! The extension speaks with nobody but SillyTavern, and the model is told the same with and without it.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::model::Model;
use crate::stage::{LANTERN, Stage, again};

/// What the extension's own code may ask of SillyTavern: its file API, what a lorebook is on the disk, and its own files.
fn is_allowed(method: &str, path: &str) -> bool {
    let of_it = "/scripts/extensions/third-party/stvc/";
    match method {
        "POST" => ["/api/files/upload", "/api/files/delete", "/api/worldinfo/get"].contains(&path),
        // Modules of SillyTavern's that it imports are there already; one that is not is a file like any other.
        "GET" => {
            path.starts_with("/user/files/stvc-")
                || path.starts_with(of_it)
                || path.starts_with("/scripts/")
        }
        _ => false,
    }
}

/// Method and path of each request, by whether it went to this server.
fn asked(traffic: &[Value], url: &str) -> (BTreeSet<(String, String)>, BTreeSet<String>) {
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

/// The same story, typed; in the middle of it, `meanwhile`.
fn story(stage: &mut Stage, meanwhile: impl Fn(&mut Stage)) {
    stage.writer.character("Mira Voss", "The tide is low.");
    stage.connect();
    stage.bind_book("Tide Office");
    stage.writer.say("I see a lantern.");
    meanwhile(stage);
    stage.writer.say("The ferry comes.");
    stage.writer.swipe();
    stage.writer.edit(1, "I see a lantern and hear a bell.");
    meanwhile(stage);
    stage.writer.say("Good night.");
    stage.writer.settle();
}

#[test]
fn prompts_are_the_same_with_and_without_it() {
    again(|| {
        let Some(mut stage) = Stage::open("extension-prompts", "1.19.0") else { return };
        let url = stage.url();
        stage.writer.traffic();
        stage.come_in();
        story(&mut stage, |_| {});
        let without = stage.model.bodies();
        let (here_without, elsewhere_without) = asked(&stage.writer.traffic(), &url);
        assert!(without.len() >= 4, "{}", without.len());
        assert!(String::from_utf8_lossy(&without[1]).contains(LANTERN));

        // Once more from the beginning.
        stage.writer.leave();
        for folder in ["chats/Mira Voss", "worlds", "characters", "thumbnails/avatar"] {
            fs::remove_dir_all(stage.path(folder)).unwrap();
            fs::create_dir(stage.path(folder)).unwrap();
        }
        stage.model = Model::start();
        stage.stvc(&["extension", "install"]).exits(0);
        let watching = stage.watch();
        stage.writer.traffic();
        stage.come_in();
        let tag = std::cell::Cell::new(0);
        story(&mut stage, |stage| {
            assert_eq!(stage.writer.pipe("/stvc-snapshot").len(), 40);
            tag.set(tag.get() + 1);
            let name = format!("moment {}", tag.get());
            assert_eq!(stage.writer.pipe(&format!("/stvc-tag {name}")), name);
        });
        assert_eq!(tag.get(), 2);
        let with = stage.model.bodies();
        let readable = |bodies: &[Vec<u8>]| -> Vec<String> {
            bodies.iter().map(|body| String::from_utf8_lossy(body).into_owned()).collect()
        };
        assert_eq!(readable(&with), readable(&without));
        assert_eq!(with, without);

        // The viewer, too.
        stage.writer.evaluate("document.querySelectorAll('#stvc_wand .stvc-entry')[1].click()");
        stage.writer.until("document.querySelector('iframe.stvc-viewer')?.contentDocument?.querySelector('svg .lane')");
        stage.writer.click("dialog.popup[open] .popup-button-ok");
        let traffic = stage.writer.traffic();
        let (here, elsewhere) = asked(&traffic, &url);
        let own: Vec<_> = traffic.iter().filter(|one| one["own"] == true).cloned().collect();
        let (own_here, own_elsewhere) = asked(&own, &url);
        assert_eq!(own_elsewhere, BTreeSet::new());
        assert!(elsewhere.is_subset(&elsewhere_without), "{elsewhere:?}");
        for (method, path) in &own_here {
            assert!(is_allowed(method, path), "{method} {path}");
        }
        for wanted in ["/api/files/upload", "/api/files/delete", "/api/worldinfo/get"] {
            assert!(own_here.contains(&("POST".into(), wanted.into())), "{own_here:?}");
        }
        // Nor does SillyTavern ask for more on its account than it does anyway.
        let more = here.difference(&here_without);
        let more: Vec<_> = more.filter(|(method, path)| !is_allowed(method, path)).collect();
        assert!(more.is_empty(), "{more:?}");
        watching.stop();
    });
}
