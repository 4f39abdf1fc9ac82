//! What a server says, and a client asks, in packets.

use onionskin_proxy::hot_path::{CAPABILITIES, asked_at_login};
use onionskin_value::Family;
use onionskin_wire::messages::{
    ColumnDefinition, ComStmtPrepareOk, Command, CursorType, ExecuteWriter, OkPacket,
};
use onionskin_wire::rows::{BinaryRowWriter, put_text_cell};
use onionskin_wire::{BinaryValue, ColumnFlags, ColumnType, ParamType, PutWire, StatusFlags};

pub const LONG: ParamType = ParamType::new(ColumnType::LONG);
pub const BLOB: ParamType = ParamType::new(ColumnType::VAR_STRING);

/// Frames payloads in packets that are numbered from `first` on.
fn framed(first: u8, payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, payload) in (first..).zip(payloads.iter()) {
        out.put_u24(payload.len() as u32);
        out.put_u8(number);
        out.extend_from_slice(payload);
    }
    out
}

/// A command of a client's.
pub fn command(payload: &[u8]) -> Vec<u8> {
    framed(0, &[payload.to_vec()])
}

pub fn query(sql: &str) -> Vec<u8> {
    let mut payload = vec![Command::Query.to_byte()];
    payload.extend_from_slice(sql.as_bytes());
    command(&payload)
}

pub fn prepare(sql: &str) -> Vec<u8> {
    let mut payload = vec![Command::StmtPrepare.to_byte()];
    payload.extend_from_slice(sql.as_bytes());
    command(&payload)
}

/// The execution of the statement with this number.
pub fn execute(id: u32, parameters: &[(ParamType, BinaryValue)]) -> Vec<u8> {
    let mut payload = Vec::new();
    let none = CursorType::NO_CURSOR;
    let mut writer = ExecuteWriter::begin(&mut payload, id, none, parameters.len());
    for (ty, value) in parameters {
        writer.param(&mut payload, *ty, value).expect("a parameter");
    }
    writer.finish().expect("all of them");
    command(&payload)
}

fn ok_payload(affected_rows: u64, info: &[u8], status: StatusFlags, ends_rows: bool) -> Vec<u8> {
    let mut payload = Vec::new();
    OkPacket {
        ends_rows,
        affected_rows,
        info,
        status,
        ..OkPacket::default()
    }
    .encode(&mut payload, CAPABILITIES);
    payload
}

/// The answer to a statement without rows.
pub fn done(affected_rows: u64, info: &str, status: StatusFlags) -> Vec<u8> {
    framed(
        1,
        &[ok_payload(affected_rows, info.as_bytes(), status, false)],
    )
}

/// A column as the server describes it.
pub fn column(table: &str, name: &str, ty: ParamType, bytes: bool) -> Vec<u8> {
    let mut out = Vec::new();
    ColumnDefinition {
        catalog: b"def".as_slice().into(),
        schema: b"sbtest".as_slice().into(),
        table: table.as_bytes().into(),
        org_table: table.as_bytes().into(),
        name: name.as_bytes().into(),
        org_name: name.as_bytes().into(),
        charset: if bytes || ty == LONG { 63 } else { 45 },
        length: if ty == LONG { 11 } else { 640 },
        column_type: ty.kind,
        flags: ColumnFlags::NOT_NULL,
        ..ColumnDefinition::default()
    }
    .encode(&mut out);
    out
}

/// An answer with rows that are encoded already.
pub fn rows(
    columns: &[Vec<u8>],
    rows: impl IntoIterator<Item = Vec<u8>>,
    status: StatusFlags,
) -> Vec<u8> {
    let mut payloads = vec![vec![columns.len() as u8]];
    payloads.extend_from_slice(columns);
    payloads.extend(rows);
    payloads.push(ok_payload(0, b"", status, true));
    framed(1, &payloads)
}

pub fn text_row(cells: &[&[u8]]) -> Vec<u8> {
    let mut row = Vec::new();
    cells
        .iter()
        .for_each(|cell| put_text_cell(&mut row, Some(cell)));
    row
}

pub fn binary_row(cells: &[&[u8]]) -> Vec<u8> {
    let mut row = Vec::new();
    let mut writer = BinaryRowWriter::begin(&mut row, cells.len());
    for cell in cells {
        writer
            .value(&mut row, BLOB, &BinaryValue::Bytes(cell))
            .expect("a cell");
    }
    writer.finish().expect("all of them");
    row
}

/// The answer to the preparation of a statement, under this number.
pub fn prepared(id: u32, parameters: u16, columns: &[Vec<u8>]) -> Vec<u8> {
    let mut head = Vec::new();
    ComStmtPrepareOk {
        statement_id: id,
        num_columns: columns.len() as u16,
        num_params: parameters,
        warnings: 0,
    }
    .encode(&mut head);
    let mut payloads = vec![head];
    payloads.extend((0..parameters).map(|_| column("", "?", BLOB, true)));
    payloads.extend_from_slice(columns);
    framed(1, &payloads)
}

/// The value of a variable with which nothing is refused.
fn usual_value(name: &str) -> &'static [u8] {
    match name {
        "explicit_defaults_for_timestamp" | "sql_quote_show_create" | "check_constraint_checks" => {
            b"1"
        }
        "lc_messages" => b"en_US",
        "max_error_count" | "max_sort_length" => b"1024",
        "system_versioning_asof" => b"DEFAULT",
        "sql_if_exists" => b"0",
        "old_mode" => b"UTF8_IS_UTF8MB3",
        other => panic!("the proxy asks for {other} at login: what is its usual value?"),
    }
}

/// What a server answers when the proxy asks for a session's settings.
pub fn settings(family: Family) -> Vec<u8> {
    // in the order of `State::read`
    let mut cells: Vec<&[u8]> = vec![
        b"STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
        b"utf8mb4",
        b"utf8mb4",
        b"utf8mb4",
        b"SYSTEM",
        b"UTC",
        b"sbtest",
        b"4",
        b"root@localhost",
        b"utf8mb4_general_ci",
        b"18446744073709551615",
        b"1",
        b"0",
        b"0",
        b"16777216",
        b"0",
        b"1",
        b"0,aes-128-ecb",
    ];
    cells.extend(asked_at_login(family).map(usual_value));
    let status = StatusFlags::AUTOCOMMIT;
    let columns: Vec<_> = cells
        .iter()
        .map(|_| column("", "@@x", BLOB, false))
        .collect();
    let mut answers = done(0, "", status);
    answers.extend(rows(&columns, [text_row(&cells)], status));
    answers
}
