//! Limits the number of requests, for servers that block clients that send too many.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// At most this many requests within a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The maximum number of requests in `within`.
    pub requests: u32,
    /// The length of the time to which the limit applies.
    pub within: Duration,
}

impl Limit {
    /// Returns the limit of a server that is known to have one.
    pub fn of_host(host: &str) -> Option<Self> {
        // 坚果云 allows 600 requests in half an hour on its free plan. The rest is for other devices
        // and programs of the same account.
        let is_nutstore = host == "jianguoyun.com" || host.ends_with(".jianguoyun.com");
        is_nutstore.then_some(Self { requests: 400, within: Duration::from_secs(30 * 60) })
    }
}

/// Delays requests so that no limit is exceeded. Half of the limit may be used at once, so that a
/// short command is not delayed; further requests are spread evenly. A process with many requests
/// never waits for the whole time at once.
pub struct RequestRate {
    limit: Option<Limit>,
    state: Mutex<State>,
}

struct State {
    /// Requests that may be sent now.
    available: f64,
    since: Instant,
    /// The server asked not to be sent requests before this time.
    blocked_until: Option<Instant>,
}

impl RequestRate {
    pub fn new(limit: Option<Limit>) -> Self {
        let available = limit.map_or(0.0, |limit| f64::from(limit.requests) / 2.0);
        let state = State { available, since: Instant::now(), blocked_until: None };
        Self { limit, state: Mutex::new(state) }
    }

    /// Reserves a request, and returns the time to wait before it is sent.
    pub fn reserve(&self, now: Instant) -> Duration {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let blocked = state.blocked_until.map_or(Duration::ZERO, |until| until - now.min(until));
        let Some(limit) = self.limit else { return blocked };
        let half = f64::from(limit.requests) / 2.0;
        let per_second = half / limit.within.as_secs_f64();
        let passed = now.saturating_duration_since(state.since).as_secs_f64();
        state.available = (state.available + passed * per_second).min(half) - 1.0;
        state.since = now;
        let own = Duration::from_secs_f64((-state.available).max(0.0) / per_second);
        own.max(blocked)
    }

    /// Sends nothing for some time, because the server asked for it.
    pub fn block(&self, now: Instant, time: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let until = now + time;
        state.blocked_until = Some(state.blocked_until.map_or(until, |before| before.max(until)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_kept_in_every_half_hour() {
        let limit = Limit::of_host("dav.jianguoyun.com").unwrap();
        let rate = RequestRate::new(Some(limit));
        let begin = Instant::now();
        let mut now = begin;
        let mut sent = Vec::new();
        for _ in 0..2000 {
            now += rate.reserve(now);
            sent.push(now - begin);
        }
        let most = sent.iter().map(|from| {
            let within = |time: &&Duration| *time >= from && **time < *from + limit.within;
            sent.iter().filter(within).count()
        });
        assert!(most.max().unwrap() <= limit.requests as usize);
        assert!(sent[150] < Duration::from_secs(1), "a short command is not delayed");
        let longest = sent.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(longest < Duration::from_secs(10), "{longest:?}");
        assert_eq!(Limit::of_host("example.com"), None);
    }

    #[test]
    fn requests_wait_as_long_as_the_server_asks() {
        let rate = RequestRate::new(None);
        let now = Instant::now();
        assert_eq!(rate.reserve(now), Duration::ZERO);
        rate.block(now, Duration::from_secs(7));
        rate.block(now, Duration::from_secs(3));
        assert_eq!(rate.reserve(now), Duration::from_secs(7));
        assert_eq!(rate.reserve(now + Duration::from_secs(8)), Duration::ZERO);
    }
}
