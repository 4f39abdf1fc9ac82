//! Packets: the frame around every message.
//!
//! A packet is three bytes of length, a sequence number, and at most 16 MiB − 1 of data. A longer
//! message goes over several packets, of which all but the last are full; the last may be empty.
//! The sequence number starts at 0 with each command, counts packets of both directions, and wraps
//! at 256.
//!
//! [`Connection`] puts buffers around a [`Transport`], because system calls are what a relay costs:
//! one read takes in all that has arrived, and nothing is written before [`Connection::flush`] or
//! 64 KiB of output. A statement and a short answer are then four calls: read and write, once for
//! each peer.
//!
//! ```no_run
//! # fn demo(mut client: onionskin_wire::Connection, mut server: onionskin_wire::Connection)
//! # -> onionskin_wire::WireResult<()> {
//! let command = client.read_command()?;
//! server.reset_sequence();
//! server.write_payload(command)?;
//! server.flush()?;
//! client.write_payload(server.read_payload()?)?;
//! client.flush()?;
//! # Ok(()) }
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `mod` | the connection: its buffers, limits and observers |
//! | `header` | the frame around a packet's data |
//! | `input`, `output` | reading and writing |
//! | `hold` | an answer that is kept back to be changed |
//! | `upgrade` | TLS |
//! | `direction` | from the peer or to it |

mod direction;
mod header;
mod hold;
mod input;
mod output;
mod upgrade;

use crate::deadline::Deadline;
use crate::error::WireResult;
use crate::stream::Transport;
use crate::trace::Tracer;

pub use direction::Direction;
pub use header::{HEADER_LENGTH, MAX_PACKET_DATA};
pub use hold::{Packets, Released};

/// Largest payload accepted unless told otherwise: what the servers allow at most.
pub const DEFAULT_MAX_PAYLOAD: usize = 1 << 30;

/// Input buffer of a session that has nothing large to say.
const SMALL_INPUT: usize = 8 * 1024;
/// Input buffer while a result streams in packets that are each smaller.
const STREAM_INPUT: usize = 64 * 1024;
/// Output is written once it is this long.
const FLUSH_AT: usize = 64 * 1024;
/// Buffers above this size are given back by [`Connection::shrink_idle`].
const IDLE_BUFFER: usize = 16 * 1024;

/// Sees every whole payload of a connection.
pub type Tap = Box<dyn FnMut(Direction, &[u8]) + Send>;

/// Those who watch a connection; rarely any, so the connection holds one pointer for all.
#[derive(Default)]
struct Observers {
    tap: Option<Tap>,
    tracer: Option<Tracer>,
}

/// Where the payload lies that was read last.
#[derive(Clone, Copy)]
enum Current {
    /// In the input buffer, from and to.
    Buffered(usize, usize),
    Joined,
}

/// A message of several packets of which some are still to come.
#[derive(Clone, Copy)]
struct Joining {
    /// Data of the present packet that has not arrived.
    left: usize,
    /// The present packet is not full, and therefore the last.
    last: bool,
}

/// Output that is being held back.
struct Hold {
    /// What [`Connection::written`] was when it began.
    begin: u64,
    /// The number that its first packet has.
    sequence: u8,
    /// Most bytes that are held.
    limit: usize,
    overflowed: bool,
}

/// One peer: a transport with buffers and the count of packets.
pub struct Connection {
    transport: Transport,
    /// Bytes `start..end` have arrived and were not read; what lies behind is room.
    input: Vec<u8>,
    start: usize,
    end: usize,
    /// The last read from the transport filled all the room there was.
    filled: bool,
    joined: Vec<u8>,
    joining: Option<Joining>,
    current: Current,
    output: Vec<u8>,
    /// Where in `output` the header of the payload under construction lies.
    open_payload: Option<usize>,
    hold: Option<Hold>,
    sequence: u8,
    /// Bytes that went to the transport.
    sent: u64,
    /// The last payload is a farewell: see [`Connection::read_farewell`].
    farewell: bool,
    max_payload: usize,
    deadline: Option<Deadline>,
    /// How long reads have waited, in nanoseconds, if that is measured.
    waited: Option<u64>,
    observers: Option<Box<Observers>>,
}

impl Connection {
    /// Puts buffers around a transport.
    pub fn new(transport: Transport) -> Self {
        Self {
            transport,
            input: vec![0; SMALL_INPUT],
            start: 0,
            end: 0,
            filled: false,
            joined: Vec::new(),
            joining: None,
            current: Current::Buffered(0, 0),
            output: Vec::new(),
            open_payload: None,
            hold: None,
            sequence: 0,
            sent: 0,
            farewell: false,
            max_payload: DEFAULT_MAX_PAYLOAD,
            deadline: None,
            waited: None,
            observers: None,
        }
    }

    /// Measures from now on how long reads wait for the peer.
    pub fn measure_waits(&mut self) {
        self.waited = Some(0);
    }

    /// How long reads have waited since this was asked last, in nanoseconds; nothing, if it is not
    /// measured.
    #[inline]
    pub fn take_waited(&mut self) -> u64 {
        self.waited.as_mut().map_or(0, std::mem::take)
    }

    /// Refuses payloads longer than this. A connection that met one is of no further use.
    pub fn set_max_payload(&mut self, bytes: usize) {
        self.max_payload = bytes;
    }

    /// Ends reads and writes at a moment, a TLS handshake included; `None` takes that away, with
    /// the socket's time limits.
    ///
    /// A read that ended so may be repeated under a later one ([`WireError::is_timeout`]); after a
    /// write the connection is of no further use.
    pub fn set_deadline(&mut self, deadline: Option<Deadline>) -> WireResult<()> {
        if deadline.is_none() && self.deadline.is_some() {
            self.transport.set_read_timeout(None)?;
            self.transport.set_write_timeout(None)?;
        }
        self.transport.set_deadline(deadline.clone());
        self.deadline = deadline;
        Ok(())
    }

    /// The transport below.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The transport below, for its timeouts and its end.
    pub fn transport_mut(&mut self) -> &mut Transport {
        &mut self.transport
    }

    /// True when a password may travel over this connection: TLS or a local socket.
    pub fn is_secure(&self) -> bool {
        self.transport.is_secure()
    }

    /// Shows every payload to `tap` from now on.
    pub fn set_tap(&mut self, tap: Option<Tap>) {
        self.observers.get_or_insert_default().tap = tap;
        self.drop_unused_observers();
    }

    /// Has every payload traced from now on.
    pub fn set_tracer(&mut self, tracer: Option<Tracer>) {
        self.observers.get_or_insert_default().tracer = tracer;
        self.drop_unused_observers();
    }

    fn drop_unused_observers(&mut self) {
        if let Some(o) = &self.observers
            && o.tap.is_none()
            && o.tracer.is_none()
        {
            self.observers = None;
        }
    }

    // --- sequence numbers ---

    /// Number that the next packet, of either direction, has.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// A new command begins.
    pub fn reset_sequence(&mut self) {
        self.sequence = 0;
    }

    /// Goes on counting from `sequence`.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    // --- memory ---

    /// Gives back what a large statement or result has left behind. For the moment before a session
    /// waits for its client; the payload that was read last is gone afterwards.
    pub fn shrink_idle(&mut self) {
        self.current = Current::Buffered(0, 0);
        if self.joining.is_none() && self.joined.capacity() > 0 {
            self.joined = Vec::new();
        }
        let unread = self.end - self.start;
        if self.input.len() > IDLE_BUFFER && unread <= SMALL_INPUT {
            let mut small = vec![0; SMALL_INPUT];
            small[..unread].copy_from_slice(&self.input[self.start..self.end]);
            self.input = small;
            (self.start, self.end) = (0, unread);
            self.filled = false;
        }
        if self.output.capacity() > IDLE_BUFFER && self.output.len() <= IDLE_BUFFER {
            self.output.shrink_to(SMALL_INPUT);
        }
        self.transport.shrink_idle();
    }

    // --- observers ---

    #[cold]
    fn observe_received(&mut self, sequence: u8) {
        if let Some(mut observers) = self.observers.take() {
            observers.see(Direction::Received, sequence, self.last_payload());
            self.observers = Some(observers);
        }
    }

    #[cold]
    fn observe_sent(&mut self, sequence: u8, payload: &[u8]) {
        if let Some(observers) = &mut self.observers {
            observers.see(Direction::Sent, sequence, payload);
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("transport", &self.transport)
            .field("sequence", &self.sequence)
            .field("unread", &(self.end - self.start))
            .field("unsent", &self.output.len())
            .finish_non_exhaustive()
    }
}

impl Observers {
    fn see(&mut self, direction: Direction, sequence: u8, payload: &[u8]) {
        if let Some(tap) = &mut self.tap {
            tap(direction, payload);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.record(direction, sequence, payload);
        }
    }
}
