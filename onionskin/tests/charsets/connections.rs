//! Connections of every character set, packet by packet.

use super::*;

/// Everything that a side says to a statement.
pub fn answer(client: &mut RawClient, sql: &[u8]) -> Vec<Reply> {
    client.command(3, sql);
    let mut all = Vec::new();
    let mut ends = 0;
    loop {
        let mut reply = client.read();
        let last = match &mut reply {
            Reply::Packet(packet) if all.is_empty() && packet.first() == Some(&0) => {
                // whether an index was used depends on the physical table: 0x20 of the status,
                // behind two numbers of one byte
                packet[3] &= !0x20;
                true
            }
            Reply::Packet(_) if all.is_empty() => false,
            Reply::Packet(packet) => {
                ends += usize::from(packet.first() == Some(&0xfe) && packet.len() < 9);
                ends == 2
            }
            _ => true,
        };
        all.push(reply);
        if last {
            return all;
        }
    }
}

/// A statement in which `{c}` stands for bytes.
pub fn filled(sql: &str, table: &str, bytes: &[u8]) -> Vec<u8> {
    let sql = sql.replace("{t}", table);
    let mut out = Vec::new();
    for (at, part) in sql.split("{c}").enumerate() {
        out.extend_from_slice(if at > 0 { bytes } else { b"" });
        out.extend_from_slice(part.as_bytes());
    }
    out
}

/// Whether the proxy itself has refused the statement.
pub fn is_refusal(answer: &[Reply]) -> bool {
    matches!(answer.first(), Some(Reply::Error(_, message)) if message.contains("OS1"))
}

/// Every character set that a client may use, in the text protocol: what it says reaches columns of
/// other sets, and comes back.
pub fn connections(pair: &mut Pair, findings: &mut Findings, kind: Kind) {
    let mut plain = RawClient::login(pair.beside().port());
    let mut protected = RawClient::login(pair.proxy.port());
    let mut id = 5000;
    let tables = [("t_all", "utf8mb4"), ("t_far", "gbk"), ("t_near", "latin2")];
    for (table, charset) in tables {
        create(
            pair,
            &format!(
                "CREATE TABLE {table} (id INT PRIMARY KEY, a VARCHAR(40) {{eq}}, p VARCHAR(40)) CHARACTER SET {charset} COLLATE {charset}_bin"
            ),
        );
    }
    for client in [&mut plain, &mut protected] {
        answer(client, b"USE app");
    }
    let sets = known_sets(kind, SETS).into_iter();
    for charset in sets.filter(|c| c.has_ascii()) {
        let name = charset.name();
        for client in [&mut plain, &mut protected] {
            answer(client, format!("SET NAMES {name}").as_bytes());
        }
        let texts = TEXTS.iter().filter(|t| !t.contains('\''));
        let texts: Vec<Vec<u8>> = texts.filter_map(|t| encoded(charset, t)).collect();
        assert!(texts.len() >= 5, "{name}");
        for (table, _) in tables {
            let mut ask = |sql: &[u8]| {
                let (a, b) = (answer(&mut plain, sql), answer(&mut protected, sql));
                let shown = format!("{name}: {}", String::from_utf8_lossy(sql));
                match is_refusal(&b) {
                    true => findings.refused.push(format!("{shown}: {b:?}")),
                    false => findings.compare(&shown, &a, &b),
                }
            };
            let first = id + 1;
            for text in &texts {
                id += 1;
                let insert = format!("INSERT INTO {{t}} VALUES ({id}, '{{c}}', '{{c}}')");
                ask(&filled(&insert, table, text));
                ask(&filled(
                    "SELECT COUNT(*) FROM {t} WHERE a = '{c}'",
                    table,
                    text,
                ));
            }
            ask(format!("SELECT a, p FROM {table} WHERE id >= {first} ORDER BY id").as_bytes());
            ask(format!("SELECT MAX(a) FROM {table} WHERE id >= {first}").as_bytes());
        }
    }
}

/// The server makes every literal the connection's before it is anything else, and loses what that
/// lacks. The same, or an error.
pub fn connections_that_convert(pair: &mut Pair, findings: &mut Findings) {
    create(
        pair,
        "CREATE TABLE t_conn (id INT PRIMARY KEY, a VARCHAR(40) {eq}, g VARCHAR(40) CHARACTER SET gbk {}) CHARACTER SET utf8mb4",
    );
    let mut id = 0;
    for connection in ["gbk", "latin1", "cp1251", "binary", "utf8mb4"] {
        pair.run("SET NAMES utf8mb4");
        pair.run(&format!("SET character_set_connection = {connection}"));
        for mode in ["STRICT_TRANS_TABLES", ""] {
            pair.run(&format!("SET sql_mode = '{mode}'"));
            for text in ["abc", "Äbc", "Жук", "中文", "😀"] {
                id += 1;
                let sql = format!("INSERT INTO t_conn VALUES ({id}, '{text}', '{text}')");
                write(pair, findings, &sql, &[]);
                id += 1;
                let sql = format!("INSERT INTO t_conn VALUES ({id}, ?, ?)");
                write(pair, findings, &sql, &[text.into(), text.into()]);
                pair.compare(&format!("SELECT id FROM t_conn WHERE a = '{text}'"), &[]);
            }
        }
    }
    pair.run("SET NAMES utf8mb4");
    pair.run("SET sql_mode = DEFAULT");
    pair.compare("SELECT * FROM t_conn ORDER BY id", &[]);
    let refused = findings.refused("conversions");
    // what the connection's set lacks
    let loses = |r: &String| r.contains("Жук") || r.contains("中文") || r.contains("😀");
    assert!(
        refused.len() <= 2 && refused.iter().all(loses),
        "{refused:#?}"
    );
}
