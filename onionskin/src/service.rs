//! A proxy that serves, and what its operator has it do: read its configuration anew, hand its
//! sockets over to a new program, start that program itself.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use onionskin_proxy::{Bound, Observer, SocketFile, Stopper};
use parking_lot::Mutex;
use signal_hook::{
    consts::{SIGHUP, SIGUSR2},
    iterator::Signals,
};

use crate::{
    admin,
    control::{self, Control, Request, Verdict, handover, say},
    differences::Difference,
    error::CommandError,
    members::Members,
    reload::{Done, Reloader},
    sockets::listener_names,
};

/// The argument of a program that takes over.
pub const TAKE_OVER: &str = "--take-over";

/// See the module.
pub struct Service {
    reloader: Reloader,
    stopper: Stopper,
    /// Where clients connect.
    listeners: Mutex<Vec<Listening>>,
    admin: Mutex<Option<admin::Served>>,
    observer: Mutex<Option<Arc<Observer>>>,
    /// What asks the members of `backend`, if it is a list.
    members: Mutex<Option<Members>>,
    control: Mutex<Option<control::Served>>,
    /// How long sessions go on after a handover.
    patience: Mutex<Duration>,
    /// It cannot be handed over, because a server of its own belongs to it.
    has_servers: bool,
    /// One thing at a time.
    turn: Mutex<()>,
    is_ending: AtomicBool,
    /// A new program has the sockets, and may yet serve by them.
    is_offered: AtomicBool,
    /// A new program serves, and may not have been answered yet.
    is_given: AtomicBool,
}

/// A second handle on a socket that clients connect to.
struct Listening {
    /// Until nobody is accepted any more: it would leave clients waiting.
    socket: Option<OwnedFd>,
    /// The file of a Unix socket.
    file: Option<SocketFile>,
}

impl Listening {
    fn of(bound: &Bound) -> std::io::Result<Listening> {
        Ok(Listening {
            socket: Some(bound.duplicate()?),
            file: bound.file().cloned(),
        })
    }

    /// Nobody is accepted any more; another program may be.
    fn close(&mut self, file_stays: bool) {
        self.socket = None;
        match self.file.take() {
            Some(file) if !file_stays => file.remove(),
            _ => {}
        }
    }
}

/// What a reload does while another one goes on, or a new program takes over.
#[derive(Clone, Copy)]
enum Turn {
    /// It comes afterwards. Signals that arrive meanwhile are one.
    Waits,
    /// It is refused.
    OrNever,
}

impl Service {
    /// Of a proxy that is about to run.
    pub fn new(
        reloader: Reloader,
        stopper: Stopper,
        listeners: &[Bound],
        patience: Duration,
        has_servers: bool,
    ) -> std::io::Result<Arc<Service>> {
        let listeners = listeners.iter().map(Listening::of);
        let listeners = listeners.collect::<std::io::Result<_>>()?;
        Ok(Arc::new(Service {
            reloader,
            stopper,
            listeners: Mutex::new(listeners),
            admin: Mutex::default(),
            observer: Mutex::default(),
            members: Mutex::default(),
            control: Mutex::default(),
            patience: Mutex::new(patience),
            has_servers,
            turn: Mutex::default(),
            is_ending: AtomicBool::new(false),
            is_offered: AtomicBool::new(false),
            is_given: AtomicBool::new(false),
        }))
    }

    /// The administration address, while it is served.
    pub fn keep_admin(&self, admin: Option<admin::Served>) {
        *self.admin.lock() = admin;
    }

    /// What asks the members of `backend`, if it is a list.
    pub fn keep_members(&self, members: Option<Members>) {
        *self.members.lock() = members;
    }

    /// What tells how the proxy is.
    pub fn keep_observer(&self, observer: Arc<Observer>) {
        *self.observer.lock() = Some(observer);
    }

    /// The same, if anybody may ask.
    pub fn observer(&self) -> Option<Arc<Observer>> {
        self.observer.lock().clone()
    }

    /// Serves the control socket.
    pub fn serve_control(self: &Arc<Self>, control: Control) -> std::io::Result<()> {
        let service = Arc::downgrade(self);
        let served = control.serve(move |request, stream| {
            if let Some(service) = service.upgrade() {
                service.command(request, stream);
            }
        })?;
        *self.control.lock() = Some(served);
        Ok(())
    }

    /// Does from now on what signals ask for.
    pub fn serve_signals(self: &Arc<Self>, mut signals: Signals) -> std::io::Result<()> {
        let service = Arc::downgrade(self);
        thread::Builder::new()
            .name("operator".into())
            .spawn(move || {
                for signal in signals.forever() {
                    let Some(service) = service.upgrade() else {
                        return;
                    };
                    match signal {
                        // it is done later rather than not at all: nobody waits for an answer
                        SIGHUP => drop(service.reload(Turn::Waits)),
                        SIGUSR2 => start_successor(),
                        _ => {}
                    }
                }
            })?;
        Ok(())
    }

    /// The proxy takes no more clients, and does nothing for its operator any more.
    pub fn begin_to_end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        for listening in &mut *self.listeners.lock() {
            listening.socket = None;
        }
        self.stopper.stop();
    }

    /// The proxy has ended. Files of sockets are removed that no other program has taken over.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        if self.is_given.load(Ordering::SeqCst) {
            // without an answer the new program would not serve
            let _answered = self.turn.lock();
        }
        let is_offered = self.is_offered.load(Ordering::SeqCst);
        for listening in &mut *self.listeners.lock() {
            listening.close(is_offered);
        }
        let (mut admin, mut control) = (self.admin.lock(), self.control.lock());
        if is_offered {
            // It serves by them when this one has ended. Should it fail, the next start removes
            // what nobody listens on.
            tracing::warn!(
                "a new program was taking over: the files of the sockets are left to it"
            );
            if let Some(admin) = &mut *admin {
                admin.keep_file();
            }
            if let Some(control) = &mut *control {
                control.keep_file();
            }
        }
        admin.take();
        control.take();
    }

    /// What reads the configuration and the keys anew.
    pub fn reloader(&self) -> &Reloader {
        &self.reloader
    }

    fn command(&self, request: Request, mut stream: UnixStream) {
        match request {
            Request::Reload => match self.reload(Turn::OrNever) {
                Ok((verdict, text)) => say(&mut stream, verdict, &text),
                Err(text) => say(&mut stream, Verdict::Refused, &text),
            },
            Request::Check(path) => match self.reloader.check(&path) {
                Ok(differences) => say(&mut stream, Verdict::Done, &would(&differences)),
                Err(error) => say(&mut stream, Verdict::Refused, &sentence(&error)),
            },
            Request::Status => match self.status() {
                Ok(status) => say(&mut stream, Verdict::Done, &status),
                Err(why) => say(&mut stream, Verdict::Refused, &why),
            },
            Request::TakeOver => self.hand_over(&mut stream),
        }
    }

    /// How the proxy is, as JSON.
    fn status(&self) -> Result<String, String> {
        let observer = self.observer();
        let observer = observer.ok_or("this proxy has not begun to serve")?;
        serde_json::to_string(&observer.status()).map_err(|error| error.to_string())
    }

    /// Reads the configuration anew. What has come of it is in the log, too.
    fn reload(&self, turn: Turn) -> Result<(Verdict, String), String> {
        let done = self.try_reload(turn).map_err(|error| sentence(&error));
        match &done {
            // a difference to a line
            Ok((_, text)) => text
                .lines()
                .for_each(|line| tracing::info!("reload: {}", line.trim())),
            Err(text) => tracing::error!("reload: {}", refusal(text)),
        }
        done
    }

    fn try_reload(&self, turn: Turn) -> Result<(Verdict, String), CommandError> {
        let turn = match turn {
            Turn::Waits => Some(self.turn.lock()),
            Turn::OrNever => self.turn.try_lock(),
        };
        if self.is_ending.load(Ordering::SeqCst) {
            return Err(CommandError::Reload("this proxy is ending".into()));
        }
        let Some(_turn) = turn else {
            return Err(CommandError::Reload(
                "another reload goes on, or a new program takes over".into(),
            ));
        };
        let Done {
            differences,
            still_running,
            members,
            token,
            file,
        } = self.reloader.reload()?;
        if let Some((kept, settings)) = self.members.lock().as_ref().zip(members)
            && let Err(error) = kept.set(settings)
        {
            tracing::error!(%error, "no thread asks a member");
        }
        if let Some(admin) = &*self.admin.lock() {
            admin.set_token(token);
        }
        *self.patience.lock() = file.handover;
        let mut text = has(&differences);
        if still_running > 0 {
            text += &format!(
                "\n{still_running} statements that began before still run under the configuration before"
            );
            return Ok((Verdict::StillRunning, text));
        }
        Ok((Verdict::Done, text))
    }

    /// Gives the sockets to a new program, and ends when the sessions have.
    fn hand_over(&self, stream: &mut UnixStream) {
        let refuse = |stream: &mut UnixStream, why: &str| {
            tracing::warn!("a new program wanted to take over: {why}");
            say(stream, Verdict::Refused, why);
        };
        let Some(_turn) = self.turn.try_lock() else {
            return refuse(stream, "another program takes over, or a reload goes on");
        };
        if self.is_ending.load(Ordering::SeqCst) {
            return refuse(stream, "this proxy is ending");
        }
        if self.has_servers {
            return refuse(
                stream,
                "the private server belongs to the program that runs",
            );
        }
        let own = |socket: Option<BorrowedFd<'_>>| socket?.try_clone_to_owned().ok();
        let (mut sockets, mut kept) = (handover::Sockets::new(), Vec::new());
        let mut add = |name: String, socket: Option<OwnedFd>, file_stays: bool| {
            if file_stays {
                kept.push(name.clone());
            }
            sockets.extend(socket.map(|socket| (name, socket)));
        };
        {
            let listeners = self.listeners.lock();
            for (name, listening) in listener_names(listeners.len()).zip(&*listeners) {
                let file_stays = listening.file.as_ref().is_some_and(SocketFile::stays);
                add(
                    name,
                    own(listening.socket.as_ref().map(AsFd::as_fd)),
                    file_stays,
                );
            }
            if let Some(admin) = &*self.admin.lock() {
                add("admin".into(), own(admin.socket()), admin.file_stays());
            }
            if let Some(control) = &*self.control.lock() {
                add(
                    "control".into(),
                    own(control.socket()),
                    control.file_stays(),
                );
            }
        }
        tracing::info!("a new program takes over: it gets the sockets");
        self.is_offered.store(true, Ordering::SeqCst);
        let given = handover::give(stream, &sockets, &kept, |used| {
            self.is_given.store(true, Ordering::SeqCst);
            self.is_ending.store(true, Ordering::SeqCst);
            self.stopper.hand_over(*self.patience.lock());
            let is_used = |name: &str| used.iter().any(|used| used == name);
            let mut listeners = self.listeners.lock();
            for (name, listening) in listener_names(listeners.len()).zip(&mut *listeners) {
                listening.close(is_used(&name));
            }
            if let Some(admin) = &mut *self.admin.lock() {
                admin.close(is_used("admin"));
            }
            if let Some(control) = &mut *self.control.lock() {
                control.close(is_used("control"));
            }
        });
        self.is_offered.store(false, Ordering::SeqCst);
        match given {
            Ok(()) => tracing::info!(
                "a new program serves: this one takes no more clients, and ends with its last session"
            ),
            Err(error) if self.is_ending.load(Ordering::SeqCst) => {
                tracing::warn!(%error, "the new program may not know that it serves");
            }
            Err(error) => tracing::warn!(
                %error,
                "the new program was not ready: this one goes on as if nothing had happened"
            ),
        }
    }
}

/// Reads the signals that [`Service::serve_signals`] does something for. Until then they wait.
pub fn signals() -> std::io::Result<Signals> {
    Signals::new([SIGHUP, SIGUSR2])
}

/// Starts the program anew, from the file that it was started from, which may be a newer one by
/// now. It takes over by the control socket.
fn start_successor() {
    let mut arguments = std::env::args_os();
    let Some(program) = arguments.next() else {
        return;
    };
    let mut arguments: Vec<_> = arguments.collect();
    if !arguments.iter().any(|a| a == TAKE_OVER) {
        arguments.push(TAKE_OVER.into());
    }
    let shown = Path::new(&program).display().to_string();
    match Command::new(&program).args(&arguments).spawn() {
        Ok(mut child) => {
            tracing::info!(pid = child.id(), "SIGUSR2: {shown} is started to take over");
            let waits = thread::Builder::new()
                .name("successor".into())
                .spawn(move || {
                    // It outlives this program, unless it fails.
                    if let Ok(status) = child.wait()
                        && !status.success()
                    {
                        tracing::error!(
                            "the program that was started to take over has ended: {status}"
                        );
                    }
                });
            drop(waits);
        }
        Err(error) => tracing::error!(%error, "SIGUSR2: {shown} cannot be started"),
    }
}

fn lines(differences: &[Difference]) -> String {
    let lines = differences.iter().map(|d| format!("\n  {d}"));
    lines.collect()
}

fn has(differences: &[Difference]) -> String {
    match differences {
        [] => "in force, and nothing has changed".into(),
        some => format!(
            "in force, with {} changed:{}",
            settings(some.len()),
            lines(some)
        ),
    }
}

fn would(differences: &[Difference]) -> String {
    match differences {
        [] => "nothing would change".into(),
        some => format!("{} would change:{}", settings(some.len()), lines(some)),
    }
}

fn settings(count: usize) -> String {
    match count {
        1 => "1 setting".into(),
        n => format!("{n} settings"),
    }
}

/// Why, without what [`CommandError::Reload`] adds: whoever is told adds it.
fn sentence(error: &CommandError) -> String {
    match error {
        CommandError::Reload(text) => text.clone(),
        other => other.to_string(),
    }
}

fn refusal(sentence: &str) -> String {
    let text = CommandError::Reload(sentence.to_owned()).to_string();
    // in the log it is one line
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join(" ")
}
