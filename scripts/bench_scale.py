#!/usr/bin/env python3
"""What the proxy costs at scale: `make bench-scale`. docs/scale.md explains the figures.

    scripts/bench_scale.py [--servers mariadb,mysql] [--parts catalogue,sessions,statements] [--folder /dev/shm]

catalogue   100,000 tables in 100 databases, of which 1,000 are protected; 1,000 accounts. How long the proxy takes to start, what it asks the
            server when a statement names a table for the first time, what it asks once a second while 1, 1,000 or 10,000 tables are in use,
            what it keeps of all that, for one account and for 1,000, and what a definition costs that somebody makes meanwhile.
sessions    10,000 sessions, idle and with a statement every five seconds each: memory, threads, CPU, logins.
statements  CPU of the proxy for a statement (sysbench), bytes of statements, of the audit log and of the log.

Counted are CPU seconds of the proxy and of the server (the kernel's clock of each process, to the nanosecond) and resident memory: other
work of the machine hardly changes them. Times by the clock are printed too, and are those of a machine as it is.

One process may have only so many open files: where the hard limit allows fewer sessions, several proxies share them.
Each part has a bounded time; every process that was started is ended, and the folder is removed.
"""

import argparse
import gc
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from argparse import Namespace
from pathlib import Path

import bench

PROTECT = '\n[protect."d*.p*"]\nemail = ["eq"]\nnote = []\n'
COLUMNS = "id INT NOT NULL PRIMARY KEY, email VARCHAR(80), note VARCHAR(200), a INT, b INT, c VARCHAR(40), d DATETIME, e DECIMAL(10,2)"
PROTECTED_EACH = 10
# what no process needs more than: files that belong to no session, and logins under way
SPARE_FILES = 300
FILES_PER_SESSION = 4


def cpu(process):
    """Seconds of all threads of a process, those that have ended too."""
    return time.clock_gettime((~process.pid << 3) | 2)


def status(process, field):
    return int(re.search(rf"^{field}:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text(), re.M).group(1))


def rss_mib(process):
    return status(process, "VmRSS") / 1024


class Connection:
    """A session in the text protocol, which counts its bytes."""

    def __init__(self, port, user="root"):
        self.socket = bench.login(port, user)
        self.sent = self.received = 0

    def send(self, sql):
        body = b"\3" + sql.encode()
        self.sent += 4 + len(body)
        self.socket.sendall(len(body).to_bytes(3, "little") + b"\0" + body)

    def answer(self):
        """The rows' payloads, as they come; an error ends the program."""
        first = self.packet()
        if first[:1] == b"\xff":
            sys.exit(f"bench: {first[9:].decode(errors='replace')}")
        if first[:1] == b"\0":
            return []
        rows, ends = [], 0
        while ends < 2:
            packet = self.packet()
            if packet[:1] == b"\xfe" and len(packet) < 9:
                ends += 1
            elif packet[:1] == b"\xff":
                sys.exit(f"bench: {packet[9:].decode(errors='replace')}")
            elif ends:
                rows.append(packet)
        return rows

    def query(self, sql):
        self.send(sql)
        return self.answer()

    def packet(self):
        payload = bench.read_packet(self.socket)[1]
        self.received += 4 + len(payload)
        return payload

    def close(self):
        self.socket.close()


class Proxy:
    """A proxy whose start is timed. All of a folder have the same keys."""

    def __init__(self, server, folder, binary, name):
        home = folder / "onionskin"
        if not home.exists():
            home.mkdir()
            subprocess.run([binary, "init", "--dir", home, "--backend", f"127.0.0.1:{server.port}"], check=True, stdout=subprocess.DEVNULL)
            file = home / "onionskin.toml"
            # MySQL would offer TLS, which is not what is measured here
            file.write_text('backend_tls = "never"\n' + bench.without_engine(file.read_text()) + PROTECT)
        self.port, self.log = bench.free_port(), folder / f"{name}.log"
        began = time.perf_counter()
        command = [binary, "serve", "-c", home / "onionskin.toml", "--listen", f"127.0.0.1:{self.port}"]
        self.process = bench.start(command, stdout=open(self.log, "w"), stderr=subprocess.STDOUT)
        bench.wait_for_port(self.port, self.process, self.log)
        self.seconds = time.perf_counter() - began


class Span:
    """What the proxies and the server use in a while."""

    def __init__(self, server, relays):
        self.server, self.relays = server, relays

    def __enter__(self):
        self.began = time.perf_counter()
        self.before = [cpu(self.server.process), sum(cpu(r.process) for r in self.relays), sum(rss_mib(r.process) for r in self.relays)]
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.began
        after = [cpu(self.server.process), sum(cpu(r.process) for r in self.relays), sum(rss_mib(r.process) for r in self.relays)]
        self.server_cpu, self.proxy_cpu, self.grown_mib = (b - a for a, b in zip(self.before, after))

    def __iter__(self):
        """For a report."""
        yield from {"seconds": self.seconds, "proxy_cpu": self.proxy_cpu, "server_cpu": self.server_cpu, "proxy_mib": self.grown_mib}.items()


class Questions:
    """What the server is asked meanwhile, from its general log."""

    def __init__(self, server, folder):
        self.server, self.file = server, folder / "general.log"
        server.sql(f"SET GLOBAL log_output = 'FILE'; SET GLOBAL general_log_file = '{self.file}'")

    def __enter__(self):
        self.file.unlink(missing_ok=True)
        self.server.sql("SET GLOBAL general_log = ON; FLUSH GENERAL LOGS")
        return self

    def __exit__(self, *_):
        self.server.sql("SET GLOBAL general_log = OFF")
        texts = re.findall(r"^\S*\s+\d+ (?:Query|Execute)\t(.*)$", self.file.read_text(errors="replace"), re.M)
        self.file.unlink(missing_ok=True)
        self.renewals = [text for text in texts if "FROM information_schema.SCHEMATA" in text]
        self.looks = [text for text in texts if "information_schema." in text and "FROM information_schema.SCHEMATA" not in text]

    def counts(self):
        return {"renewals": len(self.renewals), "look_ups": len(self.looks)}

    def replay(self, user, seconds=3.0):
        """The longest of the renewals once more, at the server, as this account: its CPU there, rows, bytes. At least twice."""
        text = max(self.renewals, key=len, default=None)
        if not text:
            return {}
        connection, used, taken = Connection(self.server.port, user), [], []
        end = time.perf_counter() + seconds
        while len(used) < 2 or time.perf_counter() < end and len(used) < 20:
            before, began = cpu(self.server.process), time.perf_counter()
            connection.received = 0
            rows = connection.query(text)
            taken.append((time.perf_counter() - began) * 1e3)
            used.append((cpu(self.server.process) - before) * 1e3)
        connection.close()
        return {"bytes_asked": len(text), "bytes_answered": connection.received, "rows": len(rows), "server_cpu_ms": statistics.median(used),
                "ms": statistics.median(taken)}


def in_threads(count, work):
    """Runs work(number) in so many threads, and ends the program if one of them fails."""
    failed = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:  # a thread's sys.exit would end the thread alone
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        sys.exit(f"bench: {failed[0]}")


def paced(connections, statement, seconds, pace, threads=8):
    """Each connection runs a statement every `pace` seconds, for so long. Returns how many statements there were, and the longest."""
    done, longest = [0] * threads, [0.0] * threads
    began = time.perf_counter()

    def work(number):
        mine = connections[number::threads]
        step = pace / max(len(mine), 1)
        while time.perf_counter() - began < seconds and mine:
            index = done[number] % len(mine)
            due = began + done[number] * step
            wait = due - time.perf_counter()
            if wait > 0:
                time.sleep(wait)
            sent = time.perf_counter()
            connection = mine[index]
            connection.query(statement(connection, done[number]))
            longest[number] = max(longest[number], time.perf_counter() - sent)
            done[number] += 1

    in_threads(threads, work)
    return sum(done), max(longest)


# --- catalogue ---


class Catalogue:
    def __init__(self, kind, options, folder):
        self.options, self.folder = options, folder
        # all tables in one file: 100,000 files of their own would be 10 GB
        more = ["--innodb-file-per-table=0", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-buffer-pool-size=512M",
                "--table-open-cache=2000", "--table-definition-cache=2000"]
        self.server = bench.Server(kind, folder, False, more)
        self.relay = None
        self.report = {"version": self.server.version}
        self.names = [f"d{number:03}" for number in range(options.databases)]

    def stop(self):
        for owner in (self.relay, self.server):
            if owner:
                bench.stop(owner.process)

    def start_proxy(self, name):
        self.relay = Proxy(self.server, self.folder, self.options.onionskin, name)

    def make_tables(self):
        """The protected ones through the proxy, the others at the server, round by round over the databases."""
        began = time.monotonic()
        self.start_proxy("maker")
        direct = Connection(self.server.port)
        for name in self.names:
            direct.query(f"CREATE DATABASE {name}")
        each = self.options.tables // self.options.databases
        protected = Connection(self.relay.port)
        for number in range(min(PROTECTED_EACH, each)):
            for name in self.names:
                protected.query(f"CREATE TABLE {name}.p{number} ({COLUMNS})")
        columns = self.server.sql("SHOW COLUMNS FROM p0", self.names[0])
        if "email$enc" not in columns:
            sys.exit(f"bench: the table is not protected:\n{columns}")
        made = [0] * 4

        def work(worker):
            connection = Connection(self.server.port)
            for number in range(each - PROTECTED_EACH):
                if time.monotonic() - began > self.options.fill_seconds:
                    return
                for name in self.names[worker::4]:
                    connection.query(f"CREATE TABLE {name}.t{number} ({COLUMNS})")
                made[worker] = number + 1

        in_threads(4, work)
        self.plain_each = min(made)
        bench.stop(self.relay.process)
        self.report["tables"] = int(self.server.sql("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA LIKE 'd___'"))
        self.report["fill_seconds"] = time.monotonic() - began

    def make_accounts(self):
        """A third may use one database, a third ten tables of one, a third everything."""
        direct = Connection(self.server.port)
        self.accounts = []
        for number in range(self.options.accounts):
            name, database = f"u{number}", self.names[number % len(self.names)]
            direct.query(f"CREATE USER {name}@'127.0.0.1'")
            kind = number * 3 // self.options.accounts
            if kind == 0:
                grants = [f"{database}.*"]
            elif kind == 1:
                grants = [f"{database}.p0"] + [f"{database}.t{table}" for table in range(9)]
            else:
                grants = ["*.*"]
            for grant in grants:
                direct.query(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {grant} TO {name}@'127.0.0.1'")
            self.accounts.append((name, database, ("database", "ten tables", "everything")[kind]))
        for number in range(40):
            direct.query(f"CREATE USER w{number}@'127.0.0.1'")
            direct.query(f"GRANT SELECT ON *.* TO w{number}@'127.0.0.1'")

    def span(self):
        return Span(self.server, [self.relay])

    def first_statements(self):
        """An account that the proxy has not seen: what its first statements take."""
        report, count = {}, 10
        questions = Questions(self.server, self.folder)
        for what, table, first in (("protected", "p0", 0), ("plain", "t0", count)):
            rows = []
            with questions, self.span() as span:
                for number in range(count):
                    connection = Connection(self.relay.port, f"w{first + number}")
                    taken = []
                    for key in (1, 2):
                        began = time.perf_counter()
                        connection.query(f"SELECT id, email FROM {self.names[number]}.{table} WHERE id = {key}")
                        taken.append((time.perf_counter() - began) * 1e3)
                    rows.append(taken)
                    connection.close()
            times = [statistics.median(x) for x in zip(*rows)]
            asked = {key: value / count for key, value in questions.counts().items()}
            report[what] = {"first_ms": times[0], "second_ms": times[1], **asked, "server_cpu_ms": span.server_cpu * 1e3 / count,
                            "proxy_cpu_ms": span.proxy_cpu * 1e3 / count, "list": questions.replay("w0")}
        self.report["first"] = report

    def sets(self):
        """Names of sets of tables, and the tables."""
        some = self.names
        plain = [f"{name}.t{number}" for number in range(self.plain_each) for name in some]
        protected = [f"{name}.p{number}" for number in range(PROTECTED_EACH) for name in some]
        one = [f"{some[0]}.p{number}" for number in range(PROTECTED_EACH)] + [f"{some[0]}.t{number}" for number in range(self.plain_each)]
        return {
            "1 table": plain[:1],
            "10 tables of 10 databases": plain[:10],
            "100 tables of one database": one[:100],
            "1,000 tables of one database": one[:1000],
            "100 tables of 100 databases": plain[:100],
            "1,000 tables of 100 databases": plain[:1000],
            "1,000 protected tables": protected,
            "10,000 tables of 100 databases": plain[:10_000],
        }

    def tables_in_use(self):
        """One account uses more and more tables: what is kept of them, and what is asked about them once a second."""
        report = {}
        questions = Questions(self.server, self.folder)
        for number, (what, tables) in enumerate(self.sets().items()):
            bench.stop(self.relay.process)
            self.start_proxy(f"use{number}")
            connection = Connection(self.relay.port, f"w{20 + number}")
            connection.query("SELECT 1")
            with self.span() as touch:
                for table in tables:
                    connection.query(f"SELECT id FROM {table} WHERE id = 1")
            # every table is used again before the ten seconds are over in which it counts as used
            pace = 8 / len(tables) if len(tables) > 80 else 0.1
            with questions, self.span() as span:
                done, longest = paced([connection], lambda c, i: f"SELECT id FROM {tables[i % len(tables)]} WHERE id = 1",
                                      self.options.seconds, pace, 1)
            report[what] = {"tables": len(tables), "touch": dict(touch), "steady": dict(span), "statements": done, "longest_ms": longest * 1e3,
                            **questions.counts(), "renewal": questions.replay(f"w{20 + number}"), "proxy_mib": rss_mib(self.relay.process)}
            connection.close()
            progress(what)
        self.report["in_use"] = report

    def accounts_known(self):
        """Each account logs in, uses a protected table and two plain ones, and leaves."""
        bench.stop(self.relay.process)
        self.start_proxy("accounts")
        report = {"at_first_mib": rss_mib(self.relay.process)}
        # what the first sessions take for good
        for _ in range(50):
            Connection(self.relay.port).close()
        by_kind = {}
        for account in self.accounts:
            by_kind.setdefault(account[2], []).append(account)
        for kind, accounts in by_kind.items():
            with self.span() as span:
                for name, database, _ in accounts:
                    connection = Connection(self.relay.port, name)
                    for table in ("p0", "t0", "t1"):
                        connection.query(f"SELECT id FROM {database}.{table} WHERE id = 1")
                    connection.close()
            report[kind] = {"accounts": len(accounts), **dict(span)}
        with self.span() as span:
            for number in range(10):
                connection = Connection(self.relay.port, f"w{number}")
                for name in self.names:
                    connection.query(f"SELECT id FROM {name}.t0 WHERE id = 1")
                connection.close()
        report["all databases"] = {"accounts": 10, **dict(span)}
        report["in_all_mib"] = rss_mib(self.relay.process)
        # many shapes of one account's statements
        connection = Connection(self.relay.port, self.accounts[0][0])
        shapes = 2000
        with self.span() as span:
            for number in range(shapes):
                connection.query(f"SELECT id, email AS x{number} FROM {self.accounts[0][1]}.p0 WHERE id = 1")
        report["plans"] = {"plans": shapes, **dict(span)}
        connection.close()
        self.report["accounts"] = report

    def active(self):
        """1,000 accounts with a statement a second each, next to as many sessions of one account; then definitions meanwhile."""
        questions, seconds = Questions(self.server, self.folder), self.options.seconds
        report = {}
        for what in ("one account", "all accounts"):
            bench.stop(self.relay.process)
            self.start_proxy(what.replace(" ", "-"))
            connections = []
            for name, database, _ in self.accounts:
                connection = Connection(self.relay.port, name if what == "all accounts" else self.accounts[-1][0])
                connection.database = database if what == "all accounts" else self.accounts[-1][1]
                connections.append(connection)
            statement = lambda connection, _: f"SELECT id FROM {connection.database}.p0 WHERE id = 1"
            paced(connections, statement, 3, 1.0)
            kinds = {"alone": None, "a definition at the server": self.server.port, "a definition through the proxy": self.relay.port}
            for meanwhile, port in kinds.items():
                over = threading.Event()

                def define():
                    connection = Connection(port)
                    number = 0
                    while not over.wait(1):
                        number += 1
                        connection.query(f"CREATE TABLE {self.names[0]}.x{number} (id INT)")
                    for made in range(1, number + 1):
                        connection.query(f"DROP TABLE {self.names[0]}.x{made}")

                definer = threading.Thread(target=define) if port else None
                with questions, self.span() as span:
                    if definer:
                        definer.start()
                    done, longest = paced(connections, statement, seconds, 1.0)
                over.set()
                if definer:
                    definer.join()
                report[f"{what}, {meanwhile}"] = {"statements": done, "longest_ms": longest * 1e3, **dict(span), **questions.counts()}
            for connection in connections:
                connection.close()
            progress(what)
        self.report["active"] = report

    def run(self):
        self.make_tables()
        self.make_accounts()
        self.start_proxy("started")
        self.report["start"] = {"seconds": self.relay.seconds, "mib": rss_mib(self.relay.process), "cpu": cpu(self.relay.process)}
        for part in (self.first_statements, self.tables_in_use, self.accounts_known, self.active):
            part()
            progress(part.__name__)
        return self.report


# --- sessions ---


class Sessions:
    def __init__(self, kind, options, folder):
        self.options, self.folder = options, folder
        most = options.sessions + 200
        more = [f"--max-connections={most}", "--open-files-limit=65536", "--table-open-cache=400", "--innodb-buffer-pool-size=256M",
                "--innodb-flush-log-at-trx-commit=0", "--performance-schema=OFF"]
        self.server = bench.Server(kind, folder, False, more)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.each = min(options.sessions, (hard - SPARE_FILES) // FILES_PER_SESSION)
        self.relays = []
        for number in range(-(-options.sessions // self.each)):
            self.relays.append(Proxy(self.server, folder, options.onionskin, f"sessions{number}"))

    def stop(self):
        for owner in (*self.relays, self.server):
            bench.stop(owner.process)

    def span(self):
        return Span(self.server, self.relays)

    def state(self):
        first = self.relays[0].process
        return {"proxy_mib": rss_mib(first), "threads": status(first, "Threads"), "files": len(os.listdir(f"/proc/{first.pid}/fd")),
                "mappings": Path(f"/proc/{first.pid}/maps").read_text().count("\n"), "virtual_mib": status(first, "VmSize") / 1024,
                "page_tables_mib": status(first, "VmPTE") / 1024, "server_mib": rss_mib(self.server.process)}

    def fill(self, wanted):
        """Opens sessions, one proxy after the other, until there are so many."""
        missing = range(len(self.connections), wanted)
        opened = [None] * len(missing)

        def work(number):
            for index in range(number, len(missing), 8):
                relay = self.relays[missing[index] // self.each]
                opened[index] = Connection(relay.port)

        with self.span() as span:
            in_threads(8, work)
        self.connections += opened
        return span

    def run(self):
        self.server.sql("CREATE DATABASE d000")
        maker = Connection(self.relays[0].port)
        maker.query(f"CREATE TABLE d000.p0 ({COLUMNS})")
        maker.query("INSERT INTO d000.p0 (id, email, note) VALUES (1, 'a@b.example', 'a note of some length')")
        # what the first sessions take for good
        for relay in self.relays:
            for connection in [Connection(relay.port) for _ in range(50)]:
                connection.close()
        maker.close()
        time.sleep(1)
        report = {"version": self.server.version, "each": self.each, "proxies": len(self.relays), "steps": {0: self.state()}}
        self.connections = []
        logins = []
        most = self.options.sessions
        for wanted in sorted({step for step in (1000, 2500, self.each, most) if step <= most}):
            count = wanted - len(self.connections)
            span = self.fill(wanted)
            logins.append({"sessions": wanted, "logins": count, **dict(span)})
            time.sleep(2)
            if wanted <= self.each:
                report["steps"][wanted] = self.state()
        report["logins"] = logins
        report["all"] = self.state()
        report["all_mib"] = [rss_mib(relay.process) for relay in self.relays]
        with self.span() as span:
            time.sleep(self.options.seconds)
        report["idle"] = dict(span)
        statement = lambda connection, number: "SELECT email, note FROM d000.p0 WHERE id = 1"
        # each session once, before anything is counted
        paced(self.connections, statement, 5, 5.0, 16)
        with self.span() as span:
            done, longest = paced(self.connections, statement, self.options.seconds, 5.0, 16)
        report["light"] = {"statements": done, "longest_ms": longest * 1e3, **dict(span)}
        report["after_light"] = self.state()
        report["after_light_mib"] = [rss_mib(relay.process) for relay in self.relays]
        with self.span() as span:
            for connection in self.connections:
                connection.close()
            end = time.monotonic() + 60
            while time.monotonic() < end and any(status(relay.process, "Threads") > 50 for relay in self.relays):
                time.sleep(0.1)
        report["closing"] = dict(span)
        report["after"] = self.state()
        report["log_bytes"] = self.relays[0].log.stat().st_size / (self.each + 50)
        return report


# --- statements ---


class Statements:
    """CPU a statement by sysbench, as scripts/bench.py measures it, and bytes."""

    WORKLOADS = ["oltp_point_select", "oltp_update_index", "oltp_update_non_index", "oltp_insert"]
    PATHS = ["plain", "protected", "audited"]

    def __init__(self, kind, options, folder):
        given = Namespace(durable=False, paths=self.PATHS, onionskin=options.onionskin, warmup=1, seconds=options.run_seconds, tables=4,
                          rows=25_000, distribution="special", threads=[options.threads], rounds=options.rounds, prepared=[False, True],
                          workloads=self.WORKLOADS, quick=False)
        self.bench = bench.Bench(kind, given, folder)
        self.server = self.bench.server

    def stop(self):
        self.bench.stop()

    def run(self):
        report = {"version": self.server.version, "threads": self.bench.options.threads[0], "cpu": {}, "server_cpu": {}, "audit_bytes": {}}
        for number in range(self.bench.options.rounds):
            for prepared in (False, True):
                for path in self.PATHS:
                    self.bench.create(path, path, 4, 25_000)
                for workload in self.WORKLOADS:
                    turn = number % len(self.PATHS)
                    for path in self.PATHS[turn:] + self.PATHS[:turn]:
                        before = self.bench.audited()
                        found = self.bench.run(path, workload, prepared, report["threads"])
                        key = f"{workload}, {'prepared' if prepared else 'text'}, {path}"
                        report["cpu"].setdefault(key, []).append(found["cpu"])
                        report["server_cpu"].setdefault(key, []).append(found["server_cpu"])
                        if path == "audited":
                            report["audit_bytes"].setdefault(key, []).append((self.bench.audited() - before))
                        progress(key)
        for what in ("cpu", "server_cpu"):
            report[what] = {key: statistics.median(values) for key, values in report[what].items()}
        report["bytes"] = self.bytes()
        return report

    def bytes(self):
        """Bytes of packets on both sides of the proxy, and of the lines of the audit log, for a statement."""
        c, pad = "12345678901-" * 9 + "12345678901", "12345678901-" * 4 + "12345678901"
        statements = {
            "point select": lambda i: f"SELECT c FROM sbtest1 WHERE id={i}",
            "insert": lambda i: f"INSERT INTO sbtest1 (id, k, c, pad) VALUES (0, {i}, '{c}', '{pad}')",
            "update": lambda i: f"UPDATE sbtest1 SET c='{c}' WHERE id={i}",
            "select of a plain table": lambda i: f"SELECT c FROM plain.sbtest1 WHERE id={i}",
        }
        report, count = {}, 500
        for what, statement in statements.items():
            connection = Connection(self.bench.relays["audited"].port)
            connection.query("USE audited")
            connection.query(statement(1))
            before = self.counted(connection)
            sent, received, audited = connection.sent, connection.received, self.bench.audited()
            for number in range(count):
                connection.query(statement(2 + number))
            # the last line comes before the session's next command
            connection.query("SELECT 1")
            sent, received = (connection.sent - sent) / count, (connection.received - received) / count
            after = self.counted(connection)
            to_server, from_server = ((b - a) / count for a, b in zip(before, after))
            report[what] = {"from_client": sent, "to_client": received, "to_server": to_server, "from_server": from_server,
                            "audit": (self.bench.audited() - audited) / count}
            connection.close()
        return report

    def counted(self, connection):
        rows = connection.query("SHOW SESSION STATUS WHERE Variable_name IN ('Bytes_received', 'Bytes_sent')")
        found = {}
        for row in rows:
            length = row[0]
            name, value = row[1 : 1 + length].decode(), row[2 + length :].decode()
            found[name.lower()] = int(value)
        return found["bytes_received"], found["bytes_sent"]


PARTS = {"catalogue": Catalogue, "sessions": Sessions, "statements": Statements}


def progress(text):
    print(f"  {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def show(value, depth=1):
    for key, inner in value.items():
        if isinstance(inner, dict):
            print(f"{'  ' * depth}{key}")
            show(inner, depth + 1)
        else:
            print(f"{'  ' * depth}{key:<28} {f'{inner:,.3f}' if isinstance(inner, float) else inner}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda allowed: lambda text: [x for x in text.split(",") if x in allowed] or parser.error(f"of {allowed}")
    parser.add_argument("--servers", type=names(["mariadb", "mysql"]), default=["mariadb", "mysql"])
    parser.add_argument("--parts", type=names(list(PARTS)), default=list(PARTS))
    parser.add_argument("--tables", type=int, default=100_000)
    parser.add_argument("--databases", type=int, default=100)
    parser.add_argument("--fill-seconds", type=int, default=600, help="for making tables; what is missing then is said")
    parser.add_argument("--accounts", type=int, default=1000)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=20, help="of each measurement of what goes on in the background")
    parser.add_argument("--run-seconds", type=int, default=3, help="of each run of sysbench")
    parser.add_argument("--rounds", type=int, default=3, help="of sysbench")
    parser.add_argument("--threads", type=int, default=32, help="of sysbench")
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"), help="for servers and proxies; a new folder in it, removed in the end")
    parser.add_argument("--onionskin", type=Path, default=bench.CHECKOUT / "target/release/onionskin")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    threading.stack_size(512 * 1024)
    gc.disable()
    reports = {}
    for kind in options.servers:
        for part in options.parts:
            with tempfile.TemporaryDirectory(prefix="bench-scale-", dir=options.folder) as folder:
                measured = PARTS[part](kind, options, Path(folder))
                try:
                    report = measured.run()
                finally:
                    measured.stop()
            reports[f"{kind}, {part}"] = report
            print(f"\n{kind}: {part}")
            show(report)
            sys.stdout.flush()
            if options.json:
                options.json.write_text(json.dumps(reports, indent=1))


if __name__ == "__main__":
    main()
