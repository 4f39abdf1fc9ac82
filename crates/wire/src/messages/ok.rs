//! Success: of a statement, a login, or (in the place of EOF) of all rows of a result.

use crate::capabilities::{Capabilities, StatusFlags};
use crate::codec::{PutWire, Reader};
use crate::error::{WireError, WireResult};

/// An OK packet.
///
/// With `SESSION_TRACK` the packet can carry changes of the session's state. To pass a server's
/// packet to a client that did not ask for them, encode it with the client's capabilities: the
/// changes and their status flag are left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OkPacket<'a> {
    /// True when the packet ends rows and has an EOF packet's first byte (`DEPRECATE_EOF`).
    pub ends_rows: bool,
    /// Rows the statement changed (or found, with `FOUND_ROWS`).
    pub affected_rows: u64,
    /// First generated AUTO_INCREMENT value.
    pub last_insert_id: u64,
    /// Status flags.
    pub status: StatusFlags,
    /// Number of warnings.
    pub warnings: u16,
    /// Text for people, such as `Rows matched: 1  Changed: 1  Warnings: 0`.
    pub info: &'a [u8],
    /// Changes of the session's state, as sent.
    pub session_changes: SessionChanges<'a>,
}

impl Default for OkPacket<'_> {
    fn default() -> Self {
        Self {
            ends_rows: false,
            affected_rows: 0,
            last_insert_id: 0,
            status: StatusFlags::AUTOCOMMIT,
            warnings: 0,
            info: &[],
            session_changes: SessionChanges(&[]),
        }
    }
}

impl<'a> OkPacket<'a> {
    /// First byte of an OK packet.
    pub const HEADER: u8 = 0x00;
    /// First byte of an OK packet that ends rows.
    pub const END_HEADER: u8 = 0xfe;

    /// Reads the packet as a peer with these capabilities sends it.
    #[inline]
    pub fn decode(payload: &'a [u8], capabilities: Capabilities) -> WireResult<Self> {
        let mut r = Reader::new(payload);
        let ends_rows = match r.u8()? {
            Self::HEADER => false,
            Self::END_HEADER => true,
            _ => return Err(WireError::Malformed("not an OK packet")),
        };
        let affected_rows = r.lenenc_int()?;
        let last_insert_id = r.lenenc_int()?;
        let status = StatusFlags::from_bits_retain(r.u16()?);
        let warnings = r.u16()?;
        let mut info: &[u8] = &[];
        let mut session_changes = SessionChanges(&[]);
        if capabilities.contains(Capabilities::SESSION_TRACK) {
            if !r.is_empty() {
                info = r.lenenc_bytes()?;
            }
            if status.contains(StatusFlags::SESSION_STATE_CHANGED) && !r.is_empty() {
                session_changes = SessionChanges(r.lenenc_bytes()?);
            }
        } else if !r.is_empty() {
            // The protocol's description calls this a string that ends with the packet, but the
            // servers give it a length. Take the length for one only if it fits the packet exactly.
            let mut lenenc = r.clone();
            info = match lenenc.lenenc_bytes() {
                Ok(text) if lenenc.is_empty() => text,
                _ => r.rest(),
            };
        }
        Ok(Self {
            ends_rows,
            affected_rows,
            last_insert_id,
            status,
            warnings,
            info,
            session_changes,
        })
    }

    /// Only the status flags, for which nothing behind them is looked at.
    #[inline]
    pub fn status_of(payload: &[u8]) -> WireResult<StatusFlags> {
        let mut r = Reader::new(payload);
        r.skip(1)?;
        r.lenenc_int()?;
        r.lenenc_int()?;
        r.u16().map(StatusFlags::from_bits_retain)
    }

    /// Only the number of warnings, for which nothing behind it is looked at.
    #[inline]
    pub fn warnings_of(payload: &[u8]) -> WireResult<u16> {
        let mut r = Reader::new(payload);
        r.skip(1)?;
        r.lenenc_int()?;
        r.lenenc_int()?;
        r.skip(2)?;
        r.u16()
    }

    /// Appends the packet as a peer with these capabilities expects it.
    pub fn encode(&self, out: &mut Vec<u8>, capabilities: Capabilities) {
        let tracks = capabilities.contains(Capabilities::SESSION_TRACK);
        let mut status = self.status;
        let has_changes = tracks
            && status.contains(StatusFlags::SESSION_STATE_CHANGED)
            && !self.session_changes.0.is_empty();
        status.set(StatusFlags::SESSION_STATE_CHANGED, has_changes);
        out.put_u8(if self.ends_rows {
            Self::END_HEADER
        } else {
            Self::HEADER
        });
        out.put_lenenc_int(self.affected_rows);
        out.put_lenenc_int(self.last_insert_id);
        out.put_u16(status.bits());
        out.put_u16(self.warnings);
        if has_changes || !self.info.is_empty() {
            out.put_lenenc_bytes(self.info);
        }
        if has_changes {
            out.put_lenenc_bytes(self.session_changes.0);
        }
    }

    /// The changes of the session's state, one after the other.
    pub fn changes(&self) -> SessionChanges<'a> {
        self.session_changes
    }
}

impl std::fmt::Debug for OkPacket<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OkPacket")
            .field("ends_rows", &self.ends_rows)
            .field("affected_rows", &self.affected_rows)
            .field("status", &self.status)
            .field("warnings", &self.warnings)
            .field("info_length", &self.info.len())
            .field("session_changes_length", &self.session_changes.0.len())
            .finish_non_exhaustive()
    }
}

/// Changes of a session's state as an OK packet carries them; an iterator over [`SessionChange`].
///
/// After a malformed change the iterator yields the error and ends.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionChanges<'a>(pub &'a [u8]);

/// One change of a session's state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SessionChange<'a> {
    /// A tracked system variable has a new value.
    SystemVariable {
        /// The variable.
        name: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// The current database; empty when there is none.
    Schema(&'a [u8]),
    /// Whether anything changed (`session_track_state_change`): `1` or `0`, and no length of it
    /// again.
    State(&'a [u8]),
    /// Global transaction ids, after one byte that tells their encoding.
    Gtids {
        /// How they are encoded; 0 is text.
        encoding: u8,
        /// The ids.
        ids: &'a [u8],
    },
    /// Statements that would start the open transaction again elsewhere.
    TransactionCharacteristics(&'a [u8]),
    /// State of the open transaction, one letter for each property.
    TransactionState(&'a [u8]),
    /// A kind of change that is not known here.
    Other {
        /// The kind.
        kind: u8,
        /// Its data.
        data: &'a [u8],
    },
}

impl std::fmt::Debug for SessionChange<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SystemVariable { name, .. } => {
                write!(f, "SystemVariable({})", name.escape_ascii())
            }
            Self::Schema(name) => write!(f, "Schema({})", name.escape_ascii()),
            Self::State(_) => f.write_str("State"),
            Self::Gtids { .. } => f.write_str("Gtids"),
            Self::TransactionCharacteristics(_) => f.write_str("TransactionCharacteristics"),
            Self::TransactionState(_) => f.write_str("TransactionState"),
            Self::Other { kind, .. } => write!(f, "Other({kind})"),
        }
    }
}

impl<'a> SessionChange<'a> {
    fn decode(kind: u8, data: &'a [u8]) -> WireResult<Self> {
        let mut r = Reader::new(data);
        Ok(match kind {
            0 => Self::SystemVariable {
                name: r.lenenc_bytes()?,
                value: r.lenenc_bytes()?,
            },
            1 => Self::Schema(r.lenenc_bytes()?),
            2 => Self::State(data),
            3 => Self::Gtids {
                encoding: r.u8()?,
                ids: r.lenenc_bytes()?,
            },
            4 => Self::TransactionCharacteristics(r.lenenc_bytes()?),
            5 => Self::TransactionState(r.lenenc_bytes()?),
            kind => Self::Other { kind, data },
        })
    }

    /// Appends the change to the bytes that become [`OkPacket::session_changes`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        let kind = match *self {
            Self::SystemVariable { name, value } => {
                data.put_lenenc_bytes(name);
                data.put_lenenc_bytes(value);
                0
            }
            Self::Schema(name) => {
                data.put_lenenc_bytes(name);
                1
            }
            Self::State(state) => {
                data.put_bytes(state);
                2
            }
            Self::Gtids { encoding, ids } => {
                data.put_u8(encoding);
                data.put_lenenc_bytes(ids);
                3
            }
            Self::TransactionCharacteristics(text) => {
                data.put_lenenc_bytes(text);
                4
            }
            Self::TransactionState(state) => {
                data.put_lenenc_bytes(state);
                5
            }
            Self::Other { kind, data: bytes } => {
                data.put_bytes(bytes);
                kind
            }
        };
        out.put_u8(kind);
        out.put_lenenc_bytes(&data);
    }
}

impl<'a> SessionChanges<'a> {
    fn advance(&mut self) -> WireResult<SessionChange<'a>> {
        let mut r = Reader::new(self.0);
        let kind = r.u8()?;
        let data = r.lenenc_bytes()?;
        self.0 = r.rest();
        SessionChange::decode(kind, data)
    }
}

impl<'a> Iterator for SessionChanges<'a> {
    type Item = WireResult<SessionChange<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let change = self.advance();
        if change.is_err() {
            self.0 = &[];
        }
        Some(change)
    }
}

impl std::fmt::Debug for SessionChanges<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}
