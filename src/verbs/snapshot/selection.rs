//! Determines the timelines that a command applies to.

use std::collections::BTreeSet;

use super::options::Subject;
use crate::engine::cache::Cache;
use crate::engine::changed_timelines::{self, Branches};
use crate::engine::{Include, files};
use crate::history::{self, History, name_lookup};
use crate::st::{Library, Scan, TimelineName};
use crate::store::{self, Store};
use crate::verbs::{Error, Result};

pub(super) fn timelines(
    subject: &Subject,
    library: &Library,
    scan: &Scan,
    store: Option<&Store>,
) -> Result<Vec<TimelineName>> {
    let names = if subject.is_named() {
        named(subject, library, scan, store)?
    } else {
        let mut names = Include::of(store).timelines(scan);
        if let Subject::Changed { only } = subject {
            names.retain(|name| only.is_empty() || only.contains(&name.category()));
        }
        names
    };
    match subject.needs_one() {
        Some(option) if names.len() != 1 => Err(Error::NeedsOneTimeline { option }),
        _ => Ok(names),
    }
}

fn named(
    subject: &Subject,
    library: &Library,
    scan: &Scan,
    store: Option<&Store>,
) -> Result<Vec<TimelineName>> {
    let here: BTreeSet<_> = scan.all().cloned().collect();
    let history = || Ok(store.map(History::load).transpose()?.map(Box::new));
    let mut names = Vec::new();
    for text in subject.names() {
        let name = match name_lookup::timeline(text, Some(library), &here, history) {
            // The store may have a timeline whose file is missing. That case is another error.
            Err(unknown @ history::Error::NoSuchTimeline { .. }) => match store {
                Some(store) => {
                    let stored =
                        history::heads(store)?.into_iter().map(|head| head.timeline).collect();
                    name_lookup::timeline(text, Some(library), &stored, history)?
                }
                None => return Err(unknown.into()),
            },
            other => other?,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Returns the named timelines. If no timeline is named, returns the timelines whose files were
/// written after their latest snapshot.
pub(super) fn touched<'n>(
    subject: &Subject,
    library: &Library,
    scan: &Scan,
    names: &'n [TimelineName],
    store: Option<&Store>,
) -> Result<Vec<&'n TimelineName>> {
    let Some(store) = store.filter(|_| !subject.is_named()) else {
        return Ok(names.iter().collect());
    };
    let (branches, cache) = (Branches::read(store)?, Cache::load(store));
    Ok(changed_timelines::touched(store, library, &scan.groups, names, &branches, &cache)?)
}

/// Checks that a timeline's file has the content that SillyTavern's page has in memory.
pub(super) fn must_be_saved(
    subject: &Subject,
    library: &Library,
    names: &[TimelineName],
) -> Result<()> {
    let (Some(expected), Some(name)) = (subject.holds(), names.first()) else { return Ok(()) };
    let there = files::read(library.root(), &name.file())?;
    let id = there.map(|bytes| store::hash(store::Kind::Blob, &bytes)).transpose()?;
    if id.map(|id| id.to_string()).as_deref() == Some(expected) {
        Ok(())
    } else {
        Err(Error::NotSaved { path: name.file().to_string() })
    }
}
