//! The tables of characters and weights, compared with the server's.

use super::*;

/// Every character of every set, there and back, and the weights of every collation with a table.
pub fn tables_are_the_servers(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut session = server.connect();
    session.must("SET NAMES utf8mb4");
    let all: Vec<u32> = (0..0x11_0000)
        .filter(|code| char::from_u32(*code).is_some())
        .collect();
    let sets = known_sets(kind, SETS);
    let mut findings = Findings::default();
    for charset in &sets {
        for chunk in all.chunks(0x1_0000) {
            let is_last = chunk[0] > 0xFFFF
                && !matches!(charset.name(), "gb18030" | "utf16" | "utf16le" | "utf32");
            if is_last {
                break;
            }
            conversions(&mut session, &mut findings, *charset, chunk);
        }
    }
    let names = session
        .text("SELECT DISTINCT COLLATION_NAME FROM information_schema.COLLATIONS ORDER BY 1")
        .expect("a list");
    let mut compared = 0;
    for name in names.lines() {
        // MariaDB lists those of Unicode without the set
        let full = match name.starts_with("uca1400") {
            true => format!("utf8mb4_{name}"),
            false => name.to_owned(),
        };
        let Some(collation) = Collation::from_name(&full).filter(|c| {
            c.is_searchable() && c.charset() != Charset::Binary && c.is_of(family(kind))
        }) else {
            continue;
        };
        // the tables of Unicode are compared in full with the crate's own tests
        let has_table = matches!(collation.charset(), Charset::Single(_) | Charset::Multi(_));
        let codes = all.iter().filter(|code| match **code {
            0..=0xFFFF => has_table || *code % 5 == 0,
            _ => *code % 101 == 0,
        });
        let codes: Vec<u32> = codes.copied().collect();
        // those of `_bin` are shown in other forms, but are in the same order
        let is_bin = collation.name().ends_with("_bin");
        // two bytes here
        let is_ascii = collation.charset() == Charset::Ascii;
        if !is_bin && !is_ascii {
            weights(&mut session, &mut findings, collation, &codes);
        }
        if collation.charset().is_measured() || collation.charset().max_bytes() == 1 {
            order(&mut session, &mut findings, collation, &codes);
        }
        compared += 1;
    }
    findings.conclude();
    announce(&format!("{} sets, {compared} collations", sets.len()));
    let least = match kind {
        Kind::MariaDb => 161,
        Kind::MySql => 90,
    };
    assert!(compared >= least, "{compared}");
}

fn conversions(session: &mut Session, findings: &mut Findings, charset: Charset, codes: &[u32]) {
    let mut given = String::new();
    let mut ours = Vec::new();
    let mut own = Vec::new();
    for code in codes {
        given.push_str(&format!("{code:08x}"));
        let before = ours.len();
        if charset.encode(*code, &mut ours) {
            own.extend_from_slice(&ours[before..]);
        } else {
            charset.encode(u32::from(b'?'), &mut ours);
        }
    }
    let theirs = session.text(&format!(
        "SELECT HEX(CONVERT(_utf32 x'{given}' USING {}))",
        charset.name()
    ));
    let theirs = theirs.expect("a conversion").trim_end().to_lowercase();
    let about = format!("{} from U+{:X}", charset.name(), codes[0]);
    findings.compare(&about, &theirs, &hex(&ours));
    let back = session.text(&format!(
        "SELECT HEX(CONVERT(_{} x'{}' USING utf8mb4))",
        charset.name(),
        hex(&own)
    ));
    let read = charset.to_utf8(&own).expect("characters");
    let back = back.expect("a conversion").trim_end().to_lowercase();
    let about = format!("{} to U+{:X}", charset.name(), codes[0]);
    findings.compare(&about, &back, &hex(&read));
}

/// Weights of all characters of the collation's set, in rows of some length: what stands side by
/// side must not matter.
fn weights(session: &mut Session, findings: &mut Findings, collation: Collation, all: &[u32]) {
    let ty = SqlType::parse("longtext", Some(collation.name())).expect("a type");
    let charset = collation.charset();
    let mut texts = vec![Vec::new()];
    for code in all {
        let text = texts.last_mut().expect("a text");
        charset.encode(*code, text);
        if text.len() > 2000 {
            // no space at the end, which comparison does not see
            charset.encode(u32::from(b'.'), text);
            texts.push(Vec::new());
        }
    }
    charset.encode(u32::from(b'.'), texts.last_mut().expect("a text"));
    for text in texts {
        let mut ours = Vec::new();
        match weight(&ty, &text, &mut ours) {
            Ok(()) => {}
            Err(onionskin_value::WeightError::Contraction) => continue,
            Err(other) => panic!("{collation:?}: {other}"),
        }
        let theirs = session
            .text(&format!(
                "SELECT HEX(WEIGHT_STRING(_{} x'{}' COLLATE {}))",
                charset.name(),
                hex(&text),
                collation.name()
            ))
            .expect("weights");
        let about = format!("{} {}", collation.name(), hex(&text));
        let theirs = theirs.trim_end().to_lowercase();
        findings.compare(&about, &theirs, &hex(&ours));
    }
}

/// Comparison itself, and LIKE, of each character with the next one in our order: in some
/// collations it does not go by WEIGHT_STRING().
fn order(session: &mut Session, findings: &mut Findings, collation: Collation, all: &[u32]) {
    let ty = SqlType::parse("longtext", Some(collation.name())).expect("a type");
    let charset = collation.charset();
    let encode = |code: &u32| encoded(charset, char::from_u32(*code)?.encode_utf8(&mut [0; 4]));
    let compare = |a: &Vec<u8>, b: &Vec<u8>| cmp(&ty, a, b).expect("weights");
    let step = match charset {
        Charset::Wide(_) => 7,
        _ if collation.name().ends_with("_bin") => 5,
        _ => 1,
    };
    let mut texts: Vec<Vec<u8>> = all.iter().step_by(step).filter_map(encode).collect();
    texts.sort_by(compare);
    for chunk in texts.chunks(1000) {
        let text = |bytes: &[u8]| {
            format!(
                "_{} x'{}' COLLATE {}",
                charset.name(),
                hex(bytes),
                collation.name()
            )
        };
        let pairs: Vec<String> = chunk
            .windows(2)
            .map(|pair| {
                let (a, b) = (text(&pair[0]), text(&pair[1]));
                format!("IF({a} = {b}, '=', IF({a} < {b}, '<', '>')), {a} LIKE {b}")
            })
            .collect();
        let theirs = session
            .text(&format!("SELECT CONCAT({})", pairs.join(",")))
            .expect("an answer");
        let theirs: Vec<char> = theirs.trim_end().chars().collect();
        assert_eq!(theirs.len(), 2 * pairs.len(), "{collation:?}");
        for (pair, theirs) in chunk.windows(2).zip(theirs.chunks(2)) {
            let equal = match compare(&pair[0], &pair[1]).is_eq() {
                true => '=',
                false => '<',
            };
            let like = match is_like(&ty, &pair[0], &pair[1]) {
                true => '1',
                false => '0',
            };
            let [a, b] = [&pair[0], &pair[1]].map(|text| hex(text));
            let about = format!("{} {a} {b}", collation.name());
            findings.compare(&about, &[theirs[0], theirs[1]], &[equal, like]);
        }
    }
}

fn is_like(ty: &SqlType, value: &[u8], pattern: &[u8]) -> bool {
    let input = Input::Text {
        bytes: pattern,
        charset: ty.charset(),
    };
    match LikePattern::read(ty, input, Escape::Backslash).expect("a pattern") {
        onionskin_value::Pattern::Like(pattern) => pattern.matches(value).expect("a text"),
        onionskin_value::Pattern::Null => false,
    }
}
