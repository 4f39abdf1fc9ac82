use super::*;

#[test]
fn prints_as_each_family_does() {
    for (given, mariadb, mysql) in [
        ("int(11)", "int(11)", "int"),
        ("INT", "int(11)", "int"),
        ("int unsigned", "int(10) unsigned", "int unsigned"),
        ("tinyint(1)", "tinyint(1)", "tinyint(1)"),
        ("bool", "tinyint(1)", "tinyint(1)"),
        (
            "tinyint(1) unsigned",
            "tinyint(1) unsigned",
            "tinyint unsigned",
        ),
        ("tinyint", "tinyint(4)", "tinyint"),
        (
            "mediumint unsigned",
            "mediumint(8) unsigned",
            "mediumint unsigned",
        ),
        ("bigint unsigned", "bigint(20) unsigned", "bigint unsigned"),
        (
            "int(5) zerofill",
            "int(5) unsigned zerofill",
            "int(5) unsigned zerofill",
        ),
        (
            "int zerofill",
            "int(10) unsigned zerofill",
            "int(10) unsigned zerofill",
        ),
        ("decimal", "decimal(10,0)", "decimal(10,0)"),
        (
            "numeric(12,3) unsigned",
            "decimal(12,3) unsigned",
            "decimal(12,3) unsigned",
        ),
        ("float(24)", "float", "float"),
        ("float(25)", "double", "double"),
        ("double precision", "double", "double"),
        ("datetime(6)", "datetime(6)", "datetime(6)"),
        ("time(0)", "time", "time"),
        ("year(4)", "year(4)", "year"),
        ("blob(100)", "tinyblob", "tinyblob"),
        ("UUID", "uuid", "uuid"),
        ("inet6", "inet6", "inet6"),
        ("inet4", "inet4", "inet4"),
    ] {
        let ty = SqlType::parse(given, None).expect(given);
        assert_eq!(ty.to_sql(Family::MariaDb), mariadb);
        assert_eq!(ty.to_sql(Family::MySql), mysql);
    }
    let text = |sql: &str, collation| {
        SqlType::parse(sql, Some(collation))
            .expect(sql)
            .to_sql(Family::MySql)
    };
    assert_eq!(text("text(100)", "utf8mb4_bin"), "text");
    assert_eq!(text("text(100)", "latin1_swedish_ci"), "tinytext");
    assert_eq!(text("character varying (20)", "utf8mb4_bin"), "varchar(20)");
    assert_eq!(text("varchar(20)", "binary"), "varbinary(20)");
    assert_eq!(text("char", "latin1_swedish_ci"), "char(1)");
}

#[test]
fn refuses_what_it_does_not_know() {
    for bad in [
        "",
        "(",
        "int(",
        "int(x)",
        "int(1,2)",
        "bit(65)",
        "bit(1,2)",
        "enum('a'",
        "enum(a)",
        "enum()",
        "set('a,b')",
        "enum('a') unsigned",
        "float(5,6)",
        "double(256,2)",
        "double(40,31)",
        "double(5)",
        "float(54)",
        "decimal(66,0)",
        "decimal(10,31)",
        "decimal(5,6)",
        "datetime(7)",
        "date(3)",
        "varchar",
        "date unsigned",
        "int foo",
        "json(3)",
        "uuid(3)",
        "inet4 unsigned",
        "char(256)",
    ] {
        assert!(SqlType::parse(bad, Some("utf8mb4_bin")).is_err(), "{bad}");
    }
    assert_eq!(
        SqlType::parse("char(3)", None),
        Err(TypeError::CollationMissing("char(3)".to_owned()))
    );
    assert!(matches!(
        SqlType::parse("char(3)", Some("swe7_bin")),
        Err(TypeError::Collation(_))
    ));
}

#[test]
fn order_widths() {
    let width = |sql: &str, collation| {
        let width = SqlType::parse(sql, collation)
            .expect(sql)
            .order_width()
            .expect(sql);
        (width.bytes, width.exact)
    };
    assert_eq!(width("int", None), (4, true));
    assert_eq!(width("binary(16)", None), (16, true));
    assert_eq!(width("varbinary(15)", None), (16, true));
    assert_eq!(width("uuid", None), (16, true));
    assert_eq!(width("inet4", None), (4, true));
    assert_eq!(width("varbinary(16)", None), (16, false));
    assert_eq!(width("varchar(8)", Some("utf8mb4_general_ci")), (16, true));
    assert_eq!(width("varchar(9)", Some("utf8mb4_general_ci")), (16, false));
    assert_eq!(width("char(1)", Some("utf8mb4_unicode_ci")), (16, false));
    assert_eq!(
        SqlType::parse("char(1)", Some("utf8mb4_czech_ci"))
            .expect("known")
            .order_width(),
        None
    );
}

#[test]
fn parts_of_keys_take_what_servers_say() {
    let ty = |text: &str, collation| SqlType::parse(text, collation).expect(text);
    let utf8 = Some("utf8mb4_bin");
    for (text, collation, prefix, bytes) in [
        ("varchar(768)", utf8, None, 3072),
        ("varchar(768)", utf8, Some(10), 40),
        ("text", Some("latin1_swedish_ci"), Some(255), 255),
        ("int", None, None, 4),
        ("datetime(6)", None, None, 8),
        ("varbinary(3073)", None, None, 3073),
    ] {
        assert_eq!(ty(text, collation).key_bytes(prefix), bytes, "{text}");
    }
    assert!(ty("text", utf8).is_unbounded() && !ty("varchar(9)", utf8).is_unbounded());
}
