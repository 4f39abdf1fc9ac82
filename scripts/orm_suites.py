#!/usr/bin/env python3
"""Three ORMs' own test suites, on a plain server and through the proxy with columns protected: `make orm-suites`.

    scripts/orm_suites.py [django] [sqlalchemy] [sqlobject] [node] [--wildcard] [--apps basic,lookup] [--binary target/release/onionskin]

Django's test applications and SQLAlchemy's dialect suite come from the source distributions on PyPI, SQLObject's tests are a part of its package; they are unpacked into
target/orm together with a Python environment of their own, and nothing is installed elsewhere. Each suite runs twice:

    plain      suite → MariaDB
    protected  suite → onionskin → MariaDB, with a scratch engine

On the plain server the tables that the suite makes are written down. Every column that is no key and can be protected is
then named in the proxy's configuration, with all that it can be searched by; keys (primary, foreign, and what they refer to) stay as they are. A test
must end the same way on both sides. What does not is listed in target/orm/SUITE.txt with the last line of its traceback, and
makes the exit code 1.

The suite node is a small application of our own (node_orms.js), written for TypeORM, Sequelize and Knex, on MariaDB and MySQL. Every
step must answer the same, to the word, with all columns protected by one wildcard. It runs where npm is installed.

With --wildcard one pattern protects all columns of all tables, as a new user would have it. Then a test may also end with an error
of Onionskin's; any other end makes the exit code 1.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench  # private servers

CHECKOUT = Path(__file__).resolve().parent.parent
HOME = CHECKOUT / "target/orm"
DJANGO, SQLALCHEMY, SQLOBJECT = "4.2.30", "2.0.58", "3.14.0"
PACKAGES = [f"django=={DJANGO}", f"sqlalchemy=={SQLALCHEMY}", f"sqlobject=={SQLOBJECT}", "pymysql", "cryptography", "pytest<8.4", "setuptools>=71,<81"]
NODE = ["typeorm@0.3.27", "sequelize@6.37.7", "knex@3.1.0", "mysql2@3.15.3", "mariadb@3.4.5", "reflect-metadata@0.2.2"]
APPS = [
    "aggregation", "annotations", "basic", "bulk_create", "custom_columns", "dates", "datetimes", "defer", "delete", "distinct_on_fields",
    "expressions", "expressions_case", "expressions_window", "field_defaults", "get_or_create", "lookup", "many_to_one", "model_fields", "null_queries",
    "or_lookups", "ordering", "pagination", "queries", "raw_query", "reserved_names", "save_delete_hooks", "select_for_update", "string_lookup",
    "transactions", "update",
]
# Whether one wildcard protects all columns, instead of each by its name.
WILDCARD = False
# Types that can be protected and searched.
SEARCHABLE = ("tinyint smallint mediumint int bigint decimal float double char varchar tinytext text mediumtext longtext "
              "binary varbinary tinyblob blob mediumblob longblob date time datetime year").split()

SETTINGS = """
import pymysql
pymysql.version_info = (1, 4, 6, "final", 0)
pymysql.install_as_MySQLdb()
DATABASES = {{
    name: {{
        "ENGINE": "django.db.backends.mysql", "NAME": name, "HOST": "127.0.0.1", "PORT": {port}, "USER": "root", "PASSWORD": "",
        # A snapshot for the whole transaction: tables that are read together must be.
        "OPTIONS": {{"charset": "utf8mb4", "isolation_level": "repeatable read", "ssl_disabled": True}},
        "TEST": {{"CHARSET": "utf8mb4", "COLLATION": "utf8mb4_general_ci"}},
    }}
    for name in ("default", "other")
}}
SECRET_KEY = "tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
"""


def run(command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"orm_suites: {' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def virtual_environment(home, packages):
    """A Python of its own with these packages."""
    python = home / "venv/bin/python"
    if not python.exists():
        home.mkdir(parents=True, exist_ok=True)
        run([sys.executable, "-m", "venv", home / "venv"])
    run([python, "-m", "pip", "install", "-q", *packages])
    return python


def junit(report, said):
    """What a report in JUnit's XML says: test → outcome, and what the failing ones said. Without one, what the suite said."""
    results, reasons = {}, {}
    if not report.exists():
        return {"the suite itself": "ERROR"}, {"the suite itself": said[-600:].replace("\n", " / ")}
    for case in tree.parse(report).iter("testcase"):
        name = re.sub(r"_mariadb\+pymysql_[\d_]+", "", f"{case.get('classname')}::{case.get('name')}")
        outcome = "ok"
        for child in case:
            outcome = {"failure": "FAIL", "error": "ERROR", "skipped": "skipped"}.get(child.tag, outcome)
            if child.tag in ("failure", "error"):
                refused = re.search(r"[^\n]*OS1\d\d\d[^\n]*", child.text or "")
                reasons[name] = (refused[0] if refused else ((child.get("message") or child.text or "").splitlines() or [""])[0])[:400]
        results[name] = outcome
    report.unlink()
    return results, reasons


def environment():
    """The Python environment and the two sources; made once."""
    python = virtual_environment(HOME, PACKAGES)
    for name, version in (("django", DJANGO), ("sqlalchemy", SQLALCHEMY)):
        if not (HOME / f"{name}-{version}").exists():
            run([python, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "-d", HOME, f"{name}=={version}"])
            for archive in HOME.glob(f"{name}-{version}.tar.gz"):
                shutil.unpack_archive(archive, HOME)
    return python


class Protected:
    """A server, a scratch engine, and the proxy before them with a policy."""

    def __init__(self, folder, binary, policy, kind="mariadb"):
        (folder / "behind").mkdir()
        (folder / "scratch").mkdir()
        self.server = bench.Server(kind, folder / "behind", False)
        self.scratch = bench.Server(kind, folder / "scratch", False)
        home = folder / "onionskin"
        run([binary, "init", "--dir", home, "--backend", f"127.0.0.1:{self.server.port}"])
        file = home / "onionskin.toml"
        file.write_text('backend_tls = "never"\n' + bench.without_engine(file.read_text()) + f'\n[scratch]\nsocket = "{self.scratch.socket}"\n{policy}')
        self.port = bench.free_port()
        log = folder / "onionskin.log"
        listen = f"127.0.0.1:{self.port}"
        self.process = bench.start([binary, "serve", "-c", home / "onionskin.toml", "--listen", listen],
                                   stdout=open(log, "w"), stderr=subprocess.STDOUT)
        bench.wait_for_port(self.port, self.process, log)
        self.server.sql("SET GLOBAL log_output = 'TABLE'; SET GLOBAL general_log = ON")

    def columns(self):
        """How many columns of its tables were protected, one of several tables of a name counted once."""
        texts = self.server.sql("SELECT HEX(argument) FROM mysql.general_log WHERE CONVERT(argument USING utf8mb4) RLIKE '^ *(CREATE|ALTER) TABLE'").split()
        made = set()
        for text in (bytes.fromhex(t).decode(errors="replace") for t in texts):
            table = re.match(r"\s*\w+ TABLE (?:IF NOT EXISTS )?([^\s(]+)", text)
            made |= {(table and table[1], column) for column in re.findall(r"`([^`]+)\$enc` (?:VARBINARY|\w*BLOB)", text, re.I)}
        return len(made)


def protectable(server, databases):
    """(database, table) → column → capabilities, of what a plain server holds, and how many columns there are."""
    listed = ",".join(f"'{d}'" for d in databases)
    keys = set()
    for line in server.sql(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE "
        f"WHERE TABLE_SCHEMA IN ({listed}) AND (CONSTRAINT_NAME = 'PRIMARY' OR REFERENCED_TABLE_NAME IS NOT NULL) "
        "UNION SELECT REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME "
        f"FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA IN ({listed}) AND REFERENCED_TABLE_NAME IS NOT NULL"
    ).splitlines():
        keys.add(tuple(line.split("\t")))
    # Columns that the server computes with.
    computed = server.sql(
        "SELECT TABLE_SCHEMA, TABLE_NAME, GENERATION_EXPRESSION FROM information_schema.COLUMNS "
        f"WHERE TABLE_SCHEMA IN ({listed}) AND GENERATION_EXPRESSION <> '' UNION ALL SELECT CONSTRAINT_SCHEMA, TABLE_NAME, "
        f"CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA IN ({listed})"
    )
    expressions = {}
    for line in computed.splitlines():
        database, table, text = (line.split("\t") + [""])[:3]
        expressions.setdefault((database, table), []).append(text)
    found, columns = {}, 0
    for line in server.sql(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, COALESCE(EXTRA, ''), COALESCE(GENERATION_EXPRESSION, ''), CHARACTER_MAXIMUM_LENGTH "
        f"FROM information_schema.COLUMNS WHERE TABLE_SCHEMA IN ({listed})"
    ).splitlines():
        database, table, column, kind, extra, expression, _ = line.split("\t")
        columns += 1
        used = any(re.search(rf"`{re.escape(column)}`", text) for text in expressions.get((database, table), []))
        if (database, table, column) in keys or extra or expression or used or kind not in SEARCHABLE:
            continue
        found.setdefault((database, table), {})[column] = ["eq", "range"]
    return found, columns


def policy_of(found):
    if WILDCARD:
        return '[protect."*.*"]\n"*" = ["eq", "range"]\n'
    lines = []
    for (database, table), columns in sorted(found.items()):
        lines.append(f"[protect.{json.dumps(f'{database}.{table}')}]")
        lines += [f"{json.dumps(column)} = {json.dumps(words)}" for column, words in sorted(columns.items())]
    return "\n".join(lines) + "\n"


def django(python, folder, binary, apps):
    tests = HOME / f"django-{DJANGO}/tests"
    settings = folder / "settings"
    settings.mkdir()

    def suite(app, port, *options):
        (settings / "onionskin_settings.py").write_text(SETTINGS.format(port=port))
        ran = subprocess.run(
            [python, "runtests.py", "--settings=onionskin_settings", "--parallel=1", "--noinput", "-v", "2", *options, app],
            cwd=tests, env={**os.environ, "PYTHONPATH": str(settings)}, capture_output=True, text=True, timeout=3000,
        )
        results = {}
        # `test_x (app.tests.Class.test_x)`, perhaps its first line of documentation, then what became of it
        for name, outcome in re.findall(r"^(test\w* \([\w.]+\))(?:\n[^\n]*?)? \.\.\. (ok|FAIL|ERROR|skipped|expected failure|unexpected success)",
                                        ran.stderr, re.M):
            results[name] = outcome
        reasons = {}
        for name, text in re.findall(r"^(?:ERROR|FAIL): (test\w* \([\w.]+\))[^\n]*\n(?:[^\n]*\n)?-{20,}\n(.*?)(?=^={20,}|^-{20,}\nRan)", ran.stderr, re.M | re.S):
            reasons[name] = text.strip().splitlines()[-1]
        if not results:
            results["the suite itself"] = "ERROR"
            reasons["the suite itself"] = ran.stderr.strip()[-600:].replace("\n", " / ")
        return results, reasons

    (folder / "plain").mkdir()
    plain_server = bench.Server("mariadb", folder / "plain", False)
    databases = ["test_default", "test_other"]
    expected, found, columns = {}, {}, 0
    for app in apps:
        expected[app] = suite(app, plain_server.port, "--keepdb")
        of_app, count = protectable(plain_server, databases)
        found.update(of_app)
        columns += count
        for database in databases:
            plain_server.sql(f"DROP DATABASE IF EXISTS {database}")
    protected = Protected(folder, binary, policy_of(found))
    parts = [(app, expected[app], suite(app, protected.port)) for app in apps]
    return parts, how(protected, found)


def sqlalchemy(python, folder, binary, _):
    home = HOME / f"sqlalchemy-{SQLALCHEMY}"

    def command(port, report):
        uri = f"mariadb+pymysql://root@127.0.0.1:{port}/test?charset=utf8mb4&ssl_disabled=1"
        return ([python, "-m", "pytest", "-p", "no:logging", "-q", "--dburi", uri, "--maxfail=100000", f"--junitxml={report}", "test/dialect/test_suite.py"],
                home, {"PYTHONPATH": str(home / "lib")})

    return by_log(folder, binary, "dialect suite", command)


def sqlobject(python, folder, binary, _):
    home = folder / "sqlobject"
    home.mkdir()
    (tests,) = (HOME / "venv/lib").glob("python*/site-packages/sqlobject")

    def command(port, report):
        uri = f"mysql://root@127.0.0.1:{port}/test?driver=pymysql&charset=utf8"
        # its own list of tables, beside the tests
        (home / "dbs_data.tmp").unlink(missing_ok=True)
        return [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--maxfail=100000", f"--junitxml={report}", "-D", uri, tests], home, {}

    return by_log(folder, binary, "all tests", command)


def node(_, folder, binary, __):
    home = HOME / "node"
    home.mkdir(parents=True, exist_ok=True)
    (home / "package.json").write_text('{"private": true}\n')
    run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *NODE], cwd=home)

    def application(orm, kind, server, port):
        server.sql("CREATE USER IF NOT EXISTS 'root'@'%' IDENTIFIED BY ''; GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION")
        server.sql("DROP DATABASE IF EXISTS shop; CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        ran = subprocess.run(["node", Path(__file__).parent / "node_orms.js", orm, kind, str(port)], cwd=home, capture_output=True, text=True, timeout=300)
        steps = dict(line.split("\t", 1) for line in ran.stdout.splitlines() if "\t" in line)
        return steps or {"the application itself": ran.stderr[-600:]}

    parts, notes = [], []
    for kind in ("mariadb", "mysql"):
        if kind == "mysql" and not (CHECKOUT / ".servers/mysql").exists():
            continue
        here = folder / kind
        (here / "plain").mkdir(parents=True)
        plain = bench.Server(kind, here / "plain", False)
        protected = Protected(here, binary, '[protect."*.*"]\n"*" = ["eq", "range"]\n', kind)
        for orm in ("typeorm", "sequelize", "knex"):
            expected = application(orm, kind, plain, plain.port)
            actual = application(orm, kind, protected.server, protected.port)
            # what came of a step on the plain server is right, whatever it is
            outcomes = {name: "ok" if expected.get(name) == text else "another answer" for name, text in actual.items()}
            reasons = {name: f"{text}\n        instead of {expected.get(name)}" for name, text in actual.items() if outcomes[name] != "ok"}
            parts.append((f"{orm} on {kind}", (dict.fromkeys(expected, "ok"), {}), (outcomes, reasons)))
        notes.append(f"{protected.columns()} columns protected on {kind}")
    return parts, "one wildcard, " + ", ".join(notes)


def by_log(folder, binary, part, command):
    """Runs a suite whose tables come and go within it: their definitions are taken from the log of statements."""

    def suite(port, server):
        for name in ("test", "test_schema", "test_schema_2"):
            server.sql(f"DROP DATABASE IF EXISTS {name}")
            server.sql(f"CREATE DATABASE {name} DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci")
        report = folder / "report.xml"
        words, home, environment = command(port, report)
        ran = subprocess.run(words, cwd=home, env={**os.environ, **environment}, capture_output=True, text=True, timeout=3000)
        return junit(report, ran.stdout + ran.stderr)

    (folder / "plain").mkdir()
    plain = bench.Server("mariadb", folder / "plain", False)
    plain.sql("SET GLOBAL log_output = 'TABLE'; SET GLOBAL general_log = ON")
    expected = suite(plain.port, plain)
    plain.sql("SET GLOBAL general_log = OFF")
    texts = plain.sql("SELECT HEX(argument) FROM mysql.general_log WHERE command_type = 'Query' AND argument RLIKE '(CREATE|ALTER) TABLE'").split()
    found, columns, never = {}, 0, set()
    for text in (bytes.fromhex(t).decode(errors="replace") for t in texts):
        linked = re.match(r"\s*ALTER TABLE `?(\w+)`? ADD CONSTRAINT `?\w+`? FOREIGN KEY \(([^)]*)\) REFERENCES `?(\w+)`? ?\(([^)]*)\)", text)
        if linked:
            sides = ((linked[1], linked[2]), (linked[3], linked[4]))
            never |= {("test", table, column) for table, columns_of in sides for column in re.findall(r"\w+", columns_of)}
        made = re.match(r"\s*CREATE TABLE (?:IF NOT EXISTS )?`?(?:(\w+)`?\.`?)?(\w+)`? \((.*)\)", text, re.S)
        if not made:
            continue
        database, table, body = made[1] or "test", made[2], made[3]
        keys = set(re.findall(r"\w+", " ".join(re.findall(r"(?:PRIMARY KEY|FOREIGN KEY|REFERENCES [\w.`]+|CHECK|GENERATED ALWAYS AS) ?\(([^)]*)\)", body))))
        for line in body.splitlines():
            column = re.match(r"\s*`?(\w+)`? ([A-Za-z]+)", line)
            if not column or column[1].upper() in ("PRIMARY", "FOREIGN", "UNIQUE", "CONSTRAINT", "CHECK", "INDEX", "KEY"):
                continue
            columns += 1
            kind = {"integer": "int", "numeric": "decimal", "bool": "tinyint", "boolean": "tinyint"}.get(column[2].lower(), column[2].lower())
            if column[1] in keys or "AUTO_INCREMENT" in line or "GENERATED" in line or "CURRENT_TIMESTAMP" in line or kind not in SEARCHABLE:
                never.add((database, table, column[1]))
            found.setdefault((database, table), {})[column[1]] = ["eq", "range"]
    for database, table, column in never:
        found.get((database, table), {}).pop(column, None)
    protected = Protected(folder, binary, policy_of(found))
    parts = [(part, expected, suite(protected.port, protected.server))]
    return parts, how(protected, found)


def how(protected, found):
    """What was protected; nothing is an error."""
    columns = protected.columns()
    if not columns:
        sys.exit("orm_suites: no column was protected")
    named = "one wildcard" if WILDCARD else f"{sum(map(len, found.values()))} columns named in the configuration"
    return f"{named}, {columns} columns protected"


def is_refused(reason):
    return re.search(r"OS1\d\d\d", reason) is not None


def report(suite, parts, note):
    """Writes and prints what came of a suite; returns the number of tests that end in another way."""
    lines, different, totals = [], 0, Counter()
    for part, (expected, _), (actual, reasons) in parts:
        counts = Counter()
        rest = []
        # an application whose tables cannot be made
        none_ran = is_refused(reasons.get("the suite itself", ""))
        for name in sorted(expected.keys() | actual.keys()):
            before, after = expected.get(name, "not run"), actual.get(name, "not run")
            if before == after:
                counts["same"] += 1
                counts["same, " + before] += 1
            elif WILDCARD and (none_ran or is_refused(reasons.get(name, ""))):
                counts["refused"] += 1
                rest.append(f"    {name}: refused\n        {reasons.get(name, '')}")
            else:
                counts["different"] += 1
                rest.append(f"    {name}: {before}, through the proxy {after}\n        {reasons.get(name, '')}")
        totals += counts
        refused = f", {counts['refused']} refused" if WILDCARD else ""
        lines.append(f"{part:24} {len(expected):4} tests, {counts['same']:4} the same "
                     f"({counts['same, ok']} ok, {counts['same, skipped']} skipped){refused}, {counts['different']} different")
        lines += rest
        different += counts["different"]
    if WILDCARD:
        note = f"{totals['refused']} refused; {note}"
    lines.append(f"{suite}: {totals['same'] + different + totals['refused']} tests, {totals['same']} the same ({totals['same, ok']} ok), "
                 f"{different} different; {note}")
    text = "\n".join(lines)
    if 2 * (totals["same, ok"] + different + totals["refused"]) < totals["same"]:
        # a suite that cannot run ends alike on both sides
        text += f"\n{suite}: most of its tests do not pass on the plain server"
        different += 1
    (HOME / f"{suite}{'-wildcard' if WILDCARD else ''}.txt").write_text(text + "\n")
    print(text, flush=True)
    return different


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("suites", nargs="*", default=["django", "sqlalchemy", "sqlobject"] + (["node"] if shutil.which("npm") else []))
    options.add_argument("--apps", default=",".join(APPS))
    options.add_argument("--binary", default=str(CHECKOUT / "target/release/onionskin"))
    options.add_argument("--wildcard", action="store_true", help="protect every column by one wildcard, as a new user would")
    given = options.parse_args()
    global WILDCARD
    WILDCARD = given.wildcard
    python = None if given.suites == ["node"] else environment()
    different = 0
    for suite in given.suites:
        with tempfile.TemporaryDirectory(prefix="orm-", dir="/tmp") as folder:
            parts, note = {"django": django, "sqlalchemy": sqlalchemy, "sqlobject": sqlobject, "node": node}[suite](
                python, Path(folder), given.binary, given.apps.split(","))
            different += report(suite, parts, note)
            bench.stop_all()
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
