//! The messages of the login methods, between the client's first answer and the server's yes or no.

use std::time::{Duration, Instant};

use onionskin_wire::messages::{AuthMoreData, AuthSwitchRequest, ErrPacket, OkPacket};
use onionskin_wire::{Deadline, WireError};

use super::error::{
    CLEAR_PASSWORD, LoginError, LoginResult, OLD_CLIENT, STRANGE_ANSWER, UNLIKE_LEGS,
};
use super::legs::{ANSWER, HURRIED_ANSWER, Legs, Owed, read, timed_out};
use super::method::Method;
use super::password::UNTRUSTED;

/// How long to listen to one side before the other, where either may speak.
const TURN: Duration = Duration::from_millis(5);

/// The server's answer at the end: the payload of OK, or `None` for an error, which the client has
/// been sent.
pub(crate) type Verdict = Option<Vec<u8>>;

impl Legs<'_> {
    /// Passes the messages of the methods on until the server says yes or no. The client's first
    /// answer, by `method` and to `scramble`, has been sent to the server.
    pub fn authenticate(
        &mut self,
        mut method: Method,
        mut scramble: Vec<u8>,
        named: bool,
    ) -> LoginResult<Verdict> {
        let mut next = None;
        loop {
            let payload = match next.take() {
                Some(payload) => payload,
                None if method == Method::Unknown => self.read_either()?,
                None => self.read_server()?,
            };
            match payload.first() {
                Some(&OkPacket::HEADER) => return Ok(Some(payload)),
                Some(&ErrPacket::HEADER) => {
                    self.write_client(&payload)?;
                    return Ok(None);
                }
                Some(&AuthSwitchRequest::HEADER) => {
                    self.owed = Owed::Answer(Method::Withheld);
                    let switch = AuthSwitchRequest::decode(&payload).map_err(LoginError::Server)?;
                    method = Method::of(&switch.plugin);
                    let may_ask = named || self.asks_unnamed && method == Method::Native;
                    if !may_ask {
                        return Err(LoginError::Refused(OLD_CLIENT));
                    }
                    scramble = switch.scramble().to_vec();
                    self.owed = Owed::Answer(method);
                    self.check(method)?;
                    self.write_client(&payload)?;
                    next = self.first_answer(method, &scramble)?;
                }
                _ => next = self.more_data(method, &payload, &scramble)?,
            }
        }
    }

    /// Refuses what would be passed on over a leg less secure than the other, or to a server that
    /// may be anybody.
    fn check(&self, method: Method) -> LoginResult<()> {
        match method {
            Method::Clear if !(self.client.is_secure() && self.server_is_trusted()) => {
                Err(LoginError::Refused(CLEAR_PASSWORD))
            }
            Method::Old if !self.server_is_trusted() => Err(LoginError::Refused(UNTRUSTED)),
            Method::Unknown if !self.are_alike() => Err(LoginError::Refused(UNLIKE_LEGS)),
            Method::Unknown if self.client.is_secure() && !self.server_is_trusted() => {
                Err(LoginError::Refused(UNTRUSTED))
            }
            _ => Ok(()),
        }
    }

    /// The client's answer to a request to switch to `method`. If that took an exchange with the
    /// server that ended otherwise than expected, its packet is returned.
    fn first_answer(&mut self, method: Method, scramble: &[u8]) -> LoginResult<Option<Vec<u8>>> {
        match method {
            Method::Native
            | Method::Ed25519
            | Method::Old
            | Method::CachingSha2
            | Method::InTurn
            | Method::Clear => {
                let answer = self.read_client()?;
                if !method.accepts(&answer) {
                    return Err(LoginError::Refused(STRANGE_ANSWER));
                }
                self.send_server(&answer)?;
                Ok(None)
            }
            Method::Sha256 => {
                self.relay_password(method, AuthMoreData::SHA256_REQUEST_PUBLIC_KEY, scramble)
            }
            Method::Unknown | Method::Withheld => Ok(None),
        }
    }

    /// Data of the method from the server.
    fn more_data(
        &mut self,
        method: Method,
        payload: &[u8],
        scramble: &[u8],
    ) -> LoginResult<Option<Vec<u8>>> {
        match method {
            Method::CachingSha2 => {
                let more = AuthMoreData::decode(payload).map_err(LoginError::Server)?;
                match more.data {
                    AuthMoreData::FAST_AUTH_OK => {
                        self.write_client(payload)?;
                        Ok(None)
                    }
                    AuthMoreData::FULL_AUTH => {
                        self.owed = Owed::Password(method);
                        self.check_password_way(method)?;
                        self.write_client(payload)?;
                        self.relay_password(method, AuthMoreData::REQUEST_PUBLIC_KEY, scramble)
                    }
                    _ => Err(LoginError::Server(WireError::Malformed(
                        "data of caching_sha2_password",
                    ))),
                }
            }
            Method::InTurn => {
                self.owed = Owed::Answer(method);
                self.write_client(payload)?;
                let answer = self.read_client()?;
                self.send_server(&answer)?;
                Ok(None)
            }
            Method::Unknown => {
                self.owed = Owed::Answer(method);
                self.write_client(payload)?;
                Ok(None)
            }
            Method::Native
            | Method::Ed25519
            | Method::Old
            | Method::Sha256
            | Method::Clear
            | Method::Withheld => Err(LoginError::Server(WireError::Malformed(
                "data of a login method out of place",
            ))),
        }
    }

    /// The server's next packet; what the client says before it is passed on. For methods of which
    /// it is not known whose turn it is.
    fn read_either(&mut self) -> LoginResult<Vec<u8>> {
        let begun = Instant::now();
        let mut limit = ANSWER;
        loop {
            self.limit_server(Deadline::at(Instant::now() + TURN))?;
            match read(self.server) {
                Err(e) if e.is_timeout() => {}
                Err(e) => return Err(LoginError::Server(e)),
                Ok(mut payload) => return Ok(std::mem::take(&mut *payload)),
            }
            self.limit_client(Deadline::at(Instant::now() + TURN))?;
            match read(self.client) {
                Err(e) if e.is_timeout() => {}
                Err(e) => return Err(LoginError::Client(e)),
                Ok(answer) => self.send_server(&answer)?,
            }
            if self.is_hurried() {
                limit = HURRIED_ANSWER;
            }
            let too_slow = self.owed != Owed::Nothing && begun.elapsed() > limit;
            if too_slow || Instant::now() > self.whole {
                return Err(LoginError::Client(timed_out()));
            }
        }
    }

    fn is_hurried(&self) -> bool {
        self.pace.as_ref().is_some_and(|pace| pace.is_hurried())
    }
}
