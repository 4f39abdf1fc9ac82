#!/usr/bin/env python3
"""Asks real servers what the bytes of their character sets mean, and writes the tables that src/charset/ reads.

    generate.py MARIADB_SOCKET MYSQL_SOCKET

Each character set is taken from every server that has it. Where two servers disagree on a set, it is left out and
named, because a value must mean the same whichever of them is behind. Written are

single.tsv   sets of one byte for each character. Fields: name; the code points of the bytes 00 to FF, four
             hexadecimal digits each, 0000 for a byte that is no character; the characters that are stored as
             another byte than the first one that means them, as CODE:BYTE, with commas.

NAME.bin     sets of several bytes. All numbers big-endian. Records one after the other, each begins with a byte
             for its kind:
             0, 1, 2   characters of one byte, of two bytes, of three bytes that begin with 8F: the number of the
                       first one (its bytes; of three, the last two) in 16 bits, how many there are in 16 bits,
                       that many code points of 16 bits
             3         characters of four bytes in gb18030, by their place in its order: first place, how many,
                       first code point; the others follow
             4         characters that are stored otherwise than by the first bytes that mean them: how many in
                       16 bits, then a code point in 16 bits and the bytes as a number of 32 bits, 0 for none

weights.tsv  collations in which each byte has one weight of its own: name, 256 weights of two hexadecimal digits.

NAME_ci.bin  collations of sets of several bytes in which a character weighs as many bytes as it has, one or two: 256
             weights of one byte; then, in 16-bit numbers, stretches of pairs that weigh other than themselves: the first
             pair, how many, their weights. Empty where it is not so, or where the servers disagree. (Comparison in
             big5_chinese_ci and euckr_korean_ci does not go by WEIGHT_STRING().)

Collations of these sets are added to ../weights/collations.tsv.
"""

import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "corpus"))
from server import Server, ServerError  # noqa: E402

SINGLE = (
    "armscii8 cp1250 cp1251 cp1256 cp1257 cp850 cp852 cp866 dec8 geostd8 greek hebrew hp8 keybcs2 koi8r koi8u "
    "latin2 latin5 latin7 macce macroman swe7"
).split()
MULTI = "gbk gb18030 big5 sjis cp932 euckr gb2312 ujis eucjpms".split()
WIDE = "utf16 utf16le ucs2 utf32".split()
BASIC_PLANE = [code for code in range(0x10000) if not 0xD800 <= code < 0xE000]


def four_bytes(place):
    place, d = divmod(place, 10)
    place, c = divmod(place, 126)
    a, b = divmod(place, 10)
    return bytes([0x81 + a, 0x30 + b, 0x81 + c, 0x30 + d])


def cells(server, expressions, at_once=256):
    for at in range(0, len(expressions), at_once):
        yield from server.query("SELECT " + ",".join(expressions[at : at + at_once]))[1][0]


def decode(server, charset, sequences):
    """sequence -> code point"""
    expressions = [f"CONVERT(CONVERT(x'{s.hex()}' USING {charset}) USING utf32)" for s in sequences]
    found = {}
    for sequence, cell in zip(sequences, cells(server, expressions)):
        if cell is None or len(cell) != 4:
            continue
        code = int.from_bytes(cell, "big")
        if code != 0x3F or sequence == b"?":
            found[sequence] = code
    return found


def encode(server, charset, codes):
    """code point -> bytes"""
    found = {}
    for at in range(0, len(codes), 4096):
        chunk = [code for code in codes[at : at + 4096] if code != 10]
        text = b"".join(code.to_bytes(4, "big") + b"\0\0\0\n" for code in chunk).hex()
        got = server.query(f"SELECT CONVERT(_utf32 x'{text}' USING {charset})")[1][0][0].split(b"\n")
        assert len(got) == len(chunk) + 1, (charset, at, len(got), len(chunk))
        for code, one in zip(chunk, got):
            if one != b"?" or code == 0x3F:
                found[code] = one
    found[10] = b"\n"
    return found


def candidates(charset):
    found = [bytes([byte]) for byte in range(256)]
    if charset in MULTI:
        found += [bytes([first, second]) for first in range(0x80, 0x100) for second in range(0x30, 0x100)]
    if charset in ("ujis", "eucjpms"):
        found += [bytes([0x8F, first, second]) for first in range(0xA0, 0x100) for second in range(0xA0, 0x100)]
    if charset == "gb18030":
        found += [four_bytes(place) for place in range(39420)]
    return found


def table(server, charset):
    codes = list(BASIC_PLANE)
    if charset == "gb18030":
        codes += range(0x10000, 0x110000)
    back = encode(server, charset, codes)
    if charset == "gb18030":
        for code in range(0x10000, 0x110000):
            assert back.pop(code) == four_bytes(189000 + code - 0x10000), hex(code)
    return decode(server, charset, candidates(charset)), back


def others(found, back):
    """What is stored otherwise than by the first bytes that mean it."""
    first = {}
    for sequence in sorted(found, key=lambda s: (len(s), s)):
        first.setdefault(found[sequence], sequence)
    return {code: back.get(code, b"") for code in sorted(set(first) | set(back)) if first.get(code) != back.get(code)}


def runs(numbers):
    """(first, count) of the runs in a sorted list"""
    start = last = None
    for number in numbers:
        if last is not None and number == last + 1:
            last = number
            continue
        if start is not None:
            yield start, last - start + 1
        start = last = number
    if start is not None:
        yield start, last - start + 1


def write_multi(charset, found, back):
    out = bytearray()
    for kind, length in ((0, 1), (1, 2), (2, 3)):
        own = {int.from_bytes(s[-2:], "big"): code for s, code in found.items() if len(s) == length}
        for first, count in runs(sorted(own)):
            out += struct.pack(">BHH", kind, first, count)
            for number in range(first, first + count):
                out += struct.pack(">H", own[number])
    if charset == "gb18030":
        places = {place: found[four_bytes(place)] for place in range(39420) if four_bytes(place) in found}
        start = None
        for place in sorted(places):
            if start is not None and places.get(place - 1) == places[place] - 1:
                continue
            if start is not None:
                out += struct.pack(">BHHH", 3, start, end - start + 1, places[start])
            start = end = place
            while end + 1 in places and places[end + 1] == places[end] + 1:
                end += 1
        out += struct.pack(">BHHH", 3, start, end - start + 1, places[start])
    differ = others(found, back)
    out += struct.pack(">BH", 4, len(differ))
    for code, sequence in differ.items():
        out += struct.pack(">HI", code, int.from_bytes(sequence, "big"))
    with open(os.path.join(HERE, charset + ".bin"), "wb") as file:
        file.write(out)
    print(f"{charset}: {len(found)} characters, {len(differ)} stored otherwise, {len(out)} bytes")


def collations(server):
    """name -> (id, charset, 'P' or 'N')"""
    got = {}
    if server.is_mariadb:
        sql = (
            "SELECT FULL_COLLATION_NAME, a.ID, a.CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY a "
            "WHERE a.ID IS NOT NULL"
        )
        for name, number, charset in server.query(sql)[1]:
            name = name.decode()
            got[name] = (int(number), charset.decode(), "N" if "nopad" in name else "P")
    else:
        for name, charset, number, pad in server.query(
            "SELECT COLLATION_NAME, CHARACTER_SET_NAME, ID, PAD_ATTRIBUTE FROM information_schema.COLLATIONS"
        )[1]:
            got[name.decode()] = (int(number), charset.decode(), "N" if pad == b"NO PAD" else "P")
    return got


def simple_weights(server, collation, charset):
    """256 weights; None where a byte has none or several"""
    expressions = [f"WEIGHT_STRING(CONVERT(x'{byte:02x}' USING {charset}) COLLATE {collation})" for byte in range(256)]
    got = list(cells(server, expressions))
    if any(cell is None or len(cell) != 1 for cell in got):
        return None
    weights = b"".join(got)
    for seed in range(40):
        text = bytes((seed * 37 + at * (2 * seed + 1)) % 256 for at in range(100))
        whole = next(cells(server, [f"WEIGHT_STRING(CONVERT(x'{text.hex()}' USING {charset}) COLLATE {collation})"]))
        if whole != bytes(weights[byte] for byte in text):
            return None
    return weights


def pair_weights(server, collation, charset, found):
    """(256 weights, pair -> weight of those that weigh other than themselves); None where a character weighs otherwise"""
    sequences = [s for s in sorted(found) if len(s) <= 2]
    expressions = [f"WEIGHT_STRING(CONVERT(x'{s.hex()}' USING {charset}) COLLATE {collation})" for s in sequences]
    one, two = bytearray(range(256)), {}
    for sequence, cell in zip(sequences, cells(server, expressions)):
        if cell is None or len(cell) != len(sequence):
            print(f"{collation}: {sequence.hex()} weighs {cell}")
            return None
        if len(sequence) == 1:
            one[sequence[0]] = cell[0]
        elif cell != sequence:
            two[int.from_bytes(sequence, "big")] = int.from_bytes(cell, "big")
    for seed in range(60):
        some = [sequences[(seed * 7919 + at * (2 * seed + 1) * 131) % len(sequences)] for at in range(60)]
        text = b"".join(some).hex()
        whole = next(cells(server, [f"WEIGHT_STRING(CONVERT(x'{text}' USING {charset}) COLLATE {collation})"]))
        weight = lambda s: bytes([one[s[0]]]) if len(s) == 1 else two.get(int.from_bytes(s, "big"), int.from_bytes(s, "big")).to_bytes(2, "big")
        if whole != b"".join(map(weight, some)):
            print(f"{collation}: characters weigh together")
            return None
    return bytes(one), two


def write_pairs(collation, tables):
    out = b""
    if tables[0] and all(other == tables[0] for other in tables):
        one, two = tables[0]
        out += one
        for first, count in runs(sorted(two)):
            out += struct.pack(">HH", first, count)
            out += b"".join(struct.pack(">H", two[pair]) for pair in range(first, first + count))
        print(f"{collation}: {len(two)} pairs, {len(out)} bytes")
    else:
        print(f"{collation}: left out")
    with open(os.path.join(HERE, collation + ".bin"), "wb") as file:
        file.write(out)


def main():
    servers = [Server(path) for path in sys.argv[1:]]
    for server in servers:
        server.query("SET NAMES utf8mb4")
        server.query("SET character_set_results = NULL")
    known = [collations(server) for server in servers]
    has = [{charset for _, charset, _ in found.values()} for found in known]
    written = []
    with open(os.path.join(HERE, "single.tsv"), "w") as out:
        for charset in SINGLE:
            tables = [table(server, charset) for server, sets in zip(servers, has) if charset in sets]
            if any(other != tables[0] for other in tables[1:]):
                print(f"{charset}: the servers disagree")
                continue
            found, back = tables[0]
            if any(found.get(bytes([code])) != code or back.get(code) != bytes([code]) for code in range(0x80)):
                print(f"{charset}: not ASCII below 80")
                continue
            codes = "".join(f"{found.get(bytes([byte]), 0):04x}" for byte in range(256))
            differ = others(found, back)
            assert all(len(s) <= 1 for s in differ.values())
            extra = ",".join(f"{code:04x}:{s.hex() or '-'}" for code, s in differ.items())
            out.write(f"{charset}\t{codes}\t{extra}\n")
            written.append(charset)
            print(f"{charset}: {len(found)} characters, {len(differ)} stored otherwise")
    for charset in MULTI:
        tables = [table(server, charset) for server, sets in zip(servers, has) if charset in sets]
        if any(other != tables[0] for other in tables[1:]):
            one, other = tables
            apart = [{k for k in set(a) | set(b) if a.get(k) != b.get(k)} for a, b in zip(one, other)]
            print(f"{charset}: the servers disagree on {list(map(len, apart))}", [sorted(a, key=str)[:8] for a in apart])
            for k in sorted(apart[0])[:4]: print(k, one[0].get(k), other[0].get(k))
            for k in sorted(apart[1])[:4]: print(hex(k), one[1].get(k), other[1].get(k))
            continue
        if any(tables[0][1].get(code) != bytes([code]) for code in range(0x80)):
            print(f"{charset}: not ASCII below 80")
            continue
        write_multi(charset, *tables[0])
        written.append(charset)
        collation = {"gbk": "gbk_chinese_ci", "gb2312": "gb2312_chinese_ci"}.get(charset)
        if collation:
            write_pairs(collation, [pair_weights(server, collation, charset, tables[0][0]) for server in servers])
    written += [charset for charset in WIDE if any(charset in sets for sets in has)]
    path = os.path.join(HERE, "..", "weights", "collations.tsv")
    lines = {line.split("\t")[0]: line for line in open(path).read().splitlines()}
    apart = set()
    for found in known:
        for name, (number, charset, pad) in found.items():
            if charset in written:
                line = f"{name}\t{number}\t{charset}\t{pad}"
                if lines.setdefault(name, line) != line:
                    print("left out:", lines[name], "|", line)
                    apart.add(name)
    with open(path, "w") as out:
        out.writelines(lines[name] + "\n" for name in sorted(set(lines) - apart))
    with open(os.path.join(HERE, "weights.tsv"), "w") as out:
        for name in sorted(set().union(*known)):
            where = [(server, found[name][1]) for server, found in zip(servers, known) if name in found]
            charset = where[0][1]
            if charset not in written + ["latin1"] or charset in MULTI + WIDE or name.endswith("_bin") or name == "latin1_swedish_ci":
                continue
            tables = [simple_weights(server, name, charset) for server, _ in where]
            if "nopad" not in name and tables[0] and all(other == tables[0] for other in tables):
                out.write(f"{name}\t{tables[0].hex()}\n")
            else:
                print(f"{name}: left out", [t and len(t) for t in tables])


if __name__ == "__main__":
    main()
