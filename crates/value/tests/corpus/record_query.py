#!/usr/bin/env python3
"""Records how real servers compare, order, sum, compute with and describe columns.

    record_query.py SOCKET FILE [SEED]

Writes the corpus that tests/query_corpus.rs replays, lines of tab-separated fields:

    @ <type> <collation or ->   begins a table of one column
    r <cell>                    a stored row, numbered from 0
    o <numbers>                 the rows in the order of ORDER BY
    k <input> <outcome>         a constant compared with each row: a string of < = > (row against constant), or ! and the
                                error, or W where the server warned, or ? where its ways to compare disagree
    a <row> <op> <input> <outcome>   UPDATE SET c = c op input of that row: = and the cell, or ! and the error, then warnings
    s <rows> <increment> <sum> <wire of sum> <avg> <wire of avg>     SUM and AVG of the first rows
    w <charset number> <wire>   the column definition under that character_set_results (0 is NULL)

Inputs and escapes are those of record_store.py; a wire is type,charset,length,flags,decimals.
"""

import random
import sys

from record_store import escape, message, quoted, some_number, some_text
from server import Server, ServerError

INTEGERS = {
    "tinyint": "-128 -127 -1 0 1 5 127", "tinyint unsigned": "0 1 127 128 254 255", "smallint": "-32768 -1 0 7 32767", "smallint unsigned": "0 1 65535", "mediumint": "-8388608 0 8388607", "mediumint unsigned": "0 1 255 16777215",
    "int": "-2147483648 -5 0 1 2 3 2147483647", "int unsigned": "0 1 4294967295", "bigint": "-9223372036854775808 -9007199254740993 -1 0 1 9007199254740991 9007199254740992 9007199254740993 9223372036854775807",
    "bigint unsigned": "0 1 9007199254740993 9223372036854775807 9223372036854775808 18446744073709551615", "int(5) zerofill": "0 12 99999 123456",
}
DECIMALS = {
    "decimal(5,2)": "-999.99 -1.50 -0.01 0.00 0.01 0.10 1.49 1.50 1.51 999.99", "decimal(5,2) unsigned": "0.00 0.10 1.50 999.99", "decimal(10,0)": "-9999999999 -1 0 1 2 9999999999",
    "decimal(15,5)": "-9999999999.99999 -0.00001 0.10000 1.00000 9999999999.99999", "decimal(20,10)": "-9999999999.9999999999 0.1000000000 0.3000000000 1.0000000000",
    "decimal(65,30)": "-99999999999999999999999999999999999.999999999999999999999999999999 0.1 1 99999999999999999999999999999999999.999999999999999999999999999999", "decimal(18,9)": "0.333333333 1.1 2 3", "decimal(12,5)": "0.33333 0.00001 2 3",
}
REALS = {"float": "-3.4e38 -1.5 0 0.1 0.5 1 524288 3.4e38", "float unsigned": "0 0.1 1 3.4e38", "double": "-1e300 -1.5 0 0.1 0.3 0.30000000000000004 1 9007199254740993 1e300", "double unsigned": "0 0.5 1e300"}
NUMBERS = [("I", t) for t in "0 1 -1 2 5 -5 12 127 128 -128 -129 255 256 32767 32768 65536 2147483647 2147483648 -2147483648 -2147483649 4294967295 4294967296 9007199254740991 9007199254740992 9007199254740993 9223372036854775807 9223372036854775808 18446744073709551615 -9223372036854775808 99999 9999999999 16777216 16777217".split()]
NUMBERS += [("D", t) for t in "0.0 0.5 -0.5 1.5 -1.5 1.0 1.50 1.499 1.501 0.1 0.10 0.01 0.009 -0.01 127.5 -128.5 254.9 255.0 255.5 999.99 999.995 -999.99 -1000 9999999999.99999 9007199254740993.5 9223372036854775807.5 18446744073709551615.5 18446744073709551616 -9223372036854775809 0.3 0.30000000000000004 99999999999999999999999999999999999.999999999999999999999999999999 99999999999999999999999999999999999999999".split()]
NUMBERS += [("E", t) for t in "0e0 1e0 1.5e0 -1.5e0 0.1e0 0.5e0 1e2 127.5e0 1.28e2 1e10 9007199254740991e0 9007199254740992e0 9.3e18 -9.3e18 1e20 1e300 -1e300 1e39 -1e39 3.4e38 1.51e0 0.3e0 0.30000000000000004e0 99999999.99999e0 1e-300 999.99e0".split()]
NUMBERS += [("T", t) for t in (b"0", b"1", b"-1", b"1.5", b"01", b" 1", b"1 ", b"", b"abc", b"1abc", b"127", b"128", b"255.5", b"0.1", b"0.10", b"1e2", b"4.99999999999999999999999", b"9007199254740993", b"9007199254740992", b"9223372036854775807", b"18446744073709551615", b"2147483648", b"999.99", b"0.3", b"0.333333333", b"1.00000000000000000000000000001", b"-0", b"1e400")]
TEMPORALS = {
    "date": ["0000-00-00", "1970-01-01", "2024-00-00", "2024-01-01", "2024-01-02", "2024-02-29", "2024-12-31", "9999-12-31"], "datetime": ["0000-00-00 00:00:00", "2024-01-02 00:00:00", "2024-01-02 03:04:05", "2024-01-02 03:04:06", "2024-12-31 23:59:59", "9999-12-31 23:59:59"],
    "datetime(3)": ["2024-01-02 00:00:00", "2024-01-02 03:04:05.123", "2024-01-02 03:04:05.124", "2024-01-02 03:04:06"], "timestamp": ["0000-00-00 00:00:00", "1970-01-01 02:00:01", "2024-01-02 00:00:00", "2024-01-02 03:04:05", "2024-07-02 03:04:05", "2038-01-19 05:14:07"],
    "timestamp(6)": ["2024-01-02 03:04:05.123456", "2024-01-02 03:04:05.123457", "2024-01-02 03:04:06"], "time": ["-838:59:59", "-01:00:00", "00:00:00", "00:00:01", "12:34:56", "25:00:00", "838:59:59"], "time(3)": ["-00:00:00.5", "00:00:00", "12:34:56.789", "12:34:56.790"],
    "year": ["0000", "1901", "1970", "2000", "2024", "2069", "2155"],
}
TEMPORAL_CONSTANTS = [("T", t.encode()) for t in """2024-01-02|2024-01-02 00:00:00|2024-01-02 03:04:05|2024-01-02 03:04:05.5|2024-01-02 03:04:05.123|2024-01-02 03:04:05.1234|2024-01-02 03:04:05.1235|2024-01-02 03:04:05.123456|2024-01-02 03:04:05.1234565|2024-1-2|24-01-02|20240102|20240102030405|2024-01-02T03:04:05|2024-01-03|2023-12-31|2024-00-00|2024-02-29|2024-02-30
2024-13-01|0000-00-00|0000-00-00 00:00:00|9999-12-31|9999-12-31 23:59:59|9999-12-31 23:59:59.9|1970-01-01|1960-01-01|2040-01-01|1970-01-01 02:00:01|2038-01-19 05:14:07|2038-01-19 05:14:08|2024-01-02x||abc|2024|1900|2156|24|70|0|0000|12:34:56|12:34:56.5|12:34:56.789|12:34:56.7895|-01:00:00|00:00:00|0:0:0|25:00:00|838:59:59|838:59:59.5|900:00:00|1 01:00:00|123456|12:34|2024-01-02 03:04:05+02:00|2024-07-02 03:04:05|2024/01/02|2024-01-02 """.replace("\n", "|").split("|")]
TEMPORAL_CONSTANTS += [("I", t) for t in "0 1 20240102 20240103 240102 20240102030405 123456 -10000 2024 24 70 69 100 1900 2156 -1 99991231".split()] + [("D", "20240102.5"), ("D", "2024.5"), ("D", "20240102030405.123"), ("D", "123456.5"), ("E", "20240102e0"), ("E", "2024e0")]
WORDS = ["", " ", "a", "A", "a ", "a\t", "á", "Á", "aa", "ab", "b", "ß", "ss", "s", "æ", "ae", "é", "É", "e", "z", "å", "Å", "ö", "o", "ñ", "1", "10", "9", "_", "abcd", "abcde", "日", "本", "😀", "😁", "a\u0301", "İ", "i", "ı", "ÿ", "€", "\x01", "a\x01", "가", "각", "ᄀ", "Σ", "ς", "σ", "ﬁ", "fi", "\u200b", "a\u200b", "Ⅷ", "VIII", "a b", "a  b"]
STRINGS = [(kind, collation) for collation in ("utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_0900_ai_ci", "latin1_swedish_ci") for kind in ("char(4)", "varchar(30)", "varchar(4)", "text")]
BINARIES = ["binary(4)", "varbinary(4)", "varbinary(30)", "blob"]
BYTES = ["", "00", "61", "6100", "61000000", "62", "6162", "61626364", "6162636465", "41", "FF", "FFFFFFFF", "00000000", "2020", "20", "6120", "C3A9"]
ARITHMETIC = [(op, letter, text) for op in "+-*" for letter, text in [("I", "1"), ("I", "0"), ("I", "-1"), ("I", "127"), ("I", "200"), ("I", "9223372036854775807"), ("I", "9223372036854775808"), ("I", "18446744073709551615"), ("D", "0.5"), ("D", "-1.25"), ("D", "0.005"), ("D", "99999999999999999999.5"), ("E", "1.5e0"), ("E", "1e10"), ("T", b"1")]]
WIDTHS = ["tinyint(1)", "tinyint", "tinyint unsigned", "smallint", "smallint unsigned", "mediumint", "mediumint unsigned", "int", "int unsigned", "int(5)", "int(5) zerofill", "int zerofill", "bigint", "bigint unsigned", "decimal(5,2)", "decimal(5,2) unsigned", "decimal(10,0)", "decimal(65,30)", "decimal(8,3) zerofill",
          "float", "float unsigned", "float zerofill", "double", "double unsigned", "double zerofill", "date", "time", "time(1)", "time(6)", "datetime", "datetime(1)", "datetime(6)", "timestamp", "timestamp(3)", "year", "binary(1)", "binary(255)", "varbinary(1)", "varbinary(300)", "tinyblob", "blob", "mediumblob", "longblob"]
TEXT_WIDTHS = ["char(1)", "char(255)", "varchar(1)", "varchar(20)", "varchar(300)", "varchar(16000)", "tinytext", "text", "mediumtext", "longtext"]
COLLATIONS = ["utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_0900_ai_ci", "latin1_swedish_ci", "utf8mb3_general_ci", "ascii_general_ci", "latin1_bin"]


def literal(letter, value):
    return {"T": lambda: quoted(value), "X": lambda: b"x'" + value.encode() + b"'"}.get(letter, lambda: value.encode())()


def create(server, definition, collation):
    server.query("SET NAMES utf8mb4")
    server.query("DROP TABLE IF EXISTS t")
    charset = "" if collation == "-" else f" COLLATE {collation}"
    key = "(20)" if definition.endswith(("text", "blob")) else ""
    server.query(f"CREATE TABLE t (id INT PRIMARY KEY, c {definition}{charset} NULL, i {definition}{charset} NULL, KEY(i{key}))")


def compared(server, value):
    """A row of < = >, by three ways to ask."""
    rows = server.query(b"SELECT c < " + value + b", c = " + value + b", c > " + value + b" FROM t ORDER BY id")[1]
    warned = server.warning_count
    direct = "".join("<" if r[0] == b"1" else "=" if r[1] == b"1" else ">" if r[2] == b"1" else "N" for r in rows)
    for column in (b"c", b"i"):
        found = ["N"] * len(rows)
        for sign in b"<=>":
            for (row,) in server.query(b"SELECT id FROM t WHERE %s %c %s" % (column, sign, value))[1]:
                found[int(row)] = chr(sign)
            warned += server.warning_count
        if "".join(found) != direct:
            return "?"
    return "W" if warned else direct


def compare(server, out, definition, collation, rows, constants):
    create(server, definition, collation)
    out.write(f"@\t{definition}\t{collation}\n")
    server.query("SET sql_mode='', time_zone='+02:00'")
    kept = 0
    for value in rows:
        server.query(b"INSERT INTO t VALUES (%d, %s, %s)" % (kept, value, value))
        kept += 1
    for (cell,) in server.query("SELECT c FROM t ORDER BY id")[1]:
        out.write(f"r\t{escape(cell)}\n")
    out.write("o\t" + " ".join(row[0].decode() for row in server.query("SELECT id FROM t ORDER BY c, id")[1]) + "\n")
    server.query("SET sql_mode='STRICT_TRANS_TABLES'")
    for letter, value in constants:
        shown = escape(value) if letter == "T" else value
        try:
            outcome = compared(server, literal(letter, value))
        except ServerError as error:
            outcome = f"!{error.code}"
        out.write(f"k\t{letter}{shown}\t{outcome}\n")


def compute(server, out, rows, operations=ARITHMETIC):
    for row in range(len(rows)):
        for op, letter, value in operations:
            try:
                server.query(b"UPDATE t SET c = c %s %s WHERE id = %d" % (op.encode(), literal(letter, value), row))
                warnings = server.warnings()
                cell = server.query(f"SELECT c FROM t WHERE id = {row}")[1][0][0]
                server.query(f"UPDATE t SET c = i WHERE id = {row}")
                outcome = "=" + escape(cell) + "".join(f"\t{level[0]}{code} {message(text)}" for level, code, text in warnings)
            except ServerError as error:
                outcome = f"!{error.code} {error.state} {message(error.message)}"
            shown = escape(value) if letter == "T" else value
            out.write(f"a\t{row}\t{op}\t{letter}{shown}\t{outcome}\n")


def wire(column):
    return ",".join(map(str, column.wire()))


def total(server, out, rows):
    for count in range(1, len(rows) + 1):
        for increment in (4, 0, 7, 30):
            server.query(f"SET div_precision_increment={increment}")
            columns, ((total, average),) = server.query(f"SELECT SUM(c), AVG(c) FROM t WHERE id < {count}")
            out.write(f"s\t{count}\t{increment}\t{escape(total)}\t{wire(columns[0])}\t{escape(average)}\t{wire(columns[1])}\n")
    server.query("SET div_precision_increment=4")


def describe(server, out):
    definitions = [(definition, "-") for definition in WIDTHS] + [(definition, collation) for collation in COLLATIONS for definition in TEXT_WIDTHS]
    for definition, collation in definitions:
        try:
            create(server, definition, collation)
        except ServerError:
            continue
        out.write(f"@\t{definition}\t{collation}\n")
        for names, results, number in (("utf8mb4", "utf8mb4", 255), ("utf8mb4", "latin1", 8), ("latin1", "latin1", 8), ("utf8mb4", "utf8mb3", 33), ("utf8mb4", "NULL", 0), ("utf8mb4", "binary", 63)):
            server.query(f"SET NAMES {names}")
            server.query(f"SET character_set_results={results}")
            column = server.query("SELECT c FROM t")[0][0]
            if results == "utf8mb4":
                number = 45 if server.is_mariadb else 255
            out.write(f"w\t{number}\t{wire(column)}\n")
    server.query("SET NAMES utf8mb4")


def near(rnd, row):
    """A constant like a row."""
    if "e" in row:
        return ("E", row)
    text = row.rstrip("0").rstrip(".") if "." in row and rnd.random() < 0.3 else row
    if rnd.random() < 0.4:
        text += rnd.choice(["0", "1", "9"]) if "." in text else rnd.choice([".0", ".5", ".49", ".000001"])
    if text in ("", "-"):
        text = "0"
    if rnd.random() < 0.3:
        return ("T", text.encode())
    return ("E", text + "e0") if rnd.random() < 0.3 else ("D" if "." in text else "I", text)


def random_table(server, out, rnd):
    kind = rnd.choice(["integer", "decimal", "real", "temporal", "string", "string"])
    if kind == "string":
        collation = rnd.choice(["utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_bin", "latin1_swedish_ci"] + ([] if server.is_mariadb else ["utf8mb4_0900_ai_ci"] * 3))
        letters = rnd.choice(["aAbB \táÁßsSeé", "aA日本語カヵガか가각가", "aæÆœﬁ\u0301\u0308eE \u200b", "😀😁aA\uffff𝒜ª²"])
        if "latin1" in collation:
            letters = "aAbB \táÁßsSeéÿ€üÜ"
        words = ["".join(rnd.choice(letters) for _ in range(rnd.randrange(8))) for _ in range(24)]
        definition = rnd.choice(["varchar(20)", "char(20)", "varchar(8)", "text"])
        rows = [quoted(word.encode()) for word in words[:16]]
        return compare(server, out, definition, collation, rows, [("T", word.encode()) for word in words])
    if kind == "temporal":
        definition = rnd.choice(list(TEMPORALS))
        rows = ["%04d-%02d-%02d %02d:%02d:%02d.%06d" % (rnd.randrange(1971, 2038), rnd.randrange(1, 13), rnd.randrange(1, 29), rnd.randrange(24), rnd.randrange(60), rnd.randrange(60), rnd.choice([0, 0, 500000, 123456])) for _ in range(10)]
        if definition.startswith("time") and "stamp" not in definition:
            rows = [row[11:] for row in rows]
        if definition == "year":
            rows = [row[:4] for row in rows]
        constants = [("T", rnd.choice([row, row[:10], row[:19], row[:16]]).encode()) for row in rows] + [("T", some_text(rnd, "temporal")) for _ in range(25)] + [("I", row.replace("-", "").replace(":", "").replace(" ", "").split(".")[0].lstrip("0") or "0") for row in rows]
        return compare(server, out, definition, "-", [b"'" + row.encode() + b"'" for row in rows], constants)
    if kind == "integer":
        definition = rnd.choice(list(INTEGERS))
        rows = INTEGERS[definition].split() + [str(rnd.randrange(128)) for _ in range(4)]
    elif kind == "decimal":
        precision = rnd.randrange(1, 66)
        scale = rnd.randrange(min(precision, 30) + 1)
        definition = f"decimal({precision},{scale})"
        whole = precision - scale
        rows = [rnd.choice(["", "-"]) + (str(rnd.randrange(10 ** rnd.randrange(whole + 1))) if whole else "0") + (f".{rnd.randrange(10 ** scale):0{scale}d}" if scale else "") for _ in range(10)]
    else:
        definition = rnd.choice(list(REALS))
        rows = [f"{'' if 'unsigned' in definition else rnd.choice(['', '-'])}{rnd.randrange(1000)}.{rnd.randrange(100)}" for _ in range(8)] + REALS[definition].split()
    constants = [near(rnd, row) for row in rows for _ in range(2)] + [some_number(rnd) for _ in range(20)]
    compare(server, out, definition, "-", [row.encode() for row in rows], constants)
    compute(server, out, rows, [(rnd.choice("+-*"), *constant) for constant in rnd.sample(constants, 8)])
    total(server, out, rows)


def main():
    server = Server(sys.argv[1])
    server.query("CREATE DATABASE IF NOT EXISTS db")
    server.query("USE db")
    if len(sys.argv) > 3:
        rnd = random.Random(sys.argv[3])
        with open(sys.argv[2], "w") as out:
            for _ in range(80):
                random_table(server, out, rnd)
        return
    with open(sys.argv[2], "w") as out:
        for types in (INTEGERS, DECIMALS, REALS):
            for definition, rows in types.items():
                rows = rows.split()
                compare(server, out, definition, "-", [row.encode() for row in rows], NUMBERS)
                compute(server, out, rows)
                total(server, out, rows)
        for definition, rows in TEMPORALS.items():
            compare(server, out, definition, "-", [b"'" + row.encode() + b"'" for row in rows], TEMPORAL_CONSTANTS)
        for definition, collation in STRINGS:
            if collation == "utf8mb4_0900_ai_ci" and server.is_mariadb:
                continue
            short = "(4)" in definition
            words = [word for word in WORDS if not short or len(word) <= 4]
            if "latin1" in collation:
                words = [word for word in words if all(c < "\x80" or "\xa0" <= c <= "\xff" or c == "€" for c in word)]
            constants = [("T", word.encode()) for word in WORDS] + [("I", "1"), ("D", "1.0"), ("X", "61")]
            compare(server, out, definition, collation, [quoted(word.encode()) for word in words], constants)
        for definition in BINARIES:
            rows = [cell for cell in BYTES if "(4)" not in definition or len(cell) <= 8]
            constants = [("X", cell) for cell in BYTES] + [("T", word.encode()) for word in WORDS[:12]]
            compare(server, out, definition, "-", [f"x'{cell}'".encode() for cell in rows], constants)
        describe(server, out)


if __name__ == "__main__":
    main()
