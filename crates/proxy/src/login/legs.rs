//! Client and server during a login: packets, one at a time, in time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onionskin_wire::auth::LinkTrust;
use onionskin_wire::packets::DEFAULT_MAX_PAYLOAD;
use onionskin_wire::{Connection, Deadline, WireError, WireResult};
use zeroize::Zeroizing;

use super::error::{LoginError, LoginResult};
use super::method::Method;
use super::pace::Pace;

/// How long a client may take for each of its answers, TLS included: less than servers wait, which
/// by default is 10 seconds.
pub(crate) const ANSWER: Duration = Duration::from_secs(8);
/// The same while others wait for their turn to log in.
pub(crate) const HURRIED_ANSWER: Duration = Duration::from_secs(1);
/// Longest packet of a login, so that who is not logged in cannot fill the memory. It leaves room
/// for what servers take of connection attributes, which is a little less; more of them they count
/// as a broken greeting.
const MAX_PACKET: usize = 64 << 10;

/// An answer that may hold a password.
pub(crate) type Secret = Zeroizing<Vec<u8>>;

/// When a login must be done.
#[derive(Clone)]
pub(crate) struct Timing {
    /// All of it.
    pub whole: Instant,
    /// By which others who wait for their turn hurry or end it.
    pub pace: Option<Arc<Pace>>,
}

/// What the server waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owed {
    /// Nothing: it is its turn.
    Nothing,
    /// A login.
    Login,
    /// An answer of a method.
    Answer(Method),
    /// An answer to the data of a method, by which it asks for the password.
    Password(Method),
}

/// Client and server during a login.
pub(crate) struct Legs<'a> {
    pub client: &'a mut Connection,
    pub server: &'a mut Connection,
    /// When all of it must be done.
    pub whole: Instant,
    pub pace: Option<Arc<Pace>>,
    pub trust: LinkTrust,
    /// What the server waits for, so that it gets something should the client fail.
    pub owed: Owed,
    /// Whether a client that names no method is asked for an answer of `mysql_native_password`, as
    /// MariaDB does at a change of user.
    pub asks_unnamed: bool,
}

impl<'a> Legs<'a> {
    pub fn new(
        client: &'a mut Connection,
        server: &'a mut Connection,
        timing: Timing,
        trust: LinkTrust,
    ) -> Self {
        client.set_max_payload(MAX_PACKET);
        server.set_max_payload(MAX_PACKET);
        Self {
            client,
            server,
            whole: timing.whole,
            pace: timing.pace,
            trust,
            owed: Owed::Nothing,
            asks_unnamed: false,
        }
    }

    /// Takes the limits of a login away.
    pub fn end(&mut self) -> LoginResult<()> {
        self.client.set_max_payload(DEFAULT_MAX_PAYLOAD);
        self.server.set_max_payload(DEFAULT_MAX_PAYLOAD);
        self.client.set_deadline(None).map_err(LoginError::Client)?;
        self.server.set_deadline(None).map_err(LoginError::Server)
    }

    /// When the client must have answered, if its turn begins now.
    pub fn turn(&self) -> Deadline {
        let now = Instant::now();
        let deadline = Deadline::at(self.whole.min(now + ANSWER));
        match &self.pace {
            Some(pace) => deadline.or_if(pace.flag(), now + HURRIED_ANSWER),
            None => deadline,
        }
    }

    pub fn limit_client(&mut self, deadline: Deadline) -> LoginResult<()> {
        self.client
            .set_deadline(Some(deadline))
            .map_err(LoginError::Client)
    }

    pub fn limit_server(&mut self, deadline: Deadline) -> LoginResult<()> {
        self.server
            .set_deadline(Some(deadline))
            .map_err(LoginError::Server)
    }

    pub fn are_alike(&self) -> bool {
        self.client.is_secure() == self.server.is_secure()
    }

    pub fn read_client(&mut self) -> LoginResult<Secret> {
        let turn = self.turn();
        self.limit_client(turn)?;
        self.waits(true)?;
        let answer = read(self.client).map_err(LoginError::Client);
        self.goes_on()?;
        answer
    }

    /// It waits for the client from now on, and may lose its place.
    pub fn waits(&self, has_answered: bool) -> LoginResult<()> {
        let waits = |pace: &Arc<Pace>| pace.waits(Instant::now(), has_answered);
        match self.pace.as_ref().is_none_or(waits) {
            true => Ok(()),
            false => Err(LoginError::Client(timed_out())),
        }
    }

    /// The client has answered; an error if that was too late.
    pub fn goes_on(&self) -> LoginResult<()> {
        match self.pace.as_ref().is_none_or(|pace| pace.goes_on()) {
            true => Ok(()),
            false => Err(LoginError::Client(timed_out())),
        }
    }

    pub fn read_server(&mut self) -> LoginResult<Vec<u8>> {
        self.limit_server(Deadline::at(self.whole))?;
        read(self.server)
            .map(|mut payload| std::mem::take(&mut *payload))
            .map_err(LoginError::Server)
    }

    pub fn write_client(&mut self, payload: &[u8]) -> LoginResult<()> {
        let turn = self.turn();
        self.limit_client(turn)?;
        write(self.client, payload).map_err(LoginError::Client)
    }

    pub fn send_server(&mut self, payload: &[u8]) -> LoginResult<()> {
        self.limit_server(Deadline::at(self.whole))?;
        write(self.server, payload).map_err(LoginError::Server)?;
        self.owed = Owed::Nothing;
        Ok(())
    }

    pub fn write_server(
        &mut self,
        encode: impl FnOnce(&mut Vec<u8>) -> WireResult<()>,
    ) -> LoginResult<()> {
        let mut payload = Zeroizing::new(Vec::new());
        // What cannot be told to the server is the fault of what the client sent.
        encode(&mut payload).map_err(LoginError::Client)?;
        let owed = self.owed;
        self.send_server(&payload)?;
        // A request for TLS is not yet what is owed.
        self.owed = owed;
        Ok(())
    }
}

pub(crate) fn timed_out() -> WireError {
    WireError::Io(std::io::ErrorKind::TimedOut.into())
}

pub(crate) fn read(connection: &mut Connection) -> WireResult<Secret> {
    connection
        .read_payload()
        .map(|payload| Zeroizing::new(payload.to_vec()))
}

pub(crate) fn write(connection: &mut Connection, payload: &[u8]) -> WireResult<()> {
    connection.write_payload(payload)?;
    connection.flush()
}
