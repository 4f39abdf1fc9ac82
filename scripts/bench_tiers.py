#!/usr/bin/env python3
"""What the proxy adds where the server cannot answer alone: `make bench-tiers`.

    scripts/bench_tiers.py [--servers mariadb,mysql] [--rows N] [--rounds N]

Tier 2: statements over a table of --rows rows, whose sealed cells the proxy opens and aggregates, sorts or compares. Printed are the cells
that it finishes in a second of its own CPU, and in a second of the clock; the goal is 1,000,000 a second on one core. A run in
which the proxy used more than one core would show as more CPU than time.

Tier 3: statements over 100 rows, computed by a scratch engine. Printed is what they take beyond the same statement on plain tables of the same
server, sent there directly: medians of pairs, one of each in turn. The goal is 5 ms.

The proof that a tier was in force is `onionskin explain` before, and the answer itself, which must equal the plain server's. Exits with 1
if a goal is missed.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench

TIER2 = [
    # the statement, and how many sealed cells each row opens
    ("SELECT SUM(k), COUNT(*) FROM sbtest1", 1),
    ("SELECT AVG(k), MIN(k), MAX(k) FROM sbtest1 WHERE id > 0", 1),
    ("SELECT id FROM sbtest1 WHERE pad LIKE '%-1234%' ORDER BY id", 1),
    ("SELECT MAX(c), MIN(pad) FROM sbtest1", 2),
]
TIER3 = [
    "SELECT SUM(GREATEST(k, 20)) FROM sbtest1 WHERE id BETWEEN 1 AND 100",
    "SELECT UPPER(c) FROM sbtest1 WHERE id BETWEEN 1 AND 100 ORDER BY id",
    "SELECT id, RANK() OVER (ORDER BY k, id) AS r FROM sbtest1 WHERE id BETWEEN 1 AND 100 ORDER BY id",
    "SELECT LEFT(c, 1) AS f, COUNT(*) FROM sbtest1 WHERE id BETWEEN 1 AND 100 GROUP BY f ORDER BY f",
]


class Connection:
    """A session in the text protocol, with as little work of its own as can be."""

    def __init__(self, port, database):
        self.socket = bench.login(port)
        self.query(f"USE `{database}`")

    def query(self, sql):
        """The rows' payloads, as they come."""
        body = b"\3" + sql.encode()
        self.socket.sendall(len(body).to_bytes(3, "little") + b"\0" + body)
        first = self.packet()
        if first[:1] == b"\xff":
            sys.exit(f"bench: {sql}\n{first[9:].decode(errors='replace')}")
        if first[:1] == b"\0":
            return []
        rows, ends = [], 0
        while ends < 2:
            packet = self.packet()
            if packet[:1] == b"\xfe" and len(packet) < 9:
                ends += 1
            elif packet[:1] == b"\xff":
                sys.exit(f"bench: {sql}\n{packet[9:].decode(errors='replace')}")
            elif ends:
                rows.append(packet)
        return rows

    def packet(self):
        return bench.read_packet(self.socket)[1]


def tier(binary, home, database, sql):
    said = subprocess.run([binary, "explain", "-c", home / "onionskin.toml", "--database", database, sql], capture_output=True, text=True)
    if said.returncode:
        sys.exit(f"bench: explain {sql}:\n{said.stdout}{said.stderr}")
    return said.stdout


class Tiers:
    def __init__(self, kind, options, folder):
        self.options = options
        self.folder = folder
        self.server = bench.Server(kind, folder, False)
        (folder / "scratch").mkdir()
        self.scratch = bench.Server(kind, folder / "scratch", False)
        self.relay = bench.Onionskin(self.server, folder, options.onionskin, f'\n[scratch]\nsocket = "{self.scratch.socket}"\nuser = "root"\n')
        for database in ("direct", "protected"):
            self.server.sql(f"CREATE DATABASE `{database}`")
        bench.sysbench(self.server.port, "direct", "oltp_read_write", "prepare", "--tables=1", f"--table-size={options.rows}")
        self.plain = Connection(self.server.port, "direct")
        self.sealed = Connection(self.relay.port, "protected")
        self.copy()
        columns = self.server.sql("SHOW COLUMNS FROM sbtest1", "protected")
        if "k$enc" not in columns or "c$enc" not in columns:
            sys.exit(f"bench: the table is not protected:\n{columns}")

    def copy(self):
        """The same rows once more, through the proxy; sysbench would make others."""
        self.sealed.query("CREATE TABLE sbtest1 (id INTEGER NOT NULL PRIMARY KEY AUTO_INCREMENT, k INTEGER DEFAULT 0 NOT NULL, "
                          "c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, KEY k_1 (k))")
        for first in range(1, self.options.rows + 1, 1000):
            rows = self.plain.query(f"SELECT CONCAT_WS(',', id, k, QUOTE(c), QUOTE(pad)) FROM sbtest1 WHERE id BETWEEN {first} AND {first + 999}")
            # each row is one text of 200 bytes: a length in one byte
            values = ",".join(f"({row[1:].decode()})" for row in rows)
            self.sealed.query("INSERT INTO sbtest1 VALUES " + values)

    def stop(self):
        for process in (self.relay.process, self.server.process, self.scratch.process):
            bench.stop(process)

    def timed(self, connection, sql):
        began = time.perf_counter()
        rows = connection.query(sql)
        return time.perf_counter() - began, rows

    def is_at(self, sql, number):
        said = tier(self.options.onionskin, self.folder / "onionskin", "protected", sql)
        if not re.search(rf"^tier +{number}$", said, re.M):
            sys.exit(f"bench: not of tier {number}: {sql}\n{said}")

    def cells(self):
        report = []
        for sql, cells in TIER2:
            self.is_at(sql, 2)
            samples = []
            for _ in range(self.options.rounds + 1):
                plain, expected = self.timed(self.plain, sql)
                before = bench.cpu_seconds(self.relay.process.pid)
                seconds, rows = self.timed(self.sealed, sql)
                used = bench.cpu_seconds(self.relay.process.pid) - before
                if rows != expected:
                    sys.exit(f"bench: another answer than the plain server's: {sql}")
                samples.append((seconds, used, plain))
            # the first one warms up
            # a clock tick is the least that can be told
            seconds, used, plain = (statistics.median(x) for x in zip(*samples[1:]))
            count = cells * self.options.rows
            report.append({"sql": sql, "cells": count, "seconds": seconds, "cpu": used, "plain": plain,
                           "per_cpu_second": count / max(used, 1 / bench.TICKS), "per_second": count / seconds})
        return report

    def beyond(self):
        report = []
        for sql in TIER3:
            self.is_at(sql, 3)
            pairs = []
            for i in range(20 + self.options.repeat):
                order = [self.plain, self.sealed] if i % 2 else [self.sealed, self.plain]
                taken = {connection: self.timed(connection, sql) for connection in order}
                if taken[self.plain][1] != taken[self.sealed][1]:
                    sys.exit(f"bench: another answer than the plain server's: {sql}")
                if i >= 20:
                    pairs.append((taken[self.plain][0] * 1e3, taken[self.sealed][0] * 1e3))
            beyond = sorted(sealed - plain for plain, sealed in pairs)
            report.append({"sql": sql, "plain_ms": statistics.median(p for p, _ in pairs), "beyond_ms": statistics.median(beyond),
                           "beyond_p95_ms": beyond[int(len(beyond) * 0.95)]})
        return report


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    def names(text):
        found = text.split(",")
        if not set(found) <= {"mariadb", "mysql"}:
            parser.error("--servers: mariadb, mysql")
        return found

    parser.add_argument("--servers", type=names, default=["mariadb", "mysql"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=200, help="pairs of each statement of tier 3")
    parser.add_argument("--onionskin", type=Path, default=bench.CHECKOUT / "target/release/onionskin")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args()
    if min(options.rounds, options.repeat, options.rows) < 1:
        parser.error("--rounds, --repeat and --rows: at least 1")
    missed, reports = [], {}
    for kind in options.servers:
        with tempfile.TemporaryDirectory(prefix="osb-", dir="/tmp") as folder:
            tiers = Tiers(kind, options, Path(folder))
            try:
                cells, beyond = tiers.cells(), tiers.beyond()
            finally:
                tiers.stop()
        reports[kind] = {"version": tiers.server.version, "tier2": cells, "tier3": beyond}
        print(f"\n{kind} {tiers.server.version}: tier 2, {options.rows:,} rows: million cells a second of the proxy's CPU | of the clock; seconds, "
              "on the plain server")
        for row in cells:
            print(f"  {row['per_cpu_second'] / 1e6:6.2f} | {row['per_second'] / 1e6:5.2f}   {row['seconds']:.2f} s, {row['plain']:.2f} s   {row['sql']}")
            if row["per_cpu_second"] < 1e6:
                missed.append(row["sql"])
        print(f"{kind}: tier 3, 100 rows: ms beyond the plain server's, median | 95 % (the plain server's own)")
        for row in beyond:
            print(f"  {row['beyond_ms']:6.2f} | {row['beyond_p95_ms']:5.2f} ({row['plain_ms']:.2f})   {row['sql']}")
            if row["beyond_ms"] >= 5:
                missed.append(row["sql"])
        sys.stdout.flush()
    if options.json:
        options.json.write_text(json.dumps(reports, indent=1))
    if missed:
        sys.exit("bench: goals missed:\n" + "\n".join(missed))


if __name__ == "__main__":
    main()
