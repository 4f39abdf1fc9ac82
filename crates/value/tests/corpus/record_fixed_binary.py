#!/usr/bin/env python3
"""Records UUID, INET6 and INET4 of MariaDB, in the forms of record_store.py and record_query.py.

    record_fixed_binary.py SOCKET STORE_FILE QUERY_FILE
"""

import random
import sys

import record_query as query
import record_store as store
from server import Server

UUID = "123e4567-e89b-12d3-a456-426614174000"
NIL = "00000000-0000-0000-0000-000000000000"
ODD_UUIDS = [
    UUID.upper(), UUID.replace("-", ""), "1-2-3e4567e89b12d3a4564266141740----00", "{" + UUID + "}", " " + UUID, UUID + " ", "-" + UUID, UUID + "-", UUID[:-1], UUID + "0", "-" + UUID[1:], "urn:uuid:" + UUID,
    "123e4567e89b12d3a45642661417400g", "", " ", "x", "0", "0123456789abcdef", "-" * 40, "1" * 31 + "-", "it's", "ä", UUID + "ä", "a" * 60, "a" * 120,
]
INET6 = """:: ::1 1:: fe80::1 ::1.2.3.4 ::ffff:1.2.3.4 64:ff9b::1.2.3.4 ::102 ::1:2 0:0:1:: 1:0:0:2:0:0:0:3 1:0:0:2:0:0:3:4 ABCD::00FF 1:2:3:4:5:6:7:8 0:0:0:0:0:0:0:0 ::ffff:0:1.2.3.4 ::ffff:0:0 ::0.0.0.1 ::0.1.0.0
::1:0:0 1:0:2:0:3:0:4:0 1:0:0:2:: 0:1:1:1:1:1:1:1 1:1:1:1:1:1:1:0 1:1:1:1:1:1:1.2.3.4 1:2:3:4:5:6:7:: ::2:3:4:5:6:7:8 ::001.2.3.4 1.2.3.4 :1 ::: 1::2::3 12345:: 1:2:3:4:5:6:7:8:9 1:2:3:4:5:6:7 1:2:3:4:5:6:7: 1:2:3:4::5:6:7:8 1:2:3::4:5:6:7:8
1::2:3:4:5:6:7:8 ::1.2.3 ::1.2.3.256 ::0001.2.3.4 ::1.2.3.4:5 ::1% ::1%eth0 1 : ::1: 1:2:3:4:5:6:7:1.2.3.4 1:2:3:4:5:1.2.3.4 1:2:3:4:5::1.2.3.4 1:2:3:4:5:6::1.2.3.4 1.2.3.4:: 1:1.2.3.4:: 1.2.3.4::1 00000::1 g:: [::1] ::1/64 0x1:: +1:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
1:2:3:4:5:6:7::8 :1:2:3:4:5:6:7:8 ::1:2:3:4:5:6:7:8 1:2:3:4:5:6:7:8:: :1:: ::1::""".split() + ["", " ", " ::1", "::1 ", "::1\n", "ä", "::\x00"]
INET4 = "1.2.3.4 0.0.0.0 255.255.255.255 01.002.003.004 1.2.3 1.2.3.4.5 1.2.3.256 0001.2.3.4 1..3.4 .1.2.3.4 1.2.3.4. 1.2.3. ::ffff:1.2.3.4 ::1 1 16909060 0x1.2.3.4 a.b.c.d 1.2.3.-4 +1.2.3.4 1.2.3.4/8 1,2,3,4 999.1.1.1 1.2.3.1234 000.000.000.000 00.00.00.00".split() + ["", " ", " 1.2.3.4", "1.2.3.4 ", "1. 2.3.4", "ä", "1.2.3.4\x00"]
HEXES = [("X", t) for t in ["", "00", "01020304", "7F000001", "0102030405", "FF" * 16, "00" * 16, "123E4567E89B12D3A456426614174000", "017F22E279B07CC398C4DC0C0C07398F", "00000000000000000000FFFF01020304", "41" * 17, "80FF0A5C417F", "27"]]
OTHERS = [("I", "0"), ("I", "5"), ("D", "1.5"), ("E", "1e0")]


def uuids(count):
    """All versions beside all variants, with few different nodes and times."""
    chosen = random.Random(5)
    found = {NIL, "ffffffff-ffff-ffff-ffff-ffffffffffff", UUID}
    while len(found) < count:
        version = chosen.choice([0x00, 0x01, 0x0F, 0x10, 0x12, 0x40, 0x47, 0x5F, 0x60, 0x70, 0x7F, 0x80, 0x8A, 0xF0])
        variant = chosen.choice([0x00, 0x00, 0x01, 0x3F, 0x7F, 0x80, 0x81, 0x9A, 0xBF, 0xC0, 0xFF])
        parts = [chosen.choice([0, 1, 0x7F, 0x80, 0xFF]) for _ in range(16)]
        parts[6], parts[8] = version, variant
        text = bytes(parts).hex()
        found.add("-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:])))
    return sorted(found)


def takes(text):
    """Whether MariaDB takes a UUID: not where it could not tell what it keeps from another."""
    parts = bytes.fromhex(text.replace("-", ""))
    return not parts[6] & -parts[8] & 0x80


def texts(words):
    return [("T", word.encode()) for word in words]


def main():
    server = Server(sys.argv[1])
    server.query("CREATE DATABASE IF NOT EXISTS db")
    server.query("USE db")
    many = uuids(220)
    stored = {"uuid": texts(ODD_UUIDS + many), "inet6": texts(INET6), "inet4": texts(INET4)}
    with open(sys.argv[2], "w") as out:
        for definition, given in stored.items():
            for mode, ignore in (("STRICT_TRANS_TABLES", False), ("-", False), ("STRICT_TRANS_TABLES", True)):
                store.record(server, out, "", definition, "-", mode, "+00:00", ignore, given + HEXES + OTHERS)
    rows = {
        "uuid": [text for text in many if takes(text)][:70],
        "inet6": ["::", "::1", "::0.1.0.2", "::1.2.3.4", "::ffff:0.0.0.0", "::ffff:1.2.3.4", "0:0:1::", "1::", "1:0:0:2::3", "fe80::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
        "inet4": ["0.0.0.0", "1.2.3.4", "10.0.0.0", "127.255.255.255", "128.0.0.0", "255.255.255.255"],
    }
    with open(sys.argv[3], "w") as out:
        for definition, cells in rows.items():
            constants = texts(cells) + stored[definition][:40] + HEXES
            query.compare(server, out, definition, "-", [store.quoted(cell.encode()) for cell in cells], constants)
        query.WIDTHS = list(rows)
        query.TEXT_WIDTHS = []
        query.describe(server, out)


if __name__ == "__main__":
    main()
