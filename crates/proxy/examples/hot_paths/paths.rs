//! The paths: the statements of sysbench's OLTP workloads on a table whose columns `k`, `c` and
//! `pad` are protected, and the steps that they are made of.

use std::io::{Read, Write};
use std::sync::Arc;

use onionskin_crypt::{ColumnCipher, ColumnId};
use onionskin_keys::{KeySet, Suite};
use onionskin_plan::{LexMode, Template};
use onionskin_proxy::hot_path::{End, Stage};
use onionskin_schema::{
    Capabilities, Column, GramForm, KeyRole, PhysicalNames, Protection, Table, Whole,
};
use onionskin_value::{Family, SqlType, weight};
use onionskin_wire::{BinaryValue, StatusFlags, Transport};

use crate::Runner;
use crate::answers::{
    BLOB, LONG, binary_row, column, done, execute, prepare, prepared, query, rows, settings,
    text_row,
};

/// Rows of a range.
const ROWS: usize = 100;
/// Ids of protected columns, told apart by their first byte.
const K: u8 = 1;
const C: u8 = 2;
const PAD: u8 = 3;
const CHANGED: &str = "Rows matched: 1  Changed: 1  Warnings: 0";
const AUTOCOMMIT: StatusFlags = StatusFlags::AUTOCOMMIT;

fn table_id(name: &str) -> [u8; 8] {
    let mut id = [0; 8];
    for (to, from) in id.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    id
}

fn sysbench_column(name: &str, ty: &str, collation: &str, id: Option<u8>) -> Column {
    let collation = ty.starts_with("char").then_some(collation);
    let sql_type = SqlType::parse(ty, collation).expect("a type");
    let protection = id.map(|id| {
        let capabilities = Capabilities {
            eq: id == K,
            range: id == K,
            ..Capabilities::default()
        };
        let column_id = [id, 0, 0, 0];
        Protection {
            sql_type,
            column_id,
            key_id: 1,
            suite: Suite::Aes.id(),
            cell_version: 1,
            names: PhysicalNames::new(name, column_id, &sql_type, &capabilities),
            capabilities,
            checks: Vec::new(),
            grams: GramForm::Words,
            actions: Default::default(),
            whole: Whole::Unmarked,
        }
    });
    Column {
        name: name.into(),
        sql_type: Some(sql_type),
        type_text: ty.into(),
        nullable: false,
        default: None,
        auto_increment: name == "id",
        refers_to_plaintext: false,
        on_update: false,
        generated: false,
        key: match name {
            "id" => KeyRole::Primary,
            "k" => KeyRole::Multiple,
            _ => KeyRole::None,
        },
        protection,
        invisible: false,
        comment: String::new(),
        explicit_collation: false,
    }
}

/// A table of sysbench's.
fn table(name: &str, collation: &str, protected: bool) -> Table {
    let id = |id| protected.then_some(id);
    Table {
        database: "sbtest".into(),
        name: name.into(),
        columns: vec![
            sysbench_column("id", "int(11)", collation, None),
            sysbench_column("k", "int(11)", collation, id(K)),
            sysbench_column("c", "char(120)", collation, id(C)),
            sysbench_column("pad", "char(60)", collation, id(PAD)),
        ],
        table_id: protected.then(|| table_id(name)),
        view: false,
        base: None,
        hidden_indexes: Vec::new(),
        guarded: Vec::new(),
        damaged: None,
    }
}

/// A text of sysbench's: groups of eleven digits.
fn digits(seed: u64, groups: usize) -> String {
    let group = |n: u64| {
        format!(
            "{:011}",
            (seed * 31 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 100_000_000_000
        )
    };
    let groups: Vec<String> = (0..groups as u64).map(group).collect();
    groups.join("-")
}

/// An INT as it is sealed.
fn int(value: i32) -> [u8; 4] {
    (value as u32 ^ 1 << 31).to_be_bytes()
}

/// What lies on the server.
struct Cells {
    keys: Arc<KeySet>,
}

impl Cells {
    fn cipher(&self, table: &str, column: u8) -> Arc<ColumnCipher> {
        let id = ColumnId {
            table: table_id(table),
            column: [column, 0, 0, 0],
        };
        self.keys
            .column_cipher(Suite::Aes.into(), 1, id, None)
            .expect("a cipher")
    }

    fn seal(&self, table: &str, column: u8, payload: &[u8]) -> Vec<u8> {
        let mut cell = Vec::new();
        self.cipher(table, column)
            .seal(payload, &mut cell)
            .expect("sealed");
        cell
    }

    fn c(&self, table: &str, row: u64) -> Vec<u8> {
        self.seal(table, C, digits(row, 10).as_bytes())
    }

    fn k(&self, table: &str, row: u64) -> Vec<u8> {
        self.seal(table, K, &int(row as i32))
    }
}

/// Nothing that follows a turn: an error of ours would be counted as a statement.
fn answered(stage: &mut Stage, least: usize) -> Result<(), String> {
    let answer = stage.received_by_client()?;
    let first = answer.get(4).copied();
    if first == Some(0xff) || answer.len() < least {
        let answer = String::from_utf8_lossy(answer).into_owned();
        let asked = String::from_utf8_lossy(stage.received_by_server()?).into_owned();
        return Err(format!("answered {answer:?}, asked {asked:?}"));
    }
    stage.received_by_server().map(|_| ())
}

/// A statement, again and again. `statement` makes a command and what the server answers from the
/// number of the run.
fn turns(
    runner: &mut Runner,
    stage: &mut Stage,
    name: &str,
    least: usize,
    statement: impl Fn(u64) -> (Vec<u8>, Vec<u8>),
) {
    runner.path(
        name,
        stage,
        |stage, run| {
            let (command, answers) = statement(run);
            stage.put(&command, &answers).expect("laid out");
        },
        |stage| _ = stage.turn(),
        |stage| answered(stage, least),
    );
}

/// One turn that is not measured.
fn turn(stage: &mut Stage, command: &[u8], answers: &[u8]) {
    stage.put(command, answers).expect("laid out");
    assert!(stage.turn(), "the session has ended");
    answered(stage, 0).expect("answered");
}

/// Runs all paths.
pub fn run(runner: &mut Runner) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    KeySet::create_file(&file, None, &mut rand::rng()).expect("a key file");
    let keys = Arc::new(KeySet::load("file:keys", folder.path(), None).expect("keys"));
    let tables = vec![
        table("sbtest1", "utf8mb4_general_ci", true),
        table("sbtest9", "utf8mb4_0900_ai_ci", true),
        table("plain1", "utf8mb4_general_ci", false),
    ];
    let cells = Cells {
        keys: Arc::clone(&keys),
    };
    let family = Family::MariaDb;
    let no_tables = ["id", "k", "c", "pad", "SUM", "sbtest", "BEGIN", "COMMIT"];
    let stage = Stage::new(
        keys,
        family,
        tables,
        &no_tables,
        &settings(family),
        runner.wires,
    );
    let mut stage = stage.expect("a stage");
    selects(runner, &mut stage, &cells);
    writes(runner, &mut stage, &cells);
    prepared_selects(runner, &mut stage, &cells);
    steps(runner, &mut stage, &cells);
    stage.count();
    counted_selects(runner, &mut stage, &cells);
    if runner.time {
        calls(runner);
    }
}

/// System calls by themselves, with the bytes that a point select sends and receives. Nobody waits
/// for them: what it takes to wake the other side comes on top.
fn calls(runner: &mut Runner) {
    for (name, bytes) in [
        ("64-bytes", 64),
        ("300-bytes", 300),
        ("16000-bytes", 16_000),
    ] {
        let ends = End::pair(runner.wires).expect("a connection");
        let data = vec![7u8; bytes];
        let mut state = (ends.0, ends.1, vec![0u8; 64 * 1024], Vec::new());
        type Ends = (End, Transport, Vec<u8>, Vec<u8>);
        runner.path(
            &format!("send-{name}"),
            &mut state,
            |_, _| (),
            |(_, session, _, _): &mut Ends| session.write_all(&data).expect("sent"),
            |(held, _, _, sink)| held.take(sink).map_err(|e| e.to_string()),
        );
        runner.path(
            &format!("receive-{name}"),
            &mut state,
            |(held, _, _, _), _| held.put(&data).expect("sent"),
            |(_, session, buffer, _): &mut Ends| _ = session.read(buffer).expect("received"),
            |_| Ok(()),
        );
    }
}

const POINT: &str = "SELECT c FROM sbtest1 WHERE id=5017";
const INSERT_HEAD: &str = "INSERT INTO sbtest1 (id, k, c, pad) VALUES (0, 4993, ";

fn insert(run: u64) -> String {
    format!("{INSERT_HEAD}'{}', '{}')", digits(run, 10), digits(run, 5))
}

/// The same as without `counted` in the name, with an administration address.
fn counted_selects(runner: &mut Runner, stage: &mut Stage, cells: &Cells) {
    let sealed = [column("sbtest1", "c$enc", BLOB, true)];
    let cell = |row| cells.c("sbtest1", row);
    let answer = rows(&sealed, [text_row(&[&cell(1)])], AUTOCOMMIT);
    turns(runner, stage, "point-select-counted", 119, |_| {
        (query(POINT), answer.clone())
    });
    let all = (0..ROWS as u64).map(|row| text_row(&[&cell(row)]));
    let answer = rows(&sealed, all, AUTOCOMMIT);
    turns(runner, stage, "range-counted", ROWS * 119, |_| {
        let sql = "SELECT c FROM sbtest1 WHERE id BETWEEN 5017 AND 5116";
        (query(sql), answer.clone())
    });
}

fn selects(runner: &mut Runner, stage: &mut Stage, cells: &Cells) {
    let sealed = |table: &str, name: &str| column(table, name, BLOB, true);
    let range = |table: &str, cell: &dyn Fn(u64) -> Vec<u8>, name: &str| {
        let all = (0..ROWS as u64).map(|row| text_row(&[&cell(row)]));
        rows(&[sealed(table, name)], all, AUTOCOMMIT)
    };
    let bare = |row: u64| digits(row, 10).into_bytes();
    let one = |cell: Vec<u8>| {
        rows(
            &[sealed("sbtest1", "c$enc")],
            [text_row(&[&cell])],
            AUTOCOMMIT,
        )
    };
    let plain = rows(
        &[column("plain1", "c", BLOB, false)],
        [text_row(&[&bare(1)])],
        AUTOCOMMIT,
    );
    turns(runner, stage, "point-select-unprotected", 119, |_| {
        (query("SELECT c FROM plain1 WHERE id=5017"), plain.clone())
    });
    let answer = range("plain1", &bare, "c");
    turns(runner, stage, "range-unprotected", ROWS * 119, |_| {
        (
            query("SELECT c FROM plain1 WHERE id BETWEEN 5017 AND 5116"),
            answer.clone(),
        )
    });
    let answer = one(cells.c("sbtest1", 1));
    turns(runner, stage, "point-select", 119, |_| {
        (query(POINT), answer.clone())
    });
    let c = |row| cells.c("sbtest1", row);
    let answer = range("sbtest1", &c, "c$enc");
    turns(runner, stage, "range", ROWS * 119, |_| {
        (
            query("SELECT c FROM sbtest1 WHERE id BETWEEN 5017 AND 5116"),
            answer.clone(),
        )
    });
    turns(runner, stage, "range-sorted", ROWS * 119, |_| {
        let sql = "SELECT c FROM sbtest1 WHERE id BETWEEN 5017 AND 5116 ORDER BY c";
        (query(sql), answer.clone())
    });
    turns(runner, stage, "range-distinct", ROWS * 119, |_| {
        let sql = "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 5017 AND 5116 ORDER BY c";
        (query(sql), answer.clone())
    });
    let c = |row| cells.c("sbtest9", row);
    let answer = range("sbtest9", &c, "c$enc");
    turns(runner, stage, "range-distinct-0900", ROWS * 119, |_| {
        let sql = "SELECT DISTINCT c FROM sbtest9 WHERE id BETWEEN 5017 AND 5116 ORDER BY c";
        (query(sql), answer.clone())
    });
    let k = |row| cells.k("sbtest1", row);
    let answer = range("sbtest1", &k, "k$enc");
    turns(runner, stage, "range-sum", 20, |_| {
        let sql = "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 5017 AND 5116";
        (query(sql), answer.clone())
    });
}

fn writes(runner: &mut Runner, stage: &mut Stage, cells: &Cells) {
    turns(runner, stage, "insert", 7, |run| {
        (query(&insert(run)), done(1, "", AUTOCOMMIT))
    });
    turns(runner, stage, "delete", 7, |run| {
        let sql = format!("DELETE FROM sbtest1 WHERE id={run}");
        (query(&sql), done(1, "", AUTOCOMMIT))
    });
    let definitions = [
        column("sbtest1", "id", LONG, false),
        column("sbtest1", "k$enc", BLOB, true),
    ];
    let read = |id: u64, status| {
        let row = text_row(&[id.to_string().as_bytes(), &cells.k("sbtest1", id)]);
        rows(&definitions, [row], status)
    };
    let update = |id: u64| query(&format!("UPDATE sbtest1 SET k=k+1 WHERE id={id}"));
    // what is remembered of rows takes its room when it is first used, at places that chance
    // decides
    if runner.wants("update-index") || runner.wants("update-index-in-transaction") {
        for id in 100_000..101_000 {
            let answers = [read(id, AUTOCOMMIT), done(1, CHANGED, AUTOCOMMIT)].concat();
            turn(stage, &update(id), &answers);
        }
    }
    turns(runner, stage, "update-index", 7, |run| {
        let id = 1_000 + run;
        let answers = [read(id, AUTOCOMMIT), done(1, CHANGED, AUTOCOMMIT)].concat();
        (update(id), answers)
    });
    // the row is remembered from here on
    let answers = [read(7, AUTOCOMMIT), done(1, CHANGED, AUTOCOMMIT)].concat();
    turn(stage, &update(7), &answers);
    turns(runner, stage, "update-index-remembered", 7, |_| {
        (update(7), done(1, CHANGED, AUTOCOMMIT))
    });
    let open = AUTOCOMMIT | StatusFlags::IN_TRANS;
    turn(stage, &query("BEGIN"), &done(0, "", open));
    turns(runner, stage, "update-index-in-transaction", 7, |run| {
        let id = 10_000 + run;
        (
            update(id),
            [read(id, open), done(1, CHANGED, open)].concat(),
        )
    });
    turn(stage, &query("COMMIT"), &done(0, "", AUTOCOMMIT));
}

fn prepared_selects(runner: &mut Runner, stage: &mut Stage, cells: &Cells) {
    let definitions = [column("sbtest1", "c$enc", BLOB, true)];
    let range = prepare("SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?");
    turn(stage, &range, &prepared(1, 2, &definitions));
    let all = (0..ROWS as u64).map(|row| binary_row(&[&cells.c("sbtest1", row)]));
    let answer = rows(&definitions, all, AUTOCOMMIT);
    turns(runner, stage, "range-prepared", ROWS * 119, |_| {
        let bounds = [
            (LONG, BinaryValue::Int(5017)),
            (LONG, BinaryValue::Int(5116)),
        ];
        (execute(1, &bounds), answer.clone())
    });
    turn(
        stage,
        &prepare("SELECT c FROM sbtest1 WHERE id=?"),
        &prepared(2, 1, &definitions),
    );
    let answer = rows(
        &definitions,
        [binary_row(&[&cells.c("sbtest1", 1)])],
        AUTOCOMMIT,
    );
    turns(runner, stage, "point-select-prepared", 119, |_| {
        (
            execute(2, &[(LONG, BinaryValue::Int(5017))]),
            answer.clone(),
        )
    });
    let insert = "INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)";
    turn(stage, &prepare(insert), &prepared(3, 5, &[]));
    turns(runner, stage, "insert-prepared", 7, |run| {
        let (c, pad) = (digits(run, 10), digits(run, 5));
        let parameters = [
            (LONG, BinaryValue::Int(0)),
            (LONG, BinaryValue::Int(4993)),
            (BLOB, BinaryValue::Bytes(c.as_bytes())),
            (BLOB, BinaryValue::Bytes(pad.as_bytes())),
        ];
        (execute(3, &parameters), done(1, "", AUTOCOMMIT))
    });
}

/// Parts of turns by themselves.
fn steps(runner: &mut Runner, stage: &mut Stage, cells: &Cells) {
    let nothing = |_: &mut Stage, _: u64| ();
    let fine = |_: &mut Stage| Ok(());
    let long = insert(1);
    // both have a plan
    turn(stage, &query(&long), &done(1, "", AUTOCOMMIT));
    let cell = cells.c("sbtest1", 1);
    let answer = rows(
        &[column("sbtest1", "c$enc", BLOB, true)],
        [text_row(&[&cell])],
        AUTOCOMMIT,
    );
    turn(stage, &query(POINT), &answer);
    let wide = rows(
        &[
            column("sbtest1", "k$enc", BLOB, true),
            column("sbtest1", "c$enc", BLOB, true),
        ],
        [],
        AUTOCOMMIT,
    );
    let two = "SELECT k, c FROM sbtest1 WHERE id=5017";
    turn(stage, &query(two), &wide);

    let mut template = Template::default();
    for (name, sql) in [
        ("split-point-select", POINT),
        ("split-insert", long.as_str()),
    ] {
        let fine = |_: &mut Template| Ok(());
        let split = |template: &mut Template| {
            template
                .read(sql.as_bytes(), LexMode::default())
                .expect("a statement");
        };
        runner.path(name, &mut template, |_, _| (), split, fine);
    }
    let recall = |stage: &mut Stage| assert!(stage.recall(POINT.as_bytes()).expect("a shape"));
    runner.path("recall-point-select", stage, nothing, recall, fine);
    let mut text = Vec::new();
    let bind = |stage: &mut Stage| {
        text.clear();
        stage.bind(long.as_bytes(), &mut text).expect("bound");
    };
    runner.path("bind-insert", stage, nothing, bind, fine);

    let (k, c) = (cells.k("sbtest1", 1), cells.c("sbtest1", 1));
    let row = text_row(&[&k, &c]);
    let in_binary = binary_row(&[&k, &c]);
    for (name, binary, row) in [
        ("open-text-row", false, &row),
        ("open-binary-row", true, &in_binary),
    ] {
        let columns = [(Some(0), BLOB), (Some(1), BLOB)];
        let mut opener = stage
            .opener(two.as_bytes(), &columns, binary)
            .expect("an opener");
        let mut out = Vec::new();
        let open = |stage: &mut Stage| {
            out.clear();
            stage
                .open_row(&mut opener, row, &mut out)
                .expect("it opens");
        };
        runner.path(name, stage, nothing, open, fine);
    }

    let cipher = cells.cipher("sbtest1", C);
    let number = cells.cipher("sbtest1", K);
    let value = digits(1, 10);
    let mut out = Vec::new();
    let mut each = |name: &str, work: &mut dyn FnMut(&mut Vec<u8>)| {
        let work = |out: &mut Vec<u8>| {
            out.clear();
            work(out);
        };
        runner.path(name, &mut out, |_, _| (), work, |_| Ok(()));
    };
    each("seal-119-bytes", &mut |out| {
        cipher.seal(value.as_bytes(), out).expect("sealed");
    });
    each("open-119-bytes", &mut |out| {
        cipher.open(&c, out).expect("opened")
    });
    each("order-key-int", &mut |out| {
        number.order_key(&int(4993), out)
    });
    each("equality-token-int", &mut |out| {
        out.extend_from_slice(number.equality_token(&int(4993)).as_ref());
    });
    for (name, collation) in [
        ("weigh-119-general-ci", "utf8mb4_general_ci"),
        ("weigh-119-0900-ai-ci", "utf8mb4_0900_ai_ci"),
    ] {
        let ty = SqlType::parse("char(120)", Some(collation)).expect("a type");
        each(name, &mut |out| {
            weight(&ty, value.as_bytes(), out).expect("weights");
        });
    }
}
