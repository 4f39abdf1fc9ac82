//! Random bytes in every place that takes bytes from outside: answers or errors, never a panic.

use onionskin_value::{
    Charset, Context, DateTimeParts, Family, FormatContext, Input, LATEST_TIMESTAMP,
    LATEST_TIMESTAMP_UNSIGNED, Operator, SqlMode, SqlType, Sum, TemporalKind, TimeZone, add_sub,
    cmp, compare, format_binary, format_text, order_bytes, payload_from_order, store, weight,
};

/// A small deterministic generator (xorshift), so that a failure comes again.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let text = b"0123456789-+:. eETZ/ax\xC3\xA9\xFF\x00";
        let raw = self.below(2) == 0;
        (0..self.below(most + 1))
            .map(|_| {
                if raw {
                    self.next() as u8
                } else {
                    text[self.below(text.len())]
                }
            })
            .collect()
    }

    fn parts(&mut self) -> DateTimeParts {
        DateTimeParts {
            kind: [
                TemporalKind::Date,
                TemporalKind::DateTime,
                TemporalKind::Time,
            ][self.below(3)],
            negative: self.below(2) == 0,
            year: self.next() as u16,
            month: self.next() as u8,
            day: self.next() as u8,
            hour: self.next() as u32,
            minute: self.next() as u8,
            second: self.next() as u8,
            micros: self.next() as u32,
        }
    }
}

fn types() -> Vec<SqlType> {
    let plain = "tinyint|tinyint unsigned|smallint|mediumint|int zerofill|bigint|bigint unsigned|decimal(1,0)|decimal(65,30) unsigned|\
                 decimal(10,2) zerofill|float|float unsigned|double|double zerofill|binary(0)|binary(3)|varbinary(0)|varbinary(15)|\
                 varbinary(300)|tinyblob|longblob|date|time|time(6)|datetime|datetime(3)|timestamp|timestamp(6)|year|bit(1)|bit(33)|bit(64)|uuid|inet6|inet4";
    let text = "char(0)|char(3)|varchar(0)|varchar(8)|varchar(300)|tinytext|text|enum('a','b c')|set('x','y')";
    let collations = [
        "utf8mb4_bin",
        "utf8mb4_general_ci",
        "utf8mb4_unicode_ci",
        "utf8mb4_unicode_520_ci",
        "utf8mb4_0900_ai_ci",
        "latin1_swedish_ci",
        "ascii_bin",
    ];
    let mut types: Vec<SqlType> = plain
        .split('|')
        .map(|sql| SqlType::parse(sql, None).expect(sql))
        .collect();
    for collation in collations {
        types.extend(
            text.split('|')
                .map(|sql| SqlType::parse(sql, Some(collation)).expect(sql)),
        );
    }
    types
}

#[test]
fn nothing_panics() {
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    let zones = [
        TimeZone::UTC,
        TimeZone::parse("America/New_York", ""),
        TimeZone::Unknown,
    ];
    let modes = [
        "",
        "STRICT_TRANS_TABLES",
        "NO_ZERO_DATE,NO_ZERO_IN_DATE",
        "ALLOW_INVALID_DATES,TIME_ROUND_FRACTIONAL",
    ];
    let charsets = [
        Charset::Utf8mb4,
        Charset::Utf8mb3,
        Charset::Latin1,
        Charset::Ascii,
        Charset::Binary,
    ];
    for ty in types() {
        let mut before: Option<Vec<u8>> = None;
        for _ in 0..1500 {
            let zone = zones[noise.below(zones.len())];
            let family = [Family::MariaDb, Family::MySql][noise.below(2)];
            let ctx = Context {
                sql_mode: SqlMode::parse(modes[noise.below(modes.len())]),
                time_zone: &zone,
                family,
                latest_timestamp: [LATEST_TIMESTAMP, LATEST_TIMESTAMP_UNSIGNED][noise.below(2)],
                signed_zero: noise.below(2) == 0,
                enum_takes_zero: noise.below(2) == 0,
                ignore: noise.below(4) == 0,
                row: 1,
                column: "c",
                database: "db",
                table: "t",
            };
            let charset = charsets[noise.below(charsets.len())];
            let bytes = noise.bytes(30);
            let magnitude = noise.next() >> noise.below(64);
            let input = match noise.below(9) {
                0 => Input::Integer {
                    negative: noise.below(2) == 0,
                    magnitude,
                },
                1 => Input::Decimal(&bytes),
                2 => Input::Double(f64::from_bits(noise.next())),
                3 => Input::Bytes(&bytes),
                4 => Input::Hex(&bytes),
                5 => Input::Temporal(noise.parts()),
                6 => Input::Bool(true),
                _ => Input::Text {
                    bytes: &bytes,
                    charset,
                },
            };
            let show = FormatContext {
                time_zone: &zone,
                family,
                results_charset: charset,
                pad_char: noise.below(2) == 0,
            };
            let mut payload = Vec::new();
            let stored = store(&ty, input, &ctx, &mut payload, &mut Vec::new()).is_ok()
                && !payload.is_empty();
            assert!(stored || payload.is_empty());
            let mut constant = Vec::new();
            let compared = compare(&ty, input, &ctx, &mut constant).is_ok();
            assert!(compared || constant.is_empty());
            // What was stored is a payload in every respect; what was not may be anything.
            let hostile = noise.bytes(12);
            for payload in [&payload, &hostile] {
                let mut out = Vec::new();
                let shown = format_text(&ty, payload, &show, &mut out).is_ok();
                assert_eq!(shown, format_binary(&ty, payload, &show, &mut out).is_ok());
                let weighed = weight(&ty, payload, &mut Vec::new()).is_ok();
                let mut order = Vec::new();
                let ordered = order_bytes(&ty, payload, &mut order).is_ok();
                if std::ptr::eq(payload, &hostile) {
                    let _ = payload_from_order(&ty, payload, &mut Vec::new());
                } else if stored {
                    assert!(weighed && ordered && (shown || zone == TimeZone::Unknown));
                    assert!(payload.len() as u64 <= ty.payload_max());
                }
                if let Ok(mut sum) = Sum::new(ty) {
                    let _ = sum.add(payload);
                    let _ = sum.finish_avg(family, 255, &mut Vec::new());
                }
                let operator =
                    [Operator::Add, Operator::Subtract, Operator::Multiply][noise.below(3)];
                let _ = add_sub(
                    &ty,
                    payload,
                    operator,
                    input,
                    &ctx,
                    &mut Vec::new(),
                    &mut Vec::new(),
                );
            }
            if let (Some(before), true) = (&before, stored) {
                let forth = cmp(&ty, before, &payload).expect("payloads");
                assert_eq!(
                    forth.reverse(),
                    cmp(&ty, &payload, before).expect("payloads")
                );
            }
            if stored {
                before = Some(payload);
            }
        }
    }
}

#[test]
fn type_texts() {
    let mut noise = Noise(42);
    for _ in 0..20_000 {
        let text = b"intchardecimal(0123456789,) unsigned\xE9";
        let given: Vec<u8> = (0..noise.below(20))
            .map(|_| text[noise.below(text.len())])
            .collect();
        let _ = SqlType::parse(&String::from_utf8_lossy(&given), Some("utf8mb4_bin"));
        let _ = TimeZone::parse(&String::from_utf8_lossy(&noise.bytes(8)), "SYSTEM");
        let _ = SqlMode::parse(&String::from_utf8_lossy(&noise.bytes(8)));
    }
}
