//! What would be taken, without taking it.

use super::checkpoint::Checkpoints;
use super::gate;
use super::options::{Options, Report, cut};
use crate::engine::Workspace;
use crate::engine::cache::Cache;
use crate::engine::changed_timelines::{self, Look};
use crate::engine::take_snapshots::{How, Taken, TakenTimeline, Taking};
use crate::progress::{Monitor, Silent};
use crate::rules;
use crate::st::{Library, Scan, TimelineName};
use crate::store::Store;
use crate::verbs::Result;

pub(super) fn plan(
    store: Option<&Store>,
    library: &Library,
    scan: &Scan,
    names: &[TimelineName],
    options: &Options,
    mut report: Report,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    // A checkpoint at a message needs the files, changed or not.
    let mut cache = store.filter(|_| !options.is_on_purpose()).map(Cache::load);
    monitor.begin("looking at timelines", Some(names.len() as u64));
    for name in names {
        let result = match changed_timelines::look(store, library, &scan.groups, name, &mut cache) {
            Err(error) => Taken::Failed(error.to_string()),
            Ok(Look { unchanged: true, head: Some(head), captured: Some(captured), .. })
                if options.at.is_none() && options.is_on_purpose() =>
            {
                match gate::judge(options, &captured, None).refused {
                    refused if refused.is_empty() => Taken::Unchanged(Box::new(head), Vec::new()),
                    refused => Taken::Refused(refused),
                }
            }
            Ok(look) => match (look.unchanged && options.at.is_none(), look.head, look.captured) {
                (true, Some(head), _) => Taken::Unchanged(Box::new(head), Vec::new()),
                (_, head, Some(captured)) => {
                    let judgement = gate::judge(options, &captured, options.at);
                    report.findings.extend(judgement.warnings);
                    let chat = captured.files.split();
                    report.findings.extend(rules::of_files(&captured.files, &chat, rules::ALL));
                    let messages = match options.at {
                        Some(at) => cut(&captured.files, at)?.split().message_count() as u64,
                        None => chat.message_count() as u64,
                    };
                    match judgement.refused.is_empty() {
                        true => Taken::WouldBeNew(messages, head.map(|head| head.messages)),
                        false => Taken::Refused(judgement.refused),
                    }
                }
                (_, _, None) => Taken::Failed("its files were not read".into()),
            },
        };
        report.timelines.push(TakenTimeline { timeline: name.to_string(), result });
        monitor.advance(1);
    }
    Ok(report)
}

/// The checkpoints of scenes that would be taken: they are made, and then not kept.
pub(super) fn plan_scenes(
    workspace: &Workspace,
    existing: Option<Store>,
    library: &Library,
    scan: &Scan,
    names: &[TimelineName],
    options: &Options,
    mut report: Report,
) -> Result<Report> {
    let (_folder, elsewhere) = workspace.with_store_for_now()?;
    let store = match existing {
        Some(store) => store,
        None => Store::create(&elsewhere.store_path()?)?,
    };
    let taking = Taking::new(workspace, &store, library, scan, How::as_it_is());
    let mut checkpoints = Checkpoints { taking, options };
    checkpoints.take_scenes(names, &mut Silent)?;
    let Taking { outcomes, findings, .. } = checkpoints.taking;
    report.timelines.extend(outcomes);
    report.findings.extend(findings);
    for outcome in &mut report.timelines {
        if let Taken::New(snapshot, _) = &outcome.result {
            outcome.result = Taken::WouldBeNew(snapshot.messages, None);
        }
    }
    Ok(report)
}
