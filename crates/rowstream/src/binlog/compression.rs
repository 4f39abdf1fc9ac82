//! Compressed events: MySQL packs a whole transaction into one event, MariaDB the text or the
//! images of single events.

use std::io::{BufReader, Cursor, Read};

use onionskin_wire::Reader;

use super::error::{BinlogError, BinlogResult};
use super::event::{EventHead, HEAD};

/// The largest event, as the servers have it (`replica_max_allowed_packet`).
const MAX_EVENT: usize = 1 << 30;

/// The events inside a TRANSACTION_PAYLOAD event, decompressed one by one: the transaction is never
/// in memory as a whole.
pub struct Payload {
    events: Events,
}

enum Events {
    Zstd(Box<zstd::Decoder<'static, BufReader<Cursor<Vec<u8>>>>>),
    Plain(Cursor<Vec<u8>>),
}

impl Read for Events {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Zstd(events) => events.read(buffer),
            Self::Plain(events) => events.read(buffer),
        }
    }
}

const BAD: BinlogError = BinlogError::Malformed("compressed transaction");

impl Payload {
    /// Reads the event's head: fields of type, length and value up to the mark of the end.
    pub fn begin(body: &[u8]) -> BinlogResult<Self> {
        const END: u64 = 0;
        const SIZE: u64 = 1;
        const ALGORITHM: u64 = 2;
        const ZSTD: u64 = 0;
        const NONE: u64 = 255;
        let mut r = Reader::new(body);
        let (mut algorithm, mut size) = (None, None);
        loop {
            let field = r.lenenc_int()?;
            if field == END {
                break;
            }
            let mut value = Reader::new(r.lenenc_bytes()?);
            match field {
                ALGORITHM => algorithm = Some(value.lenenc_int()?),
                SIZE => size = Some(value.lenenc_int()?),
                // The size after decompression, and what later versions may add.
                _ => {}
            }
        }
        let bytes = r.rest();
        if size.is_some_and(|size| size != bytes.len() as u64) {
            return Err(BAD);
        }
        let bytes = Cursor::new(bytes.to_vec());
        let events = match algorithm {
            Some(ZSTD) => Events::Zstd(Box::new(zstd::Decoder::new(bytes).map_err(|_| BAD)?)),
            Some(NONE) => Events::Plain(bytes),
            _ => {
                return Err(BinlogError::Unsupported {
                    what: "the binlog holds a transaction that is compressed in an unknown way"
                        .into(),
                    way_out: "set binlog_transaction_compression=OFF",
                });
            }
        };
        Ok(Self { events })
    }

    /// The next event, without a checksum; false at the end.
    pub fn next_event(&mut self, event: &mut Vec<u8>) -> BinlogResult<bool> {
        event.clear();
        let mut head = (&mut self.events).take(HEAD as u64);
        head.read_to_end(event).map_err(|_| BAD)?;
        if event.is_empty() {
            return Ok(false);
        }
        let size = event.get(9..13).and_then(|size| size.try_into().ok());
        let size = u32::from_le_bytes(size.ok_or(BAD)?) as usize;
        if !(HEAD..=MAX_EVENT).contains(&size) {
            return Err(BAD);
        }
        let mut body = (&mut self.events).take((size - HEAD) as u64);
        body.read_to_end(event).map_err(|_| BAD)?;
        EventHead::decode(event).map_err(|_| BAD)?;
        Ok(true)
    }
}

/// Decompresses what MariaDB compressed in an event: a byte with the algorithm and the number of
/// bytes of the length, the length (the highest byte first), and a zlib stream.
pub fn decompress_mariadb(bytes: &[u8]) -> BinlogResult<Vec<u8>> {
    const BAD: BinlogError = BinlogError::Malformed("compressed event");
    const ZLIB: u8 = 0;
    let (&head, rest) = bytes.split_first().ok_or(BAD)?;
    let length_bytes = usize::from(head & 0x07);
    if head & 0x80 == 0 || (head >> 4) & 0x07 != ZLIB || !(1..=4).contains(&length_bytes) {
        return Err(BAD);
    }
    let length = rest.get(..length_bytes).ok_or(BAD)?;
    let length = length
        .iter()
        .fold(0usize, |n, byte| n << 8 | usize::from(*byte));
    if length > MAX_EVENT {
        return Err(BAD);
    }
    let mut out = Vec::new();
    let mut stream = flate2::read::ZlibDecoder::new(&rest[length_bytes..]).take(length as u64 + 1);
    stream.read_to_end(&mut out).map_err(|_| BAD)?;
    match out.len() == length {
        true => Ok(out),
        false => Err(BAD),
    }
}
