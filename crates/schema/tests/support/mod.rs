//! Tables for the tests, each in its logical and its physical form, and the files that record what
//! real servers say about both.

#![allow(dead_code, missing_docs)]

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use onionskin_schema::{
    Capabilities, ColumnRow, DefaultLiteral, NewColumn, SetMark, Table, physical_definitions,
    tables_from_rows,
};
use onionskin_value::{Family, SqlType};

pub const FAMILIES: [Family; 2] = [Family::MariaDb, Family::MySql];

/// A stand-in for the real tag: keyed enough to notice any change.
pub fn tag(bytes: &[u8]) -> [u8; 16] {
    let half = |seed: u64| {
        bytes.iter().fold(seed, |hash, byte| {
            (hash ^ u64::from(*byte))
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(23)
        })
    };
    let mut tag = [0; 16];
    tag[..8].copy_from_slice(&half(0xcbf2_9ce4_8422_2325).to_be_bytes());
    tag[8..].copy_from_slice(&half(0x8422_2325_cbf2_9ce4).to_be_bytes());
    tag
}

pub fn verify(bytes: &[u8], candidate: &[u8; 16]) -> bool {
    tag(bytes) == *candidate
}

pub const TABLE_ID: [u8; 8] = [0x10, 0x21, 0x32, 0x43, 0x54, 0x65, 0x76, 0x87];

/// A column with neither default nor comment, nullable, sealed only.
pub fn column(name: &str, sql_type: &str, collation: Option<&str>) -> NewColumn {
    let mut column_id = [0; 4];
    column_id.copy_from_slice(&tag(name.as_bytes())[..4]);
    NewColumn {
        name: name.to_owned(),
        sql_type: SqlType::parse(sql_type, collation).expect(sql_type),
        explicit_collation: false,
        deprecated: Vec::new(),
        nullable: true,
        default: None,
        lost_default: false,
        on_update: false,
        comment: None,
        checks: Vec::new(),
        own_checks: Vec::new(),
        invisible: false,
        capabilities: Capabilities::default(),
        without_grams: false,
        filling: Vec::new(),
        actions: Default::default(),
        column_id,
        table_id: TABLE_ID,
        key_id: 1,
        suite: 1,
        cell_version: 1,
    }
}

pub fn capabilities(words: &str) -> Capabilities {
    let mut capabilities = Capabilities::default();
    for word in words.split_ascii_whitespace() {
        if !capabilities.take_word(word) {
            capabilities.join = Some(word.to_owned());
        }
    }
    capabilities
}

pub enum Element {
    /// The same in both forms.
    Plain(&'static str),
    /// The rest of the logical definition, and the column.
    Protected(String, Box<NewColumn>),
    /// `{c}` stands for the column that an index on `c` is built on.
    Key(&'static str),
}

pub struct Case {
    pub name: &'static str,
    pub elements: Vec<Element>,
    /// Behind the closing parenthesis.
    pub options: &'static str,
}

impl Case {
    pub fn logical_sql(&self, database: &str) -> String {
        let elements = self.elements.iter().map(|element| match element {
            Element::Plain(text) => (*text).to_owned(),
            Element::Protected(text, column) => {
                format!("`{}` {text}", column.name.replace('`', "``"))
            }
            Element::Key(text) => text.replace(['{', '}'], "`"),
        });
        self.statement(database, elements.collect())
    }

    pub fn physical_sql(&self, database: &str, family: Family) -> String {
        let mut elements = Vec::new();
        let protected: Vec<NewColumn> = self.protected().cloned().collect();
        let set = SetMark::of_new_table(&protected, family, tag);
        for element in &self.elements {
            match element {
                Element::Plain(text) => elements.push((*text).to_owned()),
                Element::Protected(_, column) => {
                    let definitions = physical_definitions(column, &set, family, tag);
                    elements.extend(definitions.expect(&column.name));
                }
                Element::Key(text) => {
                    let mut text = (*text).to_owned();
                    for column in self.protected() {
                        let placeholder = format!("{{{}}}", column.name);
                        if text.contains(&placeholder) {
                            let index = column.index_column_name(false).expect(&column.name);
                            text = text.replace(&placeholder, &format!("`{index}`"));
                        }
                    }
                    elements.push(text.replace(['{', '}'], "`"));
                }
            }
        }
        self.statement(database, elements)
    }

    fn statement(&self, database: &str, elements: Vec<String>) -> String {
        format!(
            "CREATE TABLE `{database}`.`{}` (\n  {}\n) {}",
            self.name,
            elements.join(",\n  "),
            self.options
        )
    }

    pub fn protected(&self) -> impl Iterator<Item = &NewColumn> {
        self.elements.iter().filter_map(|element| match element {
            Element::Protected(_, column) => Some(&**column),
            _ => None,
        })
    }
}

pub fn protected(column: NewColumn, rest: &str) -> Element {
    Element::Protected(rest.to_owned(), Box::new(column))
}

pub type Row = Vec<Option<String>>;

/// What a server says about a case.
#[derive(Default)]
pub struct Golden {
    sections: BTreeMap<String, String>,
}

impl Golden {
    /// What servers said of tables that an earlier version had made, whose comments have no mark of
    /// all columns.
    pub fn of_earlier_version(family: Family, case: &str) -> Self {
        let path = Self::path(family, case);
        let path = path.to_string_lossy().replace("/golden/", "/old/");
        Self::from_file(Path::new(&path))
    }

    fn path(family: Family, case: &str) -> PathBuf {
        let family = match family {
            Family::MariaDb => "mariadb",
            Family::MySql => "mysql",
        };
        [
            env!("CARGO_MANIFEST_DIR"),
            "tests",
            "golden",
            family,
            &format!("{case}.txt"),
        ]
        .iter()
        .collect()
    }

    pub fn read(family: Family, case: &str) -> Self {
        Self::from_file(&Self::path(family, case))
    }

    fn from_file(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let sections = text
            .split("== ")
            .skip(1)
            .map(|section| {
                let (title, body) = section.split_once('\n').expect("a title");
                (title.to_owned(), body.trim_end_matches('\n').to_owned())
            })
            .collect();
        Self { sections }
    }

    pub fn write(&self, family: Family, case: &str) {
        let mut text = String::new();
        for (title, body) in &self.sections {
            assert!(!body.contains("== "), "the sections would be cut wrongly");
            let _ = write!(text, "== {title}\n{body}\n\n");
        }
        std::fs::write(Self::path(family, case), text).expect("the golden file is writable");
    }

    pub fn set(&mut self, title: &str, body: &str) {
        self.sections.insert(title.to_owned(), body.to_owned());
    }

    pub fn set_rows(&mut self, title: &str, rows: &[Row]) {
        let lines: Vec<String> = rows
            .iter()
            .map(|row| serde_json::to_string(row).expect("strings"))
            .collect();
        self.set(title, &lines.join("\n"));
    }

    pub fn get(&self, title: &str) -> &str {
        self.sections
            .get(title)
            .unwrap_or_else(|| panic!("no section {title}"))
    }

    pub fn rows(&self, title: &str) -> Vec<Row> {
        self.get(title)
            .lines()
            .map(|line| serde_json::from_str(line).expect("a row"))
            .collect()
    }

    /// The table that the catalog makes of the recorded rows.
    pub fn table(&self) -> Table {
        table(&self.rows(CATALOG))
    }
}

pub const CATALOG: &str = "catalog";
pub const SHOW_CREATE: &str = "SHOW CREATE TABLE";
pub const SHOW_COLUMNS: &str = "SHOW COLUMNS";
pub const SHOW_FULL_COLUMNS: &str = "SHOW FULL COLUMNS";
pub const SHOW_INDEX: &str = "SHOW INDEX";

pub fn physical(title: &str) -> String {
    format!("{title}, physical")
}

pub fn logical(title: &str) -> String {
    format!("{title}, logical")
}

pub fn table(rows: &[Row]) -> Table {
    let mut tables = tables_from_rows(rows.iter().map(|row| catalog_row(row)), verify);
    assert_eq!(tables.len(), 1);
    tables.remove(0)
}

pub fn catalog_row(row: &Row) -> ColumnRow<'_> {
    let text = |at: usize| row[at].as_deref().unwrap_or_default();
    ColumnRow {
        table_schema: text(0),
        table_name: text(1),
        column_name: text(2),
        ordinal_position: text(3).parse().expect("a number"),
        column_default: row[4].as_deref(),
        is_nullable: text(5),
        data_type: text(6),
        column_type: text(7),
        collation: row[8].as_deref(),
        character_set: row[9].as_deref(),
        column_key: text(10),
        extra: text(11),
        column_comment: text(12),
        generation_expression: row[13].as_deref(),
    }
}

fn value(text: &str) -> Option<DefaultLiteral> {
    Some(DefaultLiteral::Value(text.as_bytes().to_vec()))
}

/// The tables. `family` matters only where the two do not accept the same definitions.
pub fn cases(family: Family) -> Vec<Case> {
    let mut cases = vec![
        numbers(),
        strings(family),
        times(),
        keys(),
        names(),
        mixed(),
    ];
    if family == Family::MariaDb {
        cases.push(long_defaults());
    }
    cases
}

fn numbers() -> Case {
    let mut elements = vec![Element::Plain("`id` int NOT NULL AUTO_INCREMENT")];
    for sql_type in [
        "tinyint",
        "tinyint unsigned",
        "tinyint(1)",
        "smallint",
        "smallint unsigned",
        "mediumint",
        "mediumint unsigned",
        "int",
        "int unsigned",
        "int(5)",
        "int(6) zerofill",
        "bigint",
        "bigint unsigned",
        "decimal(10,2)",
        "decimal(65,30)",
        "decimal(5)",
        "decimal(6,3) unsigned",
        "float",
        "double",
        "double unsigned",
        "year",
    ] {
        let name: String = sql_type
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        for (suffix, default, words) in [
            ("n", None, "eq range"),
            ("d", Some("7"), "eq"),
            ("s", None, ""),
        ] {
            let mut column = column(&format!("{name}_{suffix}"), sql_type, None);
            column.capabilities = capabilities(words);
            column.nullable = suffix != "s";
            let mut rest = sql_type.to_owned();
            if !column.nullable {
                rest.push_str(" NOT NULL");
            }
            if let Some(default) = default {
                rest.push_str(&format!(" DEFAULT {default}"));
                column.default = value(match sql_type {
                    "decimal(10,2)" => "7.00",
                    "decimal(6,3) unsigned" => "7.000",
                    "decimal(65,30)" => "7.000000000000000000000000000000",
                    "int(6) zerofill" => "000007",
                    "year" => "2007",
                    _ => "7",
                });
            }
            elements.push(protected(column, &rest));
        }
    }
    elements.push(Element::Plain("PRIMARY KEY (`id`)"));
    Case {
        name: "numbers",
        elements,
        options: "DEFAULT CHARSET=utf8mb4",
    }
}

#[expect(clippy::too_many_lines, reason = "a list of definitions")]
fn strings(family: Family) -> Case {
    let inherited = "utf8mb4_general_ci";
    let mut elements = vec![Element::Plain("`id` bigint unsigned NOT NULL")];
    let mut number = 0;
    let mut add = |sql_type: &str,
                   clause: &str,
                   collation: Option<&str>,
                   words: &str,
                   rest: &str,
                   change: &dyn Fn(&mut NewColumn)| {
        number += 1;
        let mut column = column(&format!("c{number:02}"), sql_type, collation);
        column.capabilities = capabilities(words);
        column.explicit_collation = !clause.is_empty();
        change(&mut column);
        let mut text = format!("{sql_type} {clause}");
        if !column.nullable {
            text.push_str(" NOT NULL");
        }
        text.push_str(rest);
        elements.push(protected(column, &text));
    };
    let nothing = |_: &mut NewColumn| {};
    add("char(10)", "", Some(inherited), "eq range", "", &nothing);
    add(
        "char(10)",
        "COLLATE utf8mb4_general_ci",
        Some(inherited),
        "",
        "",
        &nothing,
    );
    add(
        "varchar(255)",
        "",
        Some(inherited),
        "eq",
        " DEFAULT ''",
        &|c| {
            c.nullable = false;
            c.default = value("");
        },
    );
    add(
        "varchar(20)",
        "CHARACTER SET latin1",
        Some("latin1_swedish_ci"),
        "eq",
        "",
        &nothing,
    );
    add(
        "varchar(20)",
        "CHARACTER SET latin1 COLLATE latin1_bin",
        Some("latin1_bin"),
        "",
        "",
        &nothing,
    );
    add(
        "varchar(20)",
        "CHARACTER SET utf8mb3",
        Some("utf8mb3_general_ci"),
        "",
        "",
        &nothing,
    );
    add(
        "varchar(20)",
        "COLLATE utf8mb4_bin",
        Some("utf8mb4_bin"),
        "eq range",
        "",
        &nothing,
    );
    add(
        "varchar(20)",
        "COLLATE utf8mb4_unicode_ci",
        Some("utf8mb4_unicode_ci"),
        "eq",
        " DEFAULT 'ä😀'",
        &|c| {
            c.default = value("ä😀");
        },
    );
    add(
        "varchar(40)",
        "",
        Some(inherited),
        "",
        r" DEFAULT 'a''b\\c\nd\re|%\0f' COMMENT 'it''s a \\ \0comment\n| % ä 😀'",
        &|c| {
            c.default = value("a'b\\c\nd\re|%\0f");
            c.comment = Some("it's a \\ \0comment\n| % ä 😀".to_owned());
        },
    );
    add(
        "varchar(20000)",
        "CHARACTER SET latin1",
        Some("latin1_swedish_ci"),
        "",
        "",
        &nothing,
    );
    for sql_type in ["tinytext", "text", "mediumtext", "longtext"] {
        add(sql_type, "", Some(inherited), "eq", "", &nothing);
        add(
            sql_type,
            "CHARACTER SET latin1",
            Some("latin1_swedish_ci"),
            "",
            "",
            &|c| c.nullable = false,
        );
    }
    for sql_type in ["tinyblob", "blob", "mediumblob", "longblob"] {
        add(sql_type, "", None, "eq range", "", &nothing);
        add(sql_type, "", None, "", " COMMENT 'x'", &|c| {
            c.nullable = false;
            c.comment = Some("x".to_owned());
        });
    }
    add("binary(5)", "", None, "eq range", " DEFAULT 'ab'", &|c| {
        c.default = value("ab")
    });
    add("binary(3)", "", None, "eq", " DEFAULT 'abc'", &|c| {
        c.default = value("abc")
    });
    add("varbinary(10)", "", None, "eq", " DEFAULT 'a''c'", &|c| {
        c.default = value("a'c")
    });
    add("varbinary(30)", "", None, "eq range", "", &|c| {
        c.nullable = false
    });
    if family == Family::MySql {
        add(
            "varbinary(10)",
            "",
            None,
            "eq",
            " DEFAULT X'41FF0027'",
            &|c| {
                c.default = Some(DefaultLiteral::Value(vec![0x41, 0xff, 0, 0x27]));
            },
        );
        add(
            "varchar(5)",
            "COLLATE utf8mb4_0900_ai_ci",
            Some("utf8mb4_0900_ai_ci"),
            "eq",
            "",
            &nothing,
        );
    }
    Case {
        name: "strings",
        elements,
        options: "DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci",
    }
}

fn times() -> Case {
    let mut elements = Vec::new();
    for (name, sql_type, default) in [
        ("d", "date", "2020-01-02"),
        ("t", "time", "-10:11:12"),
        ("t3", "time(3)", "10:11:12.500"),
        ("dt", "datetime", "2020-01-02 03:04:05"),
        ("dt6", "datetime(6)", "2020-01-02 03:04:05.123456"),
        ("ts", "timestamp", "2020-01-02 03:04:05"),
        ("ts3", "timestamp(3)", "2020-01-02 03:04:05.000"),
    ] {
        let mut plain = column(name, sql_type, None);
        plain.capabilities = capabilities("eq range");
        plain.default = Some(DefaultLiteral::Null);
        elements.push(protected(plain, &format!("{sql_type} NULL DEFAULT NULL")));
        let mut filled = column(&format!("{name}_d"), sql_type, None);
        filled.nullable = false;
        filled.default = value(default);
        filled.capabilities = capabilities("range");
        elements.push(protected(
            filled,
            &format!("{sql_type} NOT NULL DEFAULT '{default}'"),
        ));
    }
    Case {
        name: "times",
        elements,
        options: "DEFAULT CHARSET=latin1",
    }
}

fn keys() -> Case {
    let with = |name: &str, sql_type: &str, collation, words: &str, nullable| {
        let mut column = column(name, sql_type, collation);
        column.capabilities = capabilities(words);
        column.nullable = nullable;
        column
    };
    let latin = Some("latin1_swedish_ci");
    Case {
        name: "keys",
        elements: vec![
            protected(with("a", "int", None, "eq range", false), "int NOT NULL"),
            protected(
                with("b", "varchar(30)", latin, "eq range", false),
                "varchar(30) NOT NULL",
            ),
            Element::Plain("`plain` int DEFAULT 3"),
            protected(
                with("u", "bigint", None, "range", true),
                "bigint DEFAULT NULL",
            ),
            protected(
                with("m", "varchar(30)", latin, "eq", true),
                "varchar(30) DEFAULT NULL",
            ),
            protected(
                with("j", "int", None, "range people", true),
                "int DEFAULT NULL",
            ),
            protected(with("s", "text", latin, "", true), "text"),
            Element::Key("PRIMARY KEY ({a},{plain},{b})"),
            Element::Key("UNIQUE KEY `u` ({u})"),
            Element::Key("UNIQUE KEY `um` ({u},{m})"),
            Element::Key("KEY `m` ({m}) COMMENT 'on `m$eq_0000` (, \\'x'"),
            Element::Key("KEY `j2` ({j} DESC,{plain})"),
            Element::Key("KEY `plain` ({plain})"),
            Element::Plain(
                "CONSTRAINT `positive` CHECK (`plain` > 0 and concat(`plain`,'(,`)') <> '')",
            ),
        ],
        options: "DEFAULT CHARSET=latin1 COMMENT='COLLATE=x, (`a$enc`) '",
    }
}

fn names() -> Case {
    let with = |name: &str, invisible: bool| {
        let mut column = column(name, "int", None);
        column.capabilities = capabilities("eq range");
        column.invisible = invisible;
        column
    };
    Case {
        name: "names",
        elements: vec![
            protected(with("select", false), "int"),
            protected(with("a b", false), "int"),
            protected(with("a`b", false), "int"),
            protected(with("a\"b", false), "int"),
            protected(with("a$b", false), "int"),
            protected(with("Größe", false), "int"),
            protected(with("hidden", true), "int INVISIBLE"),
            protected(with("dim", false), "int"),
            Element::Plain("`x$eq_12345` int DEFAULT NULL INVISIBLE"),
            Element::Plain("`key` int DEFAULT NULL"),
        ],
        options: "DEFAULT CHARSET=utf8mb4",
    }
}

fn mixed() -> Case {
    let mut email = column("email", "varchar(190)", Some("utf8mb4_unicode_ci"));
    email.capabilities = capabilities("eq people,and%other|things");
    email.nullable = false;
    let mut note = column("note", "longtext", Some("utf8mb4_unicode_ci"));
    note.comment = Some("x".repeat(600));
    Case {
        name: "mixed",
        elements: vec![
            Element::Plain("`id` int unsigned NOT NULL AUTO_INCREMENT"),
            protected(email, "varchar(190) NOT NULL"),
            Element::Plain(
                "`state` enum('new','it''s (old),') NOT NULL DEFAULT 'new' COMMENT 'a, `b` (c'",
            ),
            protected(note, &format!("longtext COMMENT '{}'", "x".repeat(600))),
            Element::Plain("`twice` int GENERATED ALWAYS AS (`id2` * 2) VIRTUAL"),
            Element::Plain("`id2` int DEFAULT NULL"),
            Element::Plain(
                "`made` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
            ),
            Element::Plain("PRIMARY KEY (`id`)"),
            Element::Key("UNIQUE KEY `email` ({email})"),
            Element::Plain("KEY `state` (`state`)"),
        ],
        options: "DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci COMMENT='people'",
    }
}

fn long_defaults() -> Case {
    let mut text = column("t", "text", Some("latin1_swedish_ci"));
    text.default = value("x");
    let mut blob = column("b", "blob", None);
    blob.default = value("y");
    Case {
        name: "long_defaults",
        elements: vec![
            protected(text, "text DEFAULT 'x'"),
            protected(blob, "blob DEFAULT 'y'"),
        ],
        options: "DEFAULT CHARSET=latin1",
    }
}
