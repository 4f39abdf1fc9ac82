//! One thread reads, many work, the caller's writes: in parallel, in order, in constant memory.
//!
//! A fixed number of jobs goes round. The producer fills a free job and gives it the next number;
//! any worker takes it; the consumer waits for the numbers in order and sets the job free again.
//! What is in flight never exceeds the number of jobs, so nothing needs a limit of its own, and
//! nothing is allocated on the way.
//!
//! The first failure in the order of numbers is the result, whichever thread finds its own first:
//! all jobs before it are consumed, none behind it. The threads are not waited for after a failure,
//! because the producer may be blocked in a read from a source that stays silent.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

/// A thread could not be started, or panicked.
#[derive(Debug)]
pub(crate) struct Lost;

/// What a worker does to a job. Every worker has its own, with its own contexts.
pub(crate) type Worker<J, E> = Box<dyn FnMut(&mut J) -> Result<(), E> + Send>;

enum Done<J, E> {
    Job(u64, Result<J, E>),
    /// There are this many jobs in all.
    End(u64),
}

/// How many jobs keep this many workers busy: one in every worker's hands, one waiting for each,
/// and one each being read and written.
pub(crate) const fn jobs_for(workers: usize) -> usize {
    2 * workers + 2
}

/// Runs until `produce` returns `false` for the job that it was given, or something fails.
pub(crate) fn run<J, E>(
    jobs: Vec<J>,
    produce: impl FnMut(&mut J) -> Result<bool, E> + Send + 'static,
    workers: Vec<Worker<J, E>>,
    mut consume: impl FnMut(&mut J) -> Result<(), E>,
) -> Result<(), E>
where
    J: Send + 'static,
    E: From<Lost> + Send + 'static,
{
    // One more than can be in flight: a failure of the producer has a number, too.
    let mut waiting: Vec<Option<Result<J, E>>> = Vec::new();
    waiting.resize_with(jobs.len() + 1, || None);
    let places = waiting.len() as u64;

    let (free, free_jobs) = channel();
    let (work, work_jobs) = channel();
    let (done, done_jobs) = channel();
    for job in jobs {
        free.send(job).map_err(|_| Lost)?;
    }
    let work_jobs = Arc::new(Mutex::new(work_jobs));
    for worker in workers {
        let (work_jobs, done) = (Arc::clone(&work_jobs), done.clone());
        spawn("frames", move || work_on(worker, &work_jobs, &done))?;
    }
    drop(work_jobs);
    spawn("input", move || read(produce, &free_jobs, &work, &done))?;

    let mut next = 0;
    let mut total = None;
    for message in done_jobs {
        match message {
            Done::End(count) => total = Some(count),
            Done::Job(number, result) => waiting[(number % places) as usize] = Some(result),
        }
        while let Some(result) = waiting[(next % places) as usize].take() {
            let mut job = result?;
            consume(&mut job)?;
            next += 1;
            // The producer may have ended.
            let _ = free.send(job);
        }
    }
    match total {
        Some(count) if count == next => Ok(()),
        _ => Err(Lost.into()),
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), Lost> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(body);
    spawned.map(drop).map_err(|_| Lost)
}

fn read<J, E: From<Lost>>(
    mut produce: impl FnMut(&mut J) -> Result<bool, E>,
    free: &Receiver<J>,
    work: &Sender<(u64, J)>,
    done: &Sender<Done<J, E>>,
) {
    let mut number = 0;
    // Whoever does not listen any more has failed and says so himself.
    while let Ok(mut job) = free.recv() {
        let produced = catch_unwind(AssertUnwindSafe(|| produce(&mut job)));
        match produced.unwrap_or_else(|_| Err(Lost.into())) {
            Ok(true) => {
                if work.send((number, job)).is_err() {
                    return;
                }
                number += 1;
            }
            Ok(false) => {
                let _ = done.send(Done::End(number));
                return;
            }
            Err(error) => {
                let _ = done.send(Done::Job(number, Err(error)));
                return;
            }
        }
    }
}

fn work_on<J, E: From<Lost>>(
    mut worker: Worker<J, E>,
    work: &Mutex<Receiver<(u64, J)>>,
    done: &Sender<Done<J, E>>,
) {
    loop {
        let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, mut job)) = next else { return };
        let worked = catch_unwind(AssertUnwindSafe(|| worker(&mut job)));
        let result = worked.unwrap_or_else(|_| Err(Lost.into())).map(|()| job);
        if done.send(Done::Job(number, result)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[derive(Debug, PartialEq)]
    enum Failure {
        Lost,
        At(u64),
    }

    impl From<Lost> for Failure {
        fn from(_: Lost) -> Self {
            Self::Lost
        }
    }

    /// Doubles the numbers below `count`; `trouble` is called with every number by the workers.
    fn doubled(
        count: u64,
        trouble: impl Fn(u64) -> Result<(), Failure> + Clone + Send + 'static,
    ) -> (Vec<u64>, Result<(), Failure>) {
        let mut next = 0;
        let mut out = Vec::new();
        let workers = (0..3)
            .map(|_| {
                let trouble = trouble.clone();
                Box::new(move |job: &mut u64| {
                    // Later ones are faster, so that they overtake.
                    thread::sleep(Duration::from_micros(500 * (4 - *job % 5)));
                    trouble(*job)?;
                    *job *= 2;
                    Ok(())
                }) as Worker<u64, Failure>
            })
            .collect();
        let result = run(
            vec![0; jobs_for(3)],
            move |job| {
                *job = next;
                next += 1;
                Ok(next <= count)
            },
            workers,
            |job| {
                out.push(*job);
                Ok(())
            },
        );
        (out, result)
    }

    #[test]
    fn order_is_kept() {
        for count in [0, 1, 2, 100] {
            let (out, result) = doubled(count, |_| Ok(()));
            assert_eq!(result, Ok(()));
            assert_eq!(out, (0..count).map(|n| 2 * n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_failure_in_order_counts() {
        let (out, result) = doubled(100, |n| if n >= 37 { Err(Failure::At(n)) } else { Ok(()) });
        assert_eq!(result, Err(Failure::At(37)));
        assert_eq!(out.len(), 37);
    }

    #[test]
    fn a_panic_is_a_failure() {
        let (out, result) = doubled(100, |n| {
            assert_ne!(n, 20, "this panic is wanted");
            Ok(())
        });
        assert_eq!(result, Err(Failure::Lost));
        assert_eq!(out.len(), 20);
    }

    #[test]
    fn failures_of_reader_and_writer() {
        let worker: fn() -> Worker<u64, Failure> = || Box::new(|_| Ok(()));
        let mut left = 5;
        let result = run(
            vec![0; 4],
            move |_| {
                left -= 1;
                if left == 0 {
                    Err(Failure::At(4))
                } else {
                    Ok(true)
                }
            },
            vec![worker(), worker()],
            |_| Ok(()),
        );
        assert_eq!(result, Err(Failure::At(4)));
        let result = run(
            vec![0; 4],
            |_| Ok(true),
            vec![worker()],
            |_| Err(Failure::At(0)),
        );
        assert_eq!(result, Err(Failure::At(0)));
    }
}
