#!/usr/bin/env python3
"""Records what real servers store: type x literal x sql_mode -> cell, error or warnings.

    record_store.py SOCKET FILE [SEED]

Writes the corpus that tests/store_corpus.rs replays. A group begins with a line

    @ <type> <collation or -> <sql_mode or -> <time zone> <ignore: 0 or 1>

and each case is a line of tab-separated fields: the input (a letter, then its text: I integer, D decimal, E double,
T string in utf8mb4, L string in latin1, X hexadecimal literal, P temporal parameter), the outcome (`=` and the text cell, `N` for
NULL, `!` and number, state and text of the error), then for stored values the binary cell in hexadecimal, then
the warnings. Bytes outside printable ASCII are escaped as \\xHH, long runs of one byte as \\*HH{count}. In messages ~ stands for
" for column 'c' at row 1" and ^ for the same with the column's full name.
"""

import random
import re
import struct
import sys

from server import Server, ServerError

INTS = """0 1 -1 5 12 69 70 99 100 101 127 128 255 256 -128 -129 1900 1901 1955 2024 2155 2156 9999 32767 32768 -32768 -32769 65535
65536 123456 240102 8385959 8390000 8388607 8388608 -8388608 -8388609 16777215 16777216 16777217 20240102 20240230 20241301 99991231
101 10101 -123456 123460 126000 2147483647 2147483648 -2147483648 -2147483649 4294967295 4294967296 240102030405 20240102030405 20240102250000
9007199254740993 9223372036854775807 9223372036854775808 -9223372036854775808 18446744073709551615""".split()
DECIMALS = """0.0 -0.0 0.4 0.5 -0.5 1.5 -1.5 2.5 1.005 -0.001 0.0049 0.005 99.994 99.995 123.456 127.4 127.5 -128.5 255.5 999.99 999.994 999.995
123456789.987654321 -9223372036854775809 18446744073709551615.4 18446744073709551616 99999999999999999999999999999999999999.5 1.50 00.5
20240102.4 20240102.7 20240102030405.5 20240102030405.6789 123456.789 -123456.5 2024.5 0.1 0.30000000000000004
99999999999999999999999999999999999999999999999999999999999999999""".split()
DOUBLES = """0e0 -0e0 1e0 1.5e0 2.5e0 -2.5e0 3.5e0 0.5e0 0.1e0 1e2 1e10 1e14 1e15 1e16 1e18 1e19 1e20 1e-5 1e-14 1e-15 1e-16 1e100 -1e100 3.4e38
3.5e38 -3.5e38 1.7976931348623157e308 123456789.123e0 0.30000000000000004e0 1.23456789012345678e5 127.5e0 128.5e0 9007199254740993e0 9223372036854774784e0 9223372036854775808e0 18446744073709549568e0 -9223372036854775808e0 20240102e0
20240102030405e0 123456.5e0 16777217e0 999.995e0 99.995e0 1e-45 1.4e-45 5e-324""".split()
NUMBER_TEXTS = [
    b"", b" ", b"0", b"1", b" 1", b"1 ", b"\t5", b"5\n", b"1.5", b"-1.5", b"2.5", b"0.5", b"-0.5", b"-0", b"abc", b"1abc", b"1 abc", b"1e2",
    b"1E2", b"1e", b"1e+", b"1e-", b"1ex", b"1e2x", b".5", b"5.", b".", b"-", b"+", b"+5", b"--5", b"0x10", b"1.5.5", b"127", b"128", b"-129", b"255",
    b"256", b"300x", b"99999", b"2147483648", b"9223372036854775807", b"9223372036854775808", b"18446744073709551615", b"18446744073709551616",
    b"99999999999999999999999999", b"-99999999999999999999999999", b"1e400", b"1e-400", b"1e39", b"nan", b"inf", b"1\x00", b"12,5", b"0.1", b"0.125", b"1.005",
    b"99.995", b"999.995", b"123456789012345678.5", b"1234567890123456789.5", b"0.9999999999999999999", b"1e-2", b"150e-2", b"1.5e1", b"15e-1", b"  12  ", b"12\xc2\xa0",
    b"\xd9\xa1", b"\xff", b"0.00000000000000000000000000000000000000001", b"3.5e38", b"1e308x", b"1e 2", b"1 2", b"00012", b"000000000000000000000000000012",
    b"1.00", b"1.00 ", b"1.001x", b"\xa01", b"'1", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
]
STRING_TEXTS = [
    b"", b" ", b"     ", b"        ", b"a", b"a ", b" a", b"a    ", b"abcde", b"abcde ", b"abcde    ", b"abcdef", b"abcd ef", b"abcde\tf", b"abcde f", b"abcde\t", b"abcde\n",
    b"abcde\x00", b"a\x00", b"\x00", b"ab\x00cd", b"Stra\xc3\x9fe", b"\xc3\xa9", b"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", b"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9",
    b"\xe2\x82\xac", b"\xe6\x97\xa5\xe6\x9c\xac", b"\xf0\x9f\x98\x80", b"a\xf0\x9f\x98\x80b", b"\xf0\x9f\x98\x80" * 6, b"\xff", b"a\xe9b", b"ab\xe9", b"\xc3", b"a\xc3", b"ab\xc3\xa9\xffxyz",
    b"abcdef\xff", b"abcde\xff", b"abcde \xff", b"\xed\xa0\x80", b"a\xc0\x80", b"ab\xf0\x9f\x98", b"\xff\xfe\xfd\xfc\xfb\xfa\xf9", b"\xffabcdefgh", b"\xff\xffabc", b"abcde  \xe6\x97\xa5",
    b"\xe6\x97\xa5" * 90, b"x" * 255, b"x" * 256, b"x" * 256 + b" ", b"x" * 255 + b"   ", b"\xc3\xa9" * 127, b"\xc3\xa9" * 128, b"a\xc3\xa9" * 85, b"a\xc3\xa9" * 86, b"\x80", b"\xc2\x81", b"\xc2\x80", b"quote'\"\\",
    b"\xc3\xa9\xe6\x97\xa5", b"\xe6\x97\xa5" * 7, b"abcd\xe6\x97\xa5", b"abcde\xe6\x97\xa5", b"123", b"x" * 65536,
]
LATIN1_TEXTS = [b"", b"a", b"\xe9", b"\x80", b"\x81", b"a\xe9\xe9\xe9\xe9", b"a\xe9\xe9\xe9\xe9\xe9", b"\xff" * 5, b"abcde   ", b"abcdef", b"\xa0", b"abcde\xa0", b"\xe9" * 127, b"\xe9" * 128, b"\x81\x8d\x8f\x90\x9d"]
HEXES = ["", "00", "41", "6100", "0041", "E9", "61FF62", "FF", "FFFF", "0100", "FFFFFFFFFFFFFFFF", "7FFFFFFFFFFFFFFF", "010000000000000000", "0000000000000000000001", "616263646566", "6162636465", "616263646520", "C3A9", "F09F9880"]
TEMPORAL_TEXTS = [
    t.encode() for t in """2024-01-02|2024-1-2|24-1-2|69-1-2|70-1-2|00-1-2|0-1-2|20240102|240102|24010|2401|2024|2024-01-02 03:04:05|2024-01-02T03:04:05|2024-01-02t03:04:05
2024-01-02  03:04:05|2024-01-02 03:04:05.1|2024-01-02 03:04:05.123456|2024-01-02 03:04:05.1234565|2024-01-02 03:04:05.1234564|2024-01-02 03:04:05.9999999|2024-01-02 23:59:59.5|2024-01-02 23:59:59.9999996
2024-12-31 23:59:59.999999|2024-02-28 23:59:59.6|2024-02-30|2024-02-29|2023-02-29|1900-02-29|2024-04-31|2024-00-10|2024-01-00|2024-00-00|0000-00-00|0000-00-00 00:00:00|0000-00-00 01:02:03|0000-01-01|0000-01-00
0001-01-01|0099-01-01|0100-01-01|9999-12-31|9999-12-31 23:59:59|9999-12-31 23:59:59.5|9999-12-31 23:59:59.9999999|10000-01-01|2024-13-01|2024-01-32|2024-99-99|2024-01-02 24:00:00|2024-01-02 25:00:00|2024-01-02 03:60:00|2024-01-02 03:04:60|2024-01-02 03|2024-01-02 03:04
2024-01-02 3:4:5|2024-01-02 03:04:05.|2024-01-02 03:04:05 |2024-01-02 03:04:05x|2024-01-02 03:04:05 x|2024-01-02x|2024-01-02 x|2024-01-02-|2024-01-02:|2024-01-02 :|2024-01-02 03:|2024/01/02|2024.01.02|2024^01^02|2024:01:02|2024 01 02|2024-01.02|2024--01-02|2024-01-02 03.04.05|2024-01-02 03-04-05|2024@01@02@03@04@05|2024-01-02@03:04:05
 2024-01-02|	2024-01-02|2024-01-02 |20240102030405|20240102030405.5|20240102T030405|240102030405|240102030405.25|2401020304|202401020304|20240102 030405|2024-01-02 030405|2024-01-02 0304|2024-01|2024-01-|2024-|-2024-01-02|2024-01-02 03:04:05+02:00|2024-01-02 03:04:05-05:30|2024-01-02 03:04:05.5+02:00|2024-01-02 03:04:05Z|2024-01-02T03:04:05Z|2024-01-02T03:04:05.123Z|2024-01-02T03:04:05.123+00:00
2024-01-02+02:00|2024-01-02 03:04:05+2:00|2024-01-02 03:04:05+15:00|2024-01-02 03:04:05 +02:00|1969-12-31 23:59:59|1970-01-01 00:00:00|1970-01-01 00:00:01|1970-01-01 01:00:00|1970-01-01 01:00:01|1970-01-01 02:00:01|1970-01-01|2038-01-19 03:14:07|2038-01-19 03:14:07.5|2038-01-19 03:14:07.999999|2038-01-19 03:14:08|2038-01-19 04:14:07|2038-01-19 04:14:08|2038-01-19 05:14:08|2106-02-07 06:28:15|2106-02-07 06:28:16|1901-12-13 20:45:52|2024-03-31 01:59:59|2024-03-31 02:00:00|2024-03-31 02:30:00|2024-03-31 03:00:00|2024-10-27 01:59:59|2024-10-27 02:00:00|2024-10-27 02:30:00|2024-10-27 03:00:00|2024-07-01 12:00:00
12:34:56|12:34|12|1|1234|123456|1234567|12345678|-12:34:56|+12:34:56|- 12:34:56|838:59:59|838:59:59.0|838:59:59.5|838:59:59.999999|838:59:58.9999999|839:00:00|-838:59:59|-838:59:59.5|-839:00:00|850:00:00|1 12:34:56|34 22:59:59|34 23:00:00|35 00:00:00|-1 12:34:56|1 12|1 12:34|1 |12:34:56.7|12:34:56.123456|12:34:56.1234565|12:34:56.9999999|12:34:56.|23:59:59.9999999|12:60:00|12:34:60|12:59:59.9999999|59.5|.5|0.5|10:11:12abc|10:11:12 abc|10:11:12 |1:2:3|1:2|::|12:|:12|12:34:|12:34:56:78|99:99:99|100:00:00|0:0:0|00:00:00|-00:00:00|-0:0:0.5|-00:00:00.0000004|8385959|8390000|-8385959|995959|6060|60|61|1260|0|00|000000|1e3|1.5|1.9
abc|now|| |-|x2024-01-02|2024-01-0x|2024-0x-02|12:3x|12x|2024-01-02 03:04:05.12x|2024-01-02 03:04:05.x|1901|1900|2155|2156|69|70|99|100|0000|00|0|5|05|005|2024.5|2024x| 2024|2024 |20245|-1|1e3|+2024|202""".replace("\n", "|").split("|")
] + [b"2024-01-02\x00", b"2024-01-02\xff", b"2024\xe2\x80\x9001-02", b"12:34:56\xff"]
PARAMETERS = [
    ("date", 2024, 1, 2, 0, 0, 0, 0), ("date", 0, 0, 0, 0, 0, 0, 0), ("date", 2024, 2, 30, 0, 0, 0, 0), ("date", 2024, 0, 5, 0, 0, 0, 0), ("date", 9999, 12, 31, 0, 0, 0, 0),
    ("datetime", 2024, 1, 2, 3, 4, 5, 0), ("datetime", 2024, 1, 2, 3, 4, 5, 600000), ("datetime", 2024, 1, 2, 23, 59, 59, 999999), ("datetime", 0, 0, 0, 0, 0, 0, 0), ("datetime", 2024, 1, 2, 0, 0, 0, 0),
    ("datetime", 2024, 2, 30, 1, 2, 3, 0), ("datetime", 2024, 1, 2, 25, 0, 0, 0), ("datetime", 9999, 12, 31, 23, 59, 59, 999999), ("datetime", 1960, 1, 2, 3, 4, 5, 0), ("datetime", 2040, 1, 2, 3, 4, 5, 0),
    ("time", 0, 0, 0, 12, 34, 56, 0), ("time", 0, 0, 0, 12, 34, 56, 789000), ("time", 0, 0, 0, -12, 34, 56, 0), ("time", 0, 0, 0, 100, 1, 2, 0), ("time", 0, 0, 0, 838, 59, 59, 999999), ("time", 0, 0, 0, 900, 0, 0, 0), ("time", 0, 0, 0, 0, 0, 0, 0),
]
KINDS = {"date": 10, "datetime": 12, "time": 11}

INTEGER_TYPES = ["tinyint", "tinyint unsigned", "smallint", "smallint unsigned", "mediumint", "mediumint unsigned", "int", "int unsigned", "bigint", "bigint unsigned", "int(5) zerofill"]
DECIMAL_TYPES = ["decimal(5,2)", "decimal(5,2) unsigned", "decimal(10,0)", "decimal(20,6)", "decimal(65,30)", "decimal(65,0)", "decimal(8,3) zerofill"]
REAL_TYPES = ["float", "float unsigned", "double", "double unsigned", "float zerofill", "double zerofill"]
STRING_TYPES = [
    ("char(5)", "utf8mb4_general_ci"), ("varchar(5)", "utf8mb4_bin"), ("tinytext", "utf8mb4_general_ci"), ("text", "utf8mb4_general_ci"), ("char(5)", "latin1_swedish_ci"), ("varchar(5)", "latin1_swedish_ci"),
    ("tinytext", "latin1_swedish_ci"), ("varchar(5)", "utf8mb3_general_ci"), ("varchar(5)", "ascii_general_ci"), ("varchar(300)", "utf8mb4_unicode_ci"), ("binary(5)", "-"), ("varbinary(5)", "-"), ("tinyblob", "-"), ("blob", "-"),
]
TEMPORAL_TYPES = ["date", "datetime", "datetime(2)", "datetime(6)", "time", "time(2)", "time(6)", "timestamp", "timestamp(3)", "year"]
NO_ZERO = "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE"


def escape(data):
    def run(match):
        byte, count = match[0][0], len(match[0])
        if count >= 16:
            return f"\\*{byte:02X}{{{count}}}".encode()
        return match[0] if 0x20 <= byte < 0x7F and byte != 0x5C else f"\\x{byte:02X}".encode() * count

    return re.sub(rb"(?s)(.)\1*", run, data).decode()


def message(data):
    return escape(data.replace(b" for column 'c' at row 1", b"~").replace(b" for column `db`.`t`.`c` at row 1", b"^"))


def quoted(data):
    return b"'" + data.replace(b"\\", b"\\\\").replace(b"'", b"\\'").replace(b"\0", b"\\0") + b"'"


def parameter(kind, y, mo, d, h, mi, s, us):
    if kind == "time":
        body = struct.pack("<BIBBBI", h < 0, abs(h) // 24, abs(h) % 24, mi, s, us)
    elif kind == "date":
        body = struct.pack("<HBB", y, mo, d)
    else:
        body = struct.pack("<HBBBBBI", y, mo, d, h, mi, s, us)
    return (KINDS[kind], 0, bytes([len(body)]) + body)


def inputs(kind):
    numbers = [("I", t) for t in INTS] + [("D", t) for t in DECIMALS] + [("E", t) for t in DOUBLES]
    if kind == "string":
        yield from numbers
        yield from [("T", t) for t in STRING_TEXTS] + [("L", t) for t in LATIN1_TEXTS]
    elif kind == "temporal":
        yield from [("I", t) for t in INTS] + [("D", "20240102.4"), ("E", "20240102e0"), ("X", "41")] + [("P", p) for p in PARAMETERS]
        yield from [("T", t) for t in TEMPORAL_TEXTS]
    else:
        yield from numbers
        yield from [("T", t) for t in NUMBER_TEXTS] + [("T", t) for t in TEMPORAL_TEXTS[:6]]
    if kind != "temporal":
        yield from [("X", t) for t in HEXES]


def some_number(rnd):
    digits = "".join(rnd.choice("0123456789") for _ in range(rnd.choice([1, 1, 2, 3, 3, 5, 8, 10, 14, 18, 19, 20, 25])))
    kind = rnd.choice("IIDDDE")
    sign = rnd.choice(["", "", "-"])
    if kind == "I":
        digits = digits.lstrip("0") or "0"
        return ("D" if int(digits) >= 1 << 64 else "I", sign + digits)
    fraction = "".join(rnd.choice("0123456789") for _ in range(rnd.choice([1, 2, 3, 6, 9])))
    return ("D", f"{sign}{digits}.{fraction}") if kind == "D" else ("E", f"{sign}{digits}.{fraction}e{rnd.choice(['', '-'])}{rnd.choice([0, 1, 2, 5, 17, 40])}")


def some_text(rnd, kind):
    if kind == "temporal":
        text = rnd.choice([b.decode("latin1") for b in TEMPORAL_TEXTS] + ["%04d-%02d-%02d %02d:%02d:%02d.%06d" % (rnd.choice([0, 1970, 2024, 2038, 9999]), rnd.randrange(14), rnd.randrange(33), rnd.randrange(25), rnd.randrange(61), rnd.randrange(61), rnd.randrange(10**6))] * 60
                          + ["%s%d:%02d:%02d.%d" % (rnd.choice(["", "-"]), rnd.choice([0, 1, 23, 100, 838]), rnd.randrange(60), rnd.randrange(60), rnd.randrange(10**7))] * 40)[: rnd.choice([8, 10, 16, 19, 30])]
    elif kind == "number":
        text = some_number(rnd)[1]
    else:
        text = "".join(rnd.choice(["a", "b", " ", "  ", "é", "ß", "€", "日", "😀", "\t", "\0", "1", "x" * 40, "é" * 30]) for _ in range(rnd.randrange(12)))
    data = bytearray(text.encode())
    for _ in range(rnd.choice([0, 0, 0, 1, 2])):
        place = rnd.randrange(len(data) + 1)
        noise = rnd.choice(b" 0159-+.:eETZx/\t\xff\xc3\xa9" if kind != "string" else b" ax\t\xff\xc3\xa9\xe2\xf0")
        data[place : place + rnd.choice([0, 1])] = bytes([noise])
    return bytes(data)


def random_inputs(rnd, kind, count=120):
    for _ in range(count):
        if kind == "string" and rnd.random() < 0.1:
            yield ("L", bytes(rnd.randrange(1, 256) for _ in range(rnd.randrange(9))))
        elif rnd.random() < (0.5 if kind == "number" else 0.15):
            yield some_number(rnd)
        else:
            yield ("T", some_text(rnd, kind))


def attempt(server, letter, value, ignore):
    verb = "INSERT IGNORE INTO t VALUES (" if ignore else "INSERT INTO t VALUES ("
    if letter == "P":
        server.prepared(verb + "?)", [parameter(*value)])
        return
    literal = {
        "T": lambda: quoted(value), "L": lambda: quoted(value), "X": lambda: b"x'" + value.encode() + b"'"
    }.get(letter, lambda: value.encode())()
    server.query(verb.encode() + literal + b")")


def record(server, out, kind, definition, collation, mode, zone, ignore, given=None):
    server.query("SET sql_mode='', time_zone='+00:00'")
    server.query("DROP TABLE IF EXISTS t")
    charset = "" if collation == "-" else f" COLLATE {collation}"
    server.query(f"CREATE TABLE t (c {definition}{charset} NULL)")
    server.query(f"SET sql_mode='{'' if mode == '-' else mode}', time_zone='{zone}', timestamp=1700000000, autocommit=0")
    out.write(f"@\t{definition}\t{collation}\t{mode}\t{zone}\t{int(ignore)}\n")
    for letter, value in given or inputs(kind):
        server.query("SET NAMES latin1" if letter == "L" else "SET NAMES utf8mb4")
        shown = escape(value) if letter in "TL" else " ".join(map(str, value)) if letter == "P" else value
        try:
            attempt(server, letter, value, ignore)
        except ServerError as error:
            out.write(f"{letter}{shown}\t!{error.code} {error.state} {message(error.message)}\n")
            continue
        warnings = server.warnings()
        server.query("SET NAMES utf8mb4")
        cell = server.query("SELECT c FROM t")[1][0][0]
        raw = b"" if cell is None else server.prepared("SELECT c FROM t")[1][0]
        server.query("ROLLBACK")
        if len(raw) > 600:
            out.write(f"{letter}{shown}\t#{len(cell)}\t")
        else:
            out.write(f"{letter}{shown}\t" + ("N" if cell is None else "=" + escape(cell)) + "\t" + raw.hex())
        out.write("".join(f"\t{level[0]}{code} {message(text)}" for level, code, text in warnings) + "\n")


def main():
    server = Server(sys.argv[1])
    server.query("CREATE DATABASE IF NOT EXISTS db")
    server.query("USE db")
    fractional = "TIME_ROUND_FRACTIONAL" if server.is_mariadb else "TIME_TRUNCATE_FRACTIONAL"
    if len(sys.argv) > 3:
        rnd = random.Random(sys.argv[3])
        with open(sys.argv[2], "w") as out:
            for _ in range(100):
                kind, types = rnd.choice([("number", INTEGER_TYPES + DECIMAL_TYPES + REAL_TYPES), ("string", STRING_TYPES), ("temporal", TEMPORAL_TYPES)])
                definition, collation = rnd.choice([(name, "-") if isinstance(name, str) else name for name in types])
                modes = [name for name in ("STRICT_TRANS_TABLES", "NO_ZERO_DATE", "NO_ZERO_IN_DATE", "ALLOW_INVALID_DATES", fractional) if rnd.random() < 0.4]
                given = list(random_inputs(rnd, kind))
                record(server, out, kind, definition, collation, ",".join(modes) or "-", rnd.choice(["+02:00", "+00:00", "-05:30", "Europe/Berlin", "America/New_York"]), rnd.random() < 0.2, given)
        return
    with open(sys.argv[2], "w") as out:
        for kind, types in (("number", INTEGER_TYPES + DECIMAL_TYPES + REAL_TYPES), ("string", STRING_TYPES), ("temporal", TEMPORAL_TYPES)):
            for at, definition in enumerate(types):
                collation = "-"
                if kind == "string":
                    definition, collation = definition
                record(server, out, kind, definition, collation, "STRICT_TRANS_TABLES", "+02:00", False)
                if kind != "number" or "int" not in definition or definition in ("tinyint unsigned", "int unsigned", "bigint", "bigint unsigned"):
                    record(server, out, kind, definition, collation, "-", "+02:00", False)
                if at % 4 == 0:
                    record(server, out, kind, definition, collation, "STRICT_TRANS_TABLES", "+02:00", True)
                if definition in ("date", "datetime(6)", "time", "timestamp"):
                    record(server, out, kind, definition, collation, NO_ZERO, "+02:00", False)
                if definition in ("date", "datetime(2)", "timestamp(3)"):
                    record(server, out, kind, definition, collation, "NO_ZERO_DATE,NO_ZERO_IN_DATE", "+02:00", False)
                    record(server, out, kind, definition, collation, NO_ZERO, "+02:00", True)
                    record(server, out, kind, definition, collation, "ALLOW_INVALID_DATES," + fractional, "+02:00", False)
                    record(server, out, kind, definition, collation, "STRICT_TRANS_TABLES,ALLOW_INVALID_DATES", "+02:00", False)
                if definition in ("timestamp", "timestamp(3)"):
                    record(server, out, kind, definition, collation, "STRICT_TRANS_TABLES", "Europe/Berlin", False)
                    record(server, out, kind, definition, collation, "-", "Europe/Berlin", False)
                if definition in ("time(2)", "datetime"):
                    record(server, out, kind, definition, collation, "STRICT_TRANS_TABLES," + fractional, "+02:00", False)
        # Column names and rows do not vary: every message speaks of column c of db.t at row 1.


if __name__ == "__main__":
    main()
