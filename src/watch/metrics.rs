//! Numbers about the watch for monitoring, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::pool::QueueLength;

/// The numbers of a watch.
#[derive(Default)]
pub struct Metrics {
    users: Mutex<BTreeMap<String, Arc<UserGauges>>>,
    pub(super) queue: QueueLength,
}

/// The numbers of one user. A time is in seconds since 1970, and 0 if it is unknown.
#[derive(Default)]
pub(super) struct UserGauges {
    pub(super) is_watched: AtomicBool,
    pub(super) is_failing: AtomicBool,
    pub(super) is_over_limit: AtomicBool,
    pub(super) snapshots: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) store_bytes: AtomicU64,
    pub(super) last_snapshot: AtomicI64,
    pub(super) last_backup: AtomicI64,
}

impl UserGauges {
    pub(super) fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether the user needs attention: is not watched, or the last step failed.
    fn needs_attention(&self) -> bool {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        !is(&self.is_watched) || is(&self.is_failing) || is(&self.is_over_limit)
    }
}

impl Metrics {
    pub(super) fn of_user(&self, name: String) -> Arc<UserGauges> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(users.entry(name).or_default())
    }

    /// Returns all numbers in the text format of Prometheus.
    pub fn to_prometheus(&self) -> String {
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let labels: Vec<_> = users.keys().map(|name| escape(name)).collect();
        let mut text = String::new();
        let mut one = |name: &str, help: &str, value: usize| {
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n");
        };
        let flag = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let many = |fits: &dyn Fn(&UserGauges) -> bool| {
            users.values().filter(|gauges| fits(gauges)).count()
        };
        one("stvc_users", "Number of users.", users.len());
        let watched = many(&|gauges| flag(&gauges.is_watched));
        one("stvc_users_watched", "Number of users whose library is watched.", watched);
        let failing = many(&UserGauges::needs_attention);
        one(
            "stvc_users_failing",
            "Number of users who are not watched, whose last scan failed, or whose store is over its limit.",
            failing,
        );
        one("stvc_queue_length", "Number of steps that wait for a worker.", self.queue.get());
        for family in FAMILIES {
            let Family { name, kind, help, .. } = family;
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
            for (label, gauges) in labels.iter().zip(users.values()) {
                if let Some(value) = (family.value)(gauges) {
                    let _ = writeln!(text, "{name}{{user=\"{label}\"}} {value}");
                }
            }
        }
        text
    }
}

/// A metric with one value per user.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&UserGauges) -> Option<u64>,
}

const FAMILIES: &[Family] = &[
    Family {
        name: "stvc_user_watched",
        kind: "gauge",
        help: "Whether the user's library is watched.",
        value: |gauges| Some(gauges.is_watched.load(Ordering::Relaxed).into()),
    },
    Family {
        name: "stvc_user_failing",
        kind: "gauge",
        help: "Whether the user counts in stvc_users_failing.",
        value: |gauges| Some(gauges.needs_attention().into()),
    },
    Family {
        name: "stvc_store_over_limit",
        kind: "gauge",
        help: "Whether the store gets no snapshots because it is over its limit.",
        value: |gauges| Some(gauges.is_over_limit.load(Ordering::Relaxed).into()),
    },
    Family {
        name: "stvc_snapshots_total",
        kind: "counter",
        help: "Number of snapshots that this watch created.",
        value: |gauges| Some(gauges.snapshots.load(Ordering::Relaxed)),
    },
    Family {
        name: "stvc_failures_total",
        kind: "counter",
        help: "Number of scans, files, backups and syncs that failed.",
        value: |gauges| Some(gauges.failures.load(Ordering::Relaxed)),
    },
    Family {
        name: "stvc_store_bytes",
        kind: "gauge",
        help: "Size of the store without its reserve.",
        value: |gauges| Some(gauges.store_bytes.load(Ordering::Relaxed)).filter(|n| *n > 0),
    },
    Family {
        name: "stvc_last_snapshot_timestamp_seconds",
        kind: "gauge",
        help: "Time of the latest snapshot, in seconds since 1970.",
        value: |gauges| time(&gauges.last_snapshot),
    },
    Family {
        name: "stvc_last_backup_timestamp_seconds",
        kind: "gauge",
        help: "Time of the last complete backup, in seconds since 1970.",
        value: |gauges| time(&gauges.last_backup),
    },
];

fn time(seconds: &AtomicI64) -> Option<u64> {
    u64::try_from(seconds.load(Ordering::Relaxed)).ok().filter(|seconds| *seconds > 0)
}

/// Escapes the value of a label.
fn escape(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_unknown_times_are_left_out() {
        let metrics = Metrics::default();
        let gauges = metrics.of_user("a\"b\\c\nd".to_owned());
        gauges.snapshots.store(3, Ordering::Relaxed);
        let text = metrics.to_prometheus();
        assert!(text.contains("\nstvc_snapshots_total{user=\"a\\\"b\\\\c\\nd\"} 3\n"), "{text}");
        assert!(text.contains("\nstvc_users_failing 1\n"), "{text}");
        assert!(!text.contains("stvc_last_backup_timestamp_seconds{"), "{text}");
        gauges.last_backup.store(7, Ordering::Relaxed);
        gauges.is_watched.store(true, Ordering::Relaxed);
        let text = metrics.to_prometheus();
        assert!(text.contains("stvc_last_backup_timestamp_seconds{user="), "{text}");
        assert!(text.contains("\nstvc_users_failing 0\n"), "{text}");
    }
}
