#!/usr/bin/env python3
"""Speed of sealed streams: by themselves, and in the place of `zstd | openssl enc`.

    scripts/bench_streams.py [--program target/release/onionskin] [--data FILE] [--size MIB] [--rounds N] [--folder DIR]

Without --data, the input is made: rows as sysbench writes them, which compress by about half. Everything lies in
--folder (default: a new folder in /dev/shm, so that no disk takes part), needs about three times --size there, and is
removed in the end. All variants run in turns, round after round; the tables show medians. CPU is user and system time of all
processes of a variant together. "GB/CPU s" is what one core does: input divided by CPU time.
"""

import argparse
import os
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

PASSWORD = "bench"


def make_rows(path, size):
    """CSV like a dump of sbtest: id, k, c (120 digits in groups), pad (60)."""
    numbers = random.Random(1)

    def groups(n):
        return "-".join(f"{numbers.randrange(10**11):011d}" for _ in range(n))

    rows = "".join(f"{n}\t{numbers.randrange(10**6)}\t{groups(10)}\t{groups(5)}\n" for n in range(120_000))
    block = rows.encode()
    with open(path, "wb") as file:
        written = 0
        while written < size:
            # Not the same again: a longer window must not find it.
            shift = numbers.randrange(len(block))
            part = (block[shift:] + block[:shift]).translate(digits(numbers))
            file.write(part[: size - written])
            written += len(part)


def digits(numbers):
    shuffled = list(b"0123456789")
    numbers.shuffle(shuffled)
    return bytes.maketrans(b"0123456789", bytes(shuffled))


def run(command, environment):
    """Wall and CPU seconds of a shell command and all it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(["bash", "-o", "pipefail", "-c", command], check=True, env=environment)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(variants, rounds, environment):
    figures = {name: [] for name, _ in variants}
    for _ in range(rounds):
        for name, command in variants:
            figures[name].append(run(command, environment))
    return {name: [statistics.median(column) for column in zip(*runs)] for name, runs in figures.items()}


def table(title, variants, rounds, environment, size, base=None):
    results = measure(variants, rounds, environment)
    print(f"\n{title}\n")
    print(f"| | wall s | GB/s | CPU s | GB/CPU s |{' wall, relative |' if base else ''}")
    print(f"|---|---|---|---|---|{'---|' if base else ''}")
    for name, (wall, cpu) in results.items():
        line = f"| {name} | {wall:.2f} | {size / wall / 1e9:.2f} | {cpu:.2f} | {size / cpu / 1e9:.2f} |"
        if base:
            line += f" {wall / results[base][0]:.3f} |"
        print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/onionskin")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--size", type=int, default=1024, help="MiB (1024)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--skip-raw", action="store_true")
    arguments = parser.parse_args()

    folder = Path(tempfile.mkdtemp(dir=arguments.folder or "/dev/shm"))
    try:
        bench(arguments, folder)
    finally:
        shutil.rmtree(folder)


def bench(arguments, folder):
    program = os.path.abspath(arguments.program)
    environment = {**os.environ, "OPENSSL_PASS": PASSWORD}
    environment.pop("ONIONSKIN_PASSPHRASE", None)
    subprocess.run([program, "init", "--dir", folder], check=True, stdout=subprocess.DEVNULL, env=environment)
    data = folder / "data"
    if arguments.data:
        shutil.copyfile(arguments.data, data)
    else:
        make_rows(data, arguments.size << 20)
    size = data.stat().st_size
    cores = len(os.sched_getaffinity(0))
    ours = f"{program} %s -q --keys {folder}/keys.json"
    seal, opened = ours % "seal", ours % "open"
    enc = "openssl enc -%s -pbkdf2 -pass env:OPENSSL_PASS"

    print(f"{size / 1e9:.2f} GB, {cores} cores, {arguments.rounds} rounds in turns, medians")
    if not arguments.skip_raw:
        for suite in ("aes", "sm"):
            subprocess.run(f"{seal} --suite {suite} --level 0 {data} > {folder}/raw-{suite}", shell=True, check=True, env=environment)
        raw = []
        for suite in ("aes", "sm"):
            for threads in dict.fromkeys((1, cores)):
                options = f"--threads {threads}"
                label = f"{suite}, {threads} thread{'s' if threads > 1 else ''}"
                raw.append((f"seal {label}", f"{seal} --suite {suite} --level 0 {options} {data} > /dev/null"))
                raw.append((f"open {label}", f"{opened} {options} {folder}/raw-{suite} > /dev/null"))
        table("Without compression (`--level 0`), file to /dev/null", raw, arguments.rounds, environment, size)
        for suite in ("aes", "sm"):
            os.unlink(folder / f"raw-{suite}")

    out = f"{folder}/out"
    backup = [("no encryption", f"cat {data} | zstd -q -T{cores} > {out}")]
    for cipher in ("aes-128-cbc", "aes-256-ctr", "sm4-cbc"):
        backup.append((f"openssl {cipher}", f"cat {data} | zstd -q -T{cores} | {enc % cipher} > {out}"))
    for suite in ("aes", "sm"):
        backup.append((f"onionskin {suite}", f"cat {data} | {seal} --suite {suite} > {out}"))
    table("Backup: pipe to file, zstd level 3", backup, arguments.rounds, environment, size, "no encryption")

    restore = []
    for name, command in backup:
        file = f"{folder}/{name.replace(' ', '-')}"
        run(command.replace(f"> {out}", f"> {file}"), environment)
        print(f"{name}: {os.stat(file).st_size / size:.4f} of the input")
        match name.split():
            case ["openssl", cipher]:
                restore.append((name, f"{enc % cipher} -d < {file} | zstd -q -d | cat > /dev/null"))
            case ["onionskin", _]:
                restore.append((name, f"{opened} < {file} | cat > /dev/null"))
            case _:
                restore.append((name, f"zstd -q -d < {file} | cat > /dev/null"))
    table("Restore: file to pipe", restore, arguments.rounds, environment, size, "no encryption")


if __name__ == "__main__":
    main()
