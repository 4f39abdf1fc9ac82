#!/usr/bin/env python3
"""Takes collation weights from real servers and writes the tables that src/tables.rs reads.

    generate.py MARIADB_SOCKET MYSQL_SOCKET [--pairs]

For every code point of each collation WEIGHT_STRING() is asked of the server. The families must agree on
latin1_swedish_ci, utf8mb4_general_ci and utf8mb4_unicode_ci; utf8mb4_0900_ai_ci exists in MySQL only,
utf8mb4_uca1400_ai_ci in MariaDB only. With --pairs the script also looks for contractions, that is pairs of characters
whose weight is not the one's weight followed by the other's, and prints them; the tables hold single characters only, so
there must be none. Those of utf8mb4_uca1400_ai_ci are written: pairs that are a contraction, or the beginning of one that
the Unicode Collation Algorithm's own table lists (a copy comes with Perl), each two numbers of 32 bits.

A table is, in big-endian 16-bit numbers:

    number of pages P, number of sequences S
    0x1100 page numbers, one for each 256 code points
    P pages of 256 entries
    S + 1 offsets into the weights, then the weights

An entry is a sequence number or one of the marks below.
"""

import glob
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "corpus"))
from server import Server  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
# Entries that stand for computed weights: base + (code >> 15), (code & 0x7FFF) | 0x8000.
IMPLICIT = {0xFFF0: 0xFB40, 0xFFF1: 0xFB80, 0xFFF2: 0xFBC0}
# Weights of the syllable's jamo, one after the other.
HANGUL = 0xFFF3
# 0xFB00, (code - 0x17000) | 0x8000
TANGUT = 0xFFF4
# The code point itself.
SELF = 0xFFF5
FIRST_MARK = 0xFFF0


def literal(codes):
    return "_utf8mb4 x'" + "".join(map(chr, codes)).encode().hex() + "'"


def weights(server, collation):
    """code point -> tuple of weights"""
    found = {}
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    for at in range(0, len(codes), 256):
        chunk = codes[at : at + 256]
        columns = ",".join(f"WEIGHT_STRING({literal([code])} COLLATE {collation})" for code in chunk)
        for code, cell in zip(chunk, server.query("SELECT " + columns)[1][0]):
            found[code] = struct.unpack(f">{len(cell) // 2}H", cell)
    return found


def jamo(code):
    index = code - 0xAC00
    parts = [0x1100 + index // 588, 0x1161 + index % 588 // 28]
    if index % 28:
        parts.append(0x11A7 + index % 28)
    return parts


def mark(code, sequence, found):
    for entry, base in IMPLICIT.items():
        if sequence == (base + (code >> 15), code & 0x7FFF | 0x8000):
            return entry
    if sequence == (code,):
        return SELF
    if 0xAC00 <= code <= 0xD7A3 and sequence == sum((found[part] for part in jamo(code)), ()):
        return HANGUL
    if 0x17000 <= code < 0x18AFF and sequence == (0xFB00, code - 0x17000 | 0x8000):
        return TANGUT
    return None


def write(name, found):
    sequences, numbers = [], {}
    pages, page_numbers, index = [], {}, []
    for page in range(0x1100):
        entries = []
        for code in range(page * 256, page * 256 + 256):
            sequence = found.get(code)
            entry = FIRST_MARK if sequence is None else mark(code, sequence, found)
            if entry is None:
                entry = numbers.setdefault(sequence, len(sequences))
                if entry == len(sequences):
                    sequences.append(sequence)
            entries.append(entry)
        entries = tuple(entries)
        number = page_numbers.setdefault(entries, len(pages))
        if number == len(pages):
            pages.append(entries)
        index.append(number)
    assert len(sequences) < FIRST_MARK
    offsets, flat = [0], []
    for sequence in sequences:
        flat.extend(sequence)
        offsets.append(len(flat))
    assert len(flat) <= 0xFFFF, len(flat)
    numbers = [len(pages), len(sequences), *index, *(entry for page in pages for entry in page), *offsets, *flat]
    data = struct.pack(f">{len(numbers)}H", *numbers)
    with open(os.path.join(HERE, name + ".bin"), "wb") as out:
        out.write(data)
    print(f"{name}: {len(pages)} pages, {len(sequences)} sequences, {len(flat)} weights, longest {max(map(len, sequences))}, {len(data)} bytes")


def contractions(server, collation, found):
    import unicodedata

    pairs = set()

    def check(firsts, second):
        text = [code for first in firsts for code in (first, second)]
        got = server.query(f"SELECT WEIGHT_STRING({literal(text)} COLLATE {collation})")[1][0][0]
        flat = [weight for code in text for weight in found[code]]
        if got == struct.pack(f">{len(flat)}H", *flat):
            return
        if len(firsts) == 1:
            print(f"{collation}: contraction U+{firsts[0]:04X} U+{second:04X}", flush=True)
            pairs.add((firsts[0], second))
            return
        half = len(firsts) // 2
        check(firsts[:half], second)
        check(firsts[half:], second)

    known = [code for code in found if unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs")]
    own = [code for code in known if mark(code, found[code], found) not in IMPLICIT and not 0xAC00 <= code <= 0xD7A3 and code < 0x17000]
    print(f"{collation}: {len(own)} characters with weights of their own", flush=True)
    seconds = [code for code in known if unicodedata.category(chr(code)).startswith("M")]
    for second in seconds:
        for at in range(0, len(own), 20000):
            check(own[at : at + 20000], second)
    for page in range(0x110):
        near = [code for code in own if code >> 8 == page]
        for second in near:
            check(near, second)
    print(f"{collation}: pairs searched", flush=True)
    return pairs


def listed_contractions():
    """Pairs at the beginning of what the algorithm's own tables weigh together"""
    pairs = set()
    # that of the servers' version is between the two: the older one's are in the newer one
    for path in glob.glob("/usr/share/perl/*/Unicode/Collate/allkeys.txt") + glob.glob(
        os.path.join(HERE, "../../../.servers/mysql/usr/share/perl/*/Unicode/Collate/allkeys.txt")
    ):
        for line in open(path):
            codes = line.split(";")[0].split()
            if ";" in line and len(codes) > 1 and not line.startswith(("#", "@")):
                pairs.add((int(codes[0], 16), int(codes[1], 16)))
    assert pairs, "no table of the algorithm"
    return pairs


def uca_1400(mariadb):
    name = "utf8mb4_uca1400_ai_ci"
    found = weights(mariadb, name)
    write(name, found)
    pairs = listed_contractions()
    print(f"{name}: {len(pairs)} beginnings of contractions listed")
    if "--pairs" in sys.argv:
        more = contractions(mariadb, name, found)
        print(f"{name}: not listed: {sorted(more - pairs)}")
        pairs |= more
    with open(os.path.join(HERE, name + ".contractions.bin"), "wb") as out:
        out.write(b"".join(struct.pack(">II", *pair) for pair in sorted(pairs)))


def main():
    mariadb, mysql = Server(sys.argv[1]), Server(sys.argv[2])
    for server in (mariadb, mysql):
        server.query("SET NAMES utf8mb4")
    latin1 = [
        b"".join(server.query(f"SELECT WEIGHT_STRING(_latin1 x'{byte:02x}' COLLATE latin1_swedish_ci)")[1][0][0] for byte in range(256))
        for server in (mariadb, mysql)
    ]
    assert latin1[0] == latin1[1] and len(latin1[0]) == 256
    with open(os.path.join(HERE, "latin1_swedish_ci.bin"), "wb") as out:
        out.write(latin1[0])
    for collation in ("utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci"):
        found, other = weights(mariadb, collation), weights(mysql, collation)
        different = [code for code in found if found[code] != other[code]]
        print(f"{collation}: the families differ on {len(different)} code points", [hex(code) for code in different[:20]])
        write(collation, found)
        if different:
            write(collation + ".mysql", other)
        if "--pairs" in sys.argv and collation != "utf8mb4_general_ci":
            for server in (mariadb, mysql):
                contractions(server, collation, found)
    found = weights(mysql, "utf8mb4_0900_ai_ci")
    write("utf8mb4_0900_ai_ci", found)
    if "--pairs" in sys.argv:
        contractions(mysql, "utf8mb4_0900_ai_ci", found)
    uca_1400(mariadb)


if __name__ == "__main__":
    main()
