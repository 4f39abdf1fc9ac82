//! Clients of MariaDB that ask for extended metadata learn that a text is JSON or a UUID.

use super::*;

const QUERY: u8 = 3;
const INIT_DB: u8 = 2;
const FIELD_LIST: u8 = 4;
const PREPARE: u8 = 22;

/// What MariaDB says of a JSON column and of a UUID.
const JSON: &[u8] = b"\x01\x04json";
const UUID: &[u8] = b"\x00\x04uuid";

fn pair(kind: Kind) -> Option<Pair> {
    let of_mariadb = match kind {
        Kind::MariaDb => "u UUID {eq, range}, i INET6 {}, f INET4 {eq}, v UUID, ",
        Kind::MySql => "",
    };
    let table = format!(
        "CREATE TABLE t (id INT PRIMARY KEY, j JSON {{}}, {of_mariadb}k JSON, x TEXT {{eq}}, \
         n INT {{eq, range}})"
    );
    let options = PairOptions {
        tables: &[&table],
        engine: Engine::Plain,
        ..PairOptions::default()
    };
    let mut pair = Pair::start_with(kind, options)?;
    pair.same(
        "INSERT INTO t (id, j, k, x, n) VALUES (1, '[1]', '[2]', 'a', 7), (2, '[]', '[]', 'b', 8)",
    );
    pair.same("CREATE VIEW w AS SELECT id, j, x FROM t");
    Some(pair)
}

/// A definition without its flags, which stand before the decimals and two reserved bytes.
fn without_flags(definition: &[u8]) -> Vec<u8> {
    let mut rest = definition.to_vec();
    if let Some(flags) = rest.len().checked_sub(5) {
        rest.drain(flags..flags + 2);
    }
    rest
}

/// The packets of an answer, from both.
fn answers(
    clients: &mut [RawClient; 2],
    code: u8,
    rest: &[u8],
    lists: usize,
) -> [Option<Vec<Vec<u8>>>; 2] {
    clients.each_mut().map(|c| c.lists(code, rest, lists))
}

pub fn what_mariadb_tells_besides(kind: Kind) {
    if kind == Kind::MySql {
        return;
    }
    let Some(pair) = pair(kind) else { return };
    let ports = [pair.beside().port(), pair.proxy.port()];
    let mut clients = ports.map(RawClient::login_extended);
    for client in &mut clients {
        client.command(INIT_DB, b"app");
        assert!(matches!(client.read(), Reply::Packet(ok) if ok[0] == 0));
    }
    let holds = |packet: &[u8], words: &[u8]| packet.windows(words.len()).any(|w| w == words);
    for sql in [
        "SELECT * FROM t",
        "SELECT j, u FROM t WHERE n = 7",
        "SELECT a.j, a.u AS b FROM t AS a",
        "SELECT DISTINCT u FROM t",
        "SELECT u, COUNT(*) FROM t GROUP BY u",
        "SELECT MIN(u), MAX(u), MIN(n) FROM t",
        "SELECT MIN(u), MIN(f), SUM(n) FROM t WHERE n > 1 GROUP BY x",
        "SELECT u, j FROM t ORDER BY x DESC",
        "SELECT u, j FROM t ORDER BY u LIMIT 1",
        "SELECT JSON_EXTRACT(j, '$[0]'), j, u, CONCAT(j, x), UUID() FROM t",
        "SELECT COALESCE(u, v), IF(n > 7, j, j), JSON_ARRAYAGG(j) FROM t GROUP BY id",
        "SELECT j FROM t UNION SELECT k FROM t",
        "SELECT j FROM t UNION SELECT x FROM t",
        "SELECT (SELECT j FROM t LIMIT 1), (SELECT MAX(u) FROM t)",
        "WITH c AS (SELECT j, u FROM t) SELECT * FROM c",
        "SELECT * FROM w",
        "SHOW CREATE TABLE w",
        "SHOW COLUMNS FROM t",
        "SELECT 1, 'a', @a, k, v FROM t",
        "INSERT INTO t (id, j, x) VALUES (9, '[3]', 'c') RETURNING id, j, u, k",
        "DELETE FROM t WHERE id = 9 RETURNING j, u",
    ] {
        let [plain, protected] = answers(&mut clients, QUERY, sql.as_bytes(), 2);
        let (plain, protected) = (plain.expect("rows"), protected.expect("rows"));
        // the definitions, and rows whose values are no random ones
        let columns = usize::from(plain[0][0]);
        // flags depend on whether the server went through a temporary table
        let definitions = |packets: &[Vec<u8>]| {
            packets[..=columns]
                .iter()
                .map(|packet| without_flags(packet))
                .collect::<Vec<_>>()
        };
        assert_eq!(definitions(&plain), definitions(&protected), "{sql}");
        if sql.starts_with("SELECT * FROM t") {
            assert!(plain[..=columns].iter().any(|p| holds(p, JSON)));
            assert!(plain[..=columns].iter().any(|p| holds(p, UUID)));
        }
    }
    for sql in [
        "SELECT j, u, n FROM t WHERE x = ? AND n > ?",
        "SELECT MIN(u), JSON_EXTRACT(j, ?) FROM t GROUP BY j",
        "SELECT ?, k, v FROM t WHERE id = ?",
    ] {
        let [plain, protected] = answers(&mut clients, PREPARE, sql.as_bytes(), 2);
        // the first packet has the statement's number
        assert_eq!(
            plain.expect("definitions")[1..],
            protected.expect("definitions")[1..],
            "{sql}"
        );
    }
    let [plain, protected] = answers(&mut clients, FIELD_LIST, b"t\0", 1);
    assert_eq!(plain, protected);
    assert_eq!(plain.map(|p| p.len()), Some(9));
    // a client that did not ask is told nothing
    let mut clients = ports.map(RawClient::login);
    for sql in [
        "SELECT * FROM app.t",
        "SELECT JSON_EXTRACT(j, '$[0]') FROM app.t",
    ] {
        let [plain, protected] = answers(&mut clients, QUERY, sql.as_bytes(), 2);
        assert_eq!(plain, protected, "{sql}");
        assert!(!plain.expect("rows").iter().any(|p| holds(p, JSON)));
    }
}

/// MySQL has no such thing: a client that asks for it nevertheless gets the standard form.
pub fn definitions_have_no_extension_on_mysql(kind: Kind) {
    if kind == Kind::MariaDb {
        return;
    }
    let Some(pair) = pair(kind) else { return };
    let mut clients = [pair.beside().port(), pair.proxy.port()].map(RawClient::login_extended);
    for sql in [
        "SELECT * FROM app.t",
        "SELECT JSON_EXTRACT(j, '$[0]') FROM app.t",
    ] {
        let [plain, protected] = answers(&mut clients, QUERY, sql.as_bytes(), 2);
        assert_eq!(plain, protected, "{sql}");
    }
}
