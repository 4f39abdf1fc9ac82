//! Keys in the definitions of columns.

use super::*;

/// What stands in a column's definition is a key, on the servers that make one of it.
pub fn columns_name_what_they_refer_to(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(
        &mut pair,
        &[
            "CREATE TABLE land (code CHAR(2) PRIMARY KEY, name VARCHAR(40) UNIQUE)",
            "CREATE TABLE town (id INT AUTO_INCREMENT PRIMARY KEY, \
             land CHAR(2) NOT NULL DEFAULT 'no' REFERENCES land (code) ON DELETE CASCADE ON UPDATE RESTRICT, \
             `name` VARCHAR(40) COMMENT 'REFERENCES', twin INT REFERENCES town (id), KEY k (`name`))",
            "CREATE TABLE street (`town` INT REFERENCES town(id) ON DELETE SET NULL, n INT, name VARCHAR(30), \
             other VARCHAR(40) UNIQUE REFERENCES land(name), CHECK (n > 0))",
            "ALTER TABLE street ADD COLUMN land CHAR(2) REFERENCES land (code) AFTER n, ADD COLUMN x INT FIRST",
            "ALTER TABLE street ADD (twin INT REFERENCES town (id), length INT)",
            "INSERT INTO land VALUES ('no', 'Norway'), ('se', 'Sweden')",
            "INSERT INTO town (land, name) VALUES ('no', 'Oslo'), ('se', 'Malmo')",
            "INSERT INTO street VALUES (1, 1, 1, 'se', 'Main', 'Norway', 2, 3)",
        ],
    );
    for (table, expected) in [
        ("town", "id,land$enc,name$enc,twin"),
        (
            "street",
            "x$enc,town,n$enc,land$enc,name$enc,other$enc,twin,length$enc",
        ),
    ] {
        assert_eq!(columns(&pair, table), expected, "{table}");
        pair.same(&format!("SHOW CREATE TABLE {table}"));
    }
    for sql in [
        "INSERT INTO town (land) VALUES ('dk')",
        "INSERT INTO street (other) VALUES ('Denmark')",
        "INSERT INTO street (town) VALUES (7)",
        "DELETE FROM land WHERE code = 'no'",
        "DELETE FROM land WHERE code = 'se'",
        "DELETE FROM town WHERE name = 'Oslo'",
        "SELECT town, land, twin FROM street",
        // behind it there is nothing
        "CREATE TABLE bad4 (id INT, a CHAR(2) REFERENCES land (code) NOT NULL)",
        "CREATE TABLE bad5 (a CHAR(2) REFERENCES land (code) REFERENCES land (code))",
        "CREATE TABLE bad6 (id INT AUTO_INCREMENT PRIMARY KEY, town INT REFERENCES town (id) COMMENT 'x', a INT)",
        "ALTER TABLE land ADD COLUMN n CHAR(2) REFERENCES land (code) NOT NULL AFTER code",
        "CREATE TABLE bad1 (a CHAR(2) REFERENCES land (name))",
        "CREATE TABLE bad2 (a CHAR(2) REFERENCES land)",
        "CREATE TABLE bad3 (a CHAR(2) REFERENCES missing (code))",
    ] {
        pair.same_or_refused(sql);
    }
}
