//! Watches libraries and creates a snapshot after every save.
//!
//! A file event only triggers a scan, which detects changes in the same way as `stvc snapshot`.
//! Each library is also scanned at intervals, so that lost or unsupported events delay a snapshot
//! but never prevent it.
//!
//! The watch of one library is a state machine (`library_watch`). A fixed number of threads
//! (`pool`) runs those of all users, so that a host with thousands of users needs as many threads
//! as one user.

mod bell;
mod companion;
mod context;
mod error;
mod file_events;
mod front_end;
mod library_watch;
mod look;
mod metrics;
mod new_users;
mod pool;
mod save_finished;
mod scan_state;
mod scheduled_job;
mod service_manager;
mod single_watcher;
mod task_scheduler;
mod user_task;

pub mod install;

use std::collections::HashSet;
use std::sync::PoisonError;

pub use bell::{Listener, Waker, waker};
pub use error::{Error, Result};
pub use front_end::{Companion, Event, FrontEnd, Options, Summary, Users, WatchedUser};
pub use metrics::Metrics;
pub use service_manager::{Host, ServiceManager};
pub use single_watcher::{is_running, started};

use context::Context;
use new_users::NewUsers;
use pool::NewTask;

/// Watches until [`Waker::stop`] is called. `metrics` receives the numbers of the watch.
pub fn watch(
    users: Users,
    options: &Options,
    (waker, listener): (&Waker, &Listener),
    metrics: &Metrics,
    front: &dyn FrontEnd,
) -> Result<Summary> {
    let (users, is_host) = match users {
        Users::One(workspace) => (vec![WatchedUser { name: String::new(), workspace }], false),
        Users::All(users) => (users, true),
    };
    allow_open_files();
    let options = options.within_reason();
    let context = Context::new(front, options, waker.clone(), metrics, is_host);
    let mut known = HashSet::new();
    let mut enrol = |users: Vec<WatchedUser>| -> Vec<NewTask<'_>> {
        let new = users.into_iter().filter(|user| known.insert(user.name.clone()));
        new.flat_map(|user| user_task::tasks(&context, user)).collect()
    };
    let mut tasks = enrol(users);
    if is_host {
        tasks.push((context.new_bell(), Box::new(NewUsers::new(&context))));
    }
    pool::run(tasks, &mut enrol, (waker, listener), &metrics.queue);
    let failure = context.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    let summary = *context.summary.lock().unwrap_or_else(PoisonError::into_inner);
    failure.map_or(Ok(summary), Err)
}

/// Raises the limit of open files as far as the system allows: the lock of each user is an open
/// file.
#[cfg(unix)]
fn allow_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it fails, users beyond the limit cannot be watched, which is reported.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(not(unix))]
fn allow_open_files() {}
