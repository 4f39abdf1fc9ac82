//! Servers that the tests of a program use one after the other.
//!
//! A server's start is the dearest part of most tests. The plain server that answers are compared
//! with, and the proxy's scratch engine, need no data directory of their own: one that is again as
//! it was goes to the next test.

use crate::{Kind, Server, ServerOptions, Session};
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, mpsc};

/// A server with the default options that other tests of the program had before, perhaps. It is as
/// one that has just started, but for its counters and what is left of dropped tables in its files.
pub struct Lent(Option<Resident>);

impl Lent {
    /// `None`, with a loud message, where such a server could not be installed.
    pub fn of(kind: Kind) -> Option<Lent> {
        let mut free = free();
        let found = free.iter().position(|r| r.server.kind() == kind);
        if let Some(found) = found {
            return Some(Lent(Some(free.swap_remove(found))));
        }
        drop(free);
        Some(Lent(Some(Resident::start(kind)?)))
    }
}

impl Deref for Lent {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0.as_ref().expect("until it is given back").server
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.0.as_mut().expect("until it is given back").server
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut resident = self.0.take();
        if !std::thread::panicking() && resident.as_mut().is_some_and(|r| r.is_as_before()) {
            free().extend(resident);
        }
    }
}

/// Those that no test has at the moment.
fn free() -> MutexGuard<'static, Vec<Resident>> {
    static FREE: Mutex<Vec<Resident>> = Mutex::new(Vec::new());
    FREE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

struct Resident {
    // Ended first: the janitor waits for it.
    server: Server,
    pid: u32,
    before: Vec<String>,
    _janitor: Janitor,
}

impl Resident {
    /// Starts one in a thread that does not end: the kernel kills it with the thread.
    fn start(kind: Kind) -> Option<Resident> {
        type Answer = mpsc::Sender<Option<Server>>;
        static KEEPER: Mutex<Option<mpsc::Sender<(Kind, Answer)>>> = Mutex::new(None);
        let (answer, started) = mpsc::channel();
        KEEPER
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .get_or_insert_with(|| {
                let (ask, asked) = mpsc::channel::<(Kind, Answer)>();
                std::thread::spawn(move || {
                    for (kind, answer) in asked {
                        // whoever asked has perhaps ended
                        let _ = answer.send(Server::alone(kind, ServerOptions::default()));
                    }
                });
                ask
            })
            .send((kind, answer))
            .expect("the keeper lives as long as the program");
        let server = started.recv().expect("a server starts")?;
        Some(Resident {
            pid: server.pid(),
            before: kept_by(&mut server.connect()).expect("a new server answers"),
            _janitor: Janitor::of(&server),
            server,
        })
    }

    /// Removes what tests have made; whether nothing else is left of them.
    fn is_as_before(&mut self) -> bool {
        if !self.server.is_running() || self.server.pid() != self.pid {
            return false;
        }
        let session = Session::try_open(self.server.port(), "root", "", None);
        let Ok(mut session) = session else {
            return false;
        };
        let now = clear(&mut session).and_then(|()| kept_by(&mut session));
        now.is_ok_and(|now| now == self.before)
    }
}

/// The databases that a server comes with.
const OWN: &str = "'mysql', 'information_schema', 'performance_schema', 'sys'";

/// Ends all other sessions, and drops all databases.
fn clear(session: &mut Session) -> Result<(), crate::Failure> {
    let others = "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() \
         AND command NOT IN ('Daemon') AND user NOT IN ('system user', 'event_scheduler')";
    for id in lines(session, others)? {
        // it has perhaps ended by now
        let _ = session.run(&format!("KILL {id}"));
    }
    let databases = format!(
        "SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN ({OWN})"
    );
    for name in lines(session, &databases)? {
        session.run(&format!("DROP DATABASE `{}`", name.replace('`', "``")))?;
    }
    Ok(())
}

/// What outlives databases: settings, accounts, and what else the server keeps in tables.
fn kept_by(session: &mut Session) -> Result<Vec<String>, crate::Failure> {
    const TABLES: &str = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'mysql' \
         AND table_type = 'BASE TABLE' AND table_name NOT LIKE '%\\_stats' AND table_name NOT LIKE 'help\\_%' \
         AND table_name NOT LIKE 'time\\_zone%' AND table_name NOT IN ('general_log', 'slow_log') ORDER BY table_name";
    let mut all = lines(session, "SHOW GLOBAL VARIABLES")?;
    all.extend(lines(session, "XA RECOVER")?);
    for table in lines(session, TABLES)? {
        let rows = lines(session, &format!("SELECT * FROM mysql.`{table}`"))?;
        all.push(table);
        all.extend(rows);
    }
    Ok(all)
}

fn lines(session: &mut Session, sql: &str) -> Result<Vec<String>, crate::Failure> {
    let text = session.text(sql)?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Removes a server's folder when this program ends, however that happens.
struct Janitor(Child);

impl Janitor {
    fn of(server: &Server) -> Janitor {
        const WORK: &str =
            "trap '' INT TERM HUP; cat; while kill -0 \"$1\"; do sleep 0.1; done; rm -rf -- \"$0\"";
        let mut command = Command::new("sh");
        command.args(["-c", WORK]);
        command.arg(server.folder()).arg(server.pid().to_string());
        command.stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Janitor(command.spawn().expect("sh starts"))
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
