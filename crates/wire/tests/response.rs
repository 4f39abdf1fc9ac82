//! Responses of every shape, packet by packet.

use std::os::unix::net::UnixStream;

use onionskin_wire::messages::{
    ColumnDefinition, ComStmtPrepareOk, Command, EofPacket, ErrPacket, OkPacket,
};
use onionskin_wire::response::relay_rows;
use onionskin_wire::{Capabilities, Connection, ResponseTracker, StatusFlags, Step, Transport};

const NONE: StatusFlags = StatusFlags::empty();
const MORE: StatusFlags = StatusFlags::MORE_RESULTS;

fn tracker(deprecate_eof: bool) -> ResponseTracker {
    ResponseTracker::new(if deprecate_eof {
        Capabilities::DEPRECATE_EOF
    } else {
        Capabilities::empty()
    })
}

fn ok(status: StatusFlags) -> Vec<u8> {
    let mut out = Vec::new();
    OkPacket {
        status,
        affected_rows: 70_000,
        ..OkPacket::default()
    }
    .encode(&mut out, Capabilities::empty());
    out
}

fn end(deprecate_eof: bool, status: StatusFlags) -> Vec<u8> {
    let mut out = Vec::new();
    if deprecate_eof {
        OkPacket {
            ends_rows: true,
            status,
            ..OkPacket::default()
        }
        .encode(&mut out, Capabilities::empty());
    } else {
        eof(status, &mut out);
    }
    out
}

fn eof(status: StatusFlags, out: &mut Vec<u8>) {
    EofPacket {
        warnings: 0,
        status,
    }
    .encode(out);
}

fn eof_packet(status: StatusFlags) -> Vec<u8> {
    let mut out = Vec::new();
    eof(status, &mut out);
    out
}

fn column() -> Vec<u8> {
    let mut out = Vec::new();
    ColumnDefinition {
        catalog: b"def"[..].into(),
        ..ColumnDefinition::default()
    }
    .encode(&mut out);
    out
}

fn error() -> Vec<u8> {
    let mut out = Vec::new();
    ErrPacket::new(1064, *b"42000", &b"syntax"[..]).encode(&mut out);
    out
}

/// Feeds packets with what each should be; the answer must be complete after the last and not
/// before.
fn follow(deprecate_eof: bool, command: Command, packets: &[(Vec<u8>, Step)]) {
    let mut tracker = tracker(deprecate_eof);
    tracker.begin(command).unwrap();
    follow_begun(tracker, command, packets);
}

fn follow_begun(mut tracker: ResponseTracker, command: Command, packets: &[(Vec<u8>, Step)]) {
    for (i, (payload, expected)) in packets.iter().enumerate() {
        assert!(
            !tracker.is_complete(),
            "{command:?}: complete before packet {i}"
        );
        assert_eq!(
            tracker.step(payload).unwrap(),
            *expected,
            "{command:?}: packet {i}"
        );
    }
    assert!(tracker.is_complete(), "{command:?}: not complete");
    assert!(tracker.step(&ok(NONE)).is_err());
}

#[test]
fn one_packet() {
    for command in [
        Command::Query,
        Command::StmtExecute,
        Command::Ping,
        Command::InitDb,
        Command::StmtReset,
        Command::ResetConnection,
    ] {
        for deprecate in [false, true] {
            follow(deprecate, command, &[(ok(NONE), Step::Ok { status: NONE })]);
            follow(deprecate, command, &[(error(), Step::Err)]);
        }
    }
    for deprecate in [false, true] {
        let option = [(end(deprecate, NONE), Step::EndOfRows { status: NONE })];
        follow(deprecate, Command::SetOption, &option);
        follow(deprecate, Command::StmtPrepare, &[(error(), Step::Err)]);
        follow(deprecate, Command::StmtFetch, &[(error(), Step::Err)]);
        follow(deprecate, Command::FieldList, &[(error(), Step::Err)]);
        let statistics = [(b"Uptime: 5".to_vec(), Step::Statistics)];
        follow(deprecate, Command::Statistics, &statistics);
    }
}

#[test]
fn no_packet() {
    for command in [Command::Quit, Command::StmtClose, Command::StmtSendLongData] {
        follow(false, command, &[]);
        assert!(command.has_no_response());
    }
}

#[test]
fn rows() {
    let row = |bytes: &[u8]| (bytes.to_vec(), Step::Row);
    follow(
        true,
        Command::Query,
        &[
            (vec![2], Step::ColumnCount(2)),
            (column(), Step::ColumnDef),
            (column(), Step::ColumnDef),
            row(b"\x01a\xfb"),
            // A text row whose first cell is empty looks like an OK packet.
            row(b"\0\0\0\0\0\0\0"),
            (end(true, NONE), Step::EndOfRows { status: NONE }),
        ],
    );
    follow(
        false,
        Command::StmtExecute,
        &[
            (vec![1], Step::ColumnCount(1)),
            (column(), Step::ColumnDef),
            (eof_packet(NONE), Step::EofAfterColumns { status: NONE }),
            row(b"\0\0\x05\0\0\0"),
            (eof_packet(NONE), Step::EndOfRows { status: NONE }),
        ],
    );
}

#[test]
fn an_error_ends_rows() {
    follow(
        true,
        Command::Query,
        &[
            (vec![1], Step::ColumnCount(1)),
            (column(), Step::ColumnDef),
            (b"\x01a".to_vec(), Step::Row),
            (error(), Step::Err),
        ],
    );
}

#[test]
fn several_results() {
    for deprecate in [false, true] {
        let mut packets = vec![
            (ok(MORE), Step::Ok { status: MORE }),
            (vec![1], Step::ColumnCount(1)),
            (column(), Step::ColumnDef),
        ];
        if !deprecate {
            packets.push((eof_packet(MORE), Step::EofAfterColumns { status: MORE }));
        }
        packets.push((b"\x01a".to_vec(), Step::Row));
        packets.push((end(deprecate, MORE), Step::EndOfRows { status: MORE }));
        packets.push((ok(NONE), Step::Ok { status: NONE }));
        follow(deprecate, Command::Query, &packets);
        packets.pop();
        packets.push((error(), Step::Err));
        follow(deprecate, Command::Query, &packets);
    }
}

/// MySQL 9.7, recorded: that an OK packet follows is said before the row, not behind it.
#[test]
fn out_parameters_of_a_call() {
    let out = StatusFlags::PS_OUT_PARAMS | MORE;
    follow(
        false,
        Command::StmtExecute,
        &[
            (vec![1], Step::ColumnCount(1)),
            (column(), Step::ColumnDef),
            (eof_packet(out), Step::EofAfterColumns { status: out }),
            (b"\0\0\x05\0\0\0".to_vec(), Step::Row),
            (eof_packet(NONE), Step::EndOfRows { status: out }),
            (ok(NONE), Step::Ok { status: NONE }),
        ],
    );
}

#[test]
fn cursors() {
    let cursor = StatusFlags::CURSOR_EXISTS;
    let begun = |deprecate_eof| {
        let mut tracker = tracker(deprecate_eof);
        tracker.begin_cursor();
        tracker
    };
    follow_begun(
        begun(false),
        Command::StmtExecute,
        &[
            (vec![1], Step::ColumnCount(1)),
            (column(), Step::ColumnDef),
            (eof_packet(cursor), Step::EofAfterColumns { status: cursor }),
        ],
    );
    follow_begun(
        begun(true),
        Command::StmtExecute,
        &[
            (vec![1], Step::ColumnCount(1)),
            (column(), Step::ColumnDef),
            (end(true, cursor), Step::EndOfRows { status: cursor }),
        ],
    );
    // of a procedure that has one of its own
    follow(
        false,
        Command::StmtExecute,
        &[
            (vec![1], Step::ColumnCount(1)),
            (column(), Step::ColumnDef),
            (eof_packet(cursor), Step::EofAfterColumns { status: cursor }),
            (b"\0\0\x05\0\0\0".to_vec(), Step::Row),
            (eof_packet(NONE), Step::EndOfRows { status: NONE }),
        ],
    );
    let last = cursor | StatusFlags::LAST_ROW_SENT;
    for deprecate in [false, true] {
        follow(
            deprecate,
            Command::StmtFetch,
            &[
                (b"\0\0\x05\0\0\0".to_vec(), Step::Row),
                (end(deprecate, last), Step::EndOfRows { status: last }),
            ],
        );
    }
}

#[test]
fn prepared_statements() {
    for deprecate in [false, true] {
        for (num_params, num_columns) in [(0, 0), (2, 0), (0, 1), (1, 2)] {
            let prepared = ComStmtPrepareOk {
                statement_id: 1,
                num_columns,
                num_params,
                warnings: 0,
            };
            let mut head = Vec::new();
            prepared.encode(&mut head);
            let mut packets = vec![(head, Step::PrepareOk(prepared))];
            for _ in 0..num_params {
                packets.push((column(), Step::ParamDef));
            }
            if num_params > 0 && !deprecate {
                packets.push((eof_packet(NONE), Step::EofAfterParams));
            }
            for _ in 0..num_columns {
                packets.push((column(), Step::ColumnDef));
            }
            if num_columns > 0 && !deprecate {
                packets.push((eof_packet(NONE), Step::EofAfterPrepareColumns));
            }
            follow(deprecate, Command::StmtPrepare, &packets);
        }
    }
}

#[test]
fn fields_of_a_table() {
    for deprecate in [false, true] {
        follow(
            deprecate,
            Command::FieldList,
            &[
                (column(), Step::ColumnDef),
                (end(deprecate, NONE), Step::EndOfRows { status: NONE }),
            ],
        );
    }
}

#[test]
fn a_file_of_the_client() {
    follow(
        true,
        Command::Query,
        &[
            (b"\xfb/tmp/rows.csv".to_vec(), Step::LocalInfileRequest),
            (ok(NONE), Step::Ok { status: NONE }),
        ],
    );
}

#[test]
fn a_long_row_that_begins_like_an_end() {
    let mut row = b"\xfe\0\0\0\x01\0\0\0\0".to_vec();
    row.resize(9 + (1 << 24), b'x');
    for deprecate in [false, true] {
        let mut packets = vec![(vec![1], Step::ColumnCount(1)), (column(), Step::ColumnDef)];
        if !deprecate {
            packets.push((eof_packet(NONE), Step::EofAfterColumns { status: NONE }));
        }
        packets.push((row.clone(), Step::Row));
        packets.push((end(deprecate, NONE), Step::EndOfRows { status: NONE }));
        follow(deprecate, Command::Query, &packets);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for command in [
        Command::BinlogDump,
        Command::ChangeUser,
        Command::Unknown(77),
    ] {
        assert!(tracker(true).begin(command).is_err());
    }
    let mut t = tracker(false);
    t.begin(Command::Query).unwrap();
    assert!(t.step(&[]).is_err());
    assert!(t.step(&[0xfe, 1, 2]).is_err());
    assert!(t.step(b"\x02more").is_err());
    t.step(&[1]).unwrap();
    // A row where a definition is due.
    assert!(t.step(b"\x01a").is_err());
    t.step(&column()).unwrap();
    // A row where an EOF packet is due.
    assert!(t.step(b"\x01a").is_err());
}

#[test]
fn rows_are_relayed_up_to_what_is_not_a_row() {
    let pair = || {
        let (a, b) = UnixStream::pair().unwrap();
        (
            Connection::new(Transport::Unix(a)),
            Connection::new(Transport::Unix(b)),
        )
    };
    let (mut server, mut from) = pair();
    let (mut to, mut client) = pair();
    for payload in [
        vec![1],
        column(),
        b"\x01a".to_vec(),
        b"\x01b".to_vec(),
        end(true, NONE),
    ] {
        server.write_payload(&payload).unwrap();
    }
    server.flush().unwrap();
    let mut t = tracker(true);
    t.begin(Command::Query).unwrap();
    t.step(from.read_payload().unwrap()).unwrap();
    t.step(from.read_payload().unwrap()).unwrap();
    let step = relay_rows(&mut t, &mut from, &mut to).unwrap();
    assert_eq!(step, Step::EndOfRows { status: NONE });
    assert_eq!(from.last_payload(), end(true, NONE));
    to.flush().unwrap();
    assert_eq!(client.read_payload().unwrap(), b"\x01a");
    assert_eq!(client.read_payload().unwrap(), b"\x01b");
    assert!(!client.has_buffered_input());
}
