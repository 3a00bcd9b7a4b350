//! Work on many items with all cores, where it pays.

use std::sync::mpsc::sync_channel;
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

/// Apply `work` to each item, one after the other on each core, while `take` gets the results here, in order. Few of them wait at a time.
pub fn in_turn<'t, T: Sync, R: Send, E>(
    items: &'t [T],
    work: impl Fn(&'t T) -> R + Sync,
    mut take: impl FnMut(&'t T, R) -> Result<(), E>,
) -> Result<(), E> {
    let workers = cores().min(items.len());
    if workers < 2 {
        return items.iter().try_for_each(|item| take(item, work(item)));
    }
    let work = &work;
    scope(|scope| {
        let begin = |first| {
            let (done, line) = sync_channel(1);
            scope.spawn(move || {
                let mut own = items.iter().skip(first).step_by(workers);
                // Until nobody listens, since one could not be taken.
                own.try_for_each(|item| done.send(work(item)))
            });
            line
        };
        let lines: Vec<_> = (0..workers).map(begin).collect();
        let results = lines.iter().cycle().map_while(|line| line.recv().ok());
        items.iter().zip(results).try_for_each(|(item, result)| take(item, result))
    })
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

/// The same, one after the other where that is not worth a thread.
pub fn both_if<A, B: Send>(
    is_worth_it: bool,
    here: impl FnOnce() -> A,
    there: impl FnOnce() -> B + Send,
) -> (A, B) {
    if is_worth_it { both(here, there) } else { (here(), there()) }
}

/// How many cores there are for us. Asked once: on Linux the answer is read from several files.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, usize::from))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn what_is_taken_in_turn_comes_in_order_and_ends_with_the_first_error() {
        let items: Vec<usize> = (0..1000).collect();
        let begun = AtomicUsize::new(0);
        let work = |item: &usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            item * 2
        };
        for last in [1000, 30, 0] {
            begun.store(0, Ordering::Relaxed);
            let mut taken = Vec::new();
            let result = in_turn(&items, work, |item, twice| {
                if *item == last {
                    return Err(twice);
                }
                taken.push(twice);
                Ok(())
            });
            assert_eq!(result, if last < 1000 { Err(2 * last) } else { Ok(()) });
            assert!(taken.into_iter().eq(items.iter().take(last).map(|item| item * 2)));
            // One in hand and one that waits for each core.
            assert!(begun.load(Ordering::Relaxed) <= (last + 1 + 3 * cores()).min(1000));
        }
        let nothing: Result<(), ()> = in_turn(&[], work, |_, _| Err(()));
        assert_eq!(nothing, Ok(()));
    }
}
