//! Whatever the bytes, no decoder panics, and what decodes can be encoded.

use onionskin_wire::messages::*;
use onionskin_wire::rows::{BinaryRow, ResponseHead, RowPacket, TextRow};
use onionskin_wire::trace::{Peer, Tracer};
use onionskin_wire::{
    BinaryValue, Capabilities, ColumnType, DefinitionForm, Direction, ParamType, Reader,
    ResponseTracker,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Random bytes behind a first byte that a decoder looks for, so that it gets beyond it.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![
        any::<u8>(),
        prop::sample::select(vec![
            0x00, 0x01, 0x03, 0x04, 0x0a, 0x11, 0x17, 0x18, 0x1c, 0xfb, 0xfe, 0xff
        ]),
    ];
    // Small bytes make plausible lengths.
    let rest = prop_oneof![vec(any::<u8>(), 0..120), vec(0u8..12, 0..120)];
    (first, rest).prop_map(|(first, mut rest)| {
        rest.insert(0, first);
        rest
    })
}

fn types() -> impl Strategy<Value = Vec<ParamType>> {
    let kind = prop_oneof![0u8..=0x13, 0xf2u8..=0xff,];
    vec(
        (kind, any::<bool>()).prop_map(|(kind, unsigned)| ParamType {
            kind: ColumnType(kind),
            unsigned,
        }),
        0..12,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn messages(bytes in payload(), bits in any::<u32>()) {
        let capabilities = Capabilities::from_bits_retain(bits);
        let mut out = Vec::new();
        if let Ok(m) = InitialHandshake::decode(&bytes) {
            let _ = m.encode(&mut out);
        }
        if let Ok(m) = HandshakeResponse41::decode(&bytes) {
            let _ = m.encode(&mut out);
            let _ = m.attributes().count();
        }
        if let Ok(m) = SslRequest::decode(&bytes) {
            m.encode(&mut out);
        }
        if let Ok(m) = AuthSwitchRequest::decode(&bytes) {
            m.encode(&mut out);
        }
        let _ = AuthMoreData::decode(&bytes);
        if let Ok(m) = OkPacket::decode(&bytes, capabilities) {
            m.encode(&mut out, capabilities);
            let _ = m.changes().count();
            let _ = format!("{m:?}");
        }
        let _ = OkPacket::status_of(&bytes);
        if let Ok(m) = ErrPacket::decode(&bytes) {
            out.clear();
            m.encode(&mut out);
            prop_assert_eq!(&out, &bytes);
        }
        let _ = EofPacket::decode(&bytes);
        for form in [DefinitionForm::Standard, DefinitionForm::Extended] {
            if let Ok(m) = ColumnDefinition::decode(&bytes, form) {
                m.encode(&mut out);
            }
        }
        let _ = ComStmtPrepareOk::decode(&bytes);
        let _ = ComStmtSendLongData::decode(&bytes);
        let _ = ComStmtFetch::decode(&bytes);
        let _ = ComFieldList::decode(&bytes);
        let _ = statement_id(&bytes);
        if let Ok(m) = ComChangeUser::decode(&bytes, capabilities) {
            let _ = m.encode(&mut out, capabilities);
        }
        let _ = SessionChanges(&bytes).count();
    }

    /// Without the twenty bytes that no random input gets right by chance.
    #[test]
    fn logins(bytes in payload(), bits in any::<u32>()) {
        let capabilities = Capabilities::from_bits_retain(bits) | Capabilities::PROTOCOL_41;
        let mut whole = capabilities.bits().to_le_bytes().to_vec();
        whole.resize(32, 0);
        whole.extend_from_slice(&bytes);
        if let Ok(m) = HandshakeResponse41::decode(&whole) {
            let mut out = Vec::new();
            if m.encode(&mut out).is_ok() {
                let again = HandshakeResponse41::decode(&out).unwrap();
                prop_assert_eq!(again.username, m.username);
                prop_assert_eq!(again.auth_response, m.auth_response);
            }
        }
    }

    #[test]
    fn executions(bytes in vec(any::<u8>(), 0..60), mut types in types(), long in any::<u16>(), params in 0usize..12) {
        let mut payload = b"\x17\x01\0\0\0\0\x01\0\0\0".to_vec();
        payload.extend_from_slice(&bytes);
        if let Ok(execute) = ComStmtExecute::decode(&payload, params, &mut types) {
            let params: Result<Vec<_>, _> = execute.params(&types, |i| long >> i & 1 != 0).collect();
            if let Ok(params) = params {
                let mut out = Vec::new();
                let mut writer = ExecuteWriter::begin(&mut out, 1, CursorType::NO_CURSOR, params.len());
                for p in &params {
                    writer.param(&mut out, p.ty, &p.value).unwrap();
                }
                writer.finish().unwrap();
            }
        }
        let _ = ComStmtExecute::decode(&payload, usize::MAX, &mut types);
    }

    #[test]
    fn rows(bytes in payload(), types in types()) {
        let _ = TextRow::new(&bytes).count();
        let _ = ResponseHead::classify(&bytes);
        let _ = RowPacket::classify(&bytes, true);
        if let Ok(row) = BinaryRow::new(&bytes, &types) {
            for cell in row.flatten() {
                let _ = cell.value();
                let _ = cell.bytes();
            }
        }
    }

    #[test]
    fn values(bytes in vec(any::<u8>(), 0..40), kind in any::<u8>(), unsigned in any::<bool>()) {
        let ty = ParamType { kind: ColumnType(kind), unsigned };
        let mut raw = Reader::new(&bytes);
        let mut decoded = Reader::new(&bytes);
        if let Ok(value) = BinaryValue::decode(&mut decoded, ty) {
            // A value is where the raw walk says it is, and survives a round trip.
            ty.kind.raw_value(&mut raw).unwrap();
            prop_assert_eq!(raw.remaining(), decoded.remaining());
            let mut out = Vec::new();
            value.encode(&mut out, ty).unwrap();
            let again = BinaryValue::decode(&mut Reader::new(&out), ty).unwrap();
            let is_nan = matches!(value, BinaryValue::Float(v) if v.is_nan())
                || matches!(value, BinaryValue::Double(v) if v.is_nan());
            let is_zero_time = matches!(value, BinaryValue::Time(_));
            prop_assert!(is_nan || is_zero_time || again == value);
        }
    }

    #[test]
    fn responses(packets in vec(payload(), 0..12), command in any::<u8>(), deprecate in any::<bool>()) {
        let capabilities = if deprecate { Capabilities::DEPRECATE_EOF } else { Capabilities::empty() };
        let mut tracker = ResponseTracker::new(capabilities);
        if tracker.begin(Command::from_byte(command % 34)).is_ok() {
            for packet in &packets {
                let _ = tracker.step(packet);
            }
        }
    }

    #[test]
    fn traces(packets in vec((payload(), any::<bool>(), any::<u8>()), 0..12)) {
        let mut tracer = Tracer::new("t", Peer::Client, Box::new(|_| {}));
        for (packet, received, sequence) in &packets {
            let direction = if *received { Direction::Received } else { Direction::Sent };
            tracer.record(direction, *sequence, packet);
        }
    }
}
