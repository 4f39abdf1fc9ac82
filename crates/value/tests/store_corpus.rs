//! Replays what real servers stored (see `corpus/record_store.py`): every case must give the same
//! cell, error or warnings, or be refused. Prints the share that is refused.

mod corpus;

use corpus::{escape, message, unescape};
use onionskin_value::{
    Charset, Context, DateTimeParts, Family, FormatContext, Input, LATEST_TIMESTAMP, Level,
    SqlMode, SqlType, StoreError, Stored, TemporalKind, TimeZone, format_binary, format_text,
    store,
};

fn replay(family: Family, text: &str, least: u32) {
    let mut ty = SqlType::parse("int", None).expect("a type");
    let (mut mode, mut zone, mut ignore) = (SqlMode::empty(), TimeZone::UTC, false);
    let (mut cases, mut refused, mut wrong) = (0u32, 0u32, 0u32);
    let mut group = "";
    let mut shown = std::collections::HashSet::new();
    let mut reasons = std::collections::BTreeMap::<&str, u32>::new();
    for line in text.lines() {
        let mut fields = line.split('\t');
        let first = fields.next().unwrap_or("");
        if first == "@" {
            group = line;
            let mut next = || fields.next().expect("a field");
            let definition = next();
            let collation = next();
            ty = match definition {
                "json" => SqlType::json(family),
                _ => SqlType::parse(definition, Some(collation).filter(|name| *name != "-"))
                    .expect("a type"),
            };
            mode = SqlMode::parse(next());
            zone = TimeZone::parse(next(), "UTC");
            ignore = next() == "1";
            continue;
        }
        cases += 1;
        let expected = fields.collect::<Vec<_>>();
        let ctx = Context {
            sql_mode: mode,
            time_zone: &zone,
            family,
            latest_timestamp: LATEST_TIMESTAMP,
            signed_zero: false,
            enum_takes_zero: false,
            ignore,
            row: 1,
            column: "c",
            database: "db",
            table: "t",
        };
        match outcome(&ty, first, &ctx) {
            Err(reason) => {
                *reasons.entry(reason).or_default() += 1;
                refused += 1;
            }
            Ok(got) if got == expected => {}
            Ok(got) => {
                wrong += 1;
                let codes = |fields: &[String]| {
                    fields
                        .iter()
                        .map(|field| field.chars().take(5).collect::<String>())
                        .collect::<Vec<_>>()
                };
                let theirs: Vec<String> = expected.iter().map(ToString::to_string).collect();
                let kind = group
                    .split(['\t', '('])
                    .nth(1)
                    .unwrap_or("")
                    .replace("tiny", "")
                    .replace("small", "")
                    .replace("medium", "")
                    .replace("big", "")
                    .replace(" unsigned", "");
                let seen = format!(
                    "{kind} {first} {:?} {:?}",
                    codes(&theirs).get(2..),
                    codes(&got).get(2..)
                );
                if shown.insert(seen) && shown.len() <= 90 {
                    let short = |fields: &[String]| {
                        fields.join(" | ").chars().take(300).collect::<String>()
                    };
                    let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
                    println!(
                        "{group} {}\n   server {}\n   ours   {}",
                        &first[..first.len().min(100)],
                        short(&expected),
                        short(&got)
                    );
                }
            }
        }
    }
    println!(
        "{family:?}: {cases} cases, {wrong} wrong, {refused} refused ({:.1} %)",
        f64::from(refused) * 100.0 / f64::from(cases)
    );
    for (reason, count) in reasons {
        println!("   {count:6} {reason}");
    }
    assert!(cases > least, "the corpus is missing");
    assert_eq!(
        wrong, 0,
        "{family:?}: {wrong} of {cases} cases differ from the server"
    );
}

fn outcome(ty: &SqlType, input: &str, ctx: &Context<'_>) -> Result<Vec<String>, &'static str> {
    let (letter, text) = input.split_at(1);
    let bytes = unescape(text);
    let input = match letter {
        "T" => Input::Text {
            bytes: &bytes,
            charset: Charset::Utf8mb4,
        },
        "L" => Input::Text {
            bytes: &bytes,
            charset: Charset::Latin1,
        },
        "X" => Input::Hex(&bytes),
        "P" => Input::Temporal(parameter(text)),
        _ => corpus::number(letter, text),
    };
    let hex;
    let input = if letter == "X" {
        hex = corpus::hex(text);
        Input::Hex(&hex)
    } else {
        input
    };
    let (mut payload, mut warnings) = (Vec::new(), Vec::new());
    let mut got = Vec::new();
    match store(ty, input, ctx, &mut payload, &mut warnings) {
        Err(StoreError::Unsupported(reason)) => return Err(reason),
        Err(StoreError::Server(error)) => {
            let state = String::from_utf8_lossy(&error.sqlstate).into_owned();
            return Ok(vec![format!(
                "!{} {} {}",
                error.code,
                state,
                message(&error.message)
            )]);
        }
        // the column that was recorded allows NULL
        Ok(Stored::Null | Stored::NullOrValue) => got.extend(["N".to_owned(), String::new()]),
        Ok(Stored::Value) => {
            let ctx = FormatContext {
                time_zone: ctx.time_zone,
                family: ctx.family,
                results_charset: Charset::Utf8mb4,
                pad_char: false,
            };
            let (mut cell, mut binary) = (Vec::new(), Vec::new());
            format_text(ty, &payload, &ctx, &mut cell).expect("shown");
            format_binary(ty, &payload, &ctx, &mut binary).expect("shown");
            if binary.len() > 600 {
                got.extend([format!("#{}", cell.len()), String::new()]);
            } else {
                got.extend([
                    format!("={}", escape(&cell)),
                    binary.iter().map(|byte| format!("{byte:02x}")).collect(),
                ]);
            }
            if let Some(fixed) = ty.payload_fixed() {
                assert_eq!(payload.len(), fixed);
            }
            assert!(payload.len() as u64 <= ty.payload_max());
        }
    }
    for warning in warnings {
        let level = if warning.level == Level::Note {
            'N'
        } else {
            'W'
        };
        got.push(format!(
            "{level}{} {}",
            warning.code,
            message(&warning.message)
        ));
    }
    Ok(got)
}

fn parameter(text: &str) -> DateTimeParts {
    let mut words = text.split(' ');
    let kind = match words.next() {
        Some("date") => TemporalKind::Date,
        Some("time") => TemporalKind::Time,
        _ => TemporalKind::DateTime,
    };
    let numbers: Vec<i64> = words.map(|word| word.parse().expect("a number")).collect();
    let [year, month, day, hour, minute, second, micros] = numbers[..] else {
        panic!("seven numbers")
    };
    DateTimeParts {
        kind,
        negative: hour < 0,
        year: year as u16,
        month: month as u8,
        day: day as u8,
        hour: hour.unsigned_abs() as u32,
        minute: minute as u8,
        second: second as u8,
        micros: micros as u32,
    }
}

#[test]
fn mariadb() {
    replay(Family::MariaDb, &corpus::read("store.mariadb.tsv"), 5000);
}

#[test]
fn mysql() {
    replay(Family::MySql, &corpus::read("store.mysql.tsv"), 5000);
}

#[test]
fn mariadb_types() {
    let text = corpus::read("store.types.mariadb.tsv");
    replay(Family::MariaDb, &text, 4000);
}

#[test]
fn mariadb_fixed_binary() {
    let text = corpus::read("store.fixed_binary.mariadb.tsv");
    replay(Family::MariaDb, &text, 1000);
}

#[test]
fn mysql_types() {
    replay(Family::MySql, &corpus::read("store.types.mysql.tsv"), 4000);
}
