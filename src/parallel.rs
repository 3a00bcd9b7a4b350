//! Work on many items with all cores, where it pays. Where the system gives no thread, because memory or processes are short, the work is done here.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{Builder, available_parallelism, scope};

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
            let worker = move || {
                let mut own = items.iter().skip(first).step_by(workers);
                // Until nobody listens, since one could not be taken.
                let _ = own.try_for_each(|item| done.send(work(item)));
            };
            Builder::new().spawn_scoped(scope, worker).ok().map(|_| line)
        };
        let lines: Vec<Option<Receiver<R>>> = (0..workers).map(begin).collect();
        for (item, line) in items.iter().zip(lines.iter().cycle()) {
            match line {
                None => take(item, work(item))?,
                Some(line) => match line.recv() {
                    Ok(result) => take(item, result)?,
                    // It panicked, and the scope says so.
                    Err(_) => break,
                },
            }
        }
        Ok(())
    })
}

/// Do each of these jobs at the same time as the others, by as many threads as there are jobs, this one among them; results in order.
pub fn each<J: Send, R: Send>(jobs: Vec<J>, work: impl Fn(J) -> R + Sync) -> Vec<R> {
    let helpers = jobs.len().saturating_sub(1);
    let queue = Mutex::new(jobs.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take_part = || {
        let mut done = Vec::new();
        while let Some((n, job)) = next() {
            done.push((n, work(job)));
        }
        done
    };
    let mut done = scope(|scope| {
        let begin = |_| Builder::new().spawn_scoped(scope, take_part).ok();
        let workers: Vec<_> = (0..helpers).map_while(begin).collect();
        let mut done = take_part();
        for worker in workers {
            done.extend(worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Do two things at the same time.
pub fn both<A, B: Send>(here: impl FnOnce() -> A, there: impl FnOnce() -> B + Send) -> (A, B) {
    let there = Mutex::new(Some(there));
    let take = || there.lock().unwrap_or_else(PoisonError::into_inner).take();
    scope(|scope| {
        let worker = Builder::new().spawn_scoped(scope, || take().map(|there| there()));
        let here = here();
        let done = match worker {
            Ok(worker) => worker.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => take().map(|there| there()),
        };
        // One of them did it, or panicked.
        (here, done.unwrap_or_else(|| resume_unwind(Box::new("the second thing was not done"))))
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
