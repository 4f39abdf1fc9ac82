#!/usr/bin/env python3
"""The test suites of drivers for MySQL and MariaDB, on a plain server and through the proxy with every column protected: `make driver-suites`.

    scripts/driver_suites.py [go] [mysqlclient] [java] … [--server mariadb,mysql] [--binary target/release/onionskin] [--list]

Each suite comes from the place its driver comes from (PyPI, the Go module proxy, Maven's repository, Debian's sources), lies in
target/drivers, and runs twice on each server:

    plain      suite → server
    protected  suite → onionskin → server, with a scratch engine; one wildcard protects all columns for `eq`, but those that are called id

A test must end the same way on both sides, or be listed in driver_suites.toml with the reason why it does not. A difference that is not
listed makes the exit code 1, and so does one that is listed and is none any more. What differs stands in target/drivers/SUITE-SERVER.txt with
what the test said. The servers' columns are counted at the end: where none was protected, nothing was tried. A suite whose
sources or programs cannot be had is skipped, and said to be.
"""

import argparse
import sys
import tempfile
import time
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench  # private servers
from drivers import CHECKOUT, HOME, Missing, c, golang, java, node, perl, php, python, ruby
from orm_suites import Protected

KNOWN = CHECKOUT / "scripts/driver_suites.toml"
SUITES = {suite.name: suite for suite in (
    golang.Go, python.MysqlClient, python.PyMysql, python.AioMysql, php.Mysqli, php.PdoMysql, c.C, perl.DbdMysql, perl.DbdMariadb,
    java.Java, node.NodeMysql, ruby.ActiveRecord)}


def known_differences():
    """(suite, server) → test → the entry of driver_suites.toml."""
    found = {}
    for entry in tomllib.loads(KNOWN.read_text()).get("difference", []):
        for server in entry.get("servers", ["mariadb", "mysql"]):
            for test in entry["tests"]:
                if found.setdefault((entry["suite"], server), {}).setdefault(test, entry) is not entry:
                    sys.exit(f"driver_suites: {KNOWN.name} lists {test} of {entry['suite']} on {server} twice")
    return found


def compare(suite, kind, expected, actual, reasons, known, columns, note):
    """Prints what came of a suite and writes what differs; the number of differences that are not as listed."""
    wrong, lines, listed, same, name = 0, [], 0, {}, suite.name
    # programs that end early: what comes behind is no difference of its own
    behind = 0
    ended = {suite.program(test) for test in expected if test.endswith(" end") and expected[test] != actual.get(test)} - {None}
    for test in sorted(expected.keys() | actual.keys() | known.keys()):
        before, after = expected.get(test, "not run"), actual.get(test, "not run")
        if before == after:
            same[before] = same.get(before, 0) + 1
            if test in known and not known[test].get("varies"):
                wrong += 1
                lines.append(f"    {test}: listed as a difference, and ends the same ({before})")
        elif test in known:
            listed += 1
            lines.append(f"    {test}: {before}, through the proxy {after}; known: {known[test]['reason']}\n        {reasons.get(test, '')}")
        elif after == "not run" and suite.program(test) in ended:
            behind += 1
        else:
            wrong += 1
            lines.append(f"    {test}: {before}, through the proxy {after}\n        {reasons.get(test, '')}")
    total = ", ".join(f"{count} {outcome}" for outcome, count in sorted(same.items(), key=lambda pair: -pair[1]))
    unrun = f" ({behind} not run behind them)" if behind else ""
    head = f"{name} on {kind}: {len(expected)} tests, the same {sum(same.values())} ({total}), known differences {listed}{unrun}, others {wrong}; {columns} columns protected, {note}"
    if not columns:
        wrong += 1
        head += "\n    no column was protected"
    if 2 * same.get("ok", 0) < len(expected):
        # a suite that cannot run ends alike on both sides
        wrong += 1
        head += "\n    most of its tests do not pass on both sides"
    (HOME / f"{name}-{kind}.txt").write_text("\n".join([head, *lines]) + "\n")
    print("\n".join([head, *(line for line in lines if "; known: " not in line)]), flush=True)
    return wrong


def allow_files(server):
    """For LOAD DATA LOCAL; a scratch engine needs it as well."""
    server.sql("SET GLOBAL local_infile = ON")


def on_server(suite, kind, binary, known):
    with tempfile.TemporaryDirectory(prefix="drivers-", dir="/tmp") as folder:
        folder = Path(folder)
        began = time.monotonic()
        (folder / "plain").mkdir()
        plain = bench.Server(kind, folder / "plain", False)
        allow_files(plain)
        expected, told = suite.run(plain, plain.port)
        between = time.monotonic()
        policy = "".join(f'\n[protect."{table}"]\n"*" = "plain"\n' for table in suite.plain_tables)
        # tests expect rows by their key's order without asking for it
        plain = "".join(f'"{column}" = "plain"\n' for column in ("id", *suite.plain_columns))
        policy += f'\n[protect."*.*"]\n{plain}"*" = ["eq"]\n'
        protected = Protected(folder, binary, policy, kind)
        allow_files(protected.server)
        allow_files(protected.scratch)
        actual, reasons = suite.run(protected.server, protected.port)
        columns = protected.columns()
        ended = time.monotonic()
        bench.stop_all()
        # what a test said that fails without the proxy
        reasons = {**{test: f"without the proxy: {text}" for test, text in told.items()}, **reasons}
        note = f"{between - began:.0f} s and {ended - between:.0f} s"
        return compare(suite, kind, expected, actual, reasons, known.get((suite.name, kind), {}), columns, note)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("suites", nargs="*", choices=[[], *SUITES], default=[])
    options.add_argument("--server", default="mariadb,mysql")
    options.add_argument("--binary", default=str(CHECKOUT / "target/release/onionskin"))
    options.add_argument("--list", action="store_true", help="print the suites' names")
    given = options.parse_args()
    if given.list:
        print(*SUITES)
        return
    HOME.mkdir(parents=True, exist_ok=True)
    known, wrong, skipped = known_differences(), 0, []
    for name in given.suites or SUITES:
        suite = SUITES[name]()
        try:
            suite.prepare()
        except Missing as why:
            skipped.append(f"{name}: {why}")
            continue
        except SystemExit as why:
            wrong += 1
            print(f"{name}: it cannot be built: {why}", flush=True)
            continue
        for kind in given.server.split(","):
            if kind == "mysql" and not (CHECKOUT / ".servers/mysql").exists():
                skipped.append(f"{name} on MySQL, which is not installed")
            elif kind in suite.servers:
                wrong += on_server(suite, kind, given.binary, known)
    for line in skipped:
        print(f"skipped: {line}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
