//! Packets of both peers.

use onionskin_wire::messages::{
    AuthMoreData, AuthSwitchRequest, ColumnDefinition, ComChangeUser, ComFieldList, ComStmtExecute,
    ComStmtFetch, ComStmtPrepareOk, ComStmtSendLongData, Command, EofPacket, ErrPacket,
    HandshakeResponse41, InitialHandshake, OkPacket, SslRequest, statement_id,
};
use onionskin_wire::rows::{BinaryRow, TextRow};
use onionskin_wire::{Capabilities, ColumnType, DefinitionForm, ParamType, ResponseTracker};

/// The first byte chooses a message, the next four are capabilities, the rest is the packet's
/// payload.
#[expect(clippy::too_many_lines, reason = "one arm for each packet")]
pub fn run(input: &[u8]) {
    let Some((&[choice, a, b, c, d], payload)) = input.split_first_chunk::<5>() else {
        return;
    };
    let capabilities = Capabilities::from_bits_retain(u32::from_le_bytes([a, b, c, d]));
    let mut out = Vec::new();
    match choice % 16 {
        0 => {
            if let Ok(message) = InitialHandshake::decode(payload) {
                let _ = (message.is_mariadb(), format!("{message:?}"));
                let _ = message.encode(&mut out);
            }
        }
        1 => {
            if let Ok(message) = HandshakeResponse41::decode(payload) {
                let _ = (message.attributes().count(), format!("{message:?}"));
                if message.encode(&mut out).is_ok() {
                    // Not equal to the message: a field that an old client left out is now there,
                    // and empty.
                    let again = HandshakeResponse41::decode(&out).expect("what was encoded");
                    let mut twice = Vec::new();
                    assert!(again.encode(&mut twice).is_ok() && twice == out);
                }
            }
        }
        2 => {
            if let Ok(message) = SslRequest::decode(payload) {
                message.encode(&mut out);
                assert_eq!(SslRequest::decode(&out).ok(), Some(message));
            }
        }
        3 => {
            if let Ok(message) = AuthSwitchRequest::decode(payload) {
                let _ = message.scramble();
                message.encode(&mut out);
                assert!(AuthSwitchRequest::decode(&out).ok() == Some(message));
            }
            let _ = AuthMoreData::decode(payload).map(|message| message.encode(&mut out));
        }
        4 => {
            if let Ok(message) = ComChangeUser::decode(payload, capabilities) {
                let _ = message.encode(&mut out, capabilities);
            }
        }
        5 => {
            if let Ok(message) = OkPacket::decode(payload, capabilities) {
                for change in message.changes() {
                    let _ = format!("{:?}", change.is_ok());
                }
                message.encode(&mut out, capabilities);
            }
            let _ = OkPacket::status_of(payload);
        }
        6 => {
            if let Ok(message) = ErrPacket::decode(payload) {
                message.encode(&mut out);
                assert_eq!(out, payload, "an error is passed on as it is");
            }
            let _ = EofPacket::decode(payload).map(|message| message.encode(&mut out));
        }
        7 => {
            let form = match a % 2 {
                0 => DefinitionForm::Standard,
                _ => DefinitionForm::Extended,
            };
            if let Ok(message) = ColumnDefinition::decode(payload, form) {
                let _ = message.param_type();
                message.encode(&mut out);
                assert_eq!(
                    ColumnDefinition::decode(&out, form).ok(),
                    Some(message.clone()),
                    "encoded and decoded again"
                );
                let _ = message.into_owned();
            }
        }
        8 => {
            if let Ok(message) = ComStmtPrepareOk::decode(payload) {
                message.encode(&mut out);
            }
        }
        9 | 10 => {
            let mut types = vec![ParamType::new(ColumnType(c)); usize::from(b % 4)];
            if let Ok(message) = ComStmtExecute::decode(payload, usize::from(a), &mut types) {
                for parameter in
                    message.params(&types, |index| d != 0 && index % 8 == usize::from(d % 8))
                {
                    let _ = format!("{:?}", parameter.is_ok());
                }
            }
            let _ = statement_id(payload);
        }
        11 => {
            let _ = ComStmtSendLongData::decode(payload).map(|message| message.encode(&mut out));
            let _ = ComStmtFetch::decode(payload).map(|message| message.encode(&mut out));
            let _ = ComFieldList::decode(payload).map(|message| message.encode(&mut out));
            let _ = Command::of(payload).map(|command| (command.name(), command.to_byte()));
        }
        12 => {
            let mut row = TextRow::new(payload);
            let mut cells = 0;
            while !row.is_empty() && row.cell().is_ok() {
                cells += 1;
            }
            assert!(cells <= payload.len(), "a cell takes at least a byte");
            let _ = TextRow::new(payload).raw_cells(usize::from(a));
        }
        13 => {
            // As many columns as there are bytes before a zero in the payload.
            let split = payload.iter().position(|byte| *byte == 0).unwrap_or(0);
            let (kinds, row) = payload.split_at(split);
            let types: Vec<ParamType> = kinds
                .iter()
                .map(|kind| ParamType::new(ColumnType(*kind)))
                .collect();
            if let Ok(row) = BinaryRow::new(row, &types) {
                for cell in row.flatten() {
                    let _ = (cell.value().is_ok(), cell.bytes().is_ok());
                }
            }
        }
        _ => {
            // An answer of several packets, each with a length byte before it.
            let mut tracker = ResponseTracker::new(capabilities);
            if tracker.begin(Command::from_byte(a)).is_ok() {
                let mut rest = payload;
                while let Some((&length, more)) = rest.split_first() {
                    if tracker.is_complete() {
                        break;
                    }
                    let (packet, more) = more.split_at(more.len().min(usize::from(length)));
                    rest = more;
                    if tracker.step(packet).is_err() {
                        break;
                    }
                }
            }
        }
    }
}

/// One packet of each kind.
pub fn seeds() -> Vec<Vec<u8>> {
    let login = [
        &0x000f_a28fu32.to_le_bytes()[..],
        &0x0100_0000u32.to_le_bytes(),
        &[45],
        &[0; 23],
        b"root\0\x14aaaaaaaaaaaaaaaaaaaaapp\0mysql_native_password\0",
    ]
    .concat();
    let greeting = [
        &b"\x0a10.11.6-MariaDB\0\x05\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\xff\x81\x15"[..],
        &[0; 10],
        b"ijklmnopqrst\0mysql_native_password\0",
    ]
    .concat();
    let column = b"\x03def\x03app\x01t\x01t\x01c\x01c\x0c\x2d\0\x90\x01\0\0\xfd\0\0\0\0\0".to_vec();
    let ok = b"\0\x01\x05\x02\0\0\0".to_vec();
    let tracked = b"\0\0\0\x02\x40\0\0\0\x0c\x01\x0a\x04name\x05value\x01\x02x".to_vec();
    let error = b"\xff\x26\x04#23000Duplicate entry".to_vec();
    let execute =
        b"\x17\x01\0\0\0\0\x01\0\0\0\x00\x01\x03\0\xfd\0\x08\0\x07\0\0\0\x03abc\x01\0\0\0\0\0\0\0"
            .to_vec();
    let prepared = b"\0\x01\0\0\0\x01\0\x02\0\0\0\0".to_vec();
    let text_row = b"\x011\xfb\x03abc\xfc\x03\0xyz".to_vec();
    let binary_row = b"\x03\xfd\x0c\0\0\0\x07\0\0\0\x03abc\x04\xe4\x07\x01\x02".to_vec();
    let answer = [
        &[1u8, 1][..],
        &[column.len() as u8],
        &column,
        &[5, 0xfe, 0, 0, 2, 0, 2, 1, b'x', 5, 0xfe, 0, 0, 2, 0],
    ]
    .concat();
    let change_user =
        b"\x11root\0\x14aaaaaaaaaaaaaaaaaaaaapp\0\x2d\0mysql_native_password\0".to_vec();
    let switch = b"\xfemysql_native_password\0abcdefghijklmnopqrst\0".to_vec();

    let capabilities = 0x81ff_a28fu32.to_le_bytes();
    let with = |choice: u8, head: [u8; 4], payload: &[u8]| [&[choice], &head[..], payload].concat();
    vec![
        with(0, capabilities, &greeting),
        with(1, capabilities, &login),
        with(2, capabilities, &login[..32]),
        with(3, capabilities, &switch),
        with(4, capabilities, &change_user),
        with(5, capabilities, &ok),
        with(5, capabilities, &tracked),
        with(6, capabilities, &error),
        with(7, capabilities, &column),
        with(8, capabilities, &prepared),
        with(9, [3, 0, 0, 0], &execute),
        with(11, capabilities, b"\x18\x01\0\0\0\0\0data"),
        with(12, [4, 0, 0, 0], &text_row),
        with(13, capabilities, &binary_row),
        with(14, [3, 0xa2, 0, 0], &answer),
        with(
            14,
            [22, 0xa2, 0, 1],
            &[&[12][..], &prepared, &[column.len() as u8], &column].concat(),
        ),
    ]
}
