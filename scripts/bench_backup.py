#!/usr/bin/env python3
"""What encryption costs a physical backup of a MariaDB server, and its restore.

    scripts/bench_backup.py [--program target/release/onionskin] [--size MIB] [--rounds N] [--folder DIR] [--data DIR]

A private MariaDB server gets sysbench tables of at least --size MiB (default 1024) and then stands idle. Each round makes a
backup of it in every way, one after the other:

    zstd           mariadb-backup --stream=mbstream | zstd -T<cores>
    aes-128-cbc    … | zstd -T<cores> | openssl enc -aes-128-cbc
    aes-256-ctr    … | zstd -T<cores> | openssl enc -aes-256-ctr
    sm4-cbc        … | zstd -T<cores> | openssl enc -sm4-cbc
    age            … | zstd -T<cores> | age, where it is installed
    onionskin aes  onionskin backup --suite aes
    onionskin sm   onionskin backup --suite sm

and restores each of them: decrypted, decompressed, unpacked, prepared, so that a server could start. The order changes from
round to round. "CPU" is user and system time of all processes but the server. Ratios are taken within a round, to zstd without
encryption; their median, smallest and largest are shown. Everything lies in --folder (default: a new folder in /dev/shm, so that no
disk takes part) and is removed; --data keeps the server's data directory there for another run, and with --rounds 0 nothing but that
is done.
"""

import argparse
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PASSWORD = "bench"
ROW = 265  # bytes of the data file for a row of sysbench, roughly, with its secondary key


class Server:
    """A MariaDB server of our own on a data directory."""

    def __init__(self, data, folder):
        self.socket = folder / "s"
        if not (data / "ibdata1").exists():
            run_quietly(["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db",
                         f"--datadir={data}", *user()])
        path = os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"
        self.process = subprocess.Popen(
            [shutil.which("mariadbd", path=path), "--no-defaults", f"--datadir={data}", f"--socket={self.socket}", "--skip-networking",
             "--innodb-buffer-pool-size=1G", "--innodb-io-capacity=20000", "--innodb-log-file-size=512M", "--innodb-flush-log-at-trx-commit=0", "--log-bin=binlog",
             "--binlog-format=ROW", "--sync-binlog=0", "--skip-innodb-doublewrite", f"--pid-file={folder}/pid",
             f"--log-error={folder}/server.log", *user()])
        while subprocess.run(self.client("SELECT 1"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            if self.process.poll() is not None:
                raise SystemExit(f"the server does not start, see {folder}/server.log")
            time.sleep(0.1)

    def client(self, sql):
        return ["mariadb", "--no-defaults", f"--socket={self.socket}", "--user=root", "--batch", "--skip-column-names", "-e", sql]

    def ask(self, sql):
        return subprocess.run(self.client(sql), check=True, capture_output=True, text=True).stdout.strip()

    def fill(self, size):
        self.ask("CREATE DATABASE IF NOT EXISTS sbtest")
        rows = size // 4 // ROW
        run_quietly(["sysbench", "oltp_read_write", f"--mysql-socket={self.socket}", "--mysql-user=root", "--tables=4", "--threads=4",
                     f"--table-size={rows}", "prepare"])
        # Everything is in the data files, and nothing is left to do behind the backup's back.
        self.ask("RESET MASTER; SET GLOBAL innodb_max_dirty_pages_pct = 0")
        while int(self.ask("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'").split()[1]) > 100:
            time.sleep(0.2)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def user():
    return ["--user=root"] if os.getuid() == 0 else []


def run_quietly(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stdout}\n{done.stderr}")


def measured(command, environment):
    """Wall and CPU seconds of a shell command and all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], env=environment, capture_output=True, text=True)
    wall = time.monotonic() - start
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def variants(program, folder, socket, cores):
    """Name → backup command, restore command; {file} and {data} are to be filled in."""
    (folder / "notes").mkdir()
    source = (f"rm -rf {folder}/notes/* && mariadb-backup --no-defaults --backup --stream=mbstream --socket={socket} --user=root "
              f"--target-dir={folder}/notes")
    pack, unpack = f"zstd -q -T{cores}", "zstd -q -d"
    place = "mkdir {data} && "
    prepare = "mbstream -x -C {data} && mariadb-backup --no-defaults --prepare --target-dir={data}"
    made = {"zstd": (f"{source} | {pack} > {{file}}", f"{place} {unpack} < {{file}} | {prepare}")}
    for cipher in ("aes-128-cbc", "aes-256-ctr", "sm4-cbc"):
        enc = f"openssl enc -{cipher} -pbkdf2 -pass env:OPENSSL_PASS"
        made[cipher] = (f"{source} | {pack} | {enc} > {{file}}", f"{place} {enc} -d < {{file}} | {unpack} | {prepare}")
    if shutil.which("age"):
        run_quietly(["age-keygen", "-o", str(folder / "age.key")])
        recipient = subprocess.run(["age-keygen", "-y", str(folder / "age.key")], capture_output=True, text=True).stdout.strip()
        made["age"] = (f"{source} | {pack} | age -r {recipient} > {{file}}",
                       f"{place} age -d -i {folder}/age.key < {{file}} | {unpack} | {prepare}")
    run_quietly([program, "init", "--dir", str(folder / "home"), "--backend", f"unix:{socket}"])
    config = f"-q -c {folder}/home/onionskin.toml"
    for suite in ("aes", "sm"):
        made[f"onionskin {suite}"] = (f"{program} backup {config} --suite {suite} --to {{file}}",
                                      f"{program} restore {config} {{file}} --to {{data}}")
    return made


def table(title, figures):
    base = figures["zstd"]
    print(f"\n{title}\n\n| | wall s | CPU s | wall, relative | CPU, relative |\n|---|---|---|---|---|")
    for name, rounds in figures.items():
        wall, cpu = (statistics.median(column) for column in zip(*rounds))
        cells = []
        for column in (0, 1):
            ratios = [one[column] / other[column] for one, other in zip(rounds, base)]
            cells.append(f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})" if name != "zstd" else "1")
        print(f"| {name} | {wall:.2f} | {cpu:.2f} | {cells[0]} | {cells[1]} |", flush=True)


def once(commands, folder, data, environment):
    """Seconds of a backup and of its restore, and the length of its file."""
    file, restored = folder / "file", folder / "restored"
    backup, restore = (command.format(file=file, data=restored) for command in commands)
    made = measured(backup, environment)
    length = file.stat().st_size
    back = measured(restore, environment)
    sizes = [sum(path.stat().st_size for path in place.rglob("sbtest*.ibd")) for place in (restored, data)]
    if sizes[0] < 0.9 * sizes[1]:
        raise SystemExit(f"{restore}: {sizes[0]} bytes of tables came back, and there were {sizes[1]}")
    file.unlink()
    shutil.rmtree(restored)
    return made, back, length


def bench(arguments, folder):
    program = os.path.abspath(arguments.program)
    environment = {**os.environ, "OPENSSL_PASS": PASSWORD}
    for name in ("ONIONSKIN_PASSPHRASE", "ONIONSKIN_PASSWORD"):
        environment.pop(name, None)
    cores = len(os.sched_getaffinity(0))
    data = arguments.data or folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    server = Server(data, folder)
    try:
        if not (data / "sbtest" / "sbtest4.ibd").exists():
            server.fill(arguments.size << 20)
        if arguments.rounds == 0:
            return
        size = sum(path.stat().st_size for path in data.rglob("*.ibd"))
        print(f"{size / 1e9:.2f} GB of tables, {cores} cores, {arguments.rounds} rounds")
        made = variants(program, folder, server.socket, cores)
        backups, restores, lengths = {name: [] for name in made}, {name: [] for name in made}, {}
        try:
            for number in range(arguments.rounds):
                names = list(made)
                for name in names[number % len(names):] + names[:number % len(names)]:
                    one = once(made[name], folder, data, environment)
                    backups[name].append(one[0])
                    restores[name].append(one[1])
                    lengths[name] = one[2]
                print(f"round {number + 1} is done", file=sys.stderr, flush=True)
        except (KeyboardInterrupt, SystemExit) as interrupted:
            whole = min(len(rounds) for rounds in restores.values())
            print(f"interrupted ({interrupted}): figures of {whole} rounds")
            if not whole:
                raise
            for figures in (backups, restores):
                for rounds in figures.values():
                    del rounds[whole:]
        table("Backup", backups)
        table("Restore", restores)
        print("\nLength of the file, of the tables: " + ", ".join(f"{name} {length / size:.3f}" for name, length in lengths.items()))
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/onionskin")
    parser.add_argument("--size", type=int, default=1024, help="MiB (1024)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(dir=arguments.folder or "/dev/shm"))
    try:
        bench(arguments, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
