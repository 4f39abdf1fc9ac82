//! Processes of ours: started so that none outlives us, watched through /proc, ended by their own
//! ids.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::Read,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::error::BenchError;

/// Makes a command that gets SIGTERM when the calling thread ends. The program's wiring knows how.
pub type Tie = fn(&OsStr) -> Command;

/// Set when a signal has come.
pub type Stop = Arc<AtomicBool>;

/// How long a server may write its buffers before it is killed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A system user for servers, who do not run as root.
#[derive(Clone, Debug)]
pub struct User {
    /// Its number.
    pub uid: u32,
    /// Its group's.
    pub gid: u32,
}

/// A program of the system by its name: in PATH or where servers are.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}

/// A process that runs until it is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
}

impl Running {
    /// Starts it in a process group of its own, so that Ctrl-C on the terminal reaches us alone.
    pub fn start(
        tie: Tie,
        program: &Path,
        arguments: &[String],
        environment: &BTreeMap<String, String>,
        user: Option<&User>,
        log: &Path,
    ) -> Result<Self, BenchError> {
        let log_file = File::create(log).map_err(BenchError::system(log.display().to_string()))?;
        let both = log_file
            .try_clone()
            .map_err(BenchError::system(log.display().to_string()))?;
        let mut command = tie(program.as_os_str());
        without_ours(&mut command);
        command
            .args(arguments)
            .envs(environment)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(both)
            .stderr(log_file);
        if let Some(user) = user {
            command.uid(user.uid).gid(user.gid);
        }
        let child = command
            .spawn()
            .map_err(BenchError::system(program.display().to_string()))?;
        Ok(Self { child })
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended, and how.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }
}

impl Running {
    /// Ends it at once: what it has not written yet is of no use to anybody.
    pub fn kill(mut self) {
        if self.ended().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended().is_some() {
            return;
        }
        // Not waited for yet, so the number cannot be that of another process.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let since = Instant::now();
        while self.ended().is_none() {
            if since.elapsed() > PATIENCE {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// What a command that ran to its end has left.
#[derive(Debug)]
pub struct Ended {
    /// Exit code 0.
    pub success: bool,
    /// Standard output, then standard error.
    pub text: String,
    /// How long it ran.
    pub seconds: f64,
    /// CPU time of it and of all it waited for.
    pub cpu_seconds: f64,
    /// Whether it was killed because it took too long.
    pub timed_out: bool,
}

impl Ended {
    /// Its last lines, for messages.
    pub fn last_words(&self) -> String {
        last_lines(&self.text, 4)
    }
}

/// The last lines of a text, in one.
pub fn last_lines(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let words = all[all.len().saturating_sub(lines)..].join(" / ");
    words
        .char_indices()
        .rev()
        .nth(600)
        .map_or(words.clone(), |(at, _)| format!("…{}", &words[at..]))
}

/// Runs a command to its end, in a group of its own that is killed when a signal comes or the time
/// is over.
pub fn run(command: &mut Command, stop: &Stop, limit: Duration) -> Result<Ended, BenchError> {
    let name = command.get_program().to_string_lossy().into_owned();
    without_ours(command);
    let before = children_cpu_seconds();
    let begin = Instant::now();
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(BenchError::system(name.clone()))?;
    let readers = [
        child.stdout.take().map(|pipe| reader(Box::new(pipe))),
        child.stderr.take().map(|pipe| reader(Box::new(pipe))),
    ];
    let (mut timed_out, mut interrupted, mut pause) = (false, false, Duration::from_micros(200));
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(source) => {
                return Err(BenchError::System {
                    doing: name,
                    source,
                });
            }
        }
        timed_out = begin.elapsed() > limit;
        interrupted = stop.load(Ordering::Relaxed);
        if timed_out || interrupted {
            let group = Pid::from_child(&child);
            let _ = kill_process_group(group, Signal::KILL);
            break child.wait().map_err(BenchError::system(name.clone()))?;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    let seconds = begin.elapsed().as_secs_f64();
    let mut text = String::new();
    for reader in readers.into_iter().flatten() {
        let bytes = reader.join().unwrap_or_default();
        text += &String::from_utf8_lossy(&bytes);
    }
    if interrupted {
        return Err(BenchError::Interrupted);
    }
    Ok(Ended {
        success: status.success() && !timed_out,
        text,
        seconds,
        cpu_seconds: children_cpu_seconds() - before,
        timed_out,
    })
}

fn reader(mut pipe: Box<dyn Read + Send>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// The passphrase of somebody's keys may be in our environment; no other program gets it. What
/// `command` is told to have in its own environment stays.
fn without_ours(command: &mut Command) {
    without(command, std::env::vars_os().map(|(name, _)| name));
}

/// Takes those of the inherited `names` that are ours.
fn without(command: &mut Command, names: impl Iterator<Item = OsString>) {
    let given: Vec<OsString> = command
        .get_envs()
        .filter(|(_, value)| value.is_some())
        .map(|(name, _)| name.to_owned())
        .collect();
    for name in names {
        if name.to_string_lossy().starts_with("ONIONSKIN_") && !given.contains(&name) {
            command.env_remove(name);
        }
    }
}

fn seconds_of_ticks(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Fields 14 to 17 of /proc/PID/stat: own and children's CPU time in ticks.
fn stat_ticks(path: &str) -> Option<[u64; 4]> {
    let text = fs::read_to_string(path).ok()?;
    // The name may hold anything, and ends with the last parenthesis.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse().ok();
    Some([next()?, next()?, next()?, next()?])
}

/// User and system time of a process with all its threads, in seconds; `None` if it is gone.
pub fn cpu_seconds(pid: u32) -> Option<f64> {
    // not /proc/PID/stat, which counts in ticks of 10 ms: a short run may use less
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).ok()?);
    let clock = nix::time::clock_getcpuclockid(pid).ok()?;
    Some(Duration::from(clock.now().ok()?).as_secs_f64())
}

/// Of all processes that this one has started and waited for, and theirs.
fn children_cpu_seconds() -> f64 {
    stat_ticks("/proc/self/stat")
        .map_or(0.0, |[_, _, user, system]| seconds_of_ticks(user + system))
}

/// Resident memory of a process in MiB.
pub fn resident_mib(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages as f64 * rustix::param::page_size() as f64 / 1048576.0)
}

/// Reads a process's memory again and again.
pub struct MemorySampler {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(f64, f64)>>,
}

impl MemorySampler {
    /// Ten times a second.
    pub fn start(pid: u32) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let (begin, mut points) = (Instant::now(), Vec::new());
            while !seen.load(Ordering::Relaxed) {
                if let Some(mib) = resident_mib(pid) {
                    points.push((begin.elapsed().as_secs_f64(), mib));
                }
                thread::sleep(Duration::from_millis(100));
            }
            points
        });
        Self { over, thread }
    }

    /// Seconds since the start, MiB.
    pub fn end(self) -> Vec<(f64, f64)> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop() -> Stop {
        Arc::new(AtomicBool::new(false))
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_cpu_time_of_a_pipeline_is_counted() {
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let ended = run(
            &mut shell(&format!("({spin}) | cat; echo done")),
            &stop(),
            Duration::from_secs(60),
        )
        .expect("it runs");
        assert!(ended.success && ended.text.contains("done"));
        assert!(ended.cpu_seconds > 0.01, "{ended:?}");
    }

    #[test]
    fn a_command_ends_with_its_time_and_with_a_signal() {
        let ended = run(
            &mut shell("sleep 60 | cat"),
            &stop(),
            Duration::from_millis(100),
        )
        .expect("it runs");
        assert!(ended.timed_out && !ended.success && ended.seconds < 10.0);
        let stopped = stop();
        stopped.store(true, Ordering::Relaxed);
        let begin = Instant::now();
        let error = run(&mut shell("sleep 60"), &stopped, Duration::from_secs(60));
        assert!(matches!(error, Err(BenchError::Interrupted)));
        assert!(begin.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_command_has_what_it_was_given_and_nothing_of_ours_besides() {
        let mut command = shell("true");
        command.env("ONIONSKIN_PASSWORD", "given");
        let ours = ["ONIONSKIN_PASSWORD", "ONIONSKIN_PASSPHRASE", "HOME"];
        without(&mut command, ours.map(OsString::from).into_iter());
        let changes: BTreeMap<_, _> = command.get_envs().collect();
        let name = OsStr::new;
        assert_eq!(
            changes,
            BTreeMap::from([
                (name("ONIONSKIN_PASSWORD"), Some(name("given"))),
                (name("ONIONSKIN_PASSPHRASE"), None),
            ])
        );
    }

    #[test]
    fn last_words_are_short() {
        assert_eq!(last_lines("a\n\n b \nc\n", 2), "b / c");
        assert!(last_lines(&"ä".repeat(5000), 3).chars().count() < 700);
    }

    #[test]
    fn our_own_memory_is_known() {
        let sampler = MemorySampler::start(std::process::id());
        thread::sleep(Duration::from_millis(30));
        let points = sampler.end();
        assert!(points.iter().all(|(_, mib)| *mib > 0.1) && !points.is_empty());
        assert!(cpu_seconds(std::process::id()).is_some());
    }
}
