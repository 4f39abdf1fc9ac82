#!/usr/bin/env python3
"""The test suites of drivers for MySQL and MariaDB, on a plain server and through the proxy with every column protected: `make driver-suites`.

    scripts/driver_suites.py [go] [mysqlclient] [pymysql] … [--server mariadb,mysql] [--binary target/release/onionskin] [--update]

Each suite comes from the place its driver comes from (PyPI, the Go module proxy, Debian's sources), lies in target/drivers, and runs twice on each
server:

    plain      suite → server
    protected  suite → onionskin → server, with a scratch engine; one wildcard protects all columns for `eq`, but those that are called id

A test must end the same way on both sides, or be listed in driver_suites.toml with the reason why it does not. A difference that is not
listed makes the exit code 1, and so does one that is listed and is none any more. What differs stands in target/drivers/SUITE-SERVER.txt with
what the test said. The servers' columns are counted at the end: where none was protected, nothing was tried.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench  # private servers
import orm_suites
from orm_suites import Protected, run

CHECKOUT = Path(__file__).resolve().parent.parent
HOME = CHECKOUT / "target/drivers"
KNOWN = CHECKOUT / "scripts/driver_suites.toml"
# Tests expect rows by their key's order without asking for it.
POLICY = '\n[protect."*.*"]\n"id" = "plain"\n"*" = ["eq"]\n'
# Seconds for one suite on one side.
PATIENCE = 900


def bounded(command, home, environment, patience=PATIENCE):
    """Runs a suite, and ends all of it after a while. Its output."""
    words = ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)]
    process = subprocess.Popen(words, cwd=home, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        return process.communicate(timeout=patience)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0] + f"\nended after {patience} s"


def databases(server, *names, charset="utf8mb4"):
    for name in names:
        server.sql(f"DROP DATABASE IF EXISTS `{name}`; CREATE DATABASE `{name}` DEFAULT CHARACTER SET {charset}")


def pytest(python, home, tests, environment, *options):
    report = home / "report.xml"
    report.unlink(missing_ok=True)
    said = bounded([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *options, *tests], home, environment)
    return orm_suites.junit(report, said)


def sdist(python, name, version):
    """A source distribution from PyPI, unpacked."""
    folder = HOME / f"{name}-{version}"
    if not folder.exists():
        run([python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", HOME, f"{name}=={version}"])
        for archive in HOME.glob(f"{name}-{version}.tar.gz"):
            shutil.unpack_archive(archive, HOME)
    return folder


# ---- Go ---------------------------------------------------------------------------------------------------------------

class Go:
    """go-sql-driver/mysql's own tests; the module has them."""
    name, version = "go", "1.8.1"
    # One connects to an address of the Internet; one waits for ever where its INSERT of SLEEP(1) is refused.
    LEFT_OUT = ("TestConnectorReturnsTimeout", "TestContextCancelBegin")

    def prepare(self):
        home = HOME / "go"
        if not (home / "driver.test").exists():
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            (home / "go.mod").write_text("module suites\n\ngo 1.18\n")
            said = run(["go", "mod", "download", "-json", f"github.com/go-sql-driver/mysql@v{self.version}"], cwd=home)
            shutil.copytree(json.loads(said)["Dir"], home / "mysql", copy_function=shutil.copyfile)
            for path in (home / "mysql").rglob("*"):
                path.chmod(0o755 if path.is_dir() else 0o644)
            run(["go", "test", "-mod=mod", "-c", "-o", home / "driver.test", "."], cwd=home / "mysql")
        self.home = home

    def run(self, server, port):
        databases(server, "gotest")
        environment = {"MYSQL_TEST_USER": "root", "MYSQL_TEST_PASS": "", "MYSQL_TEST_PROT": "tcp", "MYSQL_TEST_ADDR": f"127.0.0.1:{port}",
                       "MYSQL_TEST_DBNAME": "gotest", "MYSQL_TEST_CONCURRENT": "1"}
        tests = run([self.home / "driver.test", "-test.list", "^Test"], cwd=self.home / "mysql").split()
        chosen = "|".join(test for test in tests if test not in self.LEFT_OUT)
        said = bounded(["go", "tool", "test2json", self.home / "driver.test", "-test.v=test2json", f"-test.timeout={PATIENCE}s",
                        f"-test.run=^({chosen})$"], self.home / "mysql", environment)
        results, reasons = {}, {}
        for line in said.splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            test, what = event.get("Test"), event.get("Action")
            if what == "output" and test and not re.match(r"\s*(===|---|:)", event["Output"]):
                reasons[test] = (reasons.get(test, "") + event["Output"].strip() + " ")[:600]
            if test and what in ("pass", "fail", "skip"):
                results[test] = {"pass": "ok", "fail": "FAIL", "skip": "skipped"}[what]
        return results, reasons


# ---- Python -----------------------------------------------------------------------------------------------------------

class Python:
    packages = []

    def prepare(self):
        self.home = HOME / self.name
        self.python = orm_suites.virtual_environment(self.home, ["pytest<8.4", "setuptools>=71,<81", *self.packages])
        self.source = sdist(self.python, self.sdist, self.version)


class MysqlClient(Python):
    name, sdist, version = "mysqlclient", "mysqlclient", "2.2.7"
    packages = [f"mysqlclient=={version}"]

    def run(self, server, port):
        databases(server, "test")
        (self.home / "tests.cnf").write_text(
            f"[MySQLdb-tests]\nhost = 127.0.0.1\nport = {port}\nuser = root\npassword =\ndatabase = test\ndefault-character-set = utf8mb4\n")
        # the tests beside the sources would find the sources, which are not compiled
        tests = self.home / "tests"
        shutil.rmtree(tests, ignore_errors=True)
        shutil.copytree(self.source / "tests", tests)
        return pytest(self.python, self.home, [tests], {"TESTDB": str(self.home / "tests.cnf")})


class PyMysql(Python):
    """The last release whose source distribution has its tests."""
    name, sdist, version = "pymysql", "PyMySQL", "0.10.1"

    def run(self, server, port):
        databases(server, "test1", "test2", charset="utf8mb4")
        common = {"host": "127.0.0.1", "port": port, "user": "root", "passwd": ""}
        (self.source / "pymysql/tests/databases.json").write_text(json.dumps([
            {**common, "db": "test1", "use_unicode": True, "local_infile": True}, {**common, "db": "test2"}]))
        return pytest(self.python, self.source, ["pymysql/tests"], {})


# ---- PHP --------------------------------------------------------------------------------------------------------------

class Php:
    """PHP's own tests of an extension, from Debian's sources."""
    ROWS = 6

    def prepare(self):
        (source,) = (CHECKOUT / ".servers/php-source").glob("php-*")
        self.source = HOME / "php"
        if not self.source.exists():
            for part in ("ext/mysqli", "ext/pdo", "ext/pdo_mysql", "ext/mysqlnd"):
                shutil.copytree(source / part, self.source / part)
            shutil.copy(source / "run-tests.php", self.source)

    def run(self, server, port):
        """Each test is a process or three: they run in several rows, each with a database of its own."""
        tests = sorted(path.name for path in (self.source / f"ext/{self.extension}/tests").glob("*.phpt"))
        results, reasons = {}, {}
        with ThreadPoolExecutor(self.ROWS) as rows:
            for part, told in rows.map(lambda row: self.row(server, port, f"test{row}", tests[row::self.ROWS]), range(self.ROWS)):
                results |= part
                reasons |= told
        return results, reasons

    def row(self, server, port, database, tests):
        databases(server, database)
        report = self.source / f"{self.extension}-{database}.xml"
        report.unlink(missing_ok=True)
        environment = {
            "MYSQL_TEST_HOST": "127.0.0.1", "MYSQL_TEST_PORT": str(port), "MYSQL_TEST_USER": "root", "MYSQL_TEST_PASSWD": "", "MYSQL_TEST_DB": database,
            "PDO_MYSQL_TEST_DSN": f"mysql:host=127.0.0.1;port={port};dbname={database}", "PDO_MYSQL_TEST_USER": "root", "PDO_MYSQL_TEST_PASS": "",
            "PDO_MYSQL_TEST_HOST": "127.0.0.1", "PDO_MYSQL_TEST_PORT": str(port), "PDO_MYSQL_TEST_DB": database,
            "TEST_PHP_JUNIT": str(report), "NO_INTERACTION": "1", "SKIP_PERF_SENSITIVE": "1",
        }
        said = bounded(["php", "run-tests.php", "-p", shutil.which("php"), "-q", "--set-timeout", "60", "-g", "FAIL",
                        *(f"ext/{self.extension}/tests/{test}" for test in tests)], self.source, environment)
        results, reasons = orm_suites.junit(report, said)
        short = {name: re.sub(r"^.*?(\w+\.phpt).*$", r"\1", name, flags=re.S) for name in results}
        return {short[name]: outcome for name, outcome in results.items()}, {short[name]: text for name, text in reasons.items()}


class Mysqli(Php):
    name = extension = "mysqli"


class PdoMysql(Php):
    name = extension = "pdo_mysql"


SUITES = {suite.name: suite for suite in (Go, MysqlClient, PyMysql, Mysqli, PdoMysql)}


# ---- comparison -------------------------------------------------------------------------------------------------------

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
    wrong, lines, listed, same = 0, [], 0, {}
    for test in sorted(expected.keys() | actual.keys() | known.keys()):
        before, after = expected.get(test, "not run"), actual.get(test, "not run")
        if before == after:
            same[before] = same.get(before, 0) + 1
            if test in known and not known[test].get("varies"):
                wrong += 1
                lines.append(f"    {test}: listed as a difference, and ends the same ({before})")
        elif test in known:
            listed += 1
            lines.append(f"    {test}: {before}, through the proxy {after}; known: {known[test]['reason']}")
        else:
            wrong += 1
            lines.append(f"    {test}: {before}, through the proxy {after}\n        {reasons.get(test, '')}")
    total = ", ".join(f"{count} {outcome}" for outcome, count in sorted(same.items(), key=lambda pair: -pair[1]))
    head = f"{suite} on {kind}: {len(expected)} tests, the same {sum(same.values())} ({total}), known differences {listed}, others {wrong}; {columns} columns protected, {note}"
    if not columns:
        wrong += 1
        head += "\n    no column was protected"
    if 2 * same.get("ok", 0) < len(expected):
        # a suite that cannot run ends alike on both sides
        wrong += 1
        head += "\n    most of its tests do not pass on both sides"
    (HOME / f"{suite}-{kind}.txt").write_text("\n".join([head, *lines]) + "\n")
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
        protected = Protected(folder, binary, POLICY, kind)
        allow_files(protected.server)
        allow_files(protected.scratch)
        actual, reasons = suite.run(protected.server, protected.port)
        columns = protected.columns()
        ended = time.monotonic()
        bench.stop_all()
        # what a test said that fails without the proxy
        reasons = {**{test: f"without the proxy: {text}" for test, text in told.items()}, **reasons}
        note = f"{between - began:.0f} s and {ended - between:.0f} s"
        return compare(suite.name, kind, expected, actual, reasons, known.get((suite.name, kind), {}), columns, note)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("suites", nargs="*", choices=[[], *SUITES], default=[])
    options.add_argument("--server", default="mariadb,mysql")
    options.add_argument("--binary", default=str(CHECKOUT / "target/release/onionskin"))
    given = options.parse_args()
    HOME.mkdir(parents=True, exist_ok=True)
    known, wrong = known_differences(), 0
    for name in given.suites or SUITES:
        suite = SUITES[name]()
        suite.prepare()
        for kind in given.server.split(","):
            if kind == "mysql" and not (CHECKOUT / ".servers/mysql").exists():
                print(f"{name}: skipped on MySQL, which is not installed")
                continue
            wrong += on_server(suite, kind, given.binary, known)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
