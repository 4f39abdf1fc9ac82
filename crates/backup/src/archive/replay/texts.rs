//! The statements within events: whether they are those of a server.

use std::sync::atomic::{AtomicBool, Ordering};

use onionskin_rowstream::binlog::{
    compression::{Payload, decompress_mariadb},
    event::{EventHead, HEAD, Query, kind},
};

use crate::archive::statements::{Author, check};

/// Events of LOAD DATA and its file.
const LOADS: [u8; 4] = [
    kind::BEGIN_LOAD_QUERY,
    kind::APPEND_BLOCK,
    kind::DELETE_FILE,
    kind::EXECUTE_LOAD_QUERY,
];
/// Of LOAD DATA before MySQL 5.0.3.
const OLD_LOADS: [u8; 4] = [6, 8, 10, 12];

/// Whether the texts of an event are those of a server; what they are if not. A text that cannot be
/// read is none. `loads` becomes true if the event belongs to a LOAD DATA.
pub(super) fn check_event(kind: u8, body: &[u8], loads: &AtomicBool) -> Result<(), String> {
    match kind {
        kind::TRANSACTION_PAYLOAD => check_payload(body, loads),
        _ => check_single(kind, body, loads),
    }
}

/// The events of a compressed transaction.
fn check_payload(body: &[u8], loads: &AtomicBool) -> Result<(), String> {
    let closed = |_| closed("a compressed transaction");
    let mut payload = Payload::begin(body).map_err(closed)?;
    let mut event = Vec::new();
    while payload.next_event(&mut event).map_err(closed)? {
        let head = EventHead::decode(&event).map_err(closed)?;
        if head.kind == kind::TRANSACTION_PAYLOAD {
            return Err("a compressed transaction in another".into());
        }
        check_single(head.kind, &event[HEAD..], loads)?;
    }
    Ok(())
}

fn check_single(kind: u8, body: &[u8], loads: &AtomicBool) -> Result<(), String> {
    if LOADS.contains(&kind) {
        loads.store(true, Ordering::SeqCst);
    }
    match kind {
        kind::QUERY => check(statement(body, false)?, Author::Binlog),
        kind::EXECUTE_LOAD_QUERY => check(statement(body, true)?, Author::Load),
        kind::MARIA_QUERY_COMPRESSED => {
            let closed = |_| closed("a compressed statement");
            let query = Query::decode(body, false).map_err(closed)?;
            let text = decompress_mariadb(query.sql).map_err(closed)?;
            check(&text, Author::Binlog)
        }
        kind if OLD_LOADS.contains(&kind) => Err(format!(
            "an event of type {kind}, which only very old servers wrote,"
        )),
        _ => Ok(()),
    }
}

/// The text of a statement, or of a LOAD DATA.
fn statement(body: &[u8], is_load: bool) -> Result<&[u8], String> {
    match Query::decode(body, is_load) {
        Ok(query) => Ok(query.sql),
        Err(_) => Err(closed("a statement")),
    }
}

fn closed(what: &str) -> String {
    format!("{what} that cannot be opened")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event without a checksum.
    fn event(kind: u8, body: &[u8]) -> Vec<u8> {
        let size = (HEAD + body.len()) as u32;
        let mut event = vec![0, 0, 0, 0, kind, 1, 0, 0, 0];
        event.extend_from_slice(&size.to_le_bytes());
        event.extend_from_slice(&[0; 6]);
        event.extend_from_slice(body);
        event
    }

    fn query(text: &[u8]) -> Vec<u8> {
        let mut body = vec![0; 8];
        body.extend_from_slice(&[3, 0, 0, 0, 0]);
        body.extend_from_slice(b"app\0");
        body.extend_from_slice(text);
        body
    }

    /// What is said of an event.
    fn said(kind: u8, body: &[u8]) -> Result<(), String> {
        check_event(kind, body, &AtomicBool::new(false))
    }

    #[test]
    fn texts_are_looked_at_in_events_of_every_kind() {
        let good = b"INSERT INTO t VALUES (1)";
        let bad = b"SET GLOBAL general_log_file='/x'";
        let compressed = |text: &[u8]| {
            let mut packed = vec![0x81, u8::try_from(text.len()).unwrap()];
            // A zlib stream of one stored block.
            packed.extend_from_slice(&[0x78, 0x01, 0x01]);
            let length = u16::try_from(text.len()).unwrap();
            packed.extend_from_slice(&length.to_le_bytes());
            packed.extend_from_slice(&(!length).to_le_bytes());
            packed.extend_from_slice(text);
            let (mut a, mut b) = (1u32, 0u32);
            for byte in text {
                a = (a + u32::from(*byte)) % 65521;
                b = (b + a) % 65521;
            }
            packed.extend_from_slice(&(b << 16 | a).to_be_bytes());
            packed
        };
        let payload = |events: &[u8]| {
            let packed = zstd::encode_all(events, 3).unwrap();
            let mut body = vec![2, 1, 0, 1, 1, u8::try_from(packed.len()).unwrap(), 0];
            body.extend_from_slice(&packed);
            body
        };
        for (text, is_good) in [(&good[..], true), (bad, false)] {
            let whole = query(text);
            let packed = query(&compressed(text));
            let inside = payload(
                &[
                    event(kind::QUERY, &query(b"BEGIN")),
                    event(kind::QUERY, &whole),
                ]
                .concat(),
            );
            for (kind, body) in [
                (kind::QUERY, &whole),
                (kind::MARIA_QUERY_COMPRESSED, &packed),
                (kind::TRANSACTION_PAYLOAD, &inside),
            ] {
                let said = said(kind, body);
                assert_eq!(said.is_ok(), is_good, "{kind}: {said:?}");
                assert!(is_good || said.unwrap_err().contains("SET GLOBAL"));
            }
        }
        for (kind, body) in [
            (kind::QUERY, vec![0; 5]),
            (kind::MARIA_QUERY_COMPRESSED, query(good)),
            (kind::TRANSACTION_PAYLOAD, vec![0, 1, 2]),
            (
                kind::TRANSACTION_PAYLOAD,
                payload(&event(kind::QUERY, &[])[..HEAD - 1]),
            ),
            (
                kind::TRANSACTION_PAYLOAD,
                payload(&event(kind::TRANSACTION_PAYLOAD, &payload(b""))),
            ),
            (6, Vec::new()),
        ] {
            assert!(said(kind, &body).is_err(), "{kind}");
        }
    }
}
