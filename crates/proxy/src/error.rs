//! Why a statement did not run, or a session ended.

use onionskin_crypt::{OpenError, SealError};
use onionskin_keys::KeyError;
use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{Refusal, errors};
use onionskin_value::{StoreError, ValueError};
use onionskin_wire::WireError;
use onionskin_wire::messages::ErrPacket;

use crate::server_errors::{self, KILLED, OUT_OF_TIME, ROLLED_BACK, WRONG_MOMENT};

/// Whether a cell did not open, or was not sealed, which tables that were exchanged can cause.
fn does_not_open(refusal: &Refusal) -> bool {
    let of_keys = [
        &errors::TAMPERED,
        &errors::UNKNOWN_KEY,
        &errors::KEY_AT_REST,
    ];
    refusal.is_any(&of_keys)
}

/// Ends a statement or a session.
pub(crate) enum Failure {
    /// The statement is not done; the client gets our error, the session goes on.
    Refused(Refusal),
    /// A value is refused as the server would refuse it; the text may quote it, for its sender
    /// only.
    Value(ValueError),
    /// The server's own error, for the client.
    Server {
        code: u16,
        state: [u8; 5],
        message: Vec<u8>,
    },
    /// The snapshot of the schema is older than the tables: look them up again and plan again.
    Stale,
    /// The client's connection is broken.
    Client(WireError),
    /// The server's connection is broken.
    Backend(WireError),
    /// What comes from the server is not the answer to what it was asked: nothing that comes from
    /// it can be told apart any more.
    OutOfStep(&'static str),
}

/// For logs: the server's and the values' texts may quote values, so they are left out.
impl std::fmt::Debug for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Refused(r) => write!(f, "{r}"),
            Failure::Value(e) => write!(f, "value error {}", e.code),
            Failure::Server { code, .. } => write!(f, "server error {code}"),
            Failure::Stale => f.write_str("stale snapshot"),
            Failure::Client(e) => write!(f, "client: {e}"),
            Failure::Backend(e) => write!(f, "server: {e}"),
            Failure::OutOfStep(what) => write!(f, "out of step: {what}"),
        }
    }
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Failure::Refused(refusal)
    }
}

impl From<NotUnderstood> for Failure {
    fn from(reason: NotUnderstood) -> Self {
        Failure::Refused(reason.into())
    }
}

impl Failure {
    /// The server has rolled the whole transaction back. It says so with whichever statement comes
    /// next, a question of the proxy's perhaps, and only once: the client has to hear it.
    pub fn ends_transaction(&self) -> bool {
        matches!(self, Failure::Server { code, .. } if ROLLED_BACK.contains(code))
    }

    /// Whether somebody has ended the statement, which could run as well as before.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Failure::Server { code, .. } if *code == KILLED || OUT_OF_TIME.contains(code))
    }

    pub fn refused(entry: &'static errors::Entry, about: impl Into<String>) -> Self {
        Failure::Refused(Refusal::new(entry, about))
    }

    /// The text of a server's error.
    pub fn servers_text(&self) -> Option<Vec<u8>> {
        match self {
            Failure::Server { message, .. } => Some(message.clone()),
            _ => None,
        }
    }

    /// The same, with the text of a server's error changed.
    pub fn reworded(self, reword: impl FnOnce(&[u8]) -> Vec<u8>) -> Self {
        match self {
            Failure::Server {
                code,
                state,
                message,
            } => Failure::Server {
                code,
                state,
                message: reword(&message),
            },
            other => other,
        }
    }

    /// What came of reading the rows that a statement is to change. MySQL says another error of a
    /// constant that is no moment in a query than in a change, and in a change not always.
    pub fn before_a_change(self) -> Self {
        match self {
            Failure::Server {
                code: WRONG_MOMENT, ..
            } => Failure::refused(
                &errors::VALUE,
                "a constant that is no date or time, beside one",
            ),
            other => other,
        }
    }

    /// A value could not be stored.
    pub fn store(error: StoreError, about: &str) -> Self {
        match error {
            StoreError::Server(error) => Failure::Value(error),
            StoreError::Unsupported(reason) => {
                Failure::refused(&errors::VALUE, format!("{about} ({reason})"))
            }
        }
    }

    pub fn seal(error: &SealError, about: &str) -> Self {
        match error {
            SealError::Exhausted => Failure::refused(&errors::SEAL_BOUND, about),
            SealError::OpensOnly => Failure::refused(&errors::KEY_AT_REST, about),
            SealError::NeedsTenant => Failure::refused(&errors::TENANT, about),
            SealError::Forgotten => Failure::refused(&errors::FORGOTTEN, about),
            SealError::NoTenants => Failure::refused(&errors::NO_TENANTS, about),
            _ => Failure::refused(&errors::INTERNAL, about),
        }
    }

    pub fn open(error: &OpenError, about: &str) -> Self {
        match error {
            OpenError::OtherKey(id) => {
                Failure::refused(&errors::UNKNOWN_KEY, format!("{about}, key {id}"))
            }
            OpenError::Forgotten => Failure::refused(&errors::FORGOTTEN, about),
            OpenError::NoTenants => Failure::refused(&errors::NO_TENANTS, about),
            _ => Failure::refused(&errors::TAMPERED, about),
        }
    }

    pub fn key(error: &KeyError, about: &str) -> Self {
        let entry = match error {
            KeyError::NotInUse { .. } => &errors::KEY_AT_REST,
            _ => &errors::UNKNOWN_KEY,
        };
        Failure::refused(entry, format!("{about} ({error})"))
    }

    /// Whether tables that are not what they were when the statement was planned can be the cause.
    /// A value may be wrong for what a table was, and right for what it is.
    pub fn may_be_stale(&self) -> bool {
        match self {
            Failure::Stale | Failure::Value(_) => true,
            Failure::Server { code, message, .. } => server_errors::may_be_stale(*code, message),
            Failure::Refused(refusal) => does_not_open(refusal) || is_not_known(refusal),
            _ => false,
        }
    }

    /// Whether the session can go on.
    pub fn is_fatal(&self) -> bool {
        matches!(
            self,
            Failure::Client(_) | Failure::Backend(_) | Failure::OutOfStep(_)
        )
    }

    /// Whether the server's connection has ended, as opposed to having brought what is not
    /// understood.
    pub fn is_lost_server(&self) -> bool {
        matches!(
            self,
            Failure::Backend(WireError::Closed | WireError::Io(_) | WireError::Tls(_))
        )
    }

    /// The code of the error that it is, if it is one of the proxy's own.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Failure::Refused(refusal) => Some(refusal.code()),
            Failure::Stale => Some(errors::STALE.code),
            Failure::Backend(_) => Some(errors::BACKEND_GONE.code),
            Failure::OutOfStep(_) => Some(errors::OUT_OF_STEP.code),
            Failure::Client(WireError::Malformed(_) | WireError::SequenceMismatch { .. }) => {
                Some(errors::MALFORMED.code)
            }
            Failure::Client(WireError::TooLarge { .. }) => Some(errors::TOO_BIG.code),
            Failure::Value(_) | Failure::Server { .. } | Failure::Client(_) => None,
        }
    }

    /// The packet for the client; `None` when it is the client that is gone, or the server. That
    /// the server is gone a client is told as a server would tell it, by the end of the connection:
    /// drivers know that, and take another connection.
    pub fn packet(&self) -> Option<ErrPacket<'_>> {
        let of = |r: &Refusal| {
            let state = r.state().as_bytes().try_into().unwrap_or(*b"HY000");
            ErrPacket::new(r.number(), state, r.message().into_bytes())
        };
        Some(match self {
            Failure::Refused(refusal) => of(refusal),
            Failure::Value(e) => ErrPacket::new(e.code, e.sqlstate, e.message.as_bytes().to_vec()),
            Failure::Server {
                code,
                state,
                message,
            } => ErrPacket::new(*code, *state, message.as_slice()),
            Failure::Stale => of(&Refusal::new(&errors::STALE, "")),
            _ if self.is_lost_server() => return None,
            Failure::Backend(_) => of(&Refusal::new(&errors::BACKEND_GONE, "")),
            Failure::OutOfStep(what) => of(&Refusal::new(&errors::OUT_OF_STEP, *what)),
            Failure::Client(_) => return None,
        })
    }
}

/// The servers' error for a packet that is too long.
pub(crate) fn too_long() -> Failure {
    Failure::refused(&errors::TOO_BIG, "`max_allowed_packet`")
}

/// Whether a statement was refused because of a table that the snapshot lacks. Another session may
/// have made it meanwhile.
fn is_not_known(refusal: &Refusal) -> bool {
    refusal.reason() == Some(&NotUnderstood::MissingOnEngine)
}
