//! Rows of both protocols.

use onionskin_wire::rows::*;
use onionskin_wire::{BinaryValue, ColumnType, ParamType};

#[test]
fn text_rows() {
    let mut row = Vec::new();
    let long = vec![b'x'; 70_000];
    let cells = [Some(&b"1"[..]), None, Some(&b""[..]), Some(&long[..])];
    for cell in cells {
        put_text_cell(&mut row, cell);
    }
    let read: Vec<_> = TextRow::new(&row).map(Result::unwrap).collect();
    assert_eq!(read, cells);

    let mut raw = TextRow::new(&row);
    assert_eq!(raw.raw_cells(2).unwrap(), b"\x011\xfb");
    assert_eq!(raw.raw_cell().unwrap(), b"\0");
    assert_eq!(raw.raw_rest().len(), 70_004);
    assert!(raw.is_empty() && raw.raw_cell().is_err());
    assert!(TextRow::new(b"\x01a\x05b").nth(1).unwrap().is_err());
}

#[test]
fn text_cells_written_in_place() {
    for length in [0, 1, 250, 251, 65_535, 65_536, 1 << 24] {
        let value = vec![b'v'; length];
        let mut built = b"before".to_vec();
        let start = begin_text_cell(&mut built);
        built.extend_from_slice(&value);
        end_text_cell(&mut built, start);
        let mut expected = b"before".to_vec();
        put_text_cell(&mut expected, Some(&value));
        assert!(built == expected, "{length} bytes");
    }
}

#[test]
fn binary_rows() {
    // More than six columns, so that the bitmap has a second byte.
    let types: Vec<_> = [
        ColumnType::LONG,
        ColumnType::VAR_STRING,
        ColumnType::NULL,
        ColumnType::DATETIME,
        ColumnType::DOUBLE,
        ColumnType::YEAR,
        ColumnType::BLOB,
        ColumnType::TINY,
    ]
    .map(ParamType::new)
    .to_vec();
    let values = [
        BinaryValue::Int(-7),
        BinaryValue::Bytes(b"text"),
        BinaryValue::Null,
        BinaryValue::Null,
        BinaryValue::Double(0.5),
        BinaryValue::UInt(2024),
        BinaryValue::Null,
        BinaryValue::Int(1),
    ];
    let mut row = Vec::new();
    let mut writer = BinaryRowWriter::begin(&mut row, types.len());
    for (ty, value) in types.iter().zip(&values) {
        writer.value(&mut row, *ty, value).unwrap();
    }
    writer.finish().unwrap();

    let cells: Vec<_> = BinaryRow::new(&row, &types)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let decoded: Vec<_> = cells.iter().map(|c| c.value().unwrap()).collect();
    assert_eq!(decoded, values);
    assert_eq!(cells[1].raw, Some(&b"\x04text"[..]));
    assert_eq!(cells[1].bytes().unwrap(), Some(&b"text"[..]));

    // Copied cell by cell, the row is the same.
    let mut copy = Vec::new();
    let mut writer = BinaryRowWriter::begin(&mut copy, types.len());
    for cell in &cells {
        writer.raw(&mut copy, cell.raw).unwrap();
    }
    assert!(writer.null(&mut copy).is_err());
    writer.finish().unwrap();
    assert_eq!(copy, row);

    // Damaged rows are errors.
    row.push(0);
    assert!(BinaryRow::new(&row, &types).unwrap().any(|c| c.is_err()));
    row.truncate(20);
    assert!(BinaryRow::new(&row, &types).unwrap().any(|c| c.is_err()));
    assert!(BinaryRow::new(&[1, 0, 0], &types[..1]).is_err());
}

#[test]
fn heads_of_answers() {
    assert_eq!(
        ResponseHead::classify(&[0, 0, 0]).unwrap(),
        ResponseHead::Ok
    );
    assert_eq!(ResponseHead::classify(&[0xff]).unwrap(), ResponseHead::Err);
    assert_eq!(
        ResponseHead::classify(&[0xfb]).unwrap(),
        ResponseHead::LocalInfile
    );
    assert_eq!(
        ResponseHead::classify(&[0xfc, 0, 1]).unwrap(),
        ResponseHead::Columns(256)
    );
    assert!(ResponseHead::classify(&[0xfd, 0, 0, 1]).is_err());
}
