//! Fuzz targets for names and dates. Each function panics if its invariant is violated;
//! `src/fuzzing` lists the targets.

#![allow(clippy::expect_used, reason = "a fuzz target fails loudly")]

use std::cell::OnceCell;

use chrono::{DateTime, Datelike, FixedOffset, TimeDelta};
use tempfile::TempDir;

use super::moment::{Names, Step, words};
use super::retention::parse_span;
use super::{Error, LoadedHistory, dates};
use crate::fuzz_equipment::{copy_folder, fixture};
use crate::st::{Raw, send_millis};
use crate::store::Store;

fn now() -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339("2026-11-15T18:30:00+01:00").expect("a time")
}

/// Returns whether a time can be written in RFC 3339.
fn can_be_written(time: DateTime<FixedOffset>) -> bool {
    (0..=9999).contains(&time.year()) && time.offset().local_minus_utc() % 60 == 0
}

/// Checks that a parsed date can be written and parsed again, and that the end of a day is in that
/// day.
pub(crate) fn date(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(time) = dates::parse(text, now()) {
        assert_eq!(dates::parse(&format!(" {text}\n"), now()), Ok(time));
        let end = dates::parse_end(text, now()).expect("what is a date has an end");
        assert!(end >= time && end - time < TimeDelta::days(1));
        if can_be_written(time) {
            let written = time.to_rfc3339();
            assert_eq!(dates::parse(&written, now()), Ok(time));
            assert_eq!(dates::parse_end(&written, now()), Ok(time));
        }
    } else {
        assert!(dates::parse_end(text, now()).is_err());
    }
    if let Ok(span) = parse_span(text) {
        let written = format!("{}ms", span.as_millis());
        if let Ok(again) = parse_span(&written) {
            assert_eq!(again, span);
        }
    }
    let quoted = serde_json::to_string(text).expect("a text can be quoted");
    let quoted = Raw::parse_str(&quoted).expect("a quoted text is JSON");
    if let Some(millis) = send_millis(quoted)
        && let Some(time) = DateTime::from_timestamp_millis(millis)
        && can_be_written(time.fixed_offset())
    {
        let written = format!("\"{}\"", time.to_rfc3339());
        assert_eq!(send_millis(Raw::parse_str(&written).expect("JSON")), Some(millis));
    }
    if let Some(raw) = Raw::parse(data) {
        send_millis(raw);
    }
}

thread_local! {
    static STORE: OnceCell<(TempDir, Store, LoadedHistory)> = const { OnceCell::new() };
}

/// Checks that parsed steps can be written and parsed again, that the id of a moment names the
/// moment, and that an error points into the text.
pub(crate) fn moment(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    for (name, rest) in words::splits(text).take(100) {
        assert!(!name.is_empty());
        assert_eq!([name, rest].concat(), text);
    }
    match words::steps(text, now()) {
        Err(stop) => assert!(text.is_char_boundary(stop.at), "{stop:?}"),
        Ok(steps) => {
            if let Some(written) = write(&steps) {
                assert_eq!(words::steps(&written, now()), Ok(steps), "{written}");
            }
        }
    }
    if let Some(pinned) = words::pinned(text) {
        let message = pinned.message.map(|message| format!(":{message}")).unwrap_or_default();
        let written = format!("{}+{}{message}", pinned.snapshot, pinned.book);
        assert_eq!(words::pinned(&written), Some(pinned));
    }
    STORE.with(|made| {
        let (_, store, loaded) = made.get_or_init(|| {
            let folder = tempfile::tempdir().expect("a folder can be made");
            let path = folder.path().join("store");
            copy_folder(&fixture("store-1"), &path);
            let store = Store::open(&path).expect("the store can be opened");
            (folder, store, LoadedHistory::default())
        });
        let names = Names { store, library: None, now: now(), loaded };
        match names.moment(text) {
            Ok(moment) => {
                let id = moment.id();
                let again = names.moment(&id).expect("the id of a moment names it");
                assert_eq!(again.id(), id);
                assert_eq!(again.snapshot.id, moment.snapshot.id);
                assert_eq!(again.timeline, moment.timeline);
            }
            Err(Error::Unreadable { at, .. }) => assert!(text.is_char_boundary(at)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}

/// Returns steps as a user would type them; `None` if a time cannot be written.
fn write(steps: &[Step]) -> Option<String> {
    let step = |step: &Step| match step {
        Step::Back(steps) => Some(format!("~{steps}")),
        Step::Then(time) => can_be_written(*time).then(|| format!("@{{{}}}", time.to_rfc3339())),
        Step::Message(message) => Some(format!(":{message}")),
    };
    steps.iter().map(step).collect()
}
