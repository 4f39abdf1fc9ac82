#!/usr/bin/env python3
"""The reports of `onionskin assess` in a real browser: `make browser-test`.

    scripts/browser_reports.py [--ways desktop-light,phone-dark] [REPORT.html …]

A private server gets tables whose names would do something if they were taken for HTML, and
statements run through a proxy that observes them. `assess` then writes its reports: of the server,
of personal data, of queries, of leaks, before and after columns are protected. Debian's chromium
opens each of them as a file, as wide as a desktop and as a phone, in light and dark. What is looked
at is the document and its computed styles, the browser's console, and its log of the network.
Reports that are named are looked at as well, and then no others are made: those of `demo assess`,
for example.

ONIONSKIN_PROGRAM and ONIONSKIN_SCREENSHOTS are as in browser_test.py. Exits with 1 if something
does not hold. Everything that was started is ended, each process by its id.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench
import browser_test as browsing
from browser_test import HOSTILE_ALIAS, HOSTILE_COLUMN, HOSTILE_TABLE, quoted

# They are values of the tables, and stand in statements: no report tells them.
SECRETS = ["Rumpelstilzchen", "Schneewittchen", "4111111111111111", "sneewitt@example.org"]
# A policy cannot name a database whose name has a dot.
HOSTILE_DATABASE = "<script>document['title']='ran'</script>"
PROTECTED = "<b onmouseover=document.title='ran'>protected"
TABLE = f"{quoted(HOSTILE_DATABASE)}.{quoted(HOSTILE_TABLE)}"
# A column's name has 56 characters at most if the column is protected.
LONG = "a_long_name_without_a_place_to_break_it_of_56_characters"
NAMES = [HOSTILE_TABLE, HOSTILE_COLUMN, LONG]


def person(n):
    """A row: name, e-mail, card, text."""
    mail = SECRETS[3] if n == 0 else f"person{n}@example.org"
    card = SECRETS[2] if n == 0 else "5500005555555559"
    return f"({n + 1}, '{SECRETS[n % 2]}', '{mail}', '{card}', '{19 + n % 60}', '{SECRETS[0]} rings')"


TABLES = [
    f"CREATE DATABASE {quoted(HOSTILE_DATABASE)}",
    f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, {quoted(HOSTILE_COLUMN)} VARCHAR(60), "
    f"`e-mail` VARCHAR(80), {LONG} VARCHAR(30), age VARCHAR(10), note TEXT, KEY (`e-mail`))",
    f"INSERT INTO {TABLE} VALUES " + ", ".join(person(n) for n in range(400)),
    f"ANALYZE TABLE {TABLE}",
    # other engines, a leftover, an account: findings of the server
    f"CREATE TABLE {quoted(HOSTILE_DATABASE)}.{quoted(HOSTILE_ALIAS)} (id INT) ENGINE=MyISAM",
    f"CREATE TABLE {quoted(HOSTILE_DATABASE)}.{quoted(HOSTILE_ALIAS + '_bak')} (id INT)",
    f"CREATE USER {quoted(HOSTILE_ALIAS)}@'%' IDENTIFIED BY ''",
]
PROTECT = (
    f"CREATE TABLE {quoted(HOSTILE_DATABASE)}.{quoted(PROTECTED)} (id INT PRIMARY KEY, "
    f"{quoted(HOSTILE_COLUMN)} VARCHAR(60) ENCRYPTED FOR (eq), `e-mail` VARCHAR(80) ENCRYPTED FOR (), "
    f"age INT ENCRYPTED FOR (range), {LONG} VARCHAR(90))"
)
ASKED = [
    f"SELECT id FROM {TABLE} WHERE {quoted(HOSTILE_COLUMN)} = '{SECRETS[0]}'",
    f"SELECT note FROM {TABLE} WHERE `e-mail` = '{SECRETS[3]}' AND id > 7",
    f"SELECT UPPER({quoted(HOSTILE_COLUMN)}) AS {quoted(HOSTILE_ALIAS)} FROM {TABLE} WHERE id = 7",
    f"SELECT {LONG} FROM {TABLE} WHERE note LIKE '%{SECRETS[0]}%'",
    f"SELECT MAX({quoted(HOSTILE_COLUMN)}) FROM {TABLE}",
    f"UPDATE {TABLE} SET note = '{SECRETS[1]}' WHERE id = 3",
]

# Of each report: headings that it has at least, and what is in its tables.
EXPECTED = {
    "server": (["Data files", "Accounts"], []),
    "data": (["Columns with personal data in plain"], [HOSTILE_TABLE, "e-mail", LONG]),
    "queries": (["The policy", "Tiers", "Refused"], [LONG]),
    "leaks": (["What each capability would give away"], ["e-mail"]),
    "as-server": (["What the server sees"], ["age"]),
}


# ---- what is made -------------------------------------------------------------------------------


class Observing(browsing.Proxy):
    """A proxy with a private server, which notes what is asked."""

    def start(self):
        log = self.home / "onionskin.log"
        self.asked = self.home / "asked.json"
        self.process = bench.start(
            [browsing.PROGRAM, "serve", "--private", self.home,
             "--listen", f"127.0.0.1:{self.port}", "--observe", self.asked],
            stdout=open(log, "a"), stderr=subprocess.STDOUT,
        )
        bench.wait_for_port(self.port, self.process, log)


def assess(proxy, out, *arguments):
    command = [browsing.PROGRAM, "assess", *arguments, "--backend", f"unix:{proxy.socket}",
               "--out", out]
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120,
                         cwd=proxy.home)
    if ran.returncode not in (0, 1):
        sys.exit(f"browser_reports: {' '.join(map(str, command))}\n{ran.stdout}{ran.stderr}")
    return out / "report.html"


def made(folder):
    """Reports of a server with hostile names, by their names."""
    proxy = Observing(folder / "one")
    root = browsing.Client(proxy.port, database="")
    for sql in TABLES:
        root.run(sql)
    for sql in ASKED:
        root.run(sql)
    root.run(PROTECT)
    rows = ", ".join(f"({n}, '{SECRETS[0]}', '{SECRETS[3]}', {n % 90}, NULL)" for n in range(300))
    root.run(f"INSERT INTO {quoted(HOSTILE_DATABASE)}.{quoted(PROTECTED)} VALUES {rows}")
    database = ["--database", HOSTILE_DATABASE]
    reports = {
        "server": assess(proxy, folder / "server", "server", "--plant", "os_planted"),
        "data": assess(proxy, folder / "data", "data", *database),
        "leaks": assess(proxy, folder / "leaks", "leaks", *database, "--seeds", "2"),
        "as-server": assess(proxy, folder / "as-server", "leaks", *database, "--as-server"),
    }
    # what was asked is complete once the proxy has ended; the server ends with it
    asked = folder / "asked.sql"
    asked.write_text(";\n".join(ASKED))
    queries = ["queries", *database, "--small", "0", "--without-engine", "--statements", asked,
               "--columns", f"{HOSTILE_TABLE}.*"]
    reports["queries"] = assess(proxy, folder / "queries", *queries)
    proxy.stop()
    return reports


# ---- what is looked at --------------------------------------------------------------------------


class Page(browsing.Page):
    """A report, as a reader opens it: as a file."""

    def __init__(self, driver, path, way):
        self.driver, self.way = driver, way
        self.is_phone = browsing.WAYS[way][2]
        self.emulate()
        self.console(), self.requests()  # what was before
        self.address = path.resolve().as_uri()
        driver.get(self.address)


def check_structure(page, report, headings, cells):
    shown = page.js("return [...document.querySelectorAll('h2')].map(h => h.textContent)")
    report.check("one headline", page.js("return document.querySelectorAll('h1').length") == 1)
    report.check("headings", len(shown) == len(set(shown)) and shown, f"{shown}")
    missing = [heading for heading in headings if heading not in shown]
    report.check("the headings of the report", not missing, f"{missing} of {shown}")
    empty = page.js("return [...document.querySelectorAll('section')]"
                    ".filter(s => s.children.length < 2).map(s => s.innerText)")
    report.check("nothing stands below an empty heading", not empty, f"{empty}")
    uneven = page.js("return [...document.querySelectorAll('table')].filter(t => "
                     "!t.tBodies[0].rows.length || [...t.tBodies[0].rows].some("
                     "r => r.cells.length != t.tHead.rows[0].cells.length)).length")
    report.check("tables are whole", uneven == 0, f"{uneven}")
    text = page.js("return [...document.querySelectorAll('td')].map(c => c.textContent).join('\\n')")
    lost = [cell for cell in cells if cell not in text]
    report.check("what its tables are about", not lost, f"{lost}")


def check_hostile(page, report, names):
    """Names are texts, whatever stands in them."""
    text = page.js("return document.body.textContent")
    for name in names:
        report.check(f"{name} is shown as it is", name in text)
    elements = page.js("return document.querySelectorAll("
                       "'script, img, svg, object, iframe, link, b, [onerror], [onload], [onmouseover]'"
                       ").length")
    report.check("names make no elements", elements == 0, f"{elements}")
    report.check("names run nothing", page.driver.title != "ran", page.driver.title)
    report.check("a title", page.driver.title == page.text("h1"), page.driver.title)


def check_quiet(page, report):
    complaints = page.console()
    report.check("the console is empty", not complaints, f"{complaints}")
    asked = page.requests()
    report.check("the report is asked for, and nothing else", asked == [page.address], f"{asked}")
    entries = page.js("return performance.getEntriesByType('resource').map(e => e.name)")
    report.check("nothing is loaded", not entries, f"{entries}")


def check_cells(page, report):
    """Cells are wide enough for words, and on a phone each says what it is."""
    narrow = page.js("return [...document.querySelectorAll('td, dd, pre, p')].filter(c => "
                     "c.innerText.length > 40 && c.getBoundingClientRect().width < 90)"
                     ".map(c => c.innerText.slice(0, 40))")
    report.check("texts have room", not narrow, f"{narrow[:3]}")
    tall = page.js("return [...document.querySelectorAll('td')].filter(c => "
                   "c.innerText.length < 400 && c.getBoundingClientRect().height > innerHeight)"
                   ".map(c => c.innerText.slice(0, 40))")
    report.check("no cell is higher than the window", not tall, f"{tall[:3]}")
    hidden = page.js("return [...document.querySelectorAll('.scroll')].filter(s => "
                     "s.scrollWidth > s.clientWidth + 1).length")
    report.check("tables need no scrolling to the side", hidden == 0, f"{hidden}")
    if page.is_phone:
        unnamed = page.js("return [...document.querySelectorAll('td')].filter(c => c.innerText "
                          "&& !getComputedStyle(c, '::before').content.replace(/[\"]/g, '')).length")
        report.check("cells have their heads on a phone", unnamed == 0, f"{unnamed}")


def look(driver, name, path, way, report):
    report.of = f"{name}, {way}"
    page = Page(driver, path, way)
    headings, cells = EXPECTED.get(name, ([], []))
    check_structure(page, report, headings, cells)
    check_hostile(page, report, names_of(name, path))
    page.js("for (const one of document.querySelectorAll('details')) one.open = true")
    browsing.check_scheme(page, report)
    browsing.check_layout(page, report)
    browsing.check_texts(page, report, 8)
    check_cells(page, report)
    if name in EXPECTED:
        everything = page.everything()
        told = [secret for secret in SECRETS if secret in everything]
        report.check("no value is told", not told, f"{told}")
    check_quiet(page, report)
    page.picture(f"report-{name}")


def names_of(name, path):
    """Hostile names that the report has in its data, which its page must show."""
    if name not in EXPECTED:
        return []
    told = json.dumps(json.loads(path.with_suffix(".json").read_text()), ensure_ascii=False)
    plain = [n for n in NAMES if json.dumps(n, ensure_ascii=False)[1:-1] in told]
    if not plain:
        sys.exit(f"browser_reports: the report on {name} has no hostile name")
    return plain


def check_that_faults_are_seen(driver, folder, way, report):
    """A report with every fault that is looked for: without this, the looks would prove nothing."""
    bad = folder / "bad.html"
    bad.write_text("<!DOCTYPE html><meta name=viewport content='width=device-width'><body style='background:#fff'><h1>x</h1><section><h2>a</h2>"
                   "</section><img src=nowhere.png><div class=scroll style='overflow-x:auto'><table>"
                   "<thead><tr><th>a<th>b<tbody><tr><td>" + "w" * 400 + "</table></div>"
                   "<p style='color:#eee'>faint text here</p><script>document.title='ran'</script>")
    found = browsing.Report()
    found.check = lambda name, holds, detail="": None if holds else found.failed.append(name)
    found.of = "faults"
    page = Page(driver, bad, way)
    check_structure(page, found, ["b"], ["c"])
    check_hostile(page, found, ["<i>"])
    browsing.check_layout(page, found)
    browsing.check_texts(page, found, 1)
    check_cells(page, found)
    check_quiet(page, found)
    report.of = "a bad report"
    for fault in ["the headings of the report", "nothing stands below an empty heading",
                  "tables are whole", "what its tables are about", "names make no elements",
                  "names run nothing", "<i> is shown as it is", "the console is empty",
                  "the report is asked for, and nothing else",
                  "the contrast of texts (body)", "tables need no scrolling to the side"]:
        report.check(f"it is seen that not: {fault}", fault in found.failed, f"{found.failed}")


def main():
    parser = argparse.ArgumentParser(description="The reports of assess in a real browser")
    parser.add_argument("--ways", default=",".join(browsing.WAYS), help="some of them, by commas")
    parser.add_argument("reports", nargs="*", type=Path, help="reports that are there")
    options = parser.parse_args()
    browsing.environment(__file__)
    browsing.program("chromium"), browsing.program("chromedriver"), browsing.program("setpriv")
    if not browsing.PROGRAM.exists() and not options.reports:
        sys.exit(f"browser_reports: there is no {browsing.PROGRAM}; build it, or name it in "
                 "ONIONSKIN_PROGRAM")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.environ.pop("ONIONSKIN_PASSWORD", None)
    report = browsing.Report()
    with tempfile.TemporaryDirectory(prefix="os-browser-") as folder:
        folder = Path(folder)
        # run by root, the server is the user mysql, who must get through
        folder.chmod(0o711)
        try:
            given = {f"given-{p.resolve().parent.name}": p for p in options.reports}
            reports = given or made(folder)
            with browsing.browser(folder) as driver:
                ways = options.ways.split(",")
                check_that_faults_are_seen(driver, folder, ways[0], report)
                for way in ways:
                    for name, path in reports.items():
                        browsing.attempt(report, look, driver, name, path, way, report)
        finally:
            bench.stop_all()
    report.end()


if __name__ == "__main__":
    main()
