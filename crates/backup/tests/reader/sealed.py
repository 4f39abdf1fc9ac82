#!/usr/bin/env python3
"""A second implementation of sealed streams, from docs/formats.md, on other libraries than the program's.

    sealed.py open FILE [--keys keys.json]      plaintext to standard output; the passphrase, if the stream or the
                                                key file is under one, comes from ONIONSKIN_PASSPHRASE
    sealed.py open FILE --identity FILE         the same of a stream to recipients
    sealed.py vectors DIRECTORY                 writes the streams that the crate's tests pin

Needs the Python package "cryptography" (44 or newer, with OpenSSL 3.2 or newer) and the program zstd.
"""

import base64
import hashlib
import hmac
import json
import os
import subprocess
import sys
import tempfile

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

MAGIC = b"\x89ONION\r\n"
END_MARK = b"ONIONEND"
HEADER, HEAD, TAG, TRAILER = 96, 24, 16, 16
DATA, LAST, FOOTER = 0, 1, 2


class Damaged(Exception):
    pass


def must(condition, what):
    if not condition:
        raise Damaged(what)


def number(value, length):
    return value.to_bytes(length, "big")


def integer(data):
    return int.from_bytes(data, "big")


class Sm3:
    """hashlib's interface, for Pythons whose hashlib has no SM3."""

    digest_size, block_size, name = 32, 64, "sm3"

    def __init__(self, data=b"", state=None):
        self.state = state or hashes.Hash(hashes.SM3())
        self.update(data)

    def update(self, data):
        self.state.update(data)

    def copy(self):
        return Sm3(state=self.state.copy())

    def digest(self):
        return self.state.copy().finalize()


class Aes:
    id, key_len, hash, block = 1, 32, hashlib.sha256, algorithms.AES


class Sm:
    id, key_len, hash, block = 2, 16, Sm3, algorithms.SM4


SUITES = {suite.id: suite for suite in (Aes, Sm)}


def mac(suite, key, data):
    return hmac.new(key, data, suite.hash).digest()


def expand(suite, prk, info, length):
    output = previous = b""
    counter = 1
    while len(output) < length:
        previous = mac(suite, prk, previous + info + bytes([counter]))
        output += previous
        counter += 1
    return output[:length]


def gcm_seal(suite, key, nonce, aad, plain):
    encryptor = Cipher(suite.block(key), modes.GCM(nonce)).encryptor()
    encryptor.authenticate_additional_data(aad)
    return encryptor.update(plain) + encryptor.finalize() + encryptor.tag


def gcm_open(suite, key, nonce, aad, sealed):
    decryptor = Cipher(suite.block(key), modes.GCM(nonce, sealed[-TAG:])).decryptor()
    decryptor.authenticate_additional_data(aad)
    return decryptor.update(sealed[:-TAG]) + decryptor.finalize()


class Stream:
    """The keys of one stream."""

    def __init__(self, context, data_key):
        self.context = context
        self.suite = SUITES[context[9]]
        self.frame_size = 1 << context[10]
        self.subkey_log2 = context[11]
        self.prk = mac(self.suite, b"onionskin/1 sealed stream", data_key)
        self.commitment = self.derive(b"commitment", b"", 32)

    def derive(self, label, scope, length):
        info = label + b"\0" + bytes([self.suite.id]) + self.context + scope
        return expand(self.suite, self.prk, info, length)

    def key(self, kind, frame):
        if kind == FOOTER:
            return self.derive(b"footer", b"", self.suite.key_len)
        return self.derive(b"frames", number(frame >> self.subkey_log2, 4), self.suite.key_len)

    def nonce(self, kind, frame):
        return bytes([kind, 0, 0, 0]) + number(frame, 8)

    def open(self, head, sealed):
        kind, frame = head[0], integer(head[8:16])
        aad = self.commitment + head
        return gcm_open(self.suite, self.key(kind, frame), self.nonce(kind, frame), aad, sealed)

    def seal(self, kind, encoding, frame, content, body):
        head = bytes([kind, encoding, 0, 0]) + self.commitment[:4] + number(frame, 8)
        head += number(len(content), 4) + number(len(body), 4)
        aad = self.commitment + head
        return head + gcm_seal(self.suite, self.key(kind, frame), self.nonce(kind, frame), aad, body)


def zstd(arguments, data):
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        command = ["zstd", "-q", "-c", *arguments, file.name]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


def open_stream(stream, keys):
    """Yields the plaintext, frame by frame; `stream` is positioned behind the header."""
    position = stream.tell()
    digest, lengths, total, frame = keys.suite.hash(), [], 0, 0

    def take(length):
        nonlocal position
        data = stream.read(length)
        position += len(data)
        must(len(data) == length, "truncated")
        return data

    last = False
    while not last:
        head = take(HEAD)
        last = head[0] == LAST
        content_len, body_len = integer(head[16:20]), integer(head[20:24])
        must(head[0] in (DATA, LAST) and head[1] in (0, 1) and head[2:4] == b"\0\0", "head")
        must(head[4:8] == keys.commitment[:4] and integer(head[8:16]) == frame, "order")
        full = content_len == keys.frame_size
        must(full if not last else content_len <= keys.frame_size and (content_len or not frame), "length")
        must(body_len == content_len if head[1] == 0 else body_len < content_len, "length")
        sealed = take(body_len + TAG)
        content = keys.open(head, sealed)
        if head[1] == 1:
            content = zstd(["-d"], content)
        must(len(content) == content_len, "length")
        digest.update(head + sealed[-TAG:])
        lengths.append(body_len)
        total += content_len
        frame += 1
        if not last:
            yield content

    footer_at = position
    head = take(HEAD)
    must(head[:4] == bytes([FOOTER, 0, 0, 0]) and head[4:8] == keys.commitment[:4], "footer")
    must(integer(head[8:16]) == frame and head[16:20] == head[20:24], "footer")
    footer = keys.open(head, take(integer(head[20:24]) + TAG))
    table_end = 16 + 4 * frame
    manifest_len = integer(footer[table_end + 32 : table_end + 36])
    must(integer(footer[:8]) == total and integer(footer[8:16]) == frame, "totals")
    must(footer[16:table_end] == b"".join(number(n, 4) for n in lengths), "seek table")
    must(footer[table_end : table_end + 32] == digest.digest(), "digest")
    must(len(footer) == table_end + 36 + manifest_len, "manifest")
    must(json.loads(footer[table_end + 36 :])["version"] == 1, "manifest")
    must(take(TRAILER) == number(footer_at, 8) + END_MARK and not stream.read(1), "trailer")
    yield content


def unbox(key, data, aad):
    return AESGCMSIV(key).decrypt(data[:12], data[12:], aad)


def key_of_file(path, key_id):
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    if "clear" in content["root"]:
        root = base64.b64decode(content["root"]["clear"])
    else:
        entry = content["root"]["passphrase"]
        salt = base64.b64decode(entry["salt"])
        costs = [entry["memory_kib"], entry["passes"], entry["lanes"]]
        aad = b"onionskin/1 root key" + b"".join(number(n, 4) for n in costs) + salt
        root = unbox(argon2(salt, *costs), base64.b64decode(entry["sealed"]), aad)
    wrap = expand(Aes, mac(Aes, b"onionskin/1 key file", root), b"wrap", 32)
    [wrapped] = [entry["wrapped"] for entry in content["data_keys"] if entry["id"] == key_id]
    return unbox(wrap, base64.b64decode(wrapped), b"onionskin/1 wrapped key\1" + number(key_id, 2))


def argon2(salt, memory, passes, lanes):
    passphrase = os.environ["ONIONSKIN_PASSPHRASE"].encode()
    kdf = Argon2id(salt=salt, length=32, iterations=passes, lanes=lanes, memory_cost=memory)
    return kdf.derive(passphrase)


def bech32(text):
    """The bytes behind the last "1" of a text whose checksum is right (BIP 173)."""
    hrp, _, data = text.lower().rpartition("1")
    values = ["qpzry9x8gf2tvdw0s3jn54khce6mua7l".index(letter) for letter in data]
    check = 1
    for value in [ord(c) >> 5 for c in hrp] + [0] + [ord(c) & 31 for c in hrp] + values:
        top, check = check >> 25, (check & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= generator if top >> bit & 1 else 0
    must(check == 1, "identity")
    bits = "".join(f"{value:05b}" for value in values[:-6])
    return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) - 7, 8))


class X25519:
    """Stanzas of age v1."""

    suite, secret, length = Aes, "AGE-SECRET-KEY-", 64

    @staticmethod
    def key(secret, peer, share, recipient):
        shared = X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(peer))
        prk = mac(Aes, share + recipient, shared)
        return ChaCha20Poly1305(expand(Aes, prk, b"age-encryption.org/v1/X25519", 32))

    @staticmethod
    def public(secret):
        return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()

    @classmethod
    def wrap(cls, secret, file_key, ephemeral):
        recipient, share = cls.public(secret), cls.public(ephemeral)
        return share + cls.key(ephemeral, recipient, share, recipient).encrypt(bytes(12), file_key, None)

    @classmethod
    def unwrap(cls, secret, stanza):
        share, body = stanza[:32], stanza[32:]
        try:
            return cls.key(secret, share, share, cls.public(secret)).decrypt(bytes(12), body, None)
        except InvalidTag:
            return None


class Sm2:
    """Encryption of GM/T 0003.4, on plain numbers and in no constant time."""

    suite, secret, length = Sm, "SM2-SECRET-KEY-", 113
    p = 2**256 - 2**224 - 2**96 + 2**64 - 1
    b = 0x28E9FA9E9D9F5E344D5A9E4BCF6509A7F39789F515AB8F92DDBCBD414D940E93
    base = (
        0x32C4AE2C1F1981195F9904466A39C9948FE30BBFF2660BE1715A4589334C74C7,
        0xBC3736A2F4F6779C59BDCEE36B692153D0A9877CC62A474002DF32E52139F0A0,
    )

    @classmethod
    def add(cls, one, other):
        if one is None or other is None:
            return one or other
        (x1, y1), (x2, y2), p = one, other, cls.p
        if x1 == x2 and (y1 + y2) % p == 0:
            return None
        slope = (3 * x1 * x1 - 3) * pow(2 * y1, -1, p) if one == other else (y2 - y1) * pow(x2 - x1, -1, p)
        x = (slope * slope - x1 - x2) % p
        return x, (slope * (x1 - x) - y1) % p

    @classmethod
    def multiply(cls, factor, point):
        product = None
        for bit in f"{factor:b}":
            product = cls.add(product, product)
            if bit == "1":
                product = cls.add(product, point)
        return product

    @staticmethod
    def keys(point, file_key, mask):
        x, y = (number(coordinate, 32) for coordinate in point)
        stream = Sm3(x + y + number(1, 4)).digest()[:16]
        plain = bytes(a ^ b for a, b in zip(file_key, stream)) if mask else file_key
        body = plain if mask else bytes(a ^ b for a, b in zip(file_key, stream))
        return Sm3(x + plain + y).digest(), body

    @classmethod
    def wrap(cls, secret, file_key, ephemeral):
        recipient = cls.multiply(integer(secret), cls.base)
        share = cls.multiply(integer(ephemeral), cls.base)
        digest, body = cls.keys(cls.multiply(integer(ephemeral), recipient), file_key, False)
        return b"\4" + number(share[0], 32) + number(share[1], 32) + digest + body

    @classmethod
    def unwrap(cls, secret, stanza):
        share = integer(stanza[1:33]), integer(stanza[33:65])
        x, y = share
        must(stanza[0] == 4 and max(share) < cls.p, "point")
        must((x**3 - 3 * x + cls.b - y * y) % cls.p == 0, "point")
        digest, file_key = cls.keys(cls.multiply(integer(secret), share), stanza[97:], True)
        return file_key if digest == stanza[65:97] else None


KINDS = {kind.suite.id: kind for kind in (X25519, Sm2)}


def read_identities(path, kind):
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return [bech32(line) for line in lines if line.startswith(kind.secret + "1")]


def file_key_of(identities, kind, stanzas):
    for secret in identities:
        for at in range(0, len(stanzas), kind.length):
            file_key = kind.unwrap(secret, stanzas[at : at + kind.length])
            if file_key is not None:
                return file_key
    raise Damaged("no identity of it")


def command_open(path, keys=None, identity=None):
    with open(path, "rb") as stream:
        header = stream.read(HEADER)
        context, commitment = header[:64], header[64:]
        must(len(header) == HEADER and context[:8] == MAGIC, "not a sealed stream")
        must((context[8], context[12]) in ((1, 1), (1, 2), (2, 3)), "version")
        must(context[13] == 0 and context[28:32] == bytes(4), "header")
        if context[12] == 1:
            data_key = key_of_file(keys, integer(context[14:16]))
        elif context[12] == 2:
            costs = [integer(context[at : at + 4]) for at in (16, 20, 24)]
            data_key = argon2(context[32:64], *costs)
        else:
            count, kind = integer(context[14:16]), KINDS[context[9]]
            must(1 <= count <= 256 and context[16:28] == bytes(12), "header")
            stanzas = stream.read(count * kind.length)
            must(len(stanzas) == count * kind.length, "truncated")
            context += stanzas
            data_key = file_key_of(read_identities(identity, kind), kind, stanzas)
        keys = Stream(context, data_key)
        must(hmac.compare_digest(keys.commitment, commitment), "wrong key")
        for content in open_stream(stream, keys):
            sys.stdout.buffer.write(content)


def write_stream(suite, plain, source, frame_log2, subkey_log2, compressed):
    """The bytes of a stream. `source` is the key id and the data key, a passphrase with its costs, or the file
    key and pairs of an identity and an ephemeral secret."""
    random = bytes(range(32))
    version = 2 if isinstance(source[0], bytes) else 1
    start = MAGIC + bytes([version, suite.id, frame_log2, subkey_log2])
    stanzas = b""
    if version == 2:
        data_key, *recipients = source
        context = start + b"\3\0" + number(len(recipients), 2) + bytes(16) + random
        kind = KINDS[suite.id]
        stanzas = b"".join(kind.wrap(secret, data_key, ephemeral) for secret, ephemeral in recipients)
    elif isinstance(source[0], int):
        key_id, data_key = source
        context = start + b"\1\0" + number(key_id, 2) + bytes(16) + random
    else:
        os.environ["ONIONSKIN_PASSPHRASE"], *costs = source
        context = start + b"\2\0\0\0" + b"".join(number(n, 4) for n in costs) + bytes(4) + random
        data_key = argon2(random, *costs)
    keys = Stream(context + stanzas, data_key)
    size = keys.frame_size
    parts = [plain[at : at + size] for at in range(0, len(plain), size)] or [b""]
    stream = context + keys.commitment + stanzas
    digest, table = suite.hash(), b""
    for frame, content in enumerate(parts):
        kind = LAST if frame == len(parts) - 1 else DATA
        body = zstd(["-3", "--no-check"], content) if compressed else content
        sealed = keys.seal(kind, int(compressed), frame, content, body)
        digest.update(sealed[:HEAD] + sealed[-TAG:])
        table += number(len(body), 4)
        stream += sealed
    manifest = b'{"version":1,"created":1767225600,"source":"stdin"}'
    footer = number(len(plain), 8) + number(len(parts), 8) + table + digest.digest()
    footer += number(len(manifest), 4) + manifest
    end = number(len(stream), 8) + END_MARK
    return stream + keys.seal(FOOTER, 0, len(parts), footer, footer) + end


def noise(length):
    blocks = (hashlib.sha256(number(i, 8)).digest() for i in range(length // 32 + 1))
    return b"".join(blocks)[:length]


def command_vectors(directory):
    # Of crates/keys/tests/vectors/clear.json: key 7, its active one, is all 0x77.
    by_file = (7, b"\x77" * 32)
    # The identities are 32 times 0x11 and 0x22.
    to_recipients = (b"\x33" * 16, (b"\x11" * 32, b"\x44" * 32), (b"\x22" * 32, b"\x55" * 32))
    by_passphrase = ("correct horse ✓ battery", 64, 2, 1)
    lines = b"".join(b"INSERT INTO t VALUES (%d, 'the same again');\n" % n for n in range(300))
    for suite, name in ((Aes, "aes"), (Sm, "sm")):
        streams = {
            # Three subkeys: two frames under each of the first two, and a short one.
            "stored": (noise(4 * 4096 + 100), by_file, 12, 1, False),
            # The last frame is full.
            "full": (noise(2 * 4096), by_file, 12, 24, False),
            "empty": (b"", by_file, 20, 16, False),
            "passphrase": (b"under a passphrase", by_passphrase, 20, 16, False),
            "zstd": (lines[:9000], by_file, 12, 0, True),
            "recipients": (noise(2 * 4096 + 7), to_recipients, 12, 1, False),
        }
        for kind, (plain, *rest) in streams.items():
            with open(os.path.join(directory, f"{name}-{kind}.sealed"), "wb") as file:
                file.write(write_stream(suite, plain, *rest))


def main():
    try:
        match sys.argv[1:]:
            case ["open", path]:
                command_open(path)
            case ["open", path, "--keys", keys]:
                command_open(path, keys)
            case ["open", path, "--identity", identity]:
                command_open(path, identity=identity)
            case ["vectors", directory]:
                command_vectors(directory)
            case _:
                sys.exit(__doc__)
    except Damaged as damage:
        sys.exit(f"sealed.py: {damage}")


if __name__ == "__main__":
    main()
