#!/usr/bin/env python3
"""What Onionskin costs, measured on this machine: `make bench`.

For MariaDB and MySQL, sysbench's oltp workloads run over four paths to the same private server:

    direct       sysbench → server
    haproxy      sysbench → HAProxy in TCP mode → server
    plain        sysbench → onionskin → server, tables without protected columns
    protected    sysbench → onionskin → server, k searchable by equality and range, c and pad sealed
    audited      the same with the audit log on; not measured unless it is asked for

Each path has a database of its own, filled anew at the beginning of every round. Within a round, the paths of one
workload run one after the other, in an order that rotates from round to round, so that a slow minute of the machine
hits all of them; each but the deletes is preceded by a short run that is not counted. Reported are medians over the
rounds; ratios are medians of the ratios within a round.

A benchmark must prove that what it compares was in force: before it measures, it asks the server (not the proxy) for
the columns of the tables, and after each run it looks whether the relay in question used the CPU at all.

Then, for each server: the bytes that a row takes; 1,000,000 rows inserted by 24 threads, with the throughput of each
tenth and the proxy's resident memory; and the memory of 2,000 idle sessions.

Everything ends by itself, and every process that was started is ended by its id.
"""

import argparse
import atexit
import json
import os
import platform
import random
import re
import resource
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
MYSQL = CHECKOUT / ".servers/mysql"
PATHS = ["direct", "haproxy", "plain", "protected"]
PROTECTED = ["protected", "audited"]
# Deletes come last: they empty the tables.
WORKLOADS = ["oltp_point_select", "oltp_read_write", "oltp_update_index", "oltp_insert", "oltp_delete"]
PROTECT = "".join(f'\n[protect."{path}*.*"]\nk = ["eq", "range"]\nc = []\npad = []\n' for path in PROTECTED)
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")

processes = []


def start(command, **options):
    """Starts a process that is ended when this program ends, in whichever way."""
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)], stdin=subprocess.DEVNULL, **options
    )
    processes.append(process)
    return process


def stop(process, patience=60):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process in processes:
        processes.remove(process)


@atexit.register
def stop_all():
    for process in list(reversed(processes)):
        stop(process, 20)


def program(name):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin")
    if not path:
        sys.exit(f"bench: {name} is missing; run scripts/install-deps.sh tests")
    return path


def free_port():
    while True:
        port = random.randrange(15000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def wait_for_port(port, process, log, seconds=90):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    text = Path(log).read_text(errors="replace") if Path(log).exists() else ""
    sys.exit(f"bench: {process.args[4]} does not start:\n{text[-3000:]}")


def cpu_seconds(pid):
    """User and system time of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_kib(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE // 1024


class Server:
    """A private server of its own, on a folder of its own."""

    def __init__(self, kind, folder, durable, more=()):
        self.kind = kind
        self.data = folder / "data"
        self.socket = folder / "s"
        self.port = free_port()
        log = folder / "error.log"
        binary = program("mariadbd") if kind == "mariadb" else CHECKOUT / "scripts/mysqld97"
        user = ["--user=root"] if os.getuid() == 0 else []
        if kind == "mariadb":
            initialise = [program("mariadb-install-db"), "--no-defaults", "--auth-root-authentication-method=normal",
                          "--skip-test-db"]
        else:
            initialise = [binary, "--no-defaults", "--initialize-insecure"]
        made = subprocess.run([*map(str, initialise), *user, f"--datadir={self.data}"], capture_output=True, text=True)
        if made.returncode:
            sys.exit(f"bench: cannot initialise {kind}:\n{made.stdout[-2000:]}{made.stderr[-2000:]}")
        accounts = folder / "accounts.sql"
        accounts.write_text(
            "CREATE USER IF NOT EXISTS 'root'@'127.0.0.1' IDENTIFIED BY '';\n"
            "GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n"
        )
        command = [
            binary, "--no-defaults", *user, f"--datadir={self.data}", f"--socket={self.socket}", f"--port={self.port}",
            f"--pid-file={folder / 'pid'}", f"--log-error={log}", f"--tmpdir={folder}", f"--init-file={accounts}",
            "--bind-address=127.0.0.1", "--skip-name-resolve", "--max-connections=4000", "--back-log=1000", "--secure-file-priv=",
            "--open-files-limit=20000", "--max-prepared-stmt-count=100000",
            "--innodb-buffer-pool-size=1G", f"--innodb-flush-log-at-trx-commit={1 if durable else 2}",
        ]
        if kind == "mysql":
            command += ["--skip-log-bin", "--mysqlx=OFF", "--innodb-redo-log-capacity=1G"]
        else:
            command += ["--innodb-log-file-size=1G"]
        self.process = start([*command, *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_port(self.port, self.process, log)
        self.version = self.sql("SELECT VERSION()").strip()

    def sql(self, statement, database=""):
        """Runs a statement over the Unix socket, past every relay."""
        client = [program("mariadb"), "--no-defaults", f"--socket={self.socket}", "--user=root", "-N", "-B"]
        ran = subprocess.run([*client, "-e", statement, *([database] if database else [])],
                             capture_output=True, text=True, timeout=120)
        if ran.returncode:
            sys.exit(f"bench: {statement}\n{ran.stderr}")
        return ran.stdout


class HaProxy:
    def __init__(self, server, folder):
        self.port = free_port()
        config = folder / "haproxy.cfg"
        config.write_text(
            "global\n  maxconn 5000\ndefaults\n  mode tcp\n  timeout connect 10s\n  timeout client 1h\n"
            f"  timeout server 1h\nlisten mysql\n  bind 127.0.0.1:{self.port}\n  server s 127.0.0.1:{server.port}\n"
        )
        log = folder / "haproxy.log"
        self.process = start([program("haproxy"), "-db", "-f", config], stdout=open(log, "w"), stderr=subprocess.STDOUT)
        wait_for_port(self.port, self.process, log)


def without_engine(config):
    """A configuration without the scratch engine that init lets the proxy start: who measures one names it."""
    return config.replace('\n[scratch]\nengine = "auto"\n', "\n")


class Onionskin:
    def __init__(self, server, folder, binary, more="", name="onionskin"):
        self.port = free_port()
        home = folder / name
        home.mkdir()
        backend = f"127.0.0.1:{server.port}"
        subprocess.run([binary, "init", "--dir", home, "--backend", backend], check=True, stdout=subprocess.DEVNULL)
        # MySQL would offer TLS, which costs CPU that the other paths do not pay.
        file = home / "onionskin.toml"
        file.write_text('backend_tls = "never"\n' + without_engine(file.read_text()) + PROTECT + more)
        self.log = folder / f"{name}.log"
        self.process = start(
            [binary, "serve", "-c", home / "onionskin.toml", "--listen", f"127.0.0.1:{self.port}"],
            stdout=open(self.log, "w"), stderr=subprocess.STDOUT,
        )
        wait_for_port(self.port, self.process, self.log)


def sysbench(port, database, script, command, *options, timeout=600):
    arguments = [
        program("sysbench"), script, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={port}",
        "--mysql-user=root", "--mysql-password=", f"--mysql-db={database}", *options, command,
    ]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=timeout)
    text = ran.stdout + ran.stderr
    if ran.returncode or "FATAL" in text:
        sys.exit(f"bench: sysbench {script} {command} on {database}:\n{text[-3000:]}")
    return text


def number(pattern, text):
    found = re.search(pattern, text)
    if not found:
        sys.exit(f"bench: sysbench's report has no {pattern}:\n{text}")
    return float(found.group(1))


class Bench:
    def __init__(self, kind, options, folder):
        self.kind, self.options = kind, options
        self.server = Server(kind, folder, options.durable)
        self.relays = {}
        if "haproxy" in options.paths:
            self.relays["haproxy"] = HaProxy(self.server, folder)
        if {"plain", "protected"} & set(options.paths):
            relay = Onionskin(self.server, folder, options.onionskin)
            self.relays["plain"] = self.relays["protected"] = relay
        if "audited" in options.paths:
            lines = folder / "audit"
            lines.mkdir()
            audit = f'\n[audit]\nfolder = "{lines}"\nheads = "{folder}/heads"\n'
            self.relays["audited"] = Onionskin(self.server, folder, options.onionskin, audit, "audited")
            self.audit = lines
        self.results = []

    def port(self, path):
        return self.relays[path].port if path in self.relays else self.server.port

    def stop(self):
        for process in {relay.process for relay in self.relays.values()}:
            stop(process)
        stop(self.server.process)

    def create(self, database, path, tables, rows):
        self.server.sql(f"DROP DATABASE IF EXISTS `{database}`; CREATE DATABASE `{database}`")
        sysbench(self.port(path), database, "oltp_read_write", "prepare", f"--tables={tables}",
                 f"--table-size={rows}", f"--threads={min(tables, 4)}")
        self.prove(database, path in PROTECTED)

    def prove(self, database, protected):
        """The server itself says whether the columns are protected."""
        names = self.server.sql(
            "SELECT column_name FROM information_schema.columns "
            f"WHERE table_schema = '{database}' AND table_name = 'sbtest1'"
        ).split()
        hidden = not {"k", "c", "pad"} & set(names) and {"k$enc", "c$enc", "pad$enc"} <= set(names)
        readable = {"k", "c", "pad"} <= set(names)
        if not (hidden if protected else readable):
            sys.exit(f"bench: {database}.sbtest1 has the columns {names}: not what is to be measured")

    def run(self, path, workload, prepared, threads):
        if self.options.warmup and workload != "oltp_delete":
            self.load(path, workload, prepared, threads, self.options.warmup)
        relay = self.relays.get(path)
        before = cpu_seconds(relay.process.pid) if relay else 0
        server_before = cpu_seconds(self.server.process.pid)
        audited_before = self.audited() if path == "audited" else 0
        text = self.load(path, workload, prepared, threads, self.options.seconds)
        if path == "audited" and self.audited() <= audited_before:
            sys.exit("bench: the audit log has not grown")
        queries = number(r"queries:\s+(\d+)", text)
        result = {
            "qps": queries / number(r"total time:\s+([\d.]+)s", text),
            "p95": number(r"95th percentile:\s+([\d.]+)", text),
            "server_cpu": (cpu_seconds(self.server.process.pid) - server_before) * 1e6 / queries,
        }
        if relay:
            used = cpu_seconds(relay.process.pid) - before
            if used <= 0:
                sys.exit(f"bench: {path}: the relay used no CPU; the load did not pass through it")
            result["cpu"] = used * 1e6 / queries
        return result

    def load(self, path, workload, prepared, threads, seconds):
        return sysbench(
            self.port(path), path, workload, "run", f"--tables={self.options.tables}",
            f"--table-size={self.options.rows}", f"--threads={threads}", f"--time={seconds}",
            f"--rand-type={self.options.distribution}",
            f"--db-ps-mode={'auto' if prepared else 'disable'}", "--percentile=95",
        )

    def audited(self):
        """Bytes of the audit log."""
        return sum(part.stat().st_size for part in self.audit.iterdir())

    def workloads(self):
        options = self.options
        samples = {}
        for threads in options.threads:
            for round_number in range(options.rounds):
                for prepared in options.prepared:
                    for path in options.paths:
                        self.create(path, path, options.tables, options.rows)
                    if not options.quick:
                        # The new tables' pages are written meanwhile, instead of during the first measurement.
                        time.sleep(2)
                    for workload in options.workloads:
                        turn = round_number % len(options.paths)
                        for path in options.paths[turn:] + options.paths[:turn]:
                            sample = self.run(path, workload, prepared, threads)
                            samples.setdefault((threads, prepared, workload), {}).setdefault(path, []).append(sample)
                            progress(f"{self.kind} round {round_number + 1} of {options.rounds}: {workload} {path} "
                                     f"{sample['qps']:.0f}/s")
        for (threads, prepared, workload), by_path in samples.items():
            for path, runs in by_path.items():
                row = {
                    "server": self.kind, "version": self.server.version, "threads": threads,
                    "prepared": prepared, "workload": workload, "path": path,
                    **{key: statistics.median(run[key] for run in runs) for key in runs[0]},
                }
                for base in ("direct", "haproxy", "protected"):
                    if base in by_path:
                        pairs = zip(runs, by_path[base])
                        row[f"to_{base}"] = statistics.median(run["qps"] / other["qps"] for run, other in pairs)
                self.results.append(row)

    def size(self):
        """Bytes per row, of plain and of protected tables with the same rows in them."""
        rows, sizes = 20_000 if self.options.quick else 100_000, {}
        for path in ("direct", "protected"):
            if path not in self.options.paths:
                continue
            database = f"{path}_size"
            self.create(database, path, 1, rows)
            expiry = "SET information_schema_stats_expiry = 0; " if self.kind == "mysql" else ""
            self.server.sql("ANALYZE TABLE sbtest1; FLUSH TABLES sbtest1 FOR EXPORT; UNLOCK TABLES", database)
            data, index = self.server.sql(
                f"{expiry}SELECT data_length, index_length FROM information_schema.tables "
                f"WHERE table_schema = '{database}' AND table_name = 'sbtest1'"
            ).split()
            file = (self.server.data / database / "sbtest1.ibd").stat().st_size
            sizes[path] = {"data": int(data) / rows, "index": int(index) / rows, "file": file / rows}
            self.server.sql(f"DROP DATABASE `{database}`")
        return sizes

    def million(self):
        """A long insert: is the end as fast as the beginning, and does memory stay where it is?"""
        rows, report = (100_000 if self.options.quick else 1_000_000), {}
        for path in ("direct", "protected"):
            if path not in self.options.paths:
                continue
            database = f"{path}_million"
            self.create(database, path, 1, 1)
            relay = self.relays.get(path)
            memory, over = [], threading.Event()

            def sample():
                while relay and not over.wait(0.5):
                    memory.append(resident_kib(relay.process.pid))

            sampler = threading.Thread(target=sample)
            sampler.start()
            try:
                text = sysbench(self.port(path), database, "oltp_insert", "run", "--tables=1", "--table-size=1",
                                "--threads=24", f"--events={rows}", "--time=0", "--report-interval=1",
                                "--db-ps-mode=disable", timeout=3600)
            finally:
                over.set()
                sampler.join()
            stored = int(self.server.sql(f"SELECT COUNT(*) FROM `{database}`.sbtest1"))
            if stored != rows + 1:
                sys.exit(f"bench: {stored} rows of {rows + 1} are stored")
            seconds = number(r"total time:\s+([\d.]+)s", text)
            report[path] = {
                "rows": rows, "seconds": seconds, "rows_per_second": rows / seconds,
                "tenths": tenths([float(x) for x in re.findall(r"\[ \d+s \] .*?tps: ([\d.]+)", text)], rows,
                                 seconds),
                "memory_mib": [round(m / 1024, 1) for m in memory],
            }
            progress(f"{self.kind}: {rows} rows {path} in {seconds:.0f} s")
            self.server.sql(f"DROP DATABASE `{database}`")
        return report

    def idle(self):
        """Resident memory of a session that does nothing."""
        report, sessions = {}, 200 if self.options.quick else 2000
        for path in ("haproxy", "protected"):
            if path not in self.relays:
                continue
            pid, port = self.relays[path].process.pid, self.relays[path].port
            # What the first sessions allocate for good is not the price of one session.
            for connection in [login(port) for _ in range(50)]:
                connection.close()
            time.sleep(1)
            before = resident_kib(pid)
            connections = [login(port) for _ in range(sessions)]
            time.sleep(1)
            after = resident_kib(pid)
            for connection in connections:
                connection.sendall(b"\1\0\0\0\x0e")
            alive = sum(read_packet(connection)[1][:1] == b"\0" for connection in connections)
            for connection in connections:
                connection.close()
            if alive != sessions:
                sys.exit(f"bench: {alive} of {sessions} idle sessions answer")
            report[path] = {"sessions": sessions, "kib_each": (after - before) / sessions, "total_mib": after / 1024}
        return report


def tenths(per_second, rows, seconds):
    """Throughput of each tenth of the rows, from the throughput of each second, which sysbench does not report for
    the last one."""
    points, done = [(0.0, 0.0)], 0.0
    for second, rate in enumerate(per_second, 1):
        done += rate
        if second < seconds and done < rows:
            points.append((float(second), done))
    points.append((seconds, float(rows)))

    def moment(count):
        for (t0, n0), (t1, n1) in zip(points, points[1:]):
            if n1 >= count:
                return t0 + (t1 - t0) * (count - n0) / max(n1 - n0, 1e-9)
        return seconds

    bounds = [moment(rows * i / 10) for i in range(11)]
    return [round(rows / 10 / max(end - begin, 1e-3)) for begin, end in zip(bounds, bounds[1:])]


def read_packet(connection):
    def exactly(length):
        data = b""
        while len(data) < length:
            part = connection.recv(length - len(data))
            if not part:
                sys.exit("bench: an idle session was closed")
            data += part
        return data

    header = exactly(4)
    return header[3], exactly(int.from_bytes(header[:3], "little"))


def login(port, user="root"):
    """A session of an account that has no password, by hand: client libraries cost more memory than the session."""
    connection = socket.create_connection(("127.0.0.1", port), 30)
    connection.settimeout(30)
    _, greeting = read_packet(connection)
    plugin = greeting.rstrip(b"\0").rsplit(b"\0", 1)[1]
    capabilities = 0x1 | 0x200 | 0x2000 | 0x8000 | 0x80000
    answer = struct.pack("<IIB23x", capabilities, 1 << 24, 45) + user.encode() + b"\0\0" + plugin + b"\0"
    connection.sendall(len(answer).to_bytes(3, "little") + b"\1" + answer)
    while True:
        sequence, reply = read_packet(connection)
        if reply[:1] == b"\0":
            return connection
        if reply[:1] == b"\xfe":
            connection.sendall(b"\0\0\0" + bytes([sequence + 1]))
        elif reply[:1] != b"\1":
            sys.exit(f"bench: login: {reply!r}")


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def show_workloads(results):
    groups = {}
    for row in results:
        groups.setdefault((row["server"], row["version"], row["threads"], row["prepared"]), []).append(row)
    for (server, version, threads, prepared), rows in groups.items():
        print(f"\n{server} {version}, {threads} threads, {'prepared statements' if prepared else 'text protocol'}\n")
        print(f"{'workload':<20}{'path':<12}{'queries/s':>10}{'95 % ms':>9}{'/ direct':>10}{'/ HAProxy':>11}"
              f"{'relay CPU µs':>14}{'server CPU µs':>15}")
        for row in rows:
            ratio = [f"{row[key]:.2f}" if key in row else "" for key in ("to_direct", "to_haproxy")]
            cpu = f"{row['cpu']:.1f}" if "cpu" in row else ""
            print(f"{row['workload']:<20}{row['path']:<12}{row['qps']:>10.0f}{row['p95']:>9.2f}{ratio[0]:>10}"
                  f"{ratio[1]:>11}{cpu:>14}{row['server_cpu']:>15.1f}")
        for row in rows:
            if row["path"] == "audited" and "to_protected" in row:
                print(f"{row['workload']}: {row['to_protected']:.2f} of the speed without the audit log")


def show_goals(results):
    """The figures of the workloads against the goals, in one line each."""
    goals = [("plain", "to_haproxy", 1.2, min, "at least 1.2 × HAProxy"),
             ("protected", "to_haproxy", 1.0, min, "at least 1.0 × HAProxy's plaintext"),
             ("protected", "to_direct", 0.8, min, "at least 0.8 × direct plaintext")]
    print()
    for path, key, limit, worst, text in goals:
        found = [row for row in results if row["path"] == path and key in row]
        if found:
            row = worst(found, key=lambda row: row[key])
            verdict = "reached" if row[key] >= limit else "NOT reached"
            print(f"{path}: {text}: {verdict}; the worst is {row[key]:.2f} ({row['server']}, {row['workload']}, "
                  f"{'prepared' if row['prepared'] else 'text'}, {row['threads']} threads)")
    by_key = {(row["server"], row["threads"], row["prepared"], row["workload"], row["path"]): row for row in results}
    for path, limit in (("plain", 1.0), ("protected", 1.0)):
        ratios = []
        for (*key, row_path), row in by_key.items():
            other = by_key.get((*key, "haproxy"))
            if row_path == path and other:
                ratios.append((row["cpu"] / other["cpu"], key))
        if ratios:
            worst, key = max(ratios)
            verdict = "reached" if worst <= limit else "NOT reached"
            print(f"{path}: CPU per statement at most {limit} × HAProxy's: {verdict}; the worst is {worst:.2f} "
                  f"({key[0]}, {key[3]}, {'prepared' if key[2] else 'text'}, {key[1]} threads)")


def show_rest(kind, report):
    if report["size"]:
        print(f"\n{kind}: bytes per row (data + indexes; file)")
        for path, size in report["size"].items():
            print(f"  {path:<12}{size['data']:>8.0f} + {size['index']:.0f}; {size['file']:.0f}")
    for path, run in report["million"].items():
        print(f"\n{kind}: {run['rows']:,} rows from 24 threads, {path}: {run['rows_per_second']:.0f} rows/s")
        print(f"  rows/s of each tenth: {' '.join(map(str, run['tenths']))}")
        memory = run["memory_mib"]
        if memory:
            at = [memory[int(i * (len(memory) - 1) / 10)] for i in range(11)]
            print(f"  resident memory of the proxy, MiB: {' '.join(map(str, at))}; highest {max(memory)}")
    for path, idle in report["idle"].items():
        print(f"\n{kind}: {idle['sessions']} idle sessions over {path}: {idle['kib_each']:.1f} KiB each, "
              f"{idle['total_mib']:.0f} MiB in all")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    names = lambda allowed: lambda text: [x for x in text.split(",") if x in allowed] or parser.error(f"of {allowed}")
    parser.add_argument("--quick", action="store_true", help="one round of one second each: a first impression")
    parser.add_argument("--rounds", type=int, help="default 3; 1 with --quick")
    parser.add_argument("--seconds", type=int, help="of each measurement; default 5; 1 with --quick")
    parser.add_argument("--warmup", type=int, help="seconds before each measurement but deletes; default 2; 0 with --quick")
    parser.add_argument("--distribution", choices=["special", "uniform", "pareto", "zipfian"], default="special",
                        help="of the rows that are read and written; sysbench's own default is special, three "
                             "quarters of the load on one row in a hundred")
    parser.add_argument("--threads", type=lambda text: [int(x) for x in text.split(",")], default=[8])
    parser.add_argument("--servers", type=names(["mariadb", "mysql"]), default=["mariadb", "mysql"])
    parser.add_argument("--paths", type=names(PATHS + ["audited"]), default=PATHS)
    parser.add_argument("--workloads", type=names(WORKLOADS), default=WORKLOADS)
    parser.add_argument("--statements", choices=["text", "prepared", "both"], default="both")
    parser.add_argument("--parts", type=names(["workloads", "size", "million", "idle"]),
                        default=["workloads", "size", "million", "idle"])
    parser.add_argument("--tables", type=int, default=4)
    parser.add_argument("--rows", type=int, default=25_000, help="in each table")
    parser.add_argument("--durable", action="store_true", help="innodb_flush_log_at_trx_commit=1 instead of 2")
    parser.add_argument("--onionskin", type=Path, default=CHECKOUT / "target/release/onionskin")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args()
    options.prepared = {"text": [False], "prepared": [True], "both": [False, True]}[options.statements]
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.seconds = options.seconds or (1 if options.quick else 5)
    if options.warmup is None:
        options.warmup = 0 if options.quick else 2
    if options.quick:
        options.rows = min(options.rows, 5_000)
    if {"plain", *PROTECTED} & set(options.paths) and not options.onionskin.exists():
        sys.exit(f"bench: {options.onionskin} is missing: cargo build --release -p onionskin")
    if "mysql" in options.servers and not (MYSQL / ".complete").exists():
        reason = MYSQL.with_name("mysql.skipped")
        print("SKIPPED: MySQL could not be installed:", reason.read_text() if reason.exists() else "not tried yet")
        options.servers.remove("mysql")

    # 2,000 sessions are 2,000 sockets here, and twice as many in a relay.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else 65536, hard))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: terminated"))

    print(f"{os.cpu_count()} CPUs, Linux {platform.release()}; {options.rounds} rounds of {options.seconds} s after {options.warmup} s, "
          f"{options.distribution} distribution, "
          f"{options.tables} tables of {options.rows} rows, "
          f"innodb_flush_log_at_trx_commit={1 if options.durable else 2}, no binary log")
    results, reports = [], {}
    for kind in options.servers:
        with tempfile.TemporaryDirectory(prefix="osb-", dir="/tmp") as folder:
            bench = Bench(kind, options, Path(folder))
            try:
                parts = options.parts
                if "workloads" in parts:
                    bench.workloads()
                reports[kind] = {
                    "size": bench.size() if "size" in parts else {},
                    "million": bench.million() if "million" in parts else {},
                    "idle": bench.idle() if "idle" in parts else {},
                }
            finally:
                bench.stop()
            progress("")
            show_workloads(bench.results)
            show_rest(kind, reports[kind])
            sys.stdout.flush()
            results += bench.results
    show_goals(results)
    if options.json:
        options.json.write_text(json.dumps({"workloads": results, "reports": reports}, indent=1))


if __name__ == "__main__":
    main()
