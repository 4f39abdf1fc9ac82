//! Every message: what is encoded decodes to the same, and bytes seen on real wires decode as they
//! should.

use onionskin_wire::messages::*;
use onionskin_wire::{
    BinaryValue, Capabilities, ColumnFlags, ColumnType, DefinitionForm, MariaDbCapabilities,
    ParamType, StatusFlags,
};

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

fn greeting(capabilities: Capabilities) -> InitialHandshake {
    InitialHandshake {
        server_version: b"5.5.5-10.11.6-MariaDB".to_vec(),
        connection_id: 0x0102_0304,
        auth_data: b"0123456789abcdefghij".to_vec(),
        capabilities,
        mariadb_capabilities: MariaDbCapabilities::empty(),
        charset: 45,
        status: StatusFlags::AUTOCOMMIT,
        auth_plugin: b"mysql_native_password".to_vec(),
    }
}

#[test]
fn greeting_of_mysql_and_of_mariadb() {
    let mysql = greeting(Capabilities::SUPPORTED);
    let bytes = encoded(|out| mysql.encode(out).unwrap());
    assert_eq!(InitialHandshake::decode(&bytes).unwrap(), mysql);
    assert!(InitialHandshake::is_handshake(&bytes));

    let mut mariadb = greeting(Capabilities::SUPPORTED - Capabilities::LONG_PASSWORD);
    mariadb.mariadb_capabilities = MariaDbCapabilities::CACHE_METADATA;
    let bytes = encoded(|out| mariadb.encode(out).unwrap());
    let decoded = InitialHandshake::decode(&bytes).unwrap();
    assert_eq!(decoded, mariadb);
    assert!(decoded.is_mariadb());
}

#[test]
fn greeting_as_recorded() {
    // MySQL 5.5.2-m2, from the protocol's own description.
    let bytes =
        b"\x0a5.5.2-m2\0\x0b\0\0\0\x64\x76\x48\x40\x49\x2d\x43\x4a\0\xff\xf7\x08\x02\0\x00\x00\x00\
        \0\0\0\0\0\0\0\0\0\0\x2a\x34\x64\x7c\x63\x5a\x77\x6b\x34\x5e\x5d\x3a\0";
    let hello = InitialHandshake::decode(bytes).unwrap();
    assert_eq!(hello.server_version, b"5.5.2-m2");
    assert_eq!(hello.auth_data, b"dvH@I-CJ*4d|cZwk4^]:");
    assert_eq!(encoded(|out| hello.encode(out).unwrap()), bytes);
}

fn login(capabilities: Capabilities) -> HandshakeResponse41 {
    let has = |flag, field: &[u8]| capabilities.contains(flag).then(|| field.to_vec());
    HandshakeResponse41 {
        capabilities,
        mariadb_capabilities: MariaDbCapabilities::empty(),
        max_packet_size: 1 << 24,
        charset: 255,
        username: b"sbtest".to_vec(),
        auth_response: b"01234567890123456789".to_vec(),
        database: has(Capabilities::CONNECT_WITH_DB, b"shop"),
        auth_plugin: has(Capabilities::PLUGIN_AUTH, b"caching_sha2_password"),
        connect_attrs: has(Capabilities::CONNECT_ATTRS, b"\x03_os\x05Linux"),
    }
}

#[test]
fn login_for_every_choice_of_capabilities() {
    use Capabilities as C;
    let optional = [
        C::LONG_PASSWORD,
        C::CONNECT_WITH_DB,
        C::SECURE_CONNECTION,
        C::PLUGIN_AUTH,
        C::CONNECT_ATTRS,
        C::PLUGIN_AUTH_LENENC_CLIENT_DATA,
    ];
    for choice in 0..1u32 << optional.len() {
        let capabilities = (0..optional.len())
            .filter(|i| choice & 1 << i != 0)
            .fold(C::PROTOCOL_41, |all, i| all | optional[i]);
        let login = login(capabilities);
        let bytes = encoded(|out| login.encode(out).unwrap());
        assert_eq!(HandshakeResponse41::decode(&bytes).unwrap(), login);
    }
}

#[test]
fn login_with_a_long_answer() {
    let mut login = login(Capabilities::SUPPORTED);
    login.auth_response = vec![7; 300];
    let bytes = encoded(|out| login.encode(out).unwrap());
    assert_eq!(HandshakeResponse41::decode(&bytes).unwrap(), login);
    // One byte of length cannot hold it.
    login.capabilities -= Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA;
    assert!(login.encode(&mut Vec::new()).is_err());
}

#[test]
fn login_keeps_secrets_out_of_debug() {
    let mut login = login(Capabilities::SUPPORTED);
    login.auth_response = b"hunter2".to_vec();
    assert!(!format!("{login:?}").contains("hunter2"));
    assert_eq!(
        login.attributes().collect::<Vec<_>>(),
        [(&b"_os"[..], &b"Linux"[..])]
    );
}

#[test]
fn login_older_than_4_1_is_refused() {
    assert!(HandshakeResponse41::decode(&[0; 64]).is_err());
}

#[test]
fn request_for_tls() {
    let request = login(Capabilities::SUPPORTED).ssl_request();
    let bytes = encoded(|out| request.encode(out));
    assert_eq!(bytes.len(), 32);
    assert!(SslRequest::is_ssl_request(&bytes));
    assert_eq!(SslRequest::decode(&bytes).unwrap(), request);
    let whole = encoded(|out| login(Capabilities::SUPPORTED).encode(out).unwrap());
    assert!(!SslRequest::is_ssl_request(&whole));
}

#[test]
fn switch_of_the_login_method_and_its_data() {
    let switch = AuthSwitchRequest {
        plugin: b"client_ed25519".to_vec(),
        data: b"scramble\0".to_vec(),
    };
    let bytes = encoded(|out| switch.encode(out));
    assert_eq!(AuthSwitchRequest::decode(&bytes).unwrap(), switch);
    assert_eq!(switch.scramble(), b"scramble");
    assert_eq!(
        AuthSwitchRequest::decode(&[0xfe]).unwrap().plugin,
        b"mysql_old_password"
    );

    let more = AuthMoreData {
        data: AuthMoreData::FULL_AUTH,
    };
    let bytes = encoded(|out| more.encode(out));
    assert_eq!(bytes, [1, 4]);
    assert_eq!(AuthMoreData::decode(&bytes).unwrap(), more);
}

#[test]
fn ok_with_and_without_session_tracking() {
    let changes = encoded(|out| {
        SessionChange::SystemVariable {
            name: b"sql_mode",
            value: b"ANSI_QUOTES",
        }
        .encode(out);
        SessionChange::Schema(b"shop").encode(out);
        SessionChange::State(b"1").encode(out);
        SessionChange::Gtids {
            encoding: 0,
            ids: b"3E11FA47:23",
        }
        .encode(out);
        SessionChange::TransactionCharacteristics(b"START TRANSACTION;").encode(out);
        SessionChange::TransactionState(b"T_______").encode(out);
        SessionChange::Other {
            kind: 99,
            data: b"?",
        }
        .encode(out);
    });
    let ok = OkPacket {
        affected_rows: 300,
        last_insert_id: 1 << 40,
        status: StatusFlags::AUTOCOMMIT | StatusFlags::SESSION_STATE_CHANGED,
        warnings: 2,
        info: b"Rows matched: 1  Changed: 1  Warnings: 0",
        session_changes: SessionChanges(&changes),
        ..OkPacket::default()
    };
    let tracks = Capabilities::SESSION_TRACK;
    let bytes = encoded(|out| ok.encode(out, tracks));
    let decoded = OkPacket::decode(&bytes, tracks).unwrap();
    assert_eq!(decoded, ok);
    assert_eq!(OkPacket::status_of(&bytes).unwrap(), ok.status);
    let seen: Vec<_> = decoded.changes().map(Result::unwrap).collect();
    assert_eq!(seen.len(), 7);
    assert_eq!(
        seen[0],
        SessionChange::SystemVariable {
            name: b"sql_mode",
            value: b"ANSI_QUOTES"
        }
    );
    assert_eq!(seen[1], SessionChange::Schema(b"shop"));
    assert_eq!(seen[2], SessionChange::State(b"1"));
    assert_eq!(
        seen[6],
        SessionChange::Other {
            kind: 99,
            data: b"?"
        }
    );

    // For a client that does not track, the changes and their flag are gone and the rest is the
    // same.
    let bytes = encoded(|out| ok.encode(out, Capabilities::empty()));
    let plain = OkPacket::decode(&bytes, Capabilities::empty()).unwrap();
    assert_eq!(plain.info, ok.info);
    assert_eq!(plain.status, StatusFlags::AUTOCOMMIT);
    assert_eq!(plain.changes().count(), 0);
    assert_eq!(
        (plain.affected_rows, plain.last_insert_id, plain.warnings),
        (300, 1 << 40, 2)
    );
}

#[test]
fn ok_as_servers_send_it() {
    // UPDATE of one row, recorded: the text has a length although nothing is tracked.
    let bytes = b"\0\x01\0\x02\0\0\0\x28Rows matched: 1  Changed: 1  Warnings: 0";
    let ok = OkPacket::decode(bytes, Capabilities::empty()).unwrap();
    assert_eq!(ok.info, b"Rows matched: 1  Changed: 1  Warnings: 0");
    assert_eq!(encoded(|out| ok.encode(out, Capabilities::empty())), bytes);
    // And as the protocol's description has it.
    let bytes = b"\0\x01\0\x02\0\0\0Rows matched: 1";
    let ok = OkPacket::decode(bytes, Capabilities::empty()).unwrap();
    assert_eq!(ok.info, b"Rows matched: 1");
    // USE with tracking: schema change, no text. From the protocol's description.
    let bytes = b"\0\0\0\x02\x40\0\0\0\x07\x01\x05\x04test";
    let ok = OkPacket::decode(bytes, Capabilities::SESSION_TRACK).unwrap();
    let changes: Vec<_> = ok.changes().map(Result::unwrap).collect();
    assert_eq!(changes, [SessionChange::Schema(b"test")]);
    assert_eq!(
        encoded(|out| ok.encode(out, Capabilities::SESSION_TRACK)),
        bytes
    );
    // An INSERT whose trigger makes a temporary table, as MariaDB 10.11 and MySQL 9.7 answered it.
    let bytes = b"\0\x01\0\x02\x40\0\0\0\x03\x02\x011";
    let ok = OkPacket::decode(bytes, Capabilities::SESSION_TRACK).unwrap();
    let changes: Vec<_> = ok.changes().map(Result::unwrap).collect();
    assert_eq!(changes, [SessionChange::State(b"1")]);
    assert_eq!(
        encoded(|out| ok.encode(out, Capabilities::SESSION_TRACK)),
        bytes
    );
}

#[test]
fn malformed_session_changes_end_with_an_error() {
    let mut changes = SessionChanges(b"\x00\x05\x04test");
    assert!(changes.next().unwrap().is_err());
    assert!(changes.next().is_none());
}

#[test]
fn error_with_and_without_sqlstate() {
    let error = ErrPacket::new(1062, *b"23000", &b"Duplicate entry"[..]);
    let bytes = encoded(|out| error.encode(out));
    assert_eq!(bytes, b"\xff\x26\x04#23000Duplicate entry");
    assert_eq!(ErrPacket::decode(&bytes).unwrap(), error);
    let early = b"\xff\x10\x04Too many connections";
    let error = ErrPacket::decode(early).unwrap();
    assert_eq!((error.code, error.sqlstate), (1040, None));
    assert_eq!(encoded(|out| error.encode(out)), early);
    assert!(!format!("{error:?}").contains("many"));
}

#[test]
fn end_of_rows() {
    let eof = EofPacket {
        warnings: 3,
        status: StatusFlags::AUTOCOMMIT | StatusFlags::MORE_RESULTS,
    };
    let bytes = encoded(|out| eof.encode(out));
    assert_eq!(bytes, [0xfe, 3, 0, 10, 0]);
    assert_eq!(EofPacket::decode(&bytes).unwrap(), eof);
    assert!(EofPacket::decode(&[0xfe; 20]).is_err());
}

#[test]
fn column_definition_with_every_default() {
    for default in [
        ColumnDefault::Absent,
        ColumnDefault::Null,
        ColumnDefault::Value(b"7"[..].into()),
    ] {
        for form in [DefinitionForm::Standard, DefinitionForm::Extended] {
            let extended = form == DefinitionForm::Extended;
            let mut column = ColumnDefinition {
                catalog: b"def"[..].into(),
                schema: b"app"[..].into(),
                table: b"u"[..].into(),
                org_table: b"users"[..].into(),
                name: b"mail"[..].into(),
                org_name: b"email"[..].into(),
                charset: 255,
                length: 1020,
                column_type: ColumnType::VAR_STRING,
                flags: ColumnFlags::NOT_NULL | ColumnFlags::UNIQUE_KEY,
                decimals: 0,
                default: default.clone(),
                extended: extended.then(|| b""[..].into()),
            };
            for about in [&b""[..], b"\x01\x04json"] {
                column.extend(about);
                let bytes = encoded(|out| column.encode(out));
                assert_eq!(ColumnDefinition::decode(&bytes, form).unwrap(), column);
                assert_eq!(column.clone().into_owned(), column);
                assert_eq!(column.extended.as_deref(), extended.then_some(about));
            }
        }
    }
}

#[test]
fn answer_to_prepare() {
    let ok = ComStmtPrepareOk {
        statement_id: 9,
        num_columns: 2,
        num_params: 3,
        warnings: 1,
    };
    let bytes = encoded(|out| ok.encode(out));
    assert_eq!(bytes.len(), 12);
    assert_eq!(ComStmtPrepareOk::decode(&bytes).unwrap(), ok);
}

fn execute(statement: u32, params: &[(ParamType, BinaryValue<'_>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = ExecuteWriter::begin(&mut out, statement, CursorType::READ_ONLY, params.len());
    for (ty, value) in params {
        writer.param(&mut out, *ty, value).unwrap();
    }
    writer.finish().unwrap();
    out
}

#[test]
fn spare_bytes_behind_the_parameters_are_left_alone() {
    let ty = ParamType::new(ColumnType::LONG);
    let mut bytes = execute(7, &[(ty, BinaryValue::Null), (ty, BinaryValue::Int(5))]);
    bytes.extend([0; 4]);
    let mut types = Vec::new();
    let execute = ComStmtExecute::decode(&bytes, 2, &mut types).unwrap();
    let values: Vec<_> = execute
        .params(&types, |_| false)
        .map(|param| param.unwrap().value)
        .collect();
    assert_eq!(values, [BinaryValue::Null, BinaryValue::Int(5)]);
}

#[test]
fn execution_with_every_kind_of_value() {
    use onionskin_wire::binary_value::{DateTime, Time};
    let date = DateTime {
        year: 2024,
        month: 2,
        day: 29,
        ..DateTime::default()
    };
    let params = [
        (ParamType::new(ColumnType::TINY), BinaryValue::Int(-128)),
        (
            ParamType::unsigned(ColumnType::TINY),
            BinaryValue::UInt(255),
        ),
        (ParamType::new(ColumnType::SHORT), BinaryValue::Int(-2)),
        (ParamType::new(ColumnType::LONG), BinaryValue::Int(-3)),
        (
            ParamType::new(ColumnType::LONGLONG),
            BinaryValue::Int(i64::MIN),
        ),
        (
            ParamType::unsigned(ColumnType::LONGLONG),
            BinaryValue::UInt(u64::MAX),
        ),
        (ParamType::new(ColumnType::FLOAT), BinaryValue::Float(1.5)),
        (
            ParamType::new(ColumnType::DOUBLE),
            BinaryValue::Double(-0.1),
        ),
        (ParamType::new(ColumnType::STRING), BinaryValue::Null),
        (
            ParamType::new(ColumnType::NEWDECIMAL),
            BinaryValue::Bytes(b"-1.50"),
        ),
        (
            ParamType::new(ColumnType::VAR_STRING),
            BinaryValue::Bytes(&[b'x'; 300]),
        ),
        (
            ParamType::new(ColumnType::DATE),
            BinaryValue::DateTime(date),
        ),
        (
            ParamType::new(ColumnType::DATETIME),
            BinaryValue::DateTime(DateTime { hour: 23, ..date }),
        ),
        (
            ParamType::new(ColumnType::TIMESTAMP),
            BinaryValue::DateTime(DateTime {
                microsecond: 1,
                ..date
            }),
        ),
        (
            ParamType::new(ColumnType::DATETIME),
            BinaryValue::DateTime(DateTime::default()),
        ),
        (
            ParamType::new(ColumnType::TIME),
            BinaryValue::Time(Time {
                negative: true,
                days: 34,
                hours: 22,
                microseconds: 5,
                ..Time::default()
            }),
        ),
        (
            ParamType::new(ColumnType::TIME),
            BinaryValue::Time(Time::default()),
        ),
    ];
    let bytes = execute(7, &params);
    let mut types = Vec::new();
    let execute = ComStmtExecute::decode(&bytes, params.len(), &mut types).unwrap();
    assert_eq!(execute.statement_id, 7);
    assert_eq!(execute.cursor, CursorType::READ_ONLY);
    assert_eq!(execute.iterations, 1);
    assert!(execute.new_params_bound);
    let decoded: Vec<_> = execute
        .params(&types, |_| false)
        .map(|p| p.map(|p| (p.ty, p.value)).unwrap())
        .collect();
    assert_eq!(decoded, params);
}

#[test]
fn execution_with_remembered_types() {
    let int = ParamType::new(ColumnType::LONG);
    let first = execute(1, &[(int, BinaryValue::Int(5)), (int, BinaryValue::Null)]);
    let mut types = Vec::new();
    ComStmtExecute::decode(&first, 2, &mut types).unwrap();
    // Second execution: no types, the other parameter NULL.
    let second = b"\x17\x01\0\0\0\0\x01\0\0\0\x01\0\x2a\0\0\0";
    let again = ComStmtExecute::decode(second, 2, &mut types).unwrap();
    assert!(!again.new_params_bound);
    let values: Vec<_> = again
        .params(&types, |_| false)
        .map(|p| p.unwrap().value)
        .collect();
    assert_eq!(values, [BinaryValue::Null, BinaryValue::Int(42)]);
    // A statement without parameters has none, whatever is remembered.
    let none = ComStmtExecute::decode(b"\x17\x01\0\0\0\0\x01\0\0\0", 0, &mut types).unwrap();
    assert_eq!(none.params(&types, |_| false).count(), 0);
    // Types that were never sent.
    assert!(ComStmtExecute::decode(second, 2, &mut Vec::new()).is_err());
}

#[test]
fn execution_with_a_value_sent_before() {
    let blob = ParamType::new(ColumnType::BLOB);
    let int = ParamType::new(ColumnType::LONG);
    let bytes = execute(
        1,
        &[(blob, BinaryValue::LongData), (int, BinaryValue::Int(1))],
    );
    let mut types = Vec::new();
    let execute = ComStmtExecute::decode(&bytes, 2, &mut types).unwrap();
    let values: Vec<_> = execute
        .params(&types, |i| i == 0)
        .map(|p| p.unwrap().value)
        .collect();
    assert_eq!(values, [BinaryValue::LongData, BinaryValue::Int(1)]);
    // Taken for an ordinary value, the bytes do not add up.
    assert!(execute.params(&types, |_| false).any(|p| p.is_err()));
}

#[test]
fn execution_refuses_what_it_cannot_know() {
    let int = ParamType::new(ColumnType::LONG);
    let mut bytes = execute(1, &[(int, BinaryValue::Int(1))]);
    let mut types = Vec::new();
    bytes.pop();
    let execute = ComStmtExecute::decode(&bytes, 1, &mut types).unwrap();
    assert!(execute.params(&types, |_| false).any(|p| p.is_err()));
    bytes[5] |= 8; // a count of parameters, which belongs to query attributes
    assert!(ComStmtExecute::decode(&bytes, 1, &mut types).is_err());
    let mut out = Vec::new();
    let mut writer = ExecuteWriter::begin(&mut out, 1, CursorType::NO_CURSOR, 1);
    assert!(
        writer
            .param(
                &mut out,
                ParamType::new(ColumnType::TINY),
                &BinaryValue::Int(128)
            )
            .is_err()
    );
}

#[test]
fn commands_about_prepared_statements() {
    let long = ComStmtSendLongData {
        statement_id: 5,
        param: 2,
        data: b"piece",
    };
    let bytes = encoded(|out| long.encode(out));
    assert_eq!(ComStmtSendLongData::decode(&bytes).unwrap(), long);
    assert_eq!(statement_id(&bytes).unwrap(), 5);

    let fetch = ComStmtFetch {
        statement_id: 6,
        rows: 100,
    };
    let bytes = encoded(|out| fetch.encode(out));
    assert_eq!(ComStmtFetch::decode(&bytes).unwrap(), fetch);

    let bytes = encoded(|out| encode_statement_command(out, Command::StmtClose, 8));
    assert_eq!(bytes, [0x19, 8, 0, 0, 0]);
    assert_eq!(statement_id(&bytes).unwrap(), 8);
    assert!(statement_id(b"\x03SELECT 1").is_err());
}

#[test]
fn field_list() {
    let list = ComFieldList {
        table: b"users",
        wildcard: b"e%",
    };
    let bytes = encoded(|out| list.encode(out));
    assert_eq!(ComFieldList::decode(&bytes).unwrap(), list);
}

#[test]
fn change_of_user() {
    let full = ComChangeUser {
        username: b"app".to_vec(),
        auth_response: vec![9; 20],
        database: b"shop".to_vec(),
        charset: Some(255),
        auth_plugin: Some(b"mysql_native_password".to_vec()),
        connect_attrs: Some(b"\x01a\x01b".to_vec()),
    };
    for change in [
        full.clone(),
        ComChangeUser {
            connect_attrs: None,
            ..full.clone()
        },
        ComChangeUser {
            auth_plugin: None,
            connect_attrs: None,
            ..full.clone()
        },
        ComChangeUser {
            charset: None,
            auth_plugin: None,
            connect_attrs: None,
            ..full.clone()
        },
    ] {
        let bytes = encoded(|out| change.encode(out, Capabilities::SUPPORTED).unwrap());
        assert_eq!(
            ComChangeUser::decode(&bytes, Capabilities::SUPPORTED).unwrap(),
            change
        );
    }
    let without_plugins = Capabilities::SECURE_CONNECTION;
    let bytes = encoded(|out| full.encode(out, without_plugins).unwrap());
    let decoded = ComChangeUser::decode(&bytes, without_plugins).unwrap();
    assert_eq!((decoded.auth_plugin, decoded.charset), (None, Some(255)));
}
