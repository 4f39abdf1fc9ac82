//! Tables with UUID, INET6 and INET4 change while they are written.

use super::*;

const COLUMNS: &str = "id INT PRIMARY KEY, u UUID NOT NULL DEFAULT '123e4567-e89b-42d3-a456-426614174000', v UUID, s INET6, f INET4, c CHAR(36) CHARACTER SET ascii, b BINARY(16), KEY (u), KEY (s)";
const SHOWN: &str = "id, u, v, s, f, c, b";

/// Values of the row `id` in round `n`: all versions of UUIDs among them.
fn values(id: u32, n: u32) -> String {
    let uuid = format!(
        "{:08x}-{:04x}-{:x}{:03x}-8{:03x}-{id:012x}",
        n * 40503,
        id % 7,
        1 + n % 7,
        n % 4096,
        id % 4096
    );
    let null = |number: u32, text: String| match number % 5 {
        0 => "NULL".to_owned(),
        _ => format!("'{text}'"),
    };
    format!(
        "'{uuid}', {}, {}, {}, '{uuid}', x'{}'",
        null(n, uuid.to_uppercase().replace('-', "")),
        null(id, format!("{:x}::{:x}:0:{:x}", n % 65536, id % 3, n % 2)),
        null(id + n, format!("{}.{}.0.{}", n % 256, id % 256, n % 3)),
        uuid.replace('-', ""),
    )
}

/// Each change is done beside a writer, through the proxy; a twin gets the same and is changed by
/// nobody.
pub fn uuid_and_inet_are_carried(kind: Kind) {
    if kind == Kind::MySql {
        return;
    }
    let Some(server) = start(kind) else { return };
    if direct_mode() {
        return;
    }
    let mut proxy = Proxy::start(&server, "");
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    for table in ["p", "p_model"] {
        session.must(&format!("CREATE TABLE app.{table} ({COLUMNS})"));
        for id in 0..300 {
            let row = values(id, id);
            session.must(&format!("INSERT INTO app.{table} VALUES ({id}, {row})"));
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let port = proxy.port();
        let stop = &stop;
        scope.spawn(move || {
            let mut session = Session::open(port, "root", "", Some("app"));
            let mut rng = StdRng::seed_from_u64(7);
            while !stop.load(Ordering::Relaxed) {
                let (id, n) = (rng.random_range(0..600), rng.random_range(0..60_000));
                let row = values(id, n);
                let sql = match rng.random_range(0..4) {
                    0 => format!("DELETE FROM {{}} WHERE id = {id}"),
                    1 => format!(
                        "UPDATE {{}} SET v = '0{n:07x}00001000800000000000000{}', f = '{}.0.0.0', s = NULL WHERE id = {id}",
                        n % 10,
                        n % 256
                    ),
                    _ => format!("REPLACE INTO {{}} VALUES ({id}, {row})"),
                };
                for table in ["p", "p_model"] {
                    let done = session.run(&sql.replace("{}", table));
                    done.unwrap_or_else(|failure| panic!("{sql}: {failure}"));
                }
            }
        });
        let work = || {
            for arguments in [
                [
                    "--encrypt",
                    "u: eq; v: eq range; s: range; f: eq; c: eq; b:",
                ]
                .as_slice(),
                &["--drop", "v: eq"],
                &["--add", "u: range"],
                &["--rotate"],
                &["--decrypt", "u, f"],
                &["--decrypt", "s"],
                &["--encrypt", "u: eq range; s: eq; f:"],
            ] {
                std::thread::sleep(Duration::from_millis(300));
                let all = [&["app.p", "--drop-old"], arguments].concat();
                let text = must_migrate(&server, Some(&proxy), &all);
                assert!(text.contains(" 0 repaired"), "{text}");
            }
        };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
    let mut through = proxy.connect_to("app");
    same_rows(&mut through);
    session.must("ALTER TABLE app.p_model MODIFY c UUID, MODIFY b UUID, MODIFY f VARCHAR(40), MODIFY s INET6 COMMENT 'x'");
    let definitions = ["c UUID", "b UUID", "f VARCHAR(40)", "s INET6 COMMENT 'x'"];
    let mut all = vec!["app.p", "--drop-old"];
    all.extend(definitions.iter().flat_map(|one| ["--modify", one]));
    must_migrate(&server, Some(&proxy), &all);
    same_rows(&mut through);
    let wanted = session.text("SELECT id, u FROM app.p_model WHERE u > '00005000-0000-4000-8000-000000000000' ORDER BY u, id");
    let found = through.text(
        "SELECT id, u FROM p WHERE u > '00005000-0000-4000-8000-000000000000' ORDER BY u, id",
    );
    assert_eq!(found.expect("rows"), wanted.expect("rows"));
    assert_eq!(session.must_fail("SELECT u FROM app.p"), 1054);
    proxy.assert_healthy();
}

fn same_rows(through: &mut Session) {
    let mut rows = |table: &str| {
        let sql = format!("SELECT {SHOWN} FROM {table} ORDER BY id");
        through.text(&sql).expect("rows")
    };
    assert_same_rows(&rows("p"), &rows("p_model"), SHOWN);
}
