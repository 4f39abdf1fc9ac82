//! The wire tracer: one readable line for each packet.
//!
//! ```text
//! server 17 > seq 0 len 42 COM_QUERY
//! server 17 < seq 1 len 1 column count 2
//! server 17 < seq 2 len 31 column definition
//! server 17 < seq 4 len 9 row
//! server 17 < seq 5 len 7 end of rows status AUTOCOMMIT
//! ```
//!
//! A line holds names, numbers and lengths that cannot hold a value: neither statement text nor
//! cells, nor names of users, nor scrambles, nor the texts of errors, which quote values.
//! [`Tracer::with_text`] adds the bytes themselves, for tests that search what a server is sent; it
//! is not meant for anything that is kept.

use std::fmt::Write as _;

use crate::capabilities::Capabilities;
use crate::codec::Reader;
use crate::messages::{
    AuthMoreData, AuthSwitchRequest, Command, CursorType, ErrPacket, InitialHandshake, OkPacket,
    SslRequest,
};
use crate::packets::Direction;
use crate::response::{ResponseTracker, Step};

/// Who the peer of a traced connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A client: commands are received, answers sent.
    Client,
    /// A server: commands are sent, answers received.
    Server,
}

/// Where the lines go.
pub type Sink = Box<dyn FnMut(&str) + Send>;

#[derive(Debug, Clone)]
enum Phase {
    /// Before the login is over.
    Login {
        greeted: bool,
    },
    Commands,
    /// The answer to COM_CHANGE_USER: a login again.
    ChangeUser,
    /// The client sends a file.
    LocalInfile,
    /// An answer that cannot be followed, up to the next command.
    Unknown,
}

/// Follows one connection and writes a line for each payload.
pub struct Tracer {
    label: String,
    peer: Peer,
    with_text: bool,
    phase: Phase,
    tracker: ResponseTracker,
    capabilities: Capabilities,
    line: String,
    sink: Sink,
}

impl Tracer {
    /// Traces a connection from its greeting on. Every line begins with `label`.
    pub fn new(label: impl Into<String>, peer: Peer, sink: Sink) -> Self {
        Self {
            label: label.into(),
            peer,
            with_text: false,
            phase: Phase::Login { greeted: false },
            tracker: ResponseTracker::new(Capabilities::empty()),
            capabilities: Capabilities::empty(),
            line: String::new(),
            sink,
        }
    }

    /// Adds the bytes of every payload to its line. For tests only: lines then hold values.
    pub fn with_text(mut self, with_text: bool) -> Self {
        self.with_text = with_text;
        self
    }

    /// Takes one payload.
    pub fn record(&mut self, direction: Direction, sequence: u8, payload: &[u8]) {
        let from_client = (self.peer == Peer::Client) == (direction == Direction::Received);
        let arrow = match direction {
            Direction::Received => '<',
            Direction::Sent => '>',
        };
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        // Writing to a String cannot fail.
        let _ = write!(
            line,
            "{} {arrow} seq {sequence} len {} ",
            self.label,
            payload.len()
        );
        if from_client {
            self.describe_from_client(&mut line, sequence, payload);
        } else {
            self.describe_from_server(&mut line, payload);
        }
        if self.with_text {
            let _ = write!(line, " {}", payload.escape_ascii());
        }
        (self.sink)(&line);
        self.line = line;
    }

    fn describe_from_client(&mut self, line: &mut String, sequence: u8, payload: &[u8]) {
        match self.phase {
            Phase::Login { .. } => {
                if SslRequest::is_ssl_request(payload) {
                    line.push_str("request for TLS");
                    return;
                }
                // The first packet of a login has its capabilities; what follows are a method's
                // data.
                if self.capabilities.is_empty() && payload.len() >= 32 {
                    let bits = Reader::new(payload).u32().unwrap_or_default();
                    self.capabilities = Capabilities::from_bits_retain(bits);
                    self.tracker = ResponseTracker::new(self.capabilities);
                    line.push_str("login");
                } else {
                    line.push_str("login data");
                }
            }
            Phase::LocalInfile => {
                line.push_str("file data");
                if payload.is_empty() {
                    line.push_str(" end");
                    self.phase = Phase::Commands;
                }
            }
            Phase::ChangeUser if sequence != 0 => line.push_str("login data"),
            _ => {
                let Ok(command) = Command::of(payload) else {
                    line.push_str("empty command");
                    return;
                };
                line.push_str(command.name());
                self.phase = match command {
                    Command::ChangeUser => Phase::ChangeUser,
                    Command::StmtExecute if CursorType::is_asked_for(payload) => {
                        self.tracker.begin_cursor();
                        Phase::Commands
                    }
                    _ if self.tracker.begin(command).is_ok() => Phase::Commands,
                    _ => Phase::Unknown,
                };
            }
        }
    }

    fn describe_from_server(&mut self, line: &mut String, payload: &[u8]) {
        match &self.phase {
            Phase::Login { greeted: false } => {
                if InitialHandshake::is_handshake(payload) {
                    line.push_str("greeting");
                } else {
                    describe_error(line, payload);
                }
                self.phase = Phase::Login { greeted: true };
            }
            Phase::Login { .. } | Phase::ChangeUser => self.describe_login_answer(line, payload),
            Phase::Commands | Phase::LocalInfile => match self.tracker.step(payload) {
                Ok(step) => {
                    describe_step(line, &step, payload);
                    if step == Step::LocalInfileRequest {
                        self.phase = Phase::LocalInfile;
                    }
                }
                Err(_) => describe_error(line, payload),
            },
            Phase::Unknown => describe_error(line, payload),
        }
    }

    fn describe_login_answer(&mut self, line: &mut String, payload: &[u8]) {
        match payload.first() {
            Some(&OkPacket::HEADER) => {
                line.push_str("login OK");
                self.phase = Phase::Commands;
            }
            Some(&AuthSwitchRequest::HEADER) => {
                line.push_str("switch to login method");
                if let Ok(switch) = AuthSwitchRequest::decode(payload) {
                    let _ = write!(line, " {}", switch.plugin.escape_ascii());
                }
            }
            Some(&AuthMoreData::HEADER) => line.push_str("login data"),
            _ => {
                if matches!(self.phase, Phase::ChangeUser) {
                    self.phase = Phase::Commands;
                }
                describe_error(line, payload);
            }
        }
    }
}

fn describe_error(line: &mut String, payload: &[u8]) {
    match ErrPacket::decode(payload) {
        Ok(error) => {
            let _ = write!(line, "error {}", error.code);
            if let Some(state) = error.sqlstate {
                let _ = write!(line, " ({})", state.escape_ascii());
            }
        }
        Err(_) => line.push_str("unexpected packet"),
    }
}

fn describe_step(line: &mut String, step: &Step, payload: &[u8]) {
    let _ = match step {
        Step::Ok { status } => write!(line, "OK status {status:?}"),
        Step::Err => {
            describe_error(line, payload);
            Ok(())
        }
        Step::ColumnCount(count) => write!(line, "column count {count}"),
        Step::ColumnDef => write!(line, "column definition"),
        Step::EofAfterColumns { status } => write!(line, "end of columns status {status:?}"),
        Step::Row => write!(line, "row"),
        Step::EndOfRows { status } => write!(line, "end of rows status {status:?}"),
        Step::LocalInfileRequest => write!(line, "request for a file"),
        Step::PrepareOk(ok) => write!(
            line,
            "prepared statement {} params {} columns {}",
            ok.statement_id, ok.num_params, ok.num_columns
        ),
        Step::ParamDef => write!(line, "parameter definition"),
        Step::EofAfterParams => write!(line, "end of parameters"),
        Step::EofAfterPrepareColumns => write!(line, "end of columns"),
        Step::Statistics => write!(line, "statistics"),
    };
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracer")
            .field("label", &self.label)
            .field("peer", &self.peer)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}
