"""A small MySQL client for the recorders: exact bytes of cells, column definitions, errors and warnings.

Connects over a Unix socket as a user without password. Only what the recorders need is here.
"""

import socket
import struct


class ServerError(Exception):
    def __init__(self, code, state, message):
        super().__init__(f"{code} {message!r}")
        self.code, self.state, self.message = code, state, message


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        part = self.data[self.at : self.at + n]
        self.at += n
        return part

    def int(self, n):
        return int.from_bytes(self.take(n), "little")

    def lenenc(self):
        first = self.int(1)
        if first < 0xFB:
            return first
        return None if first == 0xFB else self.int({0xFC: 2, 0xFD: 3, 0xFE: 8}[first])

    def string(self):
        n = self.lenenc()
        return None if n is None else self.take(n)

    def rest(self):
        return self.data[self.at :]


class Column:
    def __init__(self, packet):
        r = Reader(packet)
        for _ in range(4):
            r.string()
        self.name = r.string()
        r.string()
        r.lenenc()
        self.charset, self.length, self.type = r.int(2), r.int(4), r.int(1)
        self.flags, self.decimals = r.int(2), r.int(1)

    def wire(self):
        return (self.type, self.charset, self.length, self.flags, self.decimals)


class Server:
    def __init__(self, path, user="root"):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb", buffering=1 << 16)
        hello = self.packet()
        self.version = hello[1 : hello.index(0, 1)].decode()
        self.is_mariadb = "MariaDB" in self.version
        # PROTOCOL_41, SECURE_CONNECTION, TRANSACTIONS, LONG_PASSWORD, LONG_FLAG, MULTI_RESULTS, PLUGIN_AUTH
        flags = 0x200 | 0x8000 | 0x2000 | 1 | 4 | 0x20000 | 0x80000
        plugin = b"mysql_native_password" if self.is_mariadb else b"caching_sha2_password"
        body = struct.pack("<IIB23x", flags, 1 << 24, 45) + user.encode() + b"\0\0" + plugin + b"\0"
        self.send(body, 1)
        while (answer := self.packet())[0] != 0:
            if answer[0] == 0xFF:
                raise self.error(answer)
            if answer[0] == 0xFE:
                self.send(b"", self.sequence + 1)

    def send(self, body, sequence=0):
        assert len(body) < 0xFFFFFF
        self.socket.sendall(struct.pack("<I", len(body))[:3] + bytes([sequence]) + body)

    def packet(self):
        head = self.file.read(4)
        size, self.sequence = int.from_bytes(head[:3], "little"), head[3]
        body = self.file.read(size)
        if size == 0xFFFFFF:
            body += self.packet()
        return body

    @staticmethod
    def error(packet):
        code = int.from_bytes(packet[1:3], "little")
        return ServerError(code, packet[4:9].decode(), packet[9:])

    def columns(self, count):
        found = [Column(self.packet()) for _ in range(count)]
        if count:
            self.packet()
        return found

    def result(self, row):
        first = self.packet()
        if first[0] == 0xFF:
            raise self.error(first)
        if first[0] == 0:
            r = Reader(first)
            r.int(1)
            self.affected, _, _, self.warning_count = r.lenenc(), r.lenenc(), r.int(2), r.int(2)
            return [], []
        columns = self.columns(Reader(first).lenenc())
        rows = []
        while True:
            packet = self.packet()
            if packet[0] == 0xFF:
                raise self.error(packet)
            if packet[0] == 0xFE and len(packet) < 9:
                self.warning_count = int.from_bytes(packet[1:3], "little")
                return columns, rows
            rows.append(row(packet, columns))

    def query(self, sql):
        """(columns, rows) with cells as bytes or None."""
        self.send(b"\x03" + (sql if isinstance(sql, bytes) else sql.encode()))

        def row(packet, columns):
            r = Reader(packet)
            return [r.string() for _ in columns]

        return self.result(row)

    def warnings(self):
        if not self.warning_count:
            return []
        return [(level.decode(), int(code), text) for level, code, text in self.query("SHOW WARNINGS")[1]]

    def prepared(self, sql, parameters=()):
        """Runs a prepared statement; parameters are (type, flags, bytes). Rows are raw binary rows after the null bitmap."""
        self.send(b"\x16" + sql.encode())
        answer = self.packet()
        if answer[0] == 0xFF:
            raise self.error(answer)
        statement, columns, count = struct.unpack("<IHH", answer[1:9])
        self.columns(count)
        self.columns(columns)
        body = b"\x17" + struct.pack("<IBI", statement, 0, 1)
        if parameters:
            body += bytes((len(parameters) + 7) // 8) + b"\x01"
            body += b"".join(bytes([kind, flags]) for kind, flags, _ in parameters)
            body += b"".join(value for _, _, value in parameters)
        self.send(body)
        try:
            return self.result(lambda packet, columns: packet[1 + (len(columns) + 9) // 8 :])
        finally:
            self.send(b"\x19" + struct.pack("<I", statement))
