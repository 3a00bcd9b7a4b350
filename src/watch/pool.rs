//! Runs the tasks of all users on a fixed number of threads.
//!
//! One thread, the scheduler, knows when each task is due. A task that is due is appended to the
//! queue of its lane, and the next free worker of this lane runs it. So each task runs on one
//! worker at a time, and a task that is always due waits for all others before it runs again. A
//! lane has workers of its own, so that a long step in one lane never delays the steps of another.
//!
//! A panic ends one step. The task runs again later, and all other tasks continue.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

use super::bell::{Bell, Listener, Message, Reasons, TaskId, Waker};
use super::front_end::WatchedUser;
use crate::parallel::cores;

/// The time after which a task runs again whose step panicked.
const AFTER_PANIC: Duration = Duration::from_secs(60);

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Looks for saves and stores them.
    Save,
    /// Steps that are expected to take long.
    Long,
    /// Answers to a user who waits.
    Answer,
}

impl Lane {
    const ALL: [Self; 3] = [Self::Save, Self::Long, Self::Answer];

    fn workers(self) -> usize {
        match self {
            Self::Save => cores().max(2),
            Self::Long => 1,
            Self::Answer => 2,
        }
    }
}

/// Work that is repeated until the watch ends.
pub(super) trait Task: Send {
    /// Receives the reasons for which the task was woken. Never waits.
    fn hear(&mut self, why: Reasons, now: Instant);
    /// Returns the time of the next step and its lane. `None` if only a ring can wake the task.
    fn next_due(&self) -> Option<(Instant, Lane)>;
    fn step(&mut self);
    /// Reports that a step panicked.
    fn panicked(&mut self);
    /// Runs as the last step. Tasks with a lower number end before those with a higher number.
    fn end(&mut self);
    fn end_order(&self) -> u8;
}

type SharedTask<'a> = Arc<Mutex<Box<dyn Task + 'a>>>;

/// A task and the handle that wakes it.
pub(super) type NewTask<'a> = (Bell, Box<dyn Task + 'a>);

struct Slot<'a> {
    task: SharedTask<'a>,
    bell: Bell,
    is_busy: bool,
    /// Distinguishes the present due time from earlier ones, which stay in the heap.
    version: u64,
    not_before: Option<Instant>,
    end_order: u8,
}

struct Job<'a> {
    id: TaskId,
    task: SharedTask<'a>,
    is_last: bool,
}

/// The number of steps that are due and wait for a worker.
#[derive(Default)]
pub(super) struct QueueLength(AtomicUsize);

impl QueueLength {
    pub(super) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

struct Scheduler<'a> {
    slots: HashMap<TaskId, Slot<'a>>,
    heap: BinaryHeap<Reverse<(Instant, TaskId, u64)>>,
    lanes: Vec<(Lane, Sender<Job<'a>>)>,
    queue: &'a QueueLength,
}

/// Runs the tasks until [`Waker::stop`] is called. `enrol` returns the tasks of users that were
/// found later.
pub(super) fn run<'a>(
    tasks: Vec<NewTask<'a>>,
    enrol: &mut dyn FnMut(Vec<WatchedUser>) -> Vec<NewTask<'a>>,
    (waker, listener): (&Waker, &Listener),
    queue: &'a QueueLength,
) {
    std::thread::scope(|scope| {
        let lane = |lane| (lane, begin_workers(scope, lane, waker, queue));
        let lanes = Lane::ALL.into_iter().map(lane).collect();
        let mut scheduler =
            Scheduler { slots: HashMap::new(), heap: BinaryHeap::new(), lanes, queue };
        scheduler.add(tasks);
        scheduler.serve(&listener.0, enrol);
        scheduler.end(&listener.0);
    });
}

fn begin_workers<'s, 'a: 's>(
    scope: &'s Scope<'s, '_>,
    lane: Lane,
    waker: &Waker,
    queue: &'a QueueLength,
) -> Sender<Job<'a>> {
    let (sender, receiver) = channel();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..lane.workers() {
        let (receiver, waker) = (Arc::clone(&receiver), waker.clone());
        // If the system cannot start all threads, the others do the work.
        let _ = Builder::new()
            .name(format!("stvc {lane:?}").to_lowercase())
            .spawn_scoped(scope, move || work(&receiver, &waker, queue));
    }
    sender
}

fn work(jobs: &Mutex<Receiver<Job<'_>>>, waker: &Waker, queue: &QueueLength) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        // The scheduler has ended.
        let Ok(Job { id, task, is_last }) = job else { return };
        queue.0.fetch_sub(1, Ordering::Relaxed);
        let mut task = task.lock().unwrap_or_else(PoisonError::into_inner);
        let run = || if is_last { task.end() } else { task.step() };
        let panicked = catch_unwind(AssertUnwindSafe(run)).is_err();
        if panicked {
            let _ = catch_unwind(AssertUnwindSafe(|| task.panicked()));
        }
        drop(task);
        waker.send(Message::Done { task: id, panicked });
    }
}

impl<'a> Scheduler<'a> {
    fn add(&mut self, tasks: Vec<NewTask<'a>>) {
        for (bell, task) in tasks {
            let (id, end_order) = (bell.task, task.end_order());
            let task = Arc::new(Mutex::new(task));
            let slot = Slot { task, bell, is_busy: false, version: 0, not_before: None, end_order };
            self.slots.insert(id, slot);
            self.plan(id);
        }
    }

    fn serve(
        &mut self,
        messages: &Receiver<Message>,
        enrol: &mut dyn FnMut(Vec<WatchedUser>) -> Vec<NewTask<'a>>,
    ) {
        loop {
            let next = self.heap.peek().map(|Reverse((due, ..))| *due);
            let message = match next {
                Some(due) => messages.recv_timeout(due.saturating_duration_since(Instant::now())),
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Message::Rung(id)) => self.plan(id),
                Ok(Message::Done { task, panicked }) => self.done(task, panicked),
                Ok(Message::Found(users)) => self.add(enrol(users)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.queue_due(Instant::now());
        }
    }

    fn done(&mut self, id: TaskId, panicked: bool) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.is_busy = false;
        slot.not_before = panicked.then(|| Instant::now() + AFTER_PANIC);
        self.plan(id);
    }

    /// Passes the rings to a task that does not run, and asks when it is due.
    fn plan(&mut self, id: TaskId) {
        let Some(slot) = self.slots.get_mut(&id).filter(|slot| !slot.is_busy) else { return };
        let mut task = slot.task.lock().unwrap_or_else(PoisonError::into_inner);
        let why = slot.bell.take();
        if why != Reasons::default() {
            task.hear(why, Instant::now());
        }
        slot.version += 1;
        if let Some((due, _)) = task.next_due() {
            let due = slot.not_before.map_or(due, |earliest| due.max(earliest));
            self.heap.push(Reverse((due, id, slot.version)));
        }
    }

    fn queue_due(&mut self, now: Instant) {
        while let Some(Reverse((due, id, version))) = self.heap.peek().copied() {
            if due > now {
                return;
            }
            self.heap.pop();
            let slot = self.slots.get(&id);
            let Some(slot) = slot.filter(|slot| !slot.is_busy && slot.version == version) else {
                continue;
            };
            let task = slot.task.lock().unwrap_or_else(PoisonError::into_inner);
            let lane = task.next_due().map_or(Lane::Save, |(_, lane)| lane);
            drop(task);
            self.queue(id, lane, false);
        }
    }

    fn queue(&mut self, id: TaskId, lane: Lane, is_last: bool) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let task = Arc::clone(&slot.task);
        let Some((_, sender)) = self.lanes.iter().find(|(of, _)| *of == lane) else { return };
        self.queue.0.fetch_add(1, Ordering::Relaxed);
        slot.is_busy = sender.send(Job { id, task, is_last }).is_ok();
    }

    /// Waits for the running steps, and runs the last step of each task.
    fn end(mut self, messages: &Receiver<Message>) {
        let orders: BTreeSet<_> = self.slots.values().map(|slot| slot.end_order).collect();
        for order in orders {
            let of_order = self.slots.iter().filter(|(_, slot)| slot.end_order == order);
            let (mut running, mut to_end): (Vec<_>, Vec<_>) =
                of_order.map(|(id, slot)| (*id, slot.is_busy)).partition(|(_, is_busy)| *is_busy);
            to_end.sort_unstable();
            let mut open = to_end.len() + running.len();
            to_end.into_iter().for_each(|(id, _)| self.queue(id, Lane::Save, true));
            while open > 0 {
                let Ok(message) = messages.recv() else { return };
                let Message::Done { task, .. } = message else { continue };
                let Some(slot) = self.slots.get_mut(&task) else { continue };
                slot.is_busy = false;
                match running.iter().position(|(id, _)| *id == task) {
                    Some(at) => {
                        running.swap_remove(at);
                        self.queue(task, Lane::Save, true);
                    }
                    None if slot.end_order == order => open -= 1,
                    // A task of a later order has ended its step.
                    None => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::{Barrier, Condvar};

    use super::super::bell::waker;
    use super::*;

    /// Counts of steps, and a way to wait for them.
    #[derive(Default)]
    struct Steps {
        done: Mutex<Vec<usize>>,
        changed: Condvar,
    }

    impl Steps {
        fn add(&self, task: TaskId) {
            self.done.lock().unwrap()[task] += 1;
            self.changed.notify_all();
        }

        /// Waits until each of the tasks has done so many steps.
        fn wait(&self, tasks: impl IntoIterator<Item = TaskId> + Clone, steps: usize) {
            let done = self.done.lock().unwrap();
            let is_missing =
                |done: &mut Vec<usize>| tasks.clone().into_iter().any(|task| done[task] < steps);
            drop(self.changed.wait_while(done, is_missing).unwrap());
        }
    }

    /// A task that is always due.
    struct Busy<'a> {
        id: TaskId,
        lane: Lane,
        steps: &'a Steps,
        is_running: &'a AtomicBool,
        step: &'a (dyn Fn(TaskId) + Sync),
        ended: &'a AtomicUsize,
    }

    impl Task for Busy<'_> {
        fn hear(&mut self, _why: Reasons, _now: Instant) {}

        fn next_due(&self) -> Option<(Instant, Lane)> {
            Some((Instant::now(), self.lane))
        }

        fn step(&mut self) {
            assert!(!self.is_running.swap(true, Ordering::SeqCst), "two workers run one task");
            (self.step)(self.id);
            self.is_running.store(false, Ordering::SeqCst);
            self.steps.add(self.id);
        }

        fn panicked(&mut self) {
            self.is_running.store(false, Ordering::SeqCst);
            self.steps.add(self.id);
        }

        fn end(&mut self) {
            self.ended.fetch_add(1, Ordering::SeqCst);
        }

        fn end_order(&self) -> u8 {
            u8::from(self.lane == Lane::Answer)
        }
    }

    /// Runs tasks that are always due, each in its lane, until `until` returns.
    fn run_busy(
        lanes: &[Lane],
        steps: &Steps,
        step: &(dyn Fn(TaskId) + Sync),
        until: impl FnOnce() + Send,
    ) {
        *steps.done.lock().unwrap() = vec![0; lanes.len()];
        let running: Vec<_> = lanes.iter().map(|_| AtomicBool::new(false)).collect();
        let (ended, queue) = (AtomicUsize::new(0), QueueLength::default());
        let (waker, listener) = waker();
        let tasks = lanes.iter().enumerate().map(|(id, lane)| {
            let (is_running, ended) = (&running[id], &ended);
            let task = Busy { id, lane: *lane, steps, is_running, step, ended };
            let task: NewTask<'_> = (Bell::new(id, &waker), Box::new(task));
            task
        });
        let tasks = tasks.collect();
        std::thread::scope(|scope| {
            let stop = waker.clone();
            scope.spawn(move || {
                until();
                stop.stop();
            });
            run(tasks, &mut |_| Vec::new(), (&waker, &listener), &queue);
        });
        assert_eq!(ended.load(Ordering::SeqCst), lanes.len());
        assert_eq!(queue.get(), 0);
    }

    #[test]
    fn task_with_long_step_does_not_starve_the_others() {
        let steps = Steps::default();
        let step = |task| {
            if task == 0 {
                steps.wait(1..100, 3);
            }
        };
        run_busy(&[Lane::Save; 100], &steps, &step, || steps.wait(0..1, 1));
    }

    /// In a lane with one worker, because the system may stop one of several workers for a while.
    #[test]
    fn tasks_that_are_always_due_take_turns() {
        assert_eq!(Lane::Long.workers(), 1);
        let steps = Steps::default();
        run_busy(&[Lane::Long; 20], &steps, &|_| {}, || steps.wait(0..20, 50));
        let done = steps.done.lock().unwrap();
        let (least, most) = (done.iter().min().unwrap(), done.iter().max().unwrap());
        assert!(most - least <= 1, "{done:?}");
    }

    #[test]
    fn busy_lane_does_not_block_other_lanes() {
        let steps = Steps::default();
        let mut lanes = vec![Lane::Long; Lane::Long.workers()];
        lanes.extend(vec![Lane::Save; Lane::Save.workers()]);
        let last = lanes.len();
        lanes.push(Lane::Answer);
        let all_wait = Barrier::new(lanes.len());
        // In its first step, each task waits until all workers of the first lanes are busy, and
        // those workers wait for the last task.
        let step = |task| {
            if steps.done.lock().unwrap()[task] > 0 {
                return;
            }
            all_wait.wait();
            if task != last {
                steps.wait([last], 3);
            }
        };
        run_busy(&lanes, &steps, &step, || steps.wait([last], 3));
    }

    #[test]
    fn panic_ends_only_one_step() {
        let steps = Steps::default();
        let step = |task| assert!(task != 3, "this panic is part of the test");
        run_busy(&[Lane::Save; 5], &steps, &step, || {
            steps.wait([0, 1, 2, 4], 20);
            steps.wait([3], 1);
        });
        assert_eq!(steps.done.lock().unwrap()[3], 1, "a task that panicked pauses");
    }
}
