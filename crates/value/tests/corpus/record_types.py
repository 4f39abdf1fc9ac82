#!/usr/bin/env python3
"""Records ENUM, SET, BIT and JSON, in the forms of record_store.py and record_query.py.

    record_types.py SOCKET STORE_FILE QUERY_FILE
"""

import sys

import record_query as query
import record_store as store
from server import Server

COLORS = "enum('red','Green','blü','3','x y','ß')"
FLAGS = "set('a','B','c d','2','é')"
MANY = "enum(" + ",".join(f"'m{n}'" for n in range(1, 301)) + ")"
BITS = "set(" + ",".join(f"'b{n}'" for n in range(1, 64)) + ")"
ENUMS = [(COLORS, c) for c in ("utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_unicode_ci", "latin1_swedish_ci")] + [(MANY, "utf8mb4_general_ci")]
SETS = [(FLAGS, c) for c in ("utf8mb4_general_ci", "utf8mb4_bin", "latin1_swedish_ci")] + [(BITS, "utf8mb4_general_ci")]
NINE = [("enum('a','b c','é')", "utf8mb4_0900_ai_ci"), ("set('a','b c','é')", "utf8mb4_0900_ai_ci")]

INTS = [("I", t) for t in "0 1 2 3 5 6 7 -1 -5 63 64 31 32 255 256 300 301 65535 65536 4294967295 9223372036854775807 9223372036854775808 18446744073709551615 -9223372036854775808".split()]
DECIMALS = [("D", t) for t in "0.0 1.0 1.4 1.5 2.5 3.0 -1.5 300.0 18446744073709551615.4 18446744073709551616".split()]
DOUBLES = [("E", t) for t in "0e0 1e0 1.5e0 2.9e0 -1e0 3e0 1e10 255e0".split()]
WORDS = ["", " ", "red", "RED", "red ", " red", "green", "blü", "BLÜ", "blu", "BLU", "x y", "x  y", "x y   ", "ß", "ss", "s", "3", "03", "2", "1", "0", "00", " 2", "2 ", "+2", "-1", "7", "6", "99999", "100000", "2x", "2.0", "rot", "a", "A", "b", "B", "a,b", "b,a", "A,B", "a,a", "a,b ", "a ,b", "a, b",
         ",a", "a,", "a,,b", ",", "c d", "a,c d", "a,x", "x", "x,a", "x,y", "2,a", "4", "16", "31", "32", "é", "É", "e", "a,é", "a,e", "m1", "m300", "M300", "m301", "b1,b63", "b63", "18446744073709551615", "18446744073709551616", "9223372036854775808", "日", "😀", "b c", "a,b c", "a\u200b", "ａ", "a，b"]
TEXTS = [("T", w.encode()) for w in WORDS]
LATIN = [("L", b) for b in (b"bl\xfc", b"BL\xdc", b"\xdf", b"\xe9", b"a,\xe9", b"red", b"\x80")]
HEXES = [("X", t) for t in ["", "00", "01", "02", "61", "41", "726564", "612C42", "0100", "FF", "FFFF", "03", "FFFFFFFFFFFFFFFF", "010000000000000000", "0000000000000000000001"]]
BIT_TYPES = ["bit(1)", "bit(3)", "bit(8)", "bit(9)", "bit(16)", "bit(33)", "bit(63)", "bit(64)"]
BIT_TEXTS = [("T", t) for t in (b"", b"\0", b"\1", b"0", b"1", b"a", b"ab", b"abc", b"abcdefgh", b"abcdefghi", b"\0\0\0\0\0\0\0\0a", b"\x7f" * 8, "é".encode())]
JSONS = ["", " ", "1", "-1", "0", "-0", "1.0", "1.50", "-0.0", "1e2", "1E+2", "1e-7", "1e15", "1e16", "123456789012345678", "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "-9223372036854775808", "-9223372036854775809", "0.1", "0.30000000000000004", "1.7976931348623157e308", "1e400", "5e-324", "01", "1.", ".5", "1e", "+1",
         "true", "false", "null", "True", "nul", "nullx", '"a"', '"a', "'a'", '"\\u00e9"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\udc00"', '"\\ud83dx"', '"\\u12"', '"\\x"', '"\\/\\b\\f\\n\\r\\t\\\\\\""', '"\\u0000"', '"\\u0001\\u001f\\u007f"', '"a\tb"', '"a\nb"', '"日本 😀"', "[]", "[ ]", "[1,2]", "[1, 2 ]", "[1 2]", "[1,]", "[,1]", "[1", "]", "{}", "{ }", '{"a":1}', '{"b":1,"a":2}', '{"bb":1,"a":2,"b":3}', '{"a":1,"a":2}', '{"a":1,"b":2,"a":3}',
         '{"a" 1}', '{"a":}', "{a:1}", "{'a':1}", '{"a":1,}', '{"a":1', '{"a":[1,{"b":[]}]}', '{"é":1,"z":2,"😀":3}', '{"":1}', " [1] ", "[1] x", "[1][2]", "\t\n\r [1]\n", "[1.0,1,1e0]", '{"B":1,"a":2}', "abc", "{", "[", '"', "-", "- 1", "[-]", "NaN", "Infinity", "\u00a01", "1 /* c */", "[" * 30 + "]" * 30, "[" * 31 + "]" * 31, "[" * 32 + "]" * 32, "[" * 33 + "]" * 33, "[" * 100 + "]" * 100, "[" * 101 + "]" * 101, '{"a":' * 40 + "1" + "}" * 40]


def store_given(kind):
    if kind == "bit":
        return INTS + DECIMALS + DOUBLES + BIT_TEXTS + HEXES
    if kind == "json":
        return [("T", t.encode()) for t in JSONS] + [("L", b'"\xe9"')] + [("I", "1"), ("X", "31")]
    return INTS + DECIMALS + DOUBLES + TEXTS + LATIN + HEXES


def main():
    server = Server(sys.argv[1])
    server.query("CREATE DATABASE IF NOT EXISTS db")
    server.query("USE db")
    enumerated = ENUMS + SETS + ([] if server.is_mariadb else NINE)
    with open(sys.argv[2], "w") as out:
        for definition, collation in enumerated:
            for mode, ignore in (("STRICT_TRANS_TABLES", False), ("-", False), ("STRICT_TRANS_TABLES", True)):
                store.record(server, out, "", definition, collation, mode, "+00:00", ignore, store_given("enum"))
        for definition in BIT_TYPES:
            for mode, ignore in (("STRICT_TRANS_TABLES", False), ("-", False), ("STRICT_TRANS_TABLES", True)):
                store.record(server, out, "", definition, "-", mode, "+00:00", ignore, store_given("bit"))
        for mode in ("STRICT_TRANS_TABLES", "-"):
            store.record(server, out, "", "json", "-", mode, "+00:00", False, store_given("json"))
    with open(sys.argv[3], "w") as out:
        for definition, collation in enumerated:
            rows = {COLORS: ["red", "green", "blü", "3", "x y", "ß"], FLAGS: ["", "a", "B", "a,B", "c d", "a,c d", "2", "é", "a,é", "a,B,c d,2,é"], MANY: ["m1", "m2", "m300"], BITS: ["", "b1", "b63", "b1,b2,b62,b63"]}.get(definition, ["a", "b c", "é"])
            cells = [store.quoted(row.encode()) for row in rows]
            if definition.startswith("enum"):
                cells = [b"0"] + cells
            query.compare(server, out, definition, collation, cells, INTS + DECIMALS + DOUBLES + TEXTS)
        for definition in BIT_TYPES:
            bits = int(definition[4:-1])
            most = (1 << bits) - 1
            cells = [b"%d" % n for n in sorted({0, 1, most // 2, most})]
            query.compare(server, out, definition, "-", cells, INTS + DECIMALS + DOUBLES + BIT_TEXTS[3:5] + [("X", "01"), ("X", "61"), ("X", "FFFFFFFFFFFFFFFF")])
        query.WIDTHS = BIT_TYPES + ["json"]
        query.TEXT_WIDTHS = [COLORS, FLAGS, MANY, "enum('a')", "set('a','bc')"]
        query.COLLATIONS = ["utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_0900_ai_ci", "latin1_swedish_ci", "utf8mb3_general_ci", "latin1_bin"]
        query.describe(server, out)


if __name__ == "__main__":
    main()
