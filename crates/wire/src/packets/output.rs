//! Writing: payloads are framed and collected in the output buffer.

use std::io::{self, Write};

use super::header::{HEADER_LENGTH, MAX_PACKET_DATA, header_bytes};
use super::{Connection, FLUSH_AT};
use crate::deadline::Deadline;
use crate::error::WireResult;
use crate::stream::Transport;

impl Connection {
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
            if self.hold.is_some() {
                self.output.extend_from_slice(data);
            } else if !data.is_empty() {
                self.flush_output()?;
                self.sent += data.len() as u64;
                write_all(&mut self.transport, self.deadline.as_ref(), data)?;
            }
            rest = tail;
            if data.len() < MAX_PACKET_DATA {
                // Flushed like the output buffer, for the sake of TLS; but an empty last packet's
                // header goes with what comes next.
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

    /// The output buffer, to which the payload under construction is appended. What is in it
    /// already belongs to earlier packets and must stay.
    #[inline]
    pub fn payload_buffer(&mut self) -> &mut Vec<u8> {
        debug_assert!(
            self.open_payload.is_some(),
            "no payload is under construction"
        );
        &mut self.output
    }

    /// Ends the payload under construction: fills in its header, or splits it if it is too long for
    /// one packet.
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

    /// Takes back what was written behind `place`, which [`Connection::written`] told, unless some
    /// of it was sent: then nothing happens, and the answer is `false`.
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
        match self.output.len() >= FLUSH_AT {
            true if self.hold.is_some() => {
                self.bound_held();
                Ok(())
            }
            true => self.flush_output(),
            false => Ok(()),
        }
    }

    fn flush_output(&mut self) -> WireResult<()> {
        let result = write_all(&mut self.transport, self.deadline.as_ref(), &self.output);
        self.sent += self.output.len() as u64;
        self.output.clear();
        result?;
        // A TLS stream reports a failed write only here; when nothing is left to write, this is no
        // system call.
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
