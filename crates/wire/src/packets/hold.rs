//! Holding back: an answer that is written as usual, and then taken back to be changed.

use std::borrow::Cow;

use super::header::{HEADER_LENGTH, MAX_PACKET_DATA};
use super::{Connection, Hold};

/// What was held back.
#[derive(Debug, PartialEq, Eq)]
pub enum Released {
    /// It stands in the output no more. These are its packets, with their headers: see
    /// [`Packets`].
    Held(Vec<u8>),
    /// It was longer than allowed, and nothing of it is left.
    TooLong,
    /// It was flushed in between, and the peer has some of it. The rest stays in the output.
    Sent,
}

impl Connection {
    /// Holds back what is written from now on, up to `limit` bytes. Nothing is sent unless
    /// [`Connection::flush`] asks for it.
    pub fn hold(&mut self, limit: usize) {
        self.hold = Some(Hold {
            begin: self.written(),
            sequence: self.sequence,
            limit,
            overflowed: false,
        });
    }

    /// Ends [`Connection::hold`], and takes out of the output what was held back.
    pub fn release(&mut self) -> Released {
        let Some(hold) = self.hold.take() else {
            debug_assert!(false, "nothing is held");
            return Released::Sent;
        };
        let Some(at) = self.place_of(hold.begin) else {
            return Released::Sent;
        };
        self.open_payload = None;
        let held = self.output.split_off(at);
        self.sequence = hold.sequence;
        match hold.overflowed {
            true => Released::TooLong,
            false => Released::Held(held),
        }
    }

    /// Throws away what is held if it is too long.
    #[cold]
    pub(super) fn bound_held(&mut self) {
        let begin = self.hold.as_ref().map(|hold| hold.begin);
        let at = begin.and_then(|begin| self.place_of(begin));
        if let (Some(hold), Some(at)) = (&mut self.hold, at)
            && self.output.len() - at > hold.limit
        {
            hold.overflowed = true;
            self.output.truncate(at);
        }
    }

    /// Where the output lies that was written behind a place; `None` if some of it was sent.
    fn place_of(&self, written: u64) -> Option<usize> {
        let place = usize::try_from(written.checked_sub(self.sent)?).ok()?;
        (place <= self.output.len()).then_some(place)
    }
}

/// Reads packets that lie one behind the other, with their headers, as [`Released::Held`] has
/// them. An item is a whole payload, though it be of several packets.
pub struct Packets<'a> {
    bytes: &'a [u8],
    place: usize,
}

impl<'a> Packets<'a> {
    /// All of these.
    pub fn of(bytes: &'a [u8]) -> Self {
        Packets { bytes, place: 0 }
    }

    /// How many bytes were read.
    pub fn place(&self) -> usize {
        self.place
    }

    /// The data of the next packet.
    fn packet(&mut self) -> Option<&'a [u8]> {
        let (header, rest) = self.bytes[self.place..].split_at_checked(HEADER_LENGTH)?;
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let data = rest.get(..usize::try_from(length).ok()?)?;
        self.place += HEADER_LENGTH + data.len();
        Some(data)
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Cow<'a, [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut last = self.packet()?;
        let mut payload = Cow::Borrowed(last);
        while last.len() == MAX_PACKET_DATA {
            last = self.packet()?;
            payload.to_mut().extend_from_slice(last);
        }
        Some(payload)
    }
}
