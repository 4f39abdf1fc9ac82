#!/usr/bin/env python3
"""Writes the format vectors: a second implementation of docs/formats.md, on other libraries than the crate's.

Needs the Python package "cryptography" with OpenSSL 3.2 or newer. Usage: generate.py, in this directory.
"""

import hashlib
import hmac
import itertools

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV


class Aes:
    number, hash, seal_key, order_key, gram_key = 1, "sha256", 32, 64, 32

    def block(key, block):
        return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)

    def seal(key, nonce, payload, aad):
        if payload:
            return AESGCMSIV(key).encrypt(nonce, payload, aad)
        return gcm_siv_of_nothing(key, nonce, aad)


class Sm:
    number, hash, seal_key, order_key, gram_key = 2, "sm3", 16, 32, 16

    def block(key, block):
        return Cipher(algorithms.SM4(key), modes.ECB()).encryptor().update(block)

    def seal(key, nonce, payload, aad):
        return gcm(lambda block: Sm.block(key, block), nonce, payload, aad)


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def gcm_multiply(x, y):
    z = 0
    for i in range(128):
        if x >> (127 - i) & 1:
            z ^= y
        y = y >> 1 ^ (0xE1 << 120 if y & 1 else 0)
    return z


def padded(data):
    return data + bytes(-len(data) % 16)


def gcm(encrypt, nonce, payload, aad):
    """GCM from NIST SP 800-38D, for a 96-bit nonce."""
    counter = itertools.count(1)
    stream = (encrypt(nonce + n.to_bytes(4, "big")) for n in counter)
    mask = next(stream)
    sealed = b"".join(
        xor(payload[i : i + 16], next(stream)) for i in range(0, len(payload), 16)
    )
    key = int.from_bytes(encrypt(bytes(16)), "big")
    lengths = (8 * len(aad)).to_bytes(8, "big") + (8 * len(sealed)).to_bytes(8, "big")
    data, hashed = padded(aad) + padded(sealed) + lengths, 0
    for i in range(0, len(data), 16):
        hashed = gcm_multiply(hashed ^ int.from_bytes(data[i : i + 16], "big"), key)
    return sealed + xor(hashed.to_bytes(16, "big"), mask)


def gcm_siv_of_nothing(key, nonce, aad):
    """AES-256-GCM-SIV (RFC 8452) of an empty message, which the library refuses. POLYVAL by GHASH: appendix A."""
    words = [Aes.block(key, n.to_bytes(4, "little") + nonce)[:8] for n in range(6)]
    auth, enc = b"".join(words[:2]), b"".join(words[2:])
    data = padded(aad) + (8 * len(aad)).to_bytes(8, "little") + bytes(8)
    h = int.from_bytes(auth[::-1], "big")
    h = h >> 1 ^ (0xE1 << 120 if h & 1 else 0)  # times x, in GHASH's order of bits
    hashed = 0
    for i in range(0, len(data), 16):
        hashed = gcm_multiply(hashed ^ int.from_bytes(data[i : i + 16][::-1], "big"), h)
    tag = bytearray(hashed.to_bytes(16, "big")[::-1])
    tag[:12] = xor(tag[:12], nonce)
    tag[15] &= 0x7F
    return Aes.block(enc, bytes(tag))


def mac(suite, key, data):
    return hmac.new(key, data, suite.hash).digest()


def hkdf(suite, data_key, info, length, salt=b"onionskin/1 column keys"):
    prk = mac(suite, salt, data_key)
    okm, block = b"", b""
    for counter in itertools.count(1):
        if len(okm) >= length:
            return okm[:length]
        block = mac(suite, prk, block + info + bytes([counter]))
        okm += block


def derived(suite, c, purpose, length):
    own = b"\0" + c["table"] + c["column"]
    scope = own if purpose in ("seal", "nonce", "tenant", "gram") or "join" not in c else b"\1" + c["join"]
    return hkdf(suite, c["data_key"], purpose.encode() + b"\0" + bytes([suite.number]) + scope, length)


def cell_head(suite, c, version):
    header = bytes([version << 4 | suite.number]) + c["key_id"] + c["column"]
    return header, b"onionskin/1 cell" + header + c["table"]


def cell(suite, c, nonce, payload, version=1):
    header, aad = cell_head(suite, c, version)
    key = derived(suite, c, "seal", suite.seal_key)
    return header + nonce + suite.seal(key, nonce, payload, aad)


def synthetic_nonce(suite, c, fresh, payload, version):
    _, aad = cell_head(suite, c, version)
    return mac(suite, derived(suite, c, "nonce", 32), fresh + aad + payload)[:12]


def token(suite, c, weight):
    return mac(suite, derived(suite, c, "eq", 32), weight)[:16]


def metadata_tag(data_key, text):
    return mac(Aes, hkdf(Aes, data_key, b"comment", 32, b"onionskin/1 metadata"), text)[:16]


def tenant_id(data_key, space, value):
    name = b"onionskin/1 tenant" + len(space).to_bytes(4, "big") + space + value
    return mac(Aes, hkdf(Aes, data_key, b"tenant names", 32, b"onionskin/1 metadata"), name)[:8]


def tenant_node(root, path):
    """The node that a string of bits leads to."""
    node = root
    for depth, bit in enumerate(path):
        before = int(path[:depth].ljust(64, "0"), 2).to_bytes(8, "big")
        both = hashlib.sha256(b"onionskin/1 tenant tree" + bytes([depth]) + before + node).digest()
        node = both[16:] if bit == "1" else both[:16]
    return node


def bits(tenant):
    return f"{int.from_bytes(tenant, 'big'):064b}"


def kept_nodes(root, forgotten):
    """The siblings of all nodes on the ways to the forgotten leaves that are on none of these ways."""
    ways = {path[:n] for path in map(bits, forgotten) for n in range(65)}
    kept = {way[:-1] + "10"[int(way[-1])] for way in ways if way} - ways
    return b"".join(tenant_node(root, path) for path in sorted(kept))


def tenant_cell(suite, c, nonce, payload):
    header, aad = tenant_head(suite, c)
    key = tenant_key(suite, c, b"seal", suite.seal_key)
    return header + nonce + suite.seal(key, nonce, payload, aad)


def tenant_head(suite, c):
    header = bytes([3 << 4 | suite.number]) + c["key_id"] + c["column"] + c["tenant"]
    return header, b"onionskin/1 cell" + header + c["table"]


def tenant_key(suite, c, purpose, length):
    both = derived(suite, c, "tenant", 32) + tenant_node(c["root"], bits(c["tenant"]))
    return hkdf(suite, both, purpose + b"\0", length, b"onionskin/1 tenant cells")


def tenant_nonce(suite, c, fresh, payload):
    return mac(suite, tenant_key(suite, c, b"nonce", 32), fresh + tenant_head(suite, c)[1] + payload)[:12]


def order_key(suite, c, value):
    keys = derived(suite, c, "ord", suite.order_key)
    chain, last = keys[: len(keys) // 2], keys[len(keys) // 2 :]
    digits, out = value.hex(), b""
    for i, digit in enumerate(digits):
        state = bytes(16)
        for full in range(i // 30):
            block = bytes([30]) + value[15 * full : 15 * full + 15]
            state = suite.block(chain, xor(state, block))
        prefix = digits[i // 30 * 30 : i]
        block = bytes([i % 30]) + bytes.fromhex(prefix.ljust(30, "0"))
        x = int.from_bytes(suite.block(last, xor(state, block))[:8], "big")
        out += ((x * 65521 >> 64) + int(digit, 16)).to_bytes(2, "big")
    return out


def gram_token(suite, c, gram):
    key, state = derived(suite, c, "gram", suite.gram_key), bytes(16)
    for at in range(0, 48, 16):
        state = suite.block(key, xor(state, gram[at : at + 16]))
    x = int.from_bytes(state[:8], "big") * 30**6 >> 64
    digits = b"0123456789bcdfghjklmnpqrstvwxz"
    return bytes(digits[x // 30**place % 30] for place in range(5, -1, -1))


def self_test():
    """RFC 8452, appendix C.2 (empty message), and RFC 8998, appendix A.1."""
    key = bytes.fromhex("e66021d5eb8e4f4066d4adb9c33560e4f46e44bb3da0015c94f7088736864200")
    nonce = bytes.fromhex("e0eaf5284d884a0e77d31646")
    assert gcm_siv_of_nothing(key, nonce, b"").hex() == "169fbb2fbf389a995f6390af22228a62"
    plain = b"".join(bytes([b] * 8) for b in bytes.fromhex("aabbccddeeffeeaa"))
    sealed = Sm.seal(
        bytes.fromhex("0123456789abcdeffedcba9876543210"),
        bytes.fromhex("00001234567800000000abcd"),
        plain,
        bytes.fromhex("feedfacedeadbeeffeedfacedeadbeefabaddad2"),
    )
    assert sealed.hex().endswith("83de3541e4c2b58177e065a9bf7b62ec")


def contexts():
    one = dict(
        data_key=bytes(range(32)), key_id=b"\0\1", table=bytes(range(0xA0, 0xA8)), column=b"\xc0\xc1\xc2\xc3"
    )
    two = dict(one, data_key=bytes(range(255, 223, -1)), key_id=b"\xfe\xdc", join="customer id ✓".encode())
    return [one, two]


def write(name, suite):
    texts = [b"", b"alice", bytes(16), "Zwölf Boxkämpfer".encode(), bytes(range(100))]
    values = [b"\x80\0\0\x2a", b"\x7f\xff\xff\xff\xff\xff\xff\xff", bytes(15), b"\xff" * 16, bytes(range(1, 65))]
    with open(name, "w", encoding="ascii") as file:
        print("# Written by generate.py. All values are hexadecimal; join is UTF-8.", file=file)
        for c in contexts():
            for n, text in enumerate(texts):
                nonce = bytes(range(16 * n, 16 * n + 12))
                record = dict(c, nonce=nonce, payload=text, cell=cell(suite, c, nonce, text))
                record.update(weight=text, token=token(suite, c, text))
                record.update(value=values[n], order_key=order_key(suite, c, values[n]))
                gram = bytes((n * 48 + place) % 256 for place in range(48))
                record.update(gram=gram, gram_token=gram_token(suite, c, gram))
                print(file=file)
                for field, value in record.items():
                    print(f"{field} = {value.hex()}".rstrip(), file=file)


def write_synthetic(name):
    """Cells of suite sm with synthetic nonces, of both versions."""
    with open(name, "w", encoding="ascii") as file:
        print("# Written by generate.py. All values are hexadecimal; join is UTF-8.", file=file)
        for c in contexts():
            for version in (1, 2):
                for n, text in enumerate([b"", b"alice", bytes(range(200))]):
                    fresh = bytes(range(16 * n, 16 * n + 16))
                    nonce = synthetic_nonce(Sm, c, fresh, text, version)
                    record = dict(c, version=bytes([version]), fresh=fresh, payload=text, nonce=nonce)
                    record.update(cell=cell(Sm, c, nonce, text, version))
                    print(file=file)
                    for field, value in record.items():
                        print(f"{field} = {value.hex()}".rstrip(), file=file)


def write_metadata(name):
    with open(name, "w", encoding="ascii") as file:
        print("# Written by generate.py. All values are hexadecimal.", file=file)
        for text in [b"", b"k INT NOT NULL", bytes(range(256))]:
            data_key = bytes(range(64, 96))
            tag = metadata_tag(data_key, text)
            print(f"\ndata_key = {data_key.hex()}\nbytes = {text.hex()}".rstrip(), file=file)
            print(f"tag = {tag.hex()}", file=file)


def tenants():
    """Ids of tenants, by names in which bytes could move from the space to the value."""
    names = [(b"customers", b"1"), (b"customers", b"11"), (b"customers1", b"1"), (b"", b"")]
    return [(space, value, tenant_id(bytes(range(64, 96)), space, value)) for space, value in names]


def write_tenants(name):
    root = bytes(range(0x30, 0x40))
    with open(name, "w", encoding="ascii") as file:
        print("# Written by generate.py. All values are hexadecimal.", file=file)
        records = []
        for space, value, tenant in tenants():
            records.append(dict(metadata=bytes(range(64, 96)), space=space, value=value, tenant=tenant))
        gone = []
        for tenant in [t for _, _, t in tenants()] + [bytes(8), b"\xff" * 8, bytes(7) + b"\1"]:
            secret = tenant_node(root, bits(tenant))
            gone = sorted(gone + [tenant])
            nodes = hashlib.sha256(kept_nodes(root, gone)).digest()
            records.append(dict(root=root, tenant=tenant, secret=secret, forgotten=b"".join(gone), nodes=nodes))
        for suite in (Aes, Sm):
            for c in contexts():
                for n, text in enumerate([b"", b"alice", bytes(range(200))]):
                    c = dict(c, root=root, tenant=tenants()[n][2])
                    fresh = bytes(range(16 * n, 16 * n + 16))
                    nonce = fresh[:12] if suite is Aes else tenant_nonce(suite, c, fresh, text)
                    record = dict(c, suite=bytes([suite.number]), fresh=fresh, nonce=nonce, payload=text)
                    records.append(dict(record, cell=tenant_cell(suite, c, nonce, text)))
        for record in records:
            print(file=file)
            for field, value in record.items():
                print(f"{field} = {value.hex()}".rstrip(), file=file)


self_test()
write_tenants("tenants.txt")
write_metadata("metadata.txt")
write("aes.txt", Aes)
write("sm.txt", Sm)
write_synthetic("sm_synthetic.txt")
