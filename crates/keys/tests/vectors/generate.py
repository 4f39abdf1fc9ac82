#!/usr/bin/env python3
"""Writes the key file vectors: a second implementation of docs/formats.md, on other libraries than the crate's.

Needs the Python package "cryptography" 44 or newer, with OpenSSL 3.2 or newer. Usage: generate.py, in this directory.
"""

import hashlib
import hmac
import json
from base64 import b64encode

from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def expand(root, label):
    return mac(mac(b"onionskin/1 key file", root), label + b"\1")


def box(key, nonce, secret, aad):
    return nonce + AESGCMSIV(key).encrypt(nonce, secret, aad)


def number(value, length):
    return value.to_bytes(length, "big")


def text(data):
    return b64encode(data).decode()


def key_file(root_entry, root, version=1):
    created = 1767225600
    wrap = expand(root, b"wrap")
    label = b"onionskin/1 wrapped key"
    # Key 1 is all 0x11 and key 7, the active one, all 0x77; the metadata key is all 0x4d.
    keys = [
        (i, box(wrap, number(i, 12), bytes([0x11 * i]) * 32, label + b"\1" + number(i, 2))) for i in (1, 7)
    ]
    metadata = box(wrap, b"metadata key", b"\x4d" * 32, label + b"\2" + number(0, 2))
    content = b"onionskin/1 keys.json" + number(version, 4) + number(7, 2) + number(len(keys), 4)
    for i, wrapped in keys:
        content += number(i, 2) + number(created, 8) + number(len(wrapped), 4) + wrapped
    content += number(created, 8) + number(len(metadata), 4) + metadata
    return {
        "version": version,
        "root": root_entry,
        "data_keys": [{"id": i, "created": created, "wrapped": text(wrapped)} for i, wrapped in keys],
        "metadata_key": {"created": created, "wrapped": text(metadata)},
        "active": 7,
        "mac": text(mac(expand(root, b"mac"), content)),
    }


def under_passphrase(root):
    memory, passes, lanes, salt = 1024, 2, 1, bytes(range(16))
    passphrase = "correct horse ✓ battery".encode()
    kek = Argon2id(salt=salt, length=32, iterations=passes, lanes=lanes, memory_cost=memory).derive(passphrase)
    aad = b"onionskin/1 root key" + number(memory, 4) + number(passes, 4) + number(lanes, 4) + salt
    sealed = box(kek, b"root's nonce", root, aad)
    return {
        "passphrase": {
            "kdf": "argon2id",
            "memory_kib": memory,
            "passes": passes,
            "lanes": lanes,
            "salt": text(salt),
            "sealed": text(sealed),
        }
    }


# By a provider that boxes under a key of its own, as the test's does.
def by_provider(root):
    wrapped = box(b"\x33" * 32, b"the provider", root, b"onionskin/1 root key")
    return {"provider": {"name": "box", "wrapped": text(wrapped)}}


def write(name, content):
    with open(name, "w", encoding="ascii") as file:
        json.dump(content, file, indent=2)
        file.write("\n")


ROOT = bytes(range(200, 232))
write("clear.json", key_file({"clear": text(ROOT)}, ROOT))
write("passphrase.json", key_file(under_passphrase(ROOT), ROOT))
write("provider.json", key_file(by_provider(ROOT), ROOT, version=2))


def tenants_key():
    """From the metadata key of the key files above."""
    return mac(mac(b"onionskin/1 metadata", b"\x4d" * 32), b"tenants file" + b"\1")


def tenants_node(root, path):
    node = root
    for depth, bit in enumerate(path):
        before = number(int(path[:depth].ljust(64, "0"), 2), 8)
        both = hashlib.sha256(b"onionskin/1 tenant tree" + bytes([depth]) + before + node).digest()
        node = both[16:] if bit == "1" else both[:16]
    return node


def tenants_file(root, forgotten):
    """`forgotten` has ids and times."""
    header = b"\x89ONTEN\r\n" + b"\1" + bytes(7) + bytes(range(16)) + number(3, 8)
    ways = {f"{i:064b}"[:n] for i in forgotten for n in range(65)}
    kept = ({way[:-1] + "10"[int(way[-1])] for way in ways if way} - ways) or {""}
    content = number(len(forgotten), 8)
    content += b"".join(number(i, 8) + number(time, 8) for i, time in sorted(forgotten.items()))
    content += b"".join(tenants_node(root, path) for path in sorted(kept))
    nonce = b"of a tenant."
    return header + nonce + AESGCMSIV(tenants_key()).encrypt(nonce, content, header)


def write_binary(name, content):
    with open(name, "wb") as file:
        file.write(content)


write_binary("tenants_none.keys", tenants_file(b"root of tenants.", {}))
write_binary("tenants_two.keys", tenants_file(b"root of tenants.", {0x0123456789ABCDEF: 1767225600, 7: 1798761600}))
