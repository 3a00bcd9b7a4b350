//! Limits the rate of requests.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::api::{Refusal, Rights};

const SPAN: Duration = Duration::from_secs(60);
const REQUESTS: usize = 1200;
const CHANGES: usize = 60;

#[derive(Default)]
pub struct Limits {
    requests: VecDeque<Instant>,
    changes: VecDeque<Instant>,
}

impl Limits {
    pub fn admit(&mut self, needs: Rights) -> Result<(), Refusal> {
        let now = Instant::now();
        admit(&mut self.requests, now, REQUESTS)?;
        match needs {
            Rights::Read => Ok(()),
            Rights::Change => admit(&mut self.changes, now, CHANGES),
        }
    }
}

fn admit(seen: &mut VecDeque<Instant>, now: Instant, most: usize) -> Result<(), Refusal> {
    while seen.front().is_some_and(|first| now.duration_since(*first) >= SPAN) {
        seen.pop_front();
    }
    if seen.len() >= most {
        return Err(Refusal::TooMany { most });
    }
    seen.push_back(now);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_requests_have_a_separate_limit() {
        let mut limits = Limits::default();
        for _ in 0..CHANGES {
            assert!(limits.admit(Rights::Change).is_ok());
        }
        assert!(limits.admit(Rights::Change).is_err());
        assert!(limits.admit(Rights::Read).is_ok());
        (0..REQUESTS).for_each(|_| drop(limits.admit(Rights::Read)));
        assert!(limits.admit(Rights::Read).is_err());
    }
}
