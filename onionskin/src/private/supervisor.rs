//! Starts the private server, waits until it answers, starts it again when it dies, stops it.
//!
//! One thread does all of it, because the kernel ends the server when the thread that started it
//! ends.

use std::{
    fs,
    io::Read,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, Signal, kill_process};

use onionskin_proxy::{EnginePlace, Whereabouts};

use super::{Installation, PrivateError, installation::last_lines};
use crate::termination::Termination;

/// How often the supervisor looks after a server that is starting, and after one that runs.
const LOOK_STARTING: Duration = Duration::from_millis(20);
const LOOK_RUNNING: Duration = Duration::from_millis(200);
/// How long a server may take to write its buffers and end before it is killed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pauses before the server is started again; one that ran longer than the last of them starts from
/// the first.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// When memory is short, the kernel ends a scratch engine sooner than the proxy: that goes on
/// without it.
const FIRST_TO_GO: &str = "500";

/// A private server that runs. Dropping it stops it.
pub struct PrivateServer {
    shared: Arc<Shared>,
    socket: PathBuf,
    data: PathBuf,
    place: EnginePlace,
    thread: Option<thread::JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    phase: Phase,
    stopping: bool,
}

enum Phase {
    Starting,
    /// It has answered once.
    Ready,
    /// It could not be started; taken by whoever waits for it.
    Failed(Option<PrivateError>),
}

impl PrivateServer {
    /// Returns when the server answers, or cannot.
    pub fn start(
        installation: Installation,
        termination: &Termination,
    ) -> Result<Self, PrivateError> {
        let place = EnginePlace::new(Whereabouts::Starting);
        Self::start_at(installation, termination, place)
    }

    /// The same; `place` is told where the server is, as long as it runs.
    pub fn start_at(
        installation: Installation,
        termination: &Termination,
        place: EnginePlace,
    ) -> Result<Self, PrivateError> {
        let (socket, data) = (installation.socket(), installation.data());
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                phase: Phase::Starting,
                stopping: false,
            }),
            changed: Condvar::new(),
        });
        let supervisor = Supervisor {
            installation,
            shared: Arc::clone(&shared),
            termination: termination.clone(),
            place: place.clone(),
        };
        let thread = thread::Builder::new()
            .name("private server".into())
            .spawn(move || supervisor.run())
            .map_err(|source| PrivateError::System {
                path: data.clone(),
                source,
            })?;
        let server = Self {
            shared,
            socket,
            data,
            place,
            thread: Some(thread),
        };
        server.wait(termination)?;
        Ok(server)
    }

    /// Its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Where it is, as long as it runs.
    pub fn place(&self) -> &EnginePlace {
        &self.place
    }

    /// Where it stores everything.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Asks it to end, and waits for that.
    pub fn stop(mut self) {
        self.end();
    }

    fn wait(&self, termination: &Termination) -> Result<(), PrivateError> {
        let begin = Instant::now();
        let mut next_word = Duration::from_secs(10);
        let mut state = self.shared.state.lock();
        loop {
            match &mut state.phase {
                Phase::Ready => return Ok(()),
                Phase::Failed(error) => {
                    return Err(error.take().unwrap_or(PrivateError::Interrupted));
                }
                Phase::Starting if termination.requested() => {
                    return Err(PrivateError::Interrupted);
                }
                Phase::Starting => {}
            }
            if begin.elapsed() > next_word {
                // Recovery after a crash can take long, and must not be cut short.
                tracing::info!(
                    "still waiting for the private server, see server.log beside its folder"
                );
                next_word += Duration::from_secs(10);
            }
            self.shared.changed.wait_for(&mut state, LOOK_RUNNING);
        }
    }

    fn end(&mut self) {
        self.shared.state.lock().stopping = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        self.end();
    }
}

struct Supervisor {
    installation: Installation,
    shared: Arc<Shared>,
    termination: Termination,
    place: EnginePlace,
}

impl Supervisor {
    fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        let mut is_sound = true;
        loop {
            let start = Instant::now();
            let made = match is_sound {
                true => Ok(()),
                false => self.installation.make_anew(&self.termination),
            };
            let log_start = fs::metadata(self.installation.log()).map_or(0, |log| log.len());
            let mut answered = false;
            let ended = made
                .and_then(|()| self.installation.spawn())
                .map(|child| self.watch(child, &mut answered));
            // data of a server are never touched
            is_sound = answered || !self.installation.is_scratch();
            self.installation.ended();
            let error = match ended {
                Ok(status) => PrivateError::DoesNotStart {
                    status: status.map_or_else(|| "it is gone".into(), |status| status.to_string()),
                    log: self.installation.log(),
                    said: self.said_since(log_start),
                },
                Err(error) => error,
            };
            let mut state = self.shared.state.lock();
            if state.stopping {
                return;
            }
            if !matches!(state.phase, Phase::Ready) {
                state.phase = Phase::Failed(Some(error));
                self.shared.changed.notify_all();
                return;
            }
            if start.elapsed() > LONGEST_PAUSE {
                pause = FIRST_PAUSE;
            }
            let what = self.installation.what();
            match answered {
                true => tracing::error!(
                    "{what} has ended by itself, see {}; starting it again in {} s",
                    self.installation.log().display(),
                    pause.as_secs()
                ),
                // before it answers it has no values that it could tell
                false => tracing::error!(
                    "{what} does not start again: {}; trying again in {} s",
                    error.to_string().lines().collect::<Vec<_>>().join(" "),
                    pause.as_secs()
                ),
            }
            self.place.set(Whereabouts::Nowhere(
                "it has ended by itself, and is being started again".into(),
            ));
            let until = Instant::now() + pause;
            while !state.stopping
                && !self
                    .shared
                    .changed
                    .wait_until(&mut state, until)
                    .timed_out()
            {}
            if state.stopping {
                return;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Until the server has ended, by itself or because it was asked to.
    fn watch(&self, mut child: Child, answered: &mut bool) -> Option<ExitStatus> {
        let mut asked: Option<Instant> = None;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => {}
                Err(_) => return None,
            }
            if !*answered && asked.is_none() && answers(&self.installation.socket()) {
                *answered = true;
                if self.installation.is_scratch() {
                    let score = format!("/proc/{}/oom_score_adj", child.id());
                    // some containers do not allow it
                    let _ = fs::write(score, FIRST_TO_GO);
                }
                let socket = self.installation.socket();
                self.place.set(Whereabouts::At(socket));
                let what = self.installation.what();
                tracing::info!("{what} runs with process id {}", child.id());
                self.shared.state.lock().phase = Phase::Ready;
                self.shared.changed.notify_all();
            }
            let mut state = self.shared.state.lock();
            if state.stopping {
                match asked {
                    // Not waited for yet, so the number cannot be that of another process.
                    None => {
                        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
                        asked = Some(Instant::now());
                    }
                    Some(since) if since.elapsed() > PATIENCE => {
                        tracing::warn!("the private server does not end, killing it");
                        let _ = child.kill();
                    }
                    Some(_) => {}
                }
            }
            let pause = if *answered && asked.is_none() {
                LOOK_RUNNING
            } else {
                LOOK_STARTING
            };
            match asked {
                // Nothing more to be told.
                Some(_) => {
                    drop(state);
                    thread::sleep(pause);
                }
                None => {
                    self.shared.changed.wait_for(&mut state, pause);
                }
            }
        }
    }

    fn said_since(&self, start: u64) -> String {
        let log = fs::read(self.installation.log()).unwrap_or_default();
        let start = usize::try_from(start).unwrap_or(0).min(log.len());
        last_lines(&String::from_utf8_lossy(&log[start..]))
    }
}

/// Whether a server greets whoever connects. Connecting alone is possible before it is ready.
fn answers(socket: &Path) -> bool {
    // Packet header, then the protocol version, which in an error would be 0xff.
    let mut greeting = [0; 5];
    UnixStream::connect(socket)
        .and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            stream.read_exact(&mut greeting)
        })
        .is_ok()
        && greeting[4] == 10
}
