//! Distributes work over all cores. If the system cannot start a thread, the calling thread does
//! its work.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{Builder, available_parallelism, scope};

/// Divides `items` into one slice per core, applies `work` to each slice, and returns the results
/// in order. Fewer than `least` items form one slice: starting a thread costs about as much as
/// hashing a hundred messages.
pub fn in_parts<'t, T: Sync, R: Send>(
    items: &'t [T],
    least: usize,
    work: impl Fn(&'t [T]) -> R + Sync,
) -> Vec<R> {
    let stretch = if items.len() < least { items.len() } else { items.len().div_ceil(cores()) };
    each(items.chunks(stretch.max(1)), work)
}

/// Applies `work` to the items on all cores. The calling thread passes the results to `take`, in
/// order. At most two results per core are in memory.
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
                // Sending fails after `take` has failed, because the receiver is dropped.
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
                    // The worker panicked. The scope propagates the panic.
                    Err(_) => break,
                },
            }
        }
        Ok(())
    })
}

/// Applies `work` to each job on the next free core, and returns the results in order.
pub fn each<J: Send, R: Send>(
    jobs: impl IntoIterator<Item = J, IntoIter: Send>,
    work: impl Fn(J) -> R + Sync,
) -> Vec<R> {
    let jobs = jobs.into_iter().enumerate();
    let helpers = match jobs.size_hint().1 {
        Some(0 | 1) => 0,
        most => most.map_or(cores(), |most| most.min(cores())) - 1,
    };
    let queue = Mutex::new(jobs);
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

pub fn both<A, B: Send>(here: impl FnOnce() -> A, there: impl FnOnce() -> B + Send) -> (A, B) {
    let there = Mutex::new(Some(there));
    let run = || there.lock().unwrap_or_else(PoisonError::into_inner).take().map(|there| there());
    scope(|scope| {
        let worker = Builder::new().spawn_scoped(scope, run);
        let here = here();
        let done = match worker {
            Ok(worker) => worker.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => run(),
        };
        // `run` was called exactly once, so `done` is `Some`.
        (here, done.unwrap_or_else(|| resume_unwind(Box::new("the second thing was not done"))))
    })
}

/// Returns the number of cores. The number is cached, because Linux reads several files to
/// determine it.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, usize::from))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn results_are_delivered_in_order_until_the_first_error() {
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
            // Each worker is ahead by at most one sent result and one that it waits to send.
            assert!(begun.load(Ordering::Relaxed) <= (last + 1 + 3 * cores()).min(1000));
        }
        let nothing: Result<(), ()> = in_turn(&[], work, |_, _| Err(()));
        assert_eq!(nothing, Ok(()));
    }
}
