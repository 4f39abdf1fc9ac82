"""The suites of driver_suites.py, a module for each language, and what they have in common."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import orm_suites
from orm_suites import run

CHECKOUT = Path(__file__).resolve().parent.parent.parent
HOME = CHECKOUT / "target/drivers"
# What install-deps.sh fetched from Debian's sources.
SOURCES = CHECKOUT / ".servers/driver-sources"
# Seconds for one suite on one side.
PATIENCE = 1800


class Missing(Exception):
    """What a suite needs is not on this machine, and could not be fetched."""


class Suite:
    # The servers that the driver can talk to.
    servers = ("mariadb", "mysql")
    # Tables and columns that stay in plaintext: without them, many tests of other things could not run.
    plain_tables, plain_columns = (), ()

    def prepare(self):
        """Fetches and builds what the suite needs, once."""

    def run(self, server, port):
        """Runs all tests against a port. What came of each, and what the failing ones said."""
        raise NotImplementedError

    def program(self, _test):
        """The program that a test is a part of, for suites of many. Its result is called `PROGRAM end`: whether all its tests were run."""
        return None


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


def keep(suite, said):
    """Leaves what a suite said to be read, and what it said the time before."""
    file = HOME / f"{suite}-said.txt"
    if file.exists():
        file.replace(HOME / f"{suite}-said-before.txt")
    file.write_text(said)


def databases(server, *names, charset="utf8mb4", collation=None):
    collate = f" COLLATE {collation}" if collation else ""
    for name in names:
        server.sql(f"DROP DATABASE IF EXISTS `{name}`; CREATE DATABASE `{name}` DEFAULT CHARACTER SET {charset}{collate}")


def debian_source(package, pattern):
    """Sources that install-deps.sh fetched: the one folder of that pattern."""
    found = list((SOURCES / package).glob(pattern))
    if not found:
        why = SOURCES / f"{package}.skipped"
        raise Missing(why.read_text().strip() if why.exists() else f"no sources of {package}; run scripts/install-deps.sh drivers")
    return found[0]


def made(home, make):
    """A folder that `make` fills, anew where it was not filled to its end."""
    ready = home / ".ready"
    if not ready.exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        make(home)
        ready.touch()
    return home


def told(lines):
    """What is worth keeping of what a failing test said."""
    refused = [line for line in lines if re.search(r"OS1\d\d\d", line)]
    return (refused[0] if refused else " ".join(lines))[:600]


def tap(said, behind):
    """What a program's output in the Test Anything Protocol says: (number, name) → outcome, the failing ones' words, what came of
    the whole of them. A test's words stand before its line or behind it."""
    results, words, planned, last, before = {}, {}, None, None, []
    for line in said.splitlines():
        plan = re.match(r"1\.\.(\d+)(.*)", line)
        test = re.match(r"(not )?ok\s+(\d+)(?:\s*-?\s*([^#]*))?(#\s*(?:skip|todo).*)?", line, re.I)
        if plan:
            planned = 0 if re.search("skip", plan[2], re.I) else int(plan[1])
            before += [plan[2].strip()] if plan[2] else []
        elif test:
            skipped = re.match(r"#\s*skip", test[4] or "", re.I)
            # the name of one that is skipped may stand behind that word
            last = (int(test[2]), (test[3] or "").strip() or (test[4] or "")[skipped.end() if skipped else 0:].strip())
            results[last] = "skipped" if skipped else "FAIL" if test[1] and not test[4] else "ok"
            words[last], before = [] if behind else before, []
        elif line.strip():
            before.append(line.strip())
            if last and behind:
                words[last].append(line.strip())
    reasons = {test: told(lines) for test, lines in words.items() if results[test] == "FAIL"}
    end = "skipped" if planned == 0 and not results else "ok" if planned is not None and len(results) >= planned else "FAIL"
    if end != "ok":
        reasons[None] = told(before)
    return results, reasons, end


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


def needs(*programs):
    for name in programs:
        if not shutil.which(name):
            raise Missing(f"{name} is not installed; run scripts/install-deps.sh drivers")
