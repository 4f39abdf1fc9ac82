//! Packets: the frame around every message.
//!
//! A packet is three bytes of length, a sequence number, and at most 16 MiB − 1 of data. A longer message goes over
//! several packets, of which all but the last are full; the last may be empty. The sequence number starts at 0 with each
//! command, counts packets of both directions, and wraps at 256.
//!
//! [`Connection`] puts buffers around a [`Transport`], because system calls are what a relay costs: one read takes
//! in all that has arrived, and nothing is written before [`Connection::flush`] or 64 KiB of output. A statement and a short
//! answer are then four calls: read and write, once for each peer.
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

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, StreamOwned};

use crate::deadline::Deadline;
use crate::error::{WireError, WireResult};
use crate::messages::ErrPacket;
use crate::stream::{TlsSocket, Transport};
use crate::trace::Tracer;

/// Length of a packet's header.
pub const HEADER_LENGTH: usize = 4;
/// Data in a full packet; a packet this long is followed by another of the same message.
pub const MAX_PACKET_DATA: usize = 0xff_ffff;
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

/// Which way a payload went, seen from this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the peer.
    Received,
    /// To the peer.
    Sent,
}

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
    sequence: u8,
    /// Bytes that went to the transport.
    sent: u64,
    /// The last payload is a farewell: see [`Connection::read_farewell`].
    farewell: bool,
    max_payload: usize,
    deadline: Option<Deadline>,
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
            sequence: 0,
            sent: 0,
            farewell: false,
            max_payload: DEFAULT_MAX_PAYLOAD,
            deadline: None,
            observers: None,
        }
    }

    /// Refuses payloads longer than this. A connection that met one is of no further use.
    pub fn set_max_payload(&mut self, bytes: usize) {
        self.max_payload = bytes;
    }

    /// Ends reads and writes at a moment, a TLS handshake included; `None` takes that away, with the socket's time limits.
    ///
    /// A read that ended so may be repeated under a later one ([`WireError::is_timeout`]); after a write the connection is of
    /// no further use.
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

    // --- reading ---

    /// The next payload, whole, valid until the next read. Reads from the transport only when no whole payload
    /// is in the buffer.
    ///
    /// After a timeout ([`WireError::is_timeout`]) the call may be repeated; nothing is lost. Other errors end the
    /// connection's use.
    #[inline]
    pub fn read_payload(&mut self) -> WireResult<&[u8]> {
        let sequence = self.sequence;
        self.read_current()?;
        if self.observers.is_some() {
            self.observe_received(sequence);
        }
        Ok(self.last_payload())
    }

    /// The next command: a payload with which the count of packets starts again.
    #[inline]
    pub fn read_command(&mut self) -> WireResult<&[u8]> {
        self.sequence = 0;
        self.read_payload()
    }

    /// The payload that was read last, once more. Empty before the first read.
    #[inline]
    pub fn last_payload(&self) -> &[u8] {
        match self.current {
            Current::Buffered(from, to) => &self.input[from..to],
            Current::Joined => &self.joined,
        }
    }

    /// True when the payload that was read last is an error with number 0 in the place of an answer: the peer has ended
    /// the connection before it saw the command.
    pub fn said_farewell(&self) -> bool {
        self.farewell
    }

    /// What a server that has ended the connection said before that: an error with number 0. `None` if it said nothing of the
    /// kind. For connections of which the peer has closed its side, or on which writing has failed: a read that would wait is the
    /// caller's to bound.
    pub fn read_farewell(&mut self) -> Option<&[u8]> {
        if !self.farewell {
            self.sequence = 0;
            let payload = self.read_payload().ok()?;
            if !ErrPacket::is_err(payload) {
                return None;
            }
            self.farewell = true;
        }
        Some(self.last_payload())
    }

    /// True when the next payload is in the buffer, so that reading it takes no system call.
    #[inline]
    pub fn has_buffered_packet(&self) -> bool {
        let mut rest = &self.input[self.start..self.end];
        if let Some(joining) = self.joining {
            match rest.split_at_checked(joining.left) {
                None => return false,
                Some(_) if joining.last => return true,
                Some((_, tail)) => rest = tail,
            }
        }
        loop {
            let Some((length, _)) = parse_header(rest) else {
                return false;
            };
            match rest.get(HEADER_LENGTH + length..) {
                None => return false,
                Some(_) if length < MAX_PACKET_DATA => return true,
                Some(tail) => rest = tail,
            }
        }
    }

    /// True when bytes have arrived that were not read, a part of a packet included.
    pub fn has_buffered_input(&self) -> bool {
        self.start != self.end || self.joining.is_some()
    }

    #[inline]
    fn read_current(&mut self) -> WireResult<()> {
        if self.joining.is_some() {
            return self.join();
        }
        let (length, sequence) = loop {
            match parse_header(&self.input[self.start..self.end]) {
                Some(header) => break header,
                None => self.fill(HEADER_LENGTH)?,
            }
        };
        if length > self.max_payload {
            return Err(self.too_large());
        }
        if length == MAX_PACKET_DATA {
            self.joined.clear();
            self.joining = Some(Joining {
                left: 0,
                last: false,
            });
            return self.join();
        }
        let whole = HEADER_LENGTH + length;
        while self.end - self.start < whole {
            self.fill(whole)?;
        }
        let (from, to) = (self.start + HEADER_LENGTH, self.start + whole);
        if sequence != self.sequence {
            self.allow_farewell(sequence, from, to)?;
        }
        self.sequence = sequence.wrapping_add(1);
        self.current = Current::Buffered(from, to);
        self.start = to;
        Ok(())
    }

    /// A server that closes an idle session sends an error with number 0 first, which is found where the answer to
    /// the next command is expected. It is the one packet whose number may be wrong.
    fn allow_farewell(&mut self, got: u8, from: usize, to: usize) -> WireResult<()> {
        if got == 0 && self.sequence == 1 && ErrPacket::is_err(&self.input[from..to]) {
            self.farewell = true;
            return Ok(());
        }
        Err(WireError::SequenceMismatch {
            expected: self.sequence,
            got,
        })
    }

    fn too_large(&self) -> WireError {
        WireError::TooLarge {
            limit: self.max_payload,
        }
    }

    /// Collects the packets of a long message. What has arrived is kept in `self`, so that it can go on after a timeout.
    fn join(&mut self) -> WireResult<()> {
        let mut state = self.joining.unwrap_or(Joining {
            left: 0,
            last: false,
        });
        loop {
            while state.left > 0 {
                if self.start == self.end {
                    self.fill(1)?;
                }
                let n = state.left.min(self.end - self.start);
                self.joined
                    .extend_from_slice(&self.input[self.start..self.start + n]);
                self.start += n;
                state.left -= n;
                self.joining = Some(state);
            }
            if state.last {
                self.joining = None;
                self.current = Current::Joined;
                return Ok(());
            }
            let (length, sequence) = loop {
                match parse_header(&self.input[self.start..self.end]) {
                    Some(header) => break header,
                    None => self.fill(HEADER_LENGTH)?,
                }
            };
            if sequence != self.sequence {
                return Err(WireError::SequenceMismatch {
                    expected: self.sequence,
                    got: sequence,
                });
            }
            if self.joined.len() + length > self.max_payload {
                return Err(self.too_large());
            }
            self.sequence = sequence.wrapping_add(1);
            self.start += HEADER_LENGTH;
            state = Joining {
                left: length,
                last: length < MAX_PACKET_DATA,
            };
            self.joining = Some(state);
        }
    }

    /// Reads once from the transport. `wanted` is how many bytes from `start` on the caller waits for; the buffer grows
    /// towards it only as it fills.
    fn fill(&mut self, wanted: usize) -> WireResult<()> {
        self.current = Current::Buffered(0, 0);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start > 0 && self.start + wanted > self.input.len() {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let size = self.input.len();
        if self.end == size || (self.filled && size < STREAM_INPUT) {
            self.input.resize(size * 2, 0);
        }
        loop {
            let room = &mut self.input[self.end..];
            let read = match &self.deadline {
                None => self.transport.read(room),
                Some(deadline) => deadline.keep(
                    &mut self.transport,
                    |transport, limit| transport.set_read_timeout(Some(limit)),
                    |transport| transport.read(room),
                ),
            };
            match read {
                Ok(0) => return Err(self.end_of_input()),
                Ok(n) => {
                    self.end += n;
                    self.filled = self.end == self.input.len();
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // What TLS reports when the peer closes without saying so, as most clients do.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(self.end_of_input());
                }
                Err(e) => return Err(e.into()),
            }
        }
    }

    fn end_of_input(&self) -> WireError {
        if self.has_buffered_input() {
            WireError::Io(io::ErrorKind::UnexpectedEof.into())
        } else {
            WireError::Closed
        }
    }

    // --- writing ---

    /// Appends a payload to the output, in as many packets as it takes.
    #[inline]
    pub fn write_payload(&mut self, payload: &[u8]) -> WireResult<()> {
        debug_assert!(
            self.open_payload.is_none(),
            "a payload is under construction"
        );
        if self.observers.is_some() {
            self.observe_sent(self.sequence, payload);
        }
        if payload.len() < FLUSH_AT {
            self.put_header(payload.len());
            self.output.extend_from_slice(payload);
        } else {
            self.write_long(payload)?;
        }
        self.flush_when_long()
    }

    /// A long payload goes to the transport without a detour through the buffer.
    fn write_long(&mut self, payload: &[u8]) -> WireResult<()> {
        let mut rest = payload;
        loop {
            let (data, tail) = rest.split_at(rest.len().min(MAX_PACKET_DATA));
            self.put_header(data.len());
            if !data.is_empty() {
                self.flush_output()?;
                self.sent += data.len() as u64;
                write_all(&mut self.transport, self.deadline.as_ref(), data)?;
            }
            rest = tail;
            if data.len() < MAX_PACKET_DATA {
                // Flushed like the output buffer, for the sake of TLS; but an empty last packet's header goes with
                // what comes next.
                self.transport.flush()?;
                return Ok(());
            }
        }
    }

    fn put_header(&mut self, length: usize) {
        let header = header_bytes(length, self.sequence);
        self.output.extend_from_slice(&header);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Begins a payload that is built in place, in [`Connection::payload_buffer`], and ended by
    /// [`Connection::end_payload`].
    #[inline]
    pub fn begin_payload(&mut self) -> &mut Vec<u8> {
        debug_assert!(
            self.open_payload.is_none(),
            "a payload is under construction"
        );
        self.open_payload = Some(self.output.len());
        self.output.extend_from_slice(&[0; HEADER_LENGTH]);
        &mut self.output
    }

    /// The output buffer, to which the payload under construction is appended. What is in it already belongs to earlier
    /// packets and must stay.
    #[inline]
    pub fn payload_buffer(&mut self) -> &mut Vec<u8> {
        debug_assert!(
            self.open_payload.is_some(),
            "no payload is under construction"
        );
        &mut self.output
    }

    /// Ends the payload under construction: fills in its header, or splits it if it is too long for one packet.
    #[inline]
    pub fn end_payload(&mut self) -> WireResult<()> {
        let Some(at) = self.open_payload.take() else {
            debug_assert!(false, "no payload is under construction");
            return Ok(());
        };
        let length = self.output.len().saturating_sub(at + HEADER_LENGTH);
        if length >= MAX_PACKET_DATA {
            let payload = self.output.split_off(at);
            return self.write_payload(&payload[HEADER_LENGTH..]);
        }
        if self.observers.is_some() {
            let payload = self.output[at + HEADER_LENGTH..].to_vec();
            self.observe_sent(self.sequence, &payload);
        }
        let header = header_bytes(length, self.sequence);
        self.output[at..at + HEADER_LENGTH].copy_from_slice(&header);
        self.sequence = self.sequence.wrapping_add(1);
        self.flush_when_long()
    }

    /// Throws the payload under construction away, as if it had not been begun.
    pub fn cancel_payload(&mut self) {
        if let Some(at) = self.open_payload.take() {
            self.output.truncate(at);
        }
    }

    /// The payload under construction, as far as it goes.
    #[inline]
    pub fn payload_in_work(&self) -> &[u8] {
        let begin = self.open_payload.map(|at| at + HEADER_LENGTH);
        begin
            .and_then(|at| self.output.get(at..))
            .unwrap_or_default()
    }

    /// Takes the payload under construction out, as if it had not been begun.
    pub fn take_payload(&mut self) -> Vec<u8> {
        let payload = self.payload_in_work().to_vec();
        self.cancel_payload();
        payload
    }

    /// True when output waits for [`Connection::flush`].
    pub fn has_unsent_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Bytes of output since the connection began, sent or waiting for [`Connection::flush`].
    #[inline]
    pub fn written(&self) -> u64 {
        self.sent + self.output.len() as u64
    }

    /// Takes back what was written behind `place`, which [`Connection::written`] told, unless some of it was sent: then
    /// nothing happens, and the answer is `false`.
    pub fn take_back(&mut self, place: u64) -> bool {
        match usize::try_from(place.wrapping_sub(self.sent)) {
            Ok(length) if place >= self.sent && length <= self.output.len() => {
                self.output.truncate(length);
                true
            }
            _ => false,
        }
    }

    #[inline]
    fn flush_when_long(&mut self) -> WireResult<()> {
        if self.output.len() >= FLUSH_AT {
            self.flush_output()?;
        }
        Ok(())
    }

    fn flush_output(&mut self) -> WireResult<()> {
        let result = write_all(&mut self.transport, self.deadline.as_ref(), &self.output);
        self.sent += self.output.len() as u64;
        self.output.clear();
        result?;
        // A TLS stream reports a failed write only here; when nothing is left to write, this is no system call.
        self.transport.flush()?;
        Ok(())
    }

    /// Writes the output to the transport. A payload under construction must be ended before.
    #[inline]
    pub fn flush(&mut self) -> WireResult<()> {
        debug_assert!(
            self.open_payload.is_none(),
            "a payload is under construction"
        );
        if !self.output.is_empty() {
            self.flush_output()?;
        }
        Ok(())
    }

    /// Reads one payload and appends it, unchanged, to the output of another connection.
    #[inline]
    pub fn relay_payload(&mut self, to: &mut Connection) -> WireResult<()> {
        to.write_payload(self.read_payload()?)
    }

    // --- memory ---

    /// Gives back what a large statement or result has left behind. For the moment before a session waits for its
    /// client; the payload that was read last is gone afterwards.
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

    // --- TLS ---

    /// Goes on under TLS as the server, after the client's [`SslRequest`](crate::messages::SslRequest) was read. Bytes
    /// that the client has sent behind it already are taken as the beginning of TLS, never as plain packets.
    ///
    /// After an error the connection is closed.
    pub fn upgrade_server_tls(&mut self, config: Arc<ServerConfig>) -> WireResult<()> {
        self.flush()?;
        let mut tls = ServerConnection::new(config)?;
        let early = &self.input[self.start..self.end];
        let deadline = self.deadline.clone();
        let mut socket = TlsSocket::new(self.transport.take_socket()?, early, deadline);
        self.forget_input();
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).map_err(tls_error)?;
        }
        self.transport = Transport::TlsServer(Box::new(StreamOwned::new(tls, socket)));
        Ok(())
    }

    /// Goes on under TLS as the client, after an [`SslRequest`](crate::messages::SslRequest) was written. Bytes that the
    /// server has sent in the clear before are an error: whoever sits between could have put them there.
    ///
    /// After an error the connection is closed.
    pub fn upgrade_client_tls(
        &mut self,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> WireResult<()> {
        self.flush()?;
        let mut tls = ClientConnection::new(config, name)?;
        let deadline = self.deadline.clone();
        let mut socket = TlsSocket::new(self.transport.take_socket()?, &[], deadline);
        if self.has_buffered_input() {
            self.forget_input();
            return Err(WireError::Malformed("packet in the clear before TLS"));
        }
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).map_err(tls_error)?;
        }
        self.transport = Transport::TlsClient(Box::new(StreamOwned::new(tls, socket)));
        Ok(())
    }

    fn forget_input(&mut self) {
        (self.start, self.end) = (0, 0);
        self.joining = None;
        self.current = Current::Buffered(0, 0);
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

/// Writes all of it, by the deadline if there is one.
#[inline]
fn write_all(
    transport: &mut Transport,
    deadline: Option<&Deadline>,
    bytes: &[u8],
) -> io::Result<()> {
    match deadline {
        None => transport.write_all(bytes),
        Some(deadline) => write_in_time(transport, deadline, bytes),
    }
}

#[cold]
fn write_in_time(
    transport: &mut Transport,
    deadline: &Deadline,
    mut bytes: &[u8],
) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = deadline.keep(
            transport,
            |transport, limit| transport.set_write_timeout(Some(limit)),
            |transport| transport.write(bytes),
        )?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
    }
    Ok(())
}

/// Length and sequence number of the packet that begins here.
#[inline]
fn parse_header(bytes: &[u8]) -> Option<(usize, u8)> {
    let &[a, b, c, sequence] = bytes.first_chunk()?;
    Some((u32::from_le_bytes([a, b, c, 0]) as usize, sequence))
}

#[inline]
fn header_bytes(length: usize, sequence: u8) -> [u8; HEADER_LENGTH] {
    let [a, b, c, _] = (length as u32).to_le_bytes();
    [a, b, c, sequence]
}

/// rustls wraps its own errors in I/O errors; take them out again.
fn tls_error(e: io::Error) -> WireError {
    match e
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
    {
        Some(tls) => WireError::Tls(tls.clone()),
        None => WireError::Io(e),
    }
}
