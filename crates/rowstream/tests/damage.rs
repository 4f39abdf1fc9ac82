//! Whatever the bytes: decoders answer with a value or an error, in bounded memory, and never
//! panic.

use std::sync::Arc;

use onionskin_rowstream::binlog::{
    Column, GtidPosition, RowKind, TableColumns,
    compression::{Payload, decompress_mariadb},
    event::{EventHead, FormatDescription, GtidEvent, Query, decode_rotate, without_creation},
    json::Json,
    rows::{KnownTable, RowsEvent},
    table_map::{TableMap, column_type::*},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

fn bytes(random: &mut StdRng, max: usize) -> Vec<u8> {
    let len = random.random_range(0..max);
    // Small numbers are lengths and counts that fit.
    let small = random.random::<bool>();
    (0..len)
        .map(|_| match small {
            true => random.random_range(0..8),
            false => random.random(),
        })
        .collect()
}

#[test]
fn random_bytes_are_refused_or_read() {
    let mut random = StdRng::seed_from_u64(7);
    let (mut read, mut refused) = (0, 0);
    let mut count = |ok: bool| *(if ok { &mut read } else { &mut refused }) += 1;
    for _ in 0..60_000 {
        let body = bytes(&mut random, 90);
        count(EventHead::decode(&body).is_ok());
        count(FormatDescription::decode(&body).is_ok());
        count(without_creation(&body).is_ok());
        count(decode_rotate(&body).is_ok());
        count(Query::decode(&body, random.random()).is_ok());
        count(GtidEvent::decode_mysql(&body, false).is_ok());
        count(GtidEvent::decode_tagged(&body).is_ok());
        count(GtidEvent::decode_mariadb(&body, 1).is_ok());
        count(GtidPosition::decode_mysql(&body).is_ok());
        count(GtidPosition::decode_mariadb(&body).is_ok());
        count(TableMap::decode(&body).is_ok());
        count(RowsEvent::decode(&body, RowKind::Update, random.random()).is_ok());
        count(decompress_mariadb(&body).is_ok());
        count(Json::decode(&body).is_ok());
        if let Ok(mut payload) = Payload::begin(&body) {
            let mut event = Vec::new();
            while payload.next_event(&mut event).unwrap_or(false) {}
        }
    }
    assert!(read > 1000 && refused > 1000, "{read} {refused}");
}

/// Columns of every type in random images.
#[test]
fn random_images_are_refused_or_read() {
    let mut random = StdRng::seed_from_u64(8);
    let types: [(u8, &[u8]); 26] = [
        (TINY, &[]),
        (SHORT, &[]),
        (INT24, &[]),
        (LONG, &[]),
        (LONGLONG, &[]),
        (FLOAT, &[4]),
        (DOUBLE, &[8]),
        (NEWDECIMAL, &[20, 4]),
        (NEWDECIMAL, &[4, 20]),
        (BIT, &[3, 1]),
        (BIT, &[7, 200]),
        (YEAR, &[]),
        (DATE, &[]),
        (TIME2, &[3]),
        (TIME2, &[200]),
        (DATETIME2, &[5]),
        (TIMESTAMP2, &[6]),
        (VARCHAR, &[10, 0]),
        (VARCHAR, &[0, 10]),
        (STRING, &[0xfe, 20]),
        (STRING, &[0xee, 20]),
        (STRING, &[ENUM, 1]),
        (STRING, &[SET, 9]),
        (BLOB, &[2]),
        (BLOB, &[9]),
        (JSON, &[4]),
    ];
    let (mut read, mut refused) = (0, 0);
    for _ in 0..60_000 {
        let chosen: Vec<_> = (0..random.random_range(1..4))
            .map(|_| types[random.random_range(0..types.len())])
            .collect();
        let mut map = vec![
            1,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            1,
            b'd',
            0,
            1,
            b't',
            0,
            chosen.len() as u8,
        ];
        map.extend(chosen.iter().map(|(ty, _)| ty));
        let metadata: Vec<u8> = chosen
            .iter()
            .flat_map(|(_, meta)| meta.iter().copied())
            .collect();
        map.push(metadata.len() as u8);
        map.extend(metadata);
        map.push(0xff);
        let map = TableMap::decode(&map).expect("a table");
        let column = Column {
            name: "c".into(),
            data_type: "binary".into(),
            column_type: "binary".into(),
            unsigned: random.random(),
            charset: None,
            generated: false,
            virtual_column: random.random(),
        };
        let columns = TableColumns {
            columns: vec![column; chosen.len()],
        };
        let table = KnownTable::new(map, Arc::new(columns)).expect("the same columns");
        let present: u8 = if random.random() {
            0xff
        } else {
            random.random()
        };
        let mut body = vec![1, 0, 0, 0, 0, 0, 1, 0, chosen.len() as u8, present];
        body.extend(bytes(&mut random, 60));
        let event = RowsEvent::decode(&body, RowKind::Insert, false).expect("a head");
        match event.rows(event.images, &table) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(read > 1000 && refused > 1000, "{read} {refused}");
}

/// A document whose entries all point to the same part would print 2¹⁰⁰ times as long as it is.
#[test]
fn documents_do_not_multiply() {
    // Arrays of two entries, each a small array at the next offset.
    let mut data = Vec::new();
    let levels = 60u16;
    for level in 0..levels {
        data.extend_from_slice(&2u16.to_le_bytes());
        data.extend_from_slice(&((levels - level) * 10).to_le_bytes());
        for _ in 0..2 {
            data.push(2);
            data.extend_from_slice(&10u16.to_le_bytes());
        }
    }
    data.extend_from_slice(&[0, 0, 4, 0]);
    let mut stored = vec![2];
    stored.extend_from_slice(&data);
    assert!(Json::decode(&stored).is_err());
}
