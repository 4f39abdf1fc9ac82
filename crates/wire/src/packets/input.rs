//! Reading: packets are taken out of the input buffer, and long messages are joined.

use std::io::{self, Read};

use nix::time::{ClockId, clock_gettime};

use super::header::{HEADER_LENGTH, MAX_PACKET_DATA, parse_header};
use super::{Connection, Current, Joining, STREAM_INPUT};
use crate::error::{WireError, WireResult};
use crate::messages::ErrPacket;

impl Connection {
    /// The next payload, whole, valid until the next read. Reads from the transport only when no
    /// whole payload is in the buffer.
    ///
    /// After a timeout ([`WireError::is_timeout`]) the call may be repeated; nothing is lost. Other
    /// errors end the connection's use.
    #[inline(always)] // once for each row that is relayed
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

    /// Puts another payload in the place of the one that was read last.
    pub fn replace_last_payload(&mut self, payload: Vec<u8>) {
        self.joined = payload;
        self.current = Current::Joined;
    }

    /// True when the payload that was read last is an error with number 0 in the place of an
    /// answer: the peer has ended the connection before it saw the command.
    pub fn said_farewell(&self) -> bool {
        self.farewell
    }

    /// What a server that has ended the connection said before that: an error with number 0. `None`
    /// if it said nothing of the kind. For connections of which the peer has closed its side, or on
    /// which writing has failed: a read that would wait is the caller's to bound.
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

    #[inline(always)]
    fn read_current(&mut self) -> WireResult<()> {
        if self.joining.is_some() {
            return self.join();
        }
        let (length, sequence) = self.next_header()?;
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

    /// Length and sequence number of the packet that comes next. It stays in the buffer.
    #[inline]
    fn next_header(&mut self) -> WireResult<(usize, u8)> {
        loop {
            match parse_header(&self.input[self.start..self.end]) {
                Some(header) => return Ok(header),
                None => self.fill(HEADER_LENGTH)?,
            }
        }
    }

    /// A server that closes an idle session sends an error with number 0 first, which is found
    /// where the answer to the next command is expected. It is the one packet whose number may be
    /// wrong.
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

    /// Collects the packets of a long message. What has arrived is kept in `self`, so that it can
    /// go on after a timeout.
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
            let (length, sequence) = self.next_header()?;
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

    /// Reads once from the transport. `wanted` is how many bytes from `start` on the caller waits
    /// for; the buffer grows towards it only as it fills.
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
        let begun = self.waited.and_then(|_| clock());
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
                    if let (Some(waited), Some(begun)) = (&mut self.waited, begun) {
                        *waited += clock().unwrap_or(begun).saturating_sub(begun);
                    }
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

    /// An error, unless a message has just ended.
    fn end_of_input(&self) -> WireError {
        if self.has_buffered_input() {
            WireError::Io(io::ErrorKind::UnexpectedEof.into())
        } else {
            WireError::Closed
        }
    }
}

/// Nanoseconds of a clock that never goes back. The standard library's takes more instructions, and
/// this is on the path of every statement.
fn clock() -> Option<u64> {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).ok()?;
    // Neither is ever negative.
    let (seconds, nanos) = (time.tv_sec() as u64, time.tv_nsec() as u64);
    Some(seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos))
}
