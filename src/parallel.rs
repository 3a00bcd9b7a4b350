//! Work on many items with all cores, where it pays.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{available_parallelism, scope};

/// Apply `work` to stretches of `items`, one stretch a core; results in order. Fewer items than `least` are done here: a thread costs
/// about as much as hashing a hundred messages.
pub fn in_parts<'t, T: Sync, R: Send>(
    items: &'t [T],
    least: usize,
    work: impl Fn(&'t [T]) -> R + Sync,
) -> Vec<R> {
    let cores = cores();
    if items.is_empty() {
        return Vec::new();
    }
    if cores == 1 || items.len() < least {
        return vec![work(items)];
    }
    let parts = items.chunks(items.len().div_ceil(cores));
    each(parts.collect(), work)
}

/// Apply `work` to each item, by whichever core is free, until `begin` says of one that it has to wait, and so those after it; results in order.
pub fn as_many_as<'t, T: Sync, R: Send>(
    items: &'t [T],
    begin: impl FnMut(&'t T) -> bool + Send,
    work: impl Fn(&'t T) -> R + Sync,
) -> Vec<R> {
    let queue = Mutex::new((items.iter().enumerate(), begin));
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        let (items, begin) = &mut *queue;
        let next = items.next().filter(|(_, item)| begin(item));
        if next.is_none() {
            *items = [].iter().enumerate();
        }
        next
    };
    let take_part = |_| {
        let mut done = Vec::new();
        while let Some((n, item)) = next() {
            done.push((n, work(item)));
        }
        done
    };
    let workers = (0..cores().min(items.len())).collect();
    let mut done: Vec<_> = each(workers, take_part).into_iter().flatten().collect();
    done.sort_unstable_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Apply `work` to each item, by whichever core is free; results in order.
pub fn map<'t, T: Sync, R: Send>(items: &'t [T], work: impl Fn(&'t T) -> R + Sync) -> Vec<R> {
    as_many_as(items, |_| true, work)
}

/// Do each of these jobs at the same time as the others, the first one here; results in order.
pub fn each<J: Send, R: Send>(jobs: Vec<J>, work: impl Fn(J) -> R + Sync) -> Vec<R> {
    let work = &work;
    scope(|scope| {
        let mut jobs = jobs.into_iter();
        let here = jobs.next();
        let workers: Vec<_> = jobs.map(|job| scope.spawn(move || work(job))).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, R>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let first = here.map(work);
        first.into_iter().chain(workers.into_iter().map(join)).collect()
    })
}

/// Do two things at the same time.
pub fn both<A, B: Send>(here: impl FnOnce() -> A, there: impl FnOnce() -> B + Send) -> (A, B) {
    scope(|scope| {
        let there = scope.spawn(there);
        let here = here();
        (here, there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// How many cores there are for us. Asked once: on Linux the answer is read from several files.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, usize::from))
}
