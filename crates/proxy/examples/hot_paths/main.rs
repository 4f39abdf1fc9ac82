//! The hot paths of a session, run one after the other: what `tests/instruction_counts.rs` counts
//! under callgrind.
//!
//! ```text
//! hot_paths [--only PATH] [--plant PATH]     for callgrind: prints one line for each call of `measured`
//! hot_paths --time [--tcp] [--only PATH]     on the bare machine: nanoseconds, system calls included
//! ```
//!
//! Every path is run a few times before it counts, so that plans are cached and buffers have grown.
//! `--plant` lexes a short statement in vain each time: the test of the test.

mod answers;
mod paths;

use std::hint::black_box;
use std::time::Instant;

use onionskin_plan::{LexMode, Template};
use onionskin_proxy::hot_path::Wires;

/// Runs of a path that are not counted.
const WARM_UP: u64 = 24;
/// Runs that are counted, under callgrind and against the clock.
const COUNTED: u64 = 16;
const TIMED: u64 = 3000;

/// What callgrind is told to count, by its name.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
    black_box(());
}

/// What a careless change might add to a path.
#[inline(never)]
fn work_in_vain() {
    let mut template = Template::default();
    let sql = b"SELECT c FROM sbtest1 WHERE id BETWEEN 5017 AND 5116 ORDER BY c";
    let read = template.read(black_box(sql), LexMode::default());
    black_box(read).expect("a statement");
}

/// How the paths are run.
struct Runner {
    only: Option<String>,
    plant: Option<String>,
    time: bool,
    /// What the session's connections are.
    wires: Wires,
    /// Runs so far of the present path.
    run: u64,
}

impl Runner {
    /// Whether a path is to be run.
    fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == name)
    }

    /// Runs a path. `prepare` lays out what it works on, `work` is measured, `check` says what is
    /// wrong with what it did.
    fn path<T>(
        &mut self,
        name: &str,
        state: &mut T,
        mut prepare: impl FnMut(&mut T, u64),
        mut work: impl FnMut(&mut T),
        mut check: impl FnMut(&mut T) -> Result<(), String>,
    ) {
        if !self.wants(name) {
            return;
        }
        let planted = self.plant.as_deref() == Some(name);
        let runs = if self.time { TIMED } else { COUNTED };
        let mut nanoseconds = Vec::with_capacity(runs as usize);
        for n in 0..WARM_UP + runs {
            prepare(state, self.run);
            self.run += 1;
            if n < WARM_UP {
                work(state);
            } else if self.time {
                let begin = Instant::now();
                work(state);
                nanoseconds.push(begin.elapsed().as_nanos());
            } else {
                measured(&mut || {
                    work(state);
                    if planted {
                        work_in_vain();
                    }
                });
            }
            if let Err(wrong) = check(state) {
                panic!("{name}: {wrong}");
            }
        }
        if self.time {
            nanoseconds.sort_unstable();
            println!("{name} {}", nanoseconds[nanoseconds.len() / 2]);
        } else {
            println!("{name} {runs}");
        }
    }
}

/// What counts depend on besides the code: the instructions that libraries choose at run time, as
/// seen here, which under valgrind are those that it emulates.
fn environment() -> String {
    #[cfg(target_arch = "x86_64")]
    let found = [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("aes", is_x86_feature_detected!("aes")),
        ("vaes", is_x86_feature_detected!("vaes")),
        ("pclmulqdq", is_x86_feature_detected!("pclmulqdq")),
        ("gfni", is_x86_feature_detected!("gfni")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("sha", is_x86_feature_detected!("sha")),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let found: [(&str, bool); 0] = [];
    let mut words = vec![std::env::consts::ARCH];
    words.extend(found.iter().filter(|(_, is)| *is).map(|(name, _)| *name));
    words.join(" ")
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut runner = Runner {
        only: None,
        plant: None,
        time: false,
        wires: Wires::Unix,
        run: 0,
    };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => runner.only = arguments.next(),
            "--plant" => runner.plant = arguments.next(),
            "--time" => runner.time = true,
            "--tcp" => runner.wires = Wires::Tcp,
            other => panic!("{other}: --only PATH, --plant PATH, --time, --tcp"),
        }
    }
    println!("environment {}", environment());
    paths::run(&mut runner);
}
