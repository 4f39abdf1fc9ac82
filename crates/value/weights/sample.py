#!/usr/bin/env python3
"""Takes a sample of weight strings from real servers, for tests/weights.rs.

    sample.py MARIADB_SOCKET MYSQL_SOCKET FILE

A line holds a collation, a text and its WEIGHT_STRING(), the latter two in hexadecimal.
"""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "corpus"))
from server import Server  # noqa: E402

LATIN1 = bytes(range(256)).decode("latin1")
FIXED = ["", " ", "a", "A ", "Straße", "STRASSE  ", "naïve café", "Ἀθῆναι", "Москва", "한국어", "ᄒ\u1161ᆫ", "日本語", "𠀀", "😀 ok", "e\u0301", "\u200bx", "ﷺ", "ﬁn", "İıiI", "\x00\x01", "𛀀", "\u0e40\u0e01", "\u0fb2\u0f71\u0f80", "\uffff", "\U0010ffff", "\u0338", "æÆœ", "ŀ", "Ⅷ"]


def texts(randomness):
    yield from FIXED
    blocks = [(0x20, 0x7F), (0xA0, 0x250), (0x250, 0x600), (0x600, 0x1100), (0x1100, 0x2000), (0x2000, 0x3100), (0x3100, 0xA000), (0xA000, 0xD800), (0xE000, 0x10000), (0x10000, 0x20000), (0x20000, 0x110000)]
    for first, last in blocks:
        for _ in range(40):
            yield "".join(chr(randomness.randrange(first, last)) for _ in range(randomness.randrange(1, 6)))
    for _ in range(100):
        yield "".join(chr(randomness.randrange(*randomness.choice(blocks))) for _ in range(randomness.randrange(1, 9)))


def main():
    mariadb, mysql = Server(sys.argv[1]), Server(sys.argv[2])
    for server in (mariadb, mysql):
        server.query("SET NAMES utf8mb4")
    with open(sys.argv[3], "w") as out:
        for collation, servers in (("utf8mb4_general_ci", (mariadb, mysql)), ("utf8mb4_unicode_ci", (mariadb, mysql)), ("utf8mb4_unicode_520_ci", (mariadb, mysql)), ("utf8mb4_0900_ai_ci", (mysql,)), ("latin1_swedish_ci", (mariadb, mysql))):
            for text in texts(random.Random(collation)):
                charset = "latin1" if "latin1" in collation else "utf8mb4"
                data = text.encode("latin1", "ignore") if charset == "latin1" else text.encode()
                found = {server.query(f"SELECT WEIGHT_STRING(_{charset} x'{data.hex()}' COLLATE {collation})")[1][0][0] for server in servers}
                assert len(found) == 1, (collation, text)
                out.write(f"{collation}\t{data.hex()}\t{found.pop().hex()}\n")


if __name__ == "__main__":
    main()
