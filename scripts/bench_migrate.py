#!/usr/bin/env python3
"""What it takes to change a table while an application writes to it: onionskin migrate, native ALTER TABLE,
pt-online-schema-change and gh-ost, in one run.

    scripts/bench_migrate.py [--server mariadb|mysql] [--rows N] [--operations rebuild,add,encrypt] [--loads 0,3000,6000,12000,max]
                             [--tools …] [--rounds N] [--switches N] [--memory N,N]

A private server (data in /dev/shm, so that no disk takes part; 1 GiB buffer pool; row-based binlog) has sysbench's table with --rows rows.
For each run it is copied afresh and changed by one tool, while --threads sessions of sysbench change rows: each statement changes four
rows that lie together, `UPDATE t SET c = … WHERE id BETWEEN x AND x + 3`, at random places, as often as the load says (row changes a
second; `max`: as fast as they can). --encrypt runs behind a proxy, which the load goes through, too.

    s            from the tool's start to its end; a tool that has not ended within --limit seconds is stopped: "does not end"
    load         statements of the application during the change, relative to those just before it
    stall ms     the longest statement of the application during the change and a second after it
    late ms      the longest time from when a statement was due to its end: where the application falls behind its rate, statements wait for
                 their turn, and are as late at the end as all that was missed would take
    MiB          peak resident memory of the tool

Afterwards the table must have all rows and the change. --switches changes a small table that often under 3,000 row changes a second, and
prints for how long statements waited at the switch, as the tool itself measured and as the application saw in all the time of the change;
with --control also in as long a time without one. --memory prints the peak memory
of the tool for tables of these sizes. pt-online-schema-change and gh-ost take part where they are installed; nothing else depends on them.
"""

import argparse
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
ADD = "ADD COLUMN c1 VARCHAR(100) NOT NULL DEFAULT 'x'"
ENCRYPT = "k: eq range; c:; pad:"
ROWS_EACH = 4
LOAD = """
local ffi = require("ffi")
ffi.cdef("typedef struct { long s; long ns; } onionskin_time; int clock_gettime(int, onionskin_time *);")
local clock = ffi.new("onionskin_time")
local longest, told = 0, 0
local function now()
   ffi.C.clock_gettime(1, clock)
   return tonumber(clock.s) * 1e3 + tonumber(clock.ns) / 1e6
end
function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
end
function event()
   local id = sysbench.rand.uniform(1, %(rows)d - 3)
   local begun = now()
   con:query("UPDATE sbtest1 SET c = '" .. sysbench.rand.string("###########-###########-###########-###########") ..
             "' WHERE id BETWEEN " .. id .. " AND " .. (id + 3))
   local ended = now()
   longest = math.max(longest, ended - begun)
   if ended > told + 250 or ended > begun + 50 then
      print(string.format("longest %%.1f", longest))
      longest, told = 0, ended
   end
end
function thread_done() con:disconnect() end
sysbench.cmdline.options = {}
"""


def user():
    return ["--user=root"] if os.getuid() == 0 else []


def run_quietly(command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A private server of our own."""

    def __init__(self, kind, folder):
        self.kind, self.folder = kind, folder
        self.socket, self.port = folder / "s", free_port()
        data = folder / "data"
        common = [f"--datadir={data}", f"--socket={self.socket}", f"--port={self.port}", "--bind-address=127.0.0.1",
                  "--innodb-buffer-pool-size=1G", "--innodb-flush-log-at-trx-commit=2", "--log-bin=binlog", "--server-id=1",
                  "--binlog-format=ROW", "--sync-binlog=0", "--max-binlog-size=64M", "--skip-name-resolve", f"--log-error={folder}/server.log",
                  f"--pid-file={folder}/pid", f"--tmpdir={folder}", "--secure-file-priv=", *user()]
        path = os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"
        if kind == "mariadb":
            run_quietly(["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db",
                         f"--datadir={data}", *user()])
            command = [shutil.which("mariadbd", path=path), "--no-defaults", "--innodb-log-file-size=512M", *common]
        else:
            program = CHECKOUT / "scripts/mysqld97"
            run_quietly([program, "--no-defaults", "--initialize-insecure", f"--datadir={data}", f"--log-error={folder}/init.log", *user()])
            command = [program, "--no-defaults", "--innodb-redo-log-capacity=1G", "--mysqlx=OFF", *common]
        init = folder / "accounts.sql"
        init.write_text("CREATE USER IF NOT EXISTS 'root'@'127.0.0.1' IDENTIFIED BY '';\n"
                        "GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n")
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *map(str, command), f"--init-file={init}"])
        while subprocess.run(self.client("SELECT 1"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            if self.process.poll() is not None:
                raise SystemExit((folder / "server.log").read_text()[-2000:])
            time.sleep(0.1)

    def client(self, sql, database=""):
        return ["mariadb", "--no-defaults", f"--socket={self.socket}", "--user=root", "--batch", "--skip-column-names", "-e", sql, database]

    def ask(self, sql, database="mysql"):
        return run_quietly(self.client(sql, database)).strip()

    def fill(self, rows):
        self.ask("DROP DATABASE IF EXISTS source; CREATE DATABASE source")
        run_quietly(["sysbench", "oltp_read_write", f"--mysql-socket={self.socket}", "--mysql-user=root", "--mysql-db=source",
                     "--tables=1", f"--table-size={rows}", "prepare"])
        self.ask("ANALYZE TABLE source.sbtest1")

    def fresh(self):
        """The table as it was, in a database of its own."""
        self.ask("SET sql_log_bin = 0; DROP DATABASE IF EXISTS app; CREATE DATABASE app; CREATE TABLE app.sbtest1 LIKE source.sbtest1; "
                 "INSERT INTO app.sbtest1 SELECT * FROM source.sbtest1; ANALYZE TABLE app.sbtest1")
        self.ask("RESET MASTER" if self.kind == "mariadb" else "RESET BINARY LOGS AND GTIDS")

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Load:
    """sysbench, and the longest statement of every second."""

    def __init__(self, lua, port, threads, rate):
        self.seconds, self.failed = [], None  # (when it ended, statements, how late the latest was in ms)
        self.statements = []  # (when it was told, the longest of a thread in a quarter of a second in ms)
        command = ["stdbuf", "-oL", "sysbench", str(lua), "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={port}",
                   "--mysql-user=root", "--mysql-db=app", f"--threads={threads}", "--time=600", "--events=0", "--report-interval=1",
                   "--percentile=100", "--mysql-ignore-errors=1213,1020,1205,1062"]
        if rate:
            command.append(f"--rate={rate}")
        self.process = subprocess.Popen([*command, "run"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            if found := re.search(r"tps: ([\d.]+) .*lat \(ms,\d+%\): ([\d.]+) err/s", line):
                self.seconds.append((time.monotonic(), float(found[1]), float(found[2])))
            if found := re.match(r"longest ([\d.]+)", line):
                self.statements.append((time.monotonic(), float(found[1])))
            if "FATAL" in line and self.failed is None:
                self.failed = line.strip()

    def stall(self, since):
        """The longest statement."""
        return max((longest for at, longest in self.statements if at > since), default=float("nan"))

    def late(self, since):
        """The latest statement."""
        return max((late for at, _, late in self.seconds if at > since), default=float("nan"))

    def rate(self, since, until):
        """Statements a second in the seconds that lie mostly between two moments."""
        seen = [statements for at, statements, _ in self.seconds if since + 0.5 < at <= until + 0.5]
        return statistics.mean(seen) if seen else float("nan")

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()


def commands(server, program, home, operation, folder):
    """Tool → command; a text is SQL."""
    made = {}
    change = {"rebuild": "ENGINE=InnoDB", "add": ADD}.get(operation)
    if change:
        force = "FORCE" if operation == "rebuild" else ADD + ", FORCE"
        made["native, in place"] = f"ALTER TABLE app.sbtest1 {force}, ALGORITHM=INPLACE, LOCK=NONE"
        made["native, copy"] = f"ALTER TABLE app.sbtest1 {force}, ALGORITHM=COPY"
        if shutil.which("pt-online-schema-change"):
            defaults = folder / "defaults.cnf"
            defaults.write_text(f"[client]\nhost=127.0.0.1\nport={server.port}\nuser=root\n")
            made["pt-osc"] = ["pt-online-schema-change", f"--defaults-file={defaults}", "--no-version-check", "--recursion-method=none",
                              "--no-check-replication-filters", "--no-check-alter", "--alter", change, "--execute", "D=app,t=sbtest1",
                              "--max-load", "Threads_running=1000", "--critical-load", "Threads_running=2000"]
        if shutil.which("gh-ost"):
            made["gh-ost"] = ["gh-ost", "--host=127.0.0.1", f"--port={server.port}", "--user=root", "--database=app", "--table=sbtest1",
                              f"--alter={change}", "--allow-on-master", "--initially-drop-ghost-table", "--initially-drop-old-table",
                              "--initially-drop-socket-file", f"--serve-socket-file={folder}/gh-ost.sock", "--assume-rbr", "--execute"]
    ours = [program, "migrate", "app.sbtest1", "--backend", f"127.0.0.1:{server.port}", "--drop-old", "--quiet"]
    what = {"rebuild": ["--rebuild"], "add": ["--alter", ADD], "encrypt": ["--encrypt", ENCRYPT]}[operation]
    made["onionskin"] = [*ours, *what, *(["-c", str(home / "onionskin.toml")] if operation == "encrypt" else [])]
    return made


def tool(server, command, limit):
    """Runs it; seconds, peak memory in MiB, why it failed, what it printed."""
    if isinstance(command, str):
        command = server.client(command)
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        timer = threading.Timer(limit, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begin
        late = not timer.is_alive()
        timer.cancel()
        out.seek(0)
        text = out.read()
    failed = None
    if process.returncode:
        failed = "does not end" if late else " ".join(text.strip().splitlines()[-1:])[:160] or f"exit {process.returncode}"
    return seconds, usage.ru_maxrss / 1024, failed, text


def clean(server):
    """Removes what a stopped tool has left."""
    for trigger in server.ask("SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'app'").split():
        server.ask(f"DROP TRIGGER app.`{trigger}`")


def change(server, arguments, lua, port, command, load, before=2):
    """One change under one load."""
    server.fresh()
    writers = None
    kept = stall = late = None
    if load != "0":
        rate = 0 if load == "max" else int(load) // ROWS_EACH
        writers = Load(lua, port, arguments.threads, rate)
        time.sleep(1 + before)
    since = time.monotonic()
    seconds, memory, failed, text = tool(server, command, arguments.limit)
    if writers:
        until = time.monotonic()
        time.sleep(1.3)
        without = writers.rate(since - before - 0.5, since - 0.5)
        kept = writers.rate(since, until) / without if without else None
        stall, late = writers.stall(since), writers.late(since + 0.3)
        writers.stop()
        if writers.failed:
            failed = failed or "the application failed: " + writers.failed[:120]
        elif load != "max" and without < 0.9 * rate:
            text += f"\n(the server reaches {without * ROWS_EACH:.0f} row changes/s without a change)"
    if failed:
        clean(server)
    return seconds, memory, failed, kept, stall, text, (without * ROWS_EACH if writers else 0), late


def prove(server, operation, rows):
    if operation == "add":
        sql = "SELECT COUNT(*) FROM app.sbtest1 WHERE c1 = 'x'"
    elif operation == "encrypt":
        sql = "SELECT COUNT(`c$enc`) FROM app.sbtest1"
    else:
        sql = "SELECT COUNT(*) FROM app.sbtest1"
    found = server.ask(sql)
    if int(found) != rows:
        raise SystemExit(f"{operation}: {found} rows of {rows} are there")


def shown(values, form):
    values = [value for value in values if value is not None and value == value]
    if not values:
        return ""
    text = format(statistics.median(values), form)
    return text if len(values) == 1 else f"{text} ({format(min(values), form)}–{format(max(values), form)})"


class Proxy:
    def __init__(self, program, server, folder):
        self.home, self.port = folder / "home", free_port()
        run_quietly([program, "init", "--dir", self.home, "--backend", f"127.0.0.1:{server.port}"])
        self.log = open(folder / "proxy.log", "w")
        config = (self.home / "onionskin.toml").read_text().replace('\n[scratch]\nengine = "auto"\n', "\n")
        config = re.sub(r'(?m)^listen *=.*$', f'listen = "127.0.0.1:{self.port}"', config)
        (self.home / "onionskin.toml").write_text(config)
        self.process = subprocess.Popen([program, "serve", "-c", self.home / "onionskin.toml"], stdout=self.log, stderr=self.log)
        time.sleep(1)
        if self.process.poll() is not None:
            raise SystemExit((folder / "proxy.log").read_text())

    def stop(self):
        self.process.terminate()
        self.process.wait()


def bench(arguments, folder):
    program = os.path.abspath(arguments.program)
    server = Server(arguments.server, folder)
    proxy = Proxy(program, server, folder)
    lua = folder / "load.lua"
    try:
        version = server.ask("SELECT VERSION()")
        print(f"{version}, {len(os.sched_getaffinity(0))} cores, {arguments.rows} rows, {arguments.threads} sessions, {arguments.rounds} rounds", flush=True)
        if arguments.rounds:
            lua.write_text(LOAD % {"rows": arguments.rows})
            server.fill(arguments.rows)
        for operation in arguments.operations.split(",") if arguments.rounds else []:
            made = commands(server, program, proxy.home, operation, folder)
            wanted = arguments.tools.split(",") if arguments.tools else list(made)
            print(f"\n### {operation}\n\n| row changes/s | tool | s | load | stall ms | late ms | MiB | |\n|---|---|---|---|---|---|---|---|", flush=True)
            for load in arguments.loads.split(","):
                runs = {name: [] for name in made if any(name.startswith(word) for word in wanted)}
                for number in range(arguments.rounds):
                    names = list(runs)
                    for name in names[number % len(names):] + names[:number % len(names)]:
                        port = proxy.port if operation == "encrypt" else server.port
                        done = change(server, arguments, lua, port, made[name], load)
                        if not done[2]:
                            prove(server, operation, arguments.rows)
                        elif arguments.verbose:
                            print(done[5][-1500:], file=sys.stderr, flush=True)
                        runs[name].append(done)
                for name, rounds in runs.items():
                    ended = [one for one in rounds if not one[2]]
                    notes = sorted({one[2] for one in rounds if one[2]})
                    reached = [one[6] for one in rounds]
                    label = load if load in ("0", "max") and not reached[0] else f"{load} ({statistics.median(reached):.0f})"
                    columns = [shown([one[at] for one in (ended if at == 0 else rounds)], form)
                               for at, form in ((0, ".1f"), (3, ".2f"), (4, ".0f"), (7, ".0f"), (1, ".0f"))]
                    print(f"| {label} | {name} | {' | '.join(columns)} | {'; '.join(notes)} |", flush=True)
        if arguments.switches:
            switches(server, arguments, program, lua)
        for rows in map(int, arguments.memory.split(",")) if arguments.memory else []:
            lua.write_text(LOAD % {"rows": rows})
            server.fill(rows)
            for operation in ("rebuild", "encrypt"):
                command = commands(server, program, proxy.home, operation, folder)["onionskin"]
                done = change(server, arguments, lua, proxy.port, command, "3000")
                print(f"memory: {rows} rows, {operation} under 3000 row changes/s: {done[1]:.0f} MiB in {done[0]:.1f} s {done[2] or ''}", flush=True)
    finally:
        proxy.stop()
        server.stop()


def switches(server, arguments, program, lua):
    rows = 20000
    lua.write_text(LOAD % {"rows": rows})
    server.fill(rows)
    server.fresh()
    writers = Load(lua, server.port, arguments.threads, 3000 // ROWS_EACH)
    time.sleep(2)
    told, seen, without, attempts, slow = [], [], [], 0, []
    try:
        for _ in range(arguments.switches):
            since = time.monotonic()
            _, _, failed, text = tool(server, [program, "migrate", "app.sbtest1", "--backend", f"127.0.0.1:{server.port}", "--drop-old", "--quiet",
                                               "--rebuild"], arguments.limit)
            if failed:
                raise SystemExit(text)
            ended = time.monotonic()
            found = re.search(r"at most ([\d.]+) ms \(attempt (\d+)\)", text)
            told.append(float(found[1]))
            attempts += int(found[2]) - 1
            time.sleep(1.2)
            seen.append(writers.stall(since + 0.3))
            slow += [(longest, at - ended) for at, longest in writers.statements if at > since + 0.3 and longest > 50]
            if arguments.control:
                # as long as this was, without any change
                since, long = time.monotonic(), time.monotonic() - since
                time.sleep(long)
                without.append(writers.stall(since + 0.3))
    finally:
        writers.stop()
    if writers.failed:
        raise SystemExit(writers.failed)
    # the nearest rank
    place = lambda values, share: sorted(values)[math.ceil(share * len(values)) - 1]
    shown = lambda values: f"p50 {place(values, .5):.0f} ms, p99 {place(values, .99):.0f} ms, most {max(values):.0f} ms"
    print(f"\nswitch under 3000 row changes/s, {len(told)} times, {attempts} more attempts: by the tool {shown(told)}; "
          f"longest statement of the application {shown(seen)}"
          + (f"; without a change {shown(without)}" if without else ""), flush=True)
    if arguments.verbose:
        print("statements over 50 ms, and when they ended, in seconds from the tool's end: "
              + ", ".join(f"{longest:.0f} ms {at:+.2f}" for longest, at in slow), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/onionskin")
    parser.add_argument("--server", choices=["mariadb", "mysql"], default="mariadb")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--operations", default="rebuild,add,encrypt")
    parser.add_argument("--loads", default="0,3000,6000,12000,max")
    parser.add_argument("--tools", default="", help="beginnings of names, with commas; all")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=1, help="0: only --switches and --memory")
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--switches", type=int, default=0)
    parser.add_argument("--control", action="store_true", help="after each switch as long a time without one")
    parser.add_argument("--memory", default="")
    parser.add_argument("--verbose", action="store_true", help="what tools that failed have said")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        bench(arguments, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
