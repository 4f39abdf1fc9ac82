#!/usr/bin/env python3
"""The status page in a real browser: `make browser-test`.

    scripts/browser_test.py [--page FILE] [--ways desktop-light,phone-dark]

A proxy with a private MariaDB server and a scratch engine is started, and a second one before the
same server, which has no engine and asks for a token. Statements run through both, some of which
are refused. Debian's chromium then opens the page of the first in four ways, as wide as a desktop
and as a phone, in light and dark, and the page of the second as somebody who does not know the
token, and as somebody who does. What is looked at is the document and its computed styles, the
browser's console, and its log of the network.

ONIONSKIN_PROGRAM names the program (target/release/onionskin), ONIONSKIN_SCREENSHOTS a folder for
pictures of what was seen. --page shows another status.html in the place of the program's own,
under the program's own headers: a change of the page can be tried without a build.

Python packages go to target/browser. Exits with 1 if something does not hold, or if a program is
missing. Everything that was started is ended, each process by its id.
"""

import argparse
import base64
import hashlib
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench  # processes that end with this one, free ports

CHECKOUT = Path(__file__).resolve().parent.parent
HOME = CHECKOUT / "target/browser"
PACKAGES = ["selenium==4.51.0", "pymysql==1.2.4"]
PROGRAM = Path(os.environ.get("ONIONSKIN_PROGRAM", CHECKOUT / "target/release/onionskin")).resolve()
PICTURES = os.environ.get("ONIONSKIN_SCREENSHOTS")

# Width, height, whether it is a phone, and what the reader prefers.
WAYS = {
    "desktop-light": (1280, 800, False, "light"),
    "desktop-dark": (1280, 800, False, "dark"),
    "phone-light": (390, 844, True, "light"),
    "phone-dark": (390, 844, True, "dark"),
}
# They run in the page.
READERS = Path(__file__).with_suffix(".js").read_text()
# WCAG 2, level AA, for texts of ordinary size.
CONTRAST = 4.5
# CSS pixels.
SMALLEST = 12
# Seconds within which the page shows what is new: it asks every two.
PATIENCE = 12

TOKEN = "a-token-of-this-test-0815"
# They stand in refused statements, and in nothing that is told.
SECRETS = ["Rumpelstilzchen", "Schneewittchen", "74117411853", "1987-11-23"]
# Names that would do something if they were taken for HTML. A column's has
# 56 characters at most.
HOSTILE_DATABASE = "<script>document.title='ran'</script>"
HOSTILE_TABLE = "\"><img src=x onerror=document.title='ran'>"
HOSTILE_COLUMN = "</td><script>document.title='ran'</script>&amp;"
HOSTILE_ALIAS = "<svg onload=document.title='ran'>"
HOSTILE_ACCOUNT = "<script>document.title='ran'</script><object data=x>"


def quoted(name):
    return "`" + name.replace("`", "``") + "`"


HOSTILE = f"{quoted(HOSTILE_DATABASE)}.{quoted(HOSTILE_TABLE)}"
TABLES = [
    "CREATE DATABASE shop",
    "CREATE TABLE shop.people (id INT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (eq), "
    "age BIGINT ENCRYPTED FOR (eq, range), about VARCHAR(400) ENCRYPTED FOR (like), "
    "born DATE ENCRYPTED FOR (), note TEXT ENCRYPTED FOR ())",
    "CREATE TABLE shop.plain (id INT PRIMARY KEY, note TEXT)",
    f"CREATE DATABASE {quoted(HOSTILE_DATABASE)}",
    f"CREATE TABLE {HOSTILE} (id INT PRIMARY KEY, {quoted(HOSTILE_COLUMN)} INT ENCRYPTED FOR (eq))",
    f"CREATE USER {quoted(HOSTILE_ACCOUNT)}@'%' IDENTIFIED BY 'of the account'",
    f"GRANT ALL ON *.* TO {quoted(HOSTILE_ACCOUNT)}@'%'",
]
# What the page has to say of them.
PROTECTED = {
    "shop.people": {
        "name": ("varchar(40)", "eq", "which are equal"),
        "age": ("bigint(20)", "eq, range", "their order"),
        "about": ("varchar(400)", "like", ""),
        "born": ("date", "sealed", "nothing but lengths"),
        "note": ("text", "sealed", "nothing but lengths"),
    },
    f"{HOSTILE_DATABASE}.{HOSTILE_TABLE}": {
        HOSTILE_COLUMN: ("int(11)", "eq", "which are equal"),
    },
}

# Refused although there is an engine: the statements, their shape, and their code.
INTO = "SELECT name INTO @x FROM people WHERE name = {}"
COPY = "INSERT INTO plain SELECT id, note FROM people WHERE age > {} AND born < {}"
NAMES = f"SELECT {quoted(HOSTILE_COLUMN)} AS {quoted(HOSTILE_ALIAS)} INTO @x FROM {HOSTILE}"
DEFINER = f"CREATE DEFINER={quoted(HOSTILE_ACCOUNT)}@`%` VIEW v AS SELECT UPPER(name) FROM people"
REFUSED = [
    ([INTO.format(f"'{SECRETS[0]}{n}'") for n in range(3)], INTO.format("?"), "OS1033"),
    ([COPY.format(SECRETS[2], f"'{SECRETS[3]}'")] * 2, COPY.format("?", "?"), "OS1031"),
    (["CHECKSUM TABLE people"], "CHECKSUM TABLE people", "OS1008"),
    ([f"{NAMES} -- {SECRETS[1]}"], NAMES, "OS1033"),
    ([DEFINER], DEFINER, "OS1028"),
]
# Refused without an engine: a statement, its shape, its code, and what would make it run.
HELPED = [
    (f"SELECT id FROM people WHERE name > '{SECRETS[0]}'",
     "SELECT id FROM people WHERE name > ?", "OS1003", "range gives tier 1"),
    (f"SELECT id FROM people WHERE born = '{SECRETS[3]}'",
     "SELECT id FROM people WHERE born = ?", "OS1002", "eq gives tier 1"),
    (f"SELECT id FROM people WHERE UPPER(name) = '{SECRETS[1]}'",
     "SELECT id FROM people WHERE UPPER(name) = ?", "OS1004", "scratch engine gives tier 3"),
]


# ---- what is started ----------------------------------------------------------------------------


def environment(script=__file__):
    """Goes on under a Python that has the packages; they are installed once."""
    python = HOME / "venv/bin/python"
    if Path(sys.prefix).resolve() == (HOME / "venv").resolve():
        return
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", HOME / "venv"], check=True)
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES]
    subprocess.run(install, check=True)
    os.execv(python, [str(python), str(script), *sys.argv[1:]])


def program(name):
    path = shutil.which(name)
    if not path:
        sys.exit(f"browser_test: {name} is missing; run scripts/install-deps.sh browser")
    return path


class Proxy:
    """A proxy with an administration address; with a server of its own, or before another's."""

    def __init__(self, home, settings="", behind=None):
        self.home, self.behind = home, behind
        self.port, self.admin = bench.free_port(), bench.free_port()
        self.socket = (behind.home if behind else home) / "server/mysql.sock"
        init = [PROGRAM, "init", "--dir", home, "--backend", f"unix:{self.socket}"]
        subprocess.run(init, check=True, stdout=subprocess.DEVNULL)
        if behind:
            shutil.copy(behind.home / "keys.json", home / "keys.json")
        file = home / "onionskin.toml"
        own = f'admin = "127.0.0.1:{self.admin}"\n{settings}\n'
        file.write_text(own + bench.without_engine(file.read_text()))
        self.start()

    def start(self):
        place = ["-c", self.home / "onionskin.toml"] if self.behind else ["--private", self.home]
        log = self.home / "onionskin.log"
        self.process = bench.start(
            [PROGRAM, "serve", *place, "--listen", f"127.0.0.1:{self.port}"],
            stdout=open(log, "a"), stderr=subprocess.STDOUT,
        )
        bench.wait_for_port(self.port, self.process, log)

    def stop(self):
        bench.stop(self.process)


class Client:
    """A session of an application."""

    def __init__(self, port, user="root", password="", database="shop"):
        import pymysql
        self.error = pymysql.err.MySQLError
        self.connection = pymysql.connect(host="127.0.0.1", port=port, user=user,
                                          password=password, autocommit=True)
        if database:
            self.run(f"USE {quoted(database)}")

    def run(self, sql):
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def refused(self, sql, code):
        """The statement is refused with this code, or the test has no ground to stand on."""
        try:
            self.run(sql)
        except self.error as error:
            if str(error.args[-1]).startswith(code):
                return
            sys.exit(f"browser_test: {sql}\n{error}, instead of {code}")
        sys.exit(f"browser_test: {sql}\nis not refused")


def changed_page(admin, page):
    """The administration address with another page, whose hashes stand in the headers instead."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked = http.client.HTTPConnection("127.0.0.1", admin, timeout=10)
            try:
                asked.request("GET", self.path, headers=dict(self.headers))
                answer = asked.getresponse()
                body, headers = answer.read(), answer.getheaders()
            except OSError:
                return  # as the proxy that has ended does
            if self.path == "/status":
                body, headers = page, [(k, with_hashes(k, v, page)) for k, v in headers]
            self.send_response(answer.status)
            for name, value in headers:
                if name.lower() != "content-length":
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def with_hashes(name, value, page):
    if name.lower() != "content-security-policy":
        return value
    for tag in ("style", "script"):
        inner = page.decode().split(f"<{tag}>", 1)[1].split(f"</{tag}>", 1)[0]
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        value = re.sub(f"{tag}-src 'sha256-[^']*'", f"{tag}-src 'sha256-{digest}'", value)
    return value


# ---- the browser --------------------------------------------------------------------------------


def arguments(folder):
    given = ["--headless=new", f"--user-data-dir={folder}", "--disable-dev-shm-usage",
             # the browser's own errands, which are no part of the page
             "--disable-background-networking", "--disable-component-update", "--no-first-run",
             "--disable-default-apps", "--disable-sync", "--no-pings"]
    # Chromium's sandbox does not run as root.
    return given + (["--no-sandbox"] if os.getuid() == 0 else [])


@contextmanager
def browser(folder):
    """Chromium with nothing remembered."""
    from selenium import webdriver
    folder = Path(tempfile.mkdtemp(prefix="browser-", dir=folder))
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium")
    for argument in arguments(folder):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=program("chromedriver"),
                                      env={**os.environ, "HOME": str(folder)})
    driver = webdriver.Chrome(options=options, service=service)
    try:
        yield driver
    finally:
        driver.quit()


class Page:
    """What a reader has before them."""

    def __init__(self, driver, port, way):
        self.driver, self.port, self.way = driver, port, way
        self.is_phone = WAYS[way][2]
        self.emulate()
        self.console(), self.requests()  # what was before
        driver.get(f"http://127.0.0.1:{port}/status")

    def emulate(self):
        width, height, phone, scheme = WAYS[self.way]
        metrics = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": phone}
        self.command("Emulation.setDeviceMetricsOverride", metrics)
        self.command("Emulation.setTouchEmulationEnabled", {"enabled": phone})
        preferred = {"name": "prefers-color-scheme", "value": scheme}
        self.command("Emulation.setEmulatedMedia", {"features": [preferred]})

    def command(self, name, parameters):
        return self.driver.execute_cdp_cmd(name, parameters)

    def js(self, script):
        return self.driver.execute_script(script)

    def read(self, reader):
        """What one of the readers in browser_test.js finds in the document."""
        return self.js(f"{READERS}\nreturn {reader}();")

    def cut_off(self, off):
        """Takes the browser from the network, or lets it back."""
        self.command("Network.enable", {})
        self.command("Network.emulateNetworkConditions", {
            "offline": off, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def type(self, selector, text):
        """In the place of what stands there, as somebody does it."""
        from selenium.webdriver.common.keys import Keys
        self.find(selector).send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.BACKSPACE, text)

    def text(self, selector):
        return self.find(selector).text

    def log_in(self, token):
        self.type("#token", token)
        self.find("#login button").click()

    def wait(self, holds, meanwhile=lambda: None):
        """Whether it holds in time. The document may be drawn anew at any moment."""
        from selenium.common.exceptions import StaleElementReferenceException
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                if holds():
                    return True
            except StaleElementReferenceException:
                continue
            meanwhile()
            time.sleep(0.05)
        return False

    def shows_all(self):
        return self.wait(lambda: self.find("#all").is_displayed() and self.read("numbers"))

    def console(self):
        """What the browser complained of since it was asked last."""
        entries = self.driver.get_log("browser")
        return [e["message"] for e in entries if e["level"] not in ("DEBUG", "INFO")]

    def requests(self):
        """The addresses that were asked since this was asked last."""
        events = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        asked = [e["params"] for e in events
                 if e["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated")]
        return [p["request"]["url"] if "request" in p else p["url"] for p in asked]

    def everything(self):
        """All that the document and the browser's stores hold."""
        return self.js("return document.documentElement.outerHTML + document.title + location.href"
                       " + document.documentElement.innerText + document.cookie"
                       " + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")

    def picture(self, name):
        if not PICTURES:
            return
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        whole = {"format": "png", "captureBeyondViewport": True}
        data = self.command("Page.captureScreenshot", whole)["data"]
        (Path(PICTURES) / f"{name}-{self.way}.png").write_bytes(base64.b64decode(data))


# ---- what is looked at --------------------------------------------------------------------------


class Report:
    """What holds and what does not."""

    def __init__(self):
        self.of, self.held, self.failed = "", 0, []

    def check(self, name, holds, detail=""):
        if holds:
            self.held += 1
            return
        self.failed.append(name)
        print(f"browser_test: {self.of}: {name}: DOES NOT HOLD {detail}", flush=True)

    def end(self):
        print(f"browser_test: {self.held} checks hold, {len(self.failed)} do not")
        sys.exit(1 if self.failed else 0)


def check_layout(page, report):
    """A phone zooms out where the page is too wide, so the width is compared with the phone's."""
    wide = page.js("return [document.scrollingElement.scrollWidth, innerWidth]")
    limit = min(wide[1], WAYS[page.way][0])
    report.check("nothing is wider than the window", wide[0] <= limit, f"{wide}")
    if page.is_phone:
        report.check("the page is laid out for a phone", wide[1] == limit, f"{wide}")


def check_texts(page, report, fewest):
    texts = page.read("texts")
    report.check("there are texts", len(texts) >= fewest, f"{len(texts)}")
    for inside in ("body", "table"):
        faint = [(t["text"][:40], round(t["contrast"], 2)) for t in texts
                 if t["inside"] == inside and t["contrast"] < CONTRAST]
        report.check(f"the contrast of texts ({inside})", not faint, f"{faint}")
    broken = [t["text"] for t in texts if re.fullmatch(r"[^\s-]{1,12}", t["text"]) and t["lines"] > 1]
    report.check("short words are on one line", not broken, f"{broken}")
    cut = [t["text"][:40] for t in texts if t["cut"]]
    report.check("no text is cut off", not cut, f"{cut}")
    if page.is_phone:
        small = [(t["text"][:40], t["size"]) for t in texts if t["size"] < SMALLEST]
        report.check("the size of texts", not small, f"{small}")


def check_scheme(page, report):
    """Texts have a contrast in a page that is always light, too."""
    sum_of = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g)" \
             ".slice(0, 3).reduce((sum, n) => sum + Number(n), 0)"
    dark = page.js(sum_of) < 3 * 128
    report.check("light or dark as preferred", dark == (WAYS[page.way][3] == "dark"))


def check_protected(page, report):
    shown = {table: {name: cells for name, *cells in rows}
             for table, rows in page.read("protectedTables")}
    report.check("the protected tables", set(shown) == set(PROTECTED), f"{list(shown)}")
    for table, columns in PROTECTED.items():
        found = shown.get(table, {})
        report.check("the protected columns", list(found) == list(columns), f"{found}")
        for name, (kind, capabilities, shows) in columns.items():
            cells = found.get(name, ["", "", ""])
            as_expected = cells[:2] == [kind, capabilities] and shows in cells[2] and cells[2]
            report.check(f"what is said of {name}", as_expected, f"{cells}")


def check_filter(page, report):
    page.type("#filter", "PEOPLE")
    report.check("the filter", [t for t, _ in page.read("protectedTables")] == ["shop.people"])
    page.type("#filter", "of no table")
    report.check("the filter without a match", page.read("protectedTables") == [])
    page.type("#filter", "")
    report.check("no filter", len(page.read("protectedTables")) == len(PROTECTED))


def check_refused(page, report):
    cards = page.read("refusedStatements")
    report.check("one group for each shape", len(cards) == len(REFUSED), f"{len(cards)}")
    by_shape = {card["shape"]: card for card in cards}
    for statements, shape, code in REFUSED:
        card = by_shape.get(shape)
        report.check(f"the shape {shape}", card is not None, f"{list(by_shape)}")
        if card:
            count = f"{len(statements)} ×"
            report.check(f"the count of {shape}", card["count"] == count, card["count"])
            report.check(f"the code of {shape}", card["code"] == code, card["code"])
            message, way_out, last = (card["more"] + ["", "", ""])[:3]
            report.check(f"the message of {shape}", message.startswith(code), message)
            once = " ".join(card["more"]).count(way_out_of(code)) == 1
            report.check(f"the way out of {shape} stands there once", once, message)
            report.check(f"the way out of {shape}", way_out == way_out_of(code), way_out)
            report.check(f"the time of {shape}", last.startswith("Last at ") and "shop" in last)


def way_out_of(code):
    """As the documents have it."""
    for line in (CHECKOUT / "docs/errors.md").read_text().splitlines():
        if line.startswith(f"| {code} "):
            return line.split(" | ")[-1].rstrip(" |")
    return None


def check_details(page, report):
    """A group opens, shows the way out, and stays open while the page is drawn anew."""
    page.find("#refused summary").click()
    page.js("document.querySelector('#refused details').before_now = true")
    anew = "return !document.querySelector('#refused details').before_now"
    report.check("groups are drawn anew", page.wait(lambda: page.js(anew)))
    is_open = page.js("return document.querySelector('#refused details').open")
    shown = page.js("return document.querySelector('#refused details p').checkVisibility()")
    report.check("a group stays open", is_open and shown)
    page.js("for (const one of document.querySelectorAll('#refused details')) one.open = true")


def check_secrets(page, report):
    everything = page.everything()
    told = [secret for secret in SECRETS if secret in everything]
    report.check("no literal is told", not told, f"{told}")


def check_hostile(page, report):
    """Names are texts, whatever stands in them."""
    text = page.js("return document.body.textContent")
    names = [HOSTILE_DATABASE, HOSTILE_TABLE, HOSTILE_COLUMN, HOSTILE_ALIAS, HOSTILE_ACCOUNT]
    for name in names:
        report.check(f"{name} is shown as it is", name in text)
    scripts = page.js("return document.scripts.length")
    made = page.js("return document.querySelectorAll("
                   "'img, svg, object, iframe, [onerror], [onload]').length")
    report.check("names make no elements", (scripts, made) == (1, 0), f"{scripts}, {made}")
    report.check("names run nothing", page.driver.title == "Onionskin", page.driver.title)


def check_live(page, report, client):
    """Numbers change by themselves while statements run."""
    page.js("window.not_loaded_anew = true")
    before, ran = page.read("numbers"), [0]

    def statement():
        ran[0] += 1
        client.run(f"REPLACE INTO people (id, name, age) VALUES ({ran[0]}, 'a', {ran[0]})")
        client.run("SELECT name FROM people WHERE id = 1")

    def grown(name, by=1):
        return page.read("numbers").get(name, 0) >= before.get(name, 0) + by

    for name in ("cells sealed", "cells opened", "tier 1: the server, on ciphertext"):
        report.check(f"{name}: more than before", page.wait(lambda: grown(name), statement))
    speed = "statements a second"
    is_fast = lambda: page.read("numbers").get(speed, 0) > 0
    report.check("a speed while statements run", page.wait(is_fast, statement))
    report.check("sessions", page.read("numbers")["sessions"] >= 1)
    report.check("the page was not loaded anew", page.js("return window.not_loaded_anew === true"))


def check_new_refusal(page, report, client):
    """The count of a shape grows while it is looked at."""
    statements, shape, code = REFUSED[0]
    count = lambda: {c["shape"]: c["count"] for c in page.read("refusedStatements")}[shape]
    client.refused(statements[0], code)
    statements.append(statements[0])
    report.check("a refusal is counted", page.wait(lambda: count() == f"{len(statements)} ×"))


def check_quiet(page, report, expected=()):
    """The browser complains of nothing, and asks nobody but the address of the page."""
    complaints = [c for c in page.console() if not any(e in c for e in expected)]
    report.check("the console is empty", not complaints, f"{complaints}")
    asked = page.requests()
    is_asked = any(url.endswith("/status.json") for url in asked)
    report.check("requests are seen", is_asked, f"{asked}")
    here = f"127.0.0.1:{page.port}"
    others = [url for url in asked if urlsplit(url).netloc != here]
    entries = page.js("return performance.getEntriesByType('resource').map(e => e.name)")
    others += [url for url in entries if urlsplit(url).netloc != here]
    report.check("nobody else is asked", not others, f"{others}")


def check_that_faults_are_seen(driver, report):
    """Without this, an empty console would prove nothing."""
    driver.execute_script("console.error('a fault'); setTimeout(() => nothing.at.all)")
    time.sleep(0.2)
    entries = [e["message"] for e in driver.get_log("browser")]
    seen = any("a fault" in e for e in entries) and any("nothing is not" in e for e in entries)
    report.check("faults are seen", seen, f"{entries}")


# ---- the readers --------------------------------------------------------------------------------


def look_around(driver, port, way, report, client):
    """The page of the proxy that anybody of this machine may ask."""
    report.of = way
    page = Page(driver, port, way)
    report.check("the page shows all", page.shows_all())
    report.check("no token is asked for", not page.find("#login").is_displayed())
    report.check("parts", page.text("#parts").split() == ["proxy", "keys", "server", "scratch"])
    check_scheme(page, report)
    check_protected(page, report)
    check_refused(page, report)
    check_hostile(page, report)
    check_filter(page, report)
    page.picture("closed")
    check_details(page, report)
    check_layout(page, report)
    check_texts(page, report, 60)
    check_live(page, report, client)
    check_new_refusal(page, report, client)
    check_secrets(page, report)
    page.picture("open")
    check_quiet(page, report)


def look_with_token(driver, proxy, port, way, report):
    """The page of the proxy that asks for a token, from a stranger's login to the proxy's end."""
    report.of = f"{way}, token"
    client = Client(proxy.port)
    for sql, _, code, _ in HELPED:
        client.refused(sql, code)
    page = Page(driver, port, way)
    asks = lambda: page.find("#login").is_displayed()
    report.check("the page asks for a token", page.wait(asks))
    check_stranger(page, report)
    page.picture("login")
    check_layout(page, report)
    check_texts(page, report, 3)
    check_wrong_tokens(page, report, asks)
    page.log_in(TOKEN)
    report.check("the token is taken", page.shows_all() and not asks())
    check_helped(page, report)
    check_texts(page, report, 40)
    check_layout(page, report)
    page.picture("token")
    page.driver.refresh()
    report.check("the token is remembered for this tab", page.shows_all() and not asks())
    check_token_is_kept(page, report)
    check_restart(page, proxy, client, report)


def check_wrong_tokens(page, report, asks):
    """They are told from no token; the last one cannot even be sent."""
    for wrong in ("not-the-token-of-this-test", "tökén…"):
        page.js("document.querySelector('#note').textContent = ''")
        page.log_in(wrong)
        says = lambda: "not the token" in page.text("#note")
        report.check(f"{wrong} is not taken", page.wait(says) and asks(), page.text("#note"))
        check_stranger(page, report)
    page.driver.refresh()
    report.check("a wrong token is forgotten", page.wait(asks))


def check_token_is_kept(page, report):
    """It is nowhere but in the page's own memory and in what the browser forgets with the tab."""
    asked = page.requests()
    report.check("the token is in no address", asked and TOKEN not in "".join(asked))
    told = page.js("return document.documentElement.outerHTML + document.cookie"
                   " + JSON.stringify(localStorage) + document.querySelector('#token').value")
    report.check("the token is not left behind", TOKEN not in told)


def check_stranger(page, report):
    everything = page.everything()
    told = [word for word in ("people", "OS10", "shop", *SECRETS) if word in everything]
    hidden = not page.find("#all").is_displayed()
    report.check("a stranger is told nothing", hidden and not told, f"{told}")


def check_helped(page, report):
    """What would make the statements run, where there is no engine."""
    by_shape = {card["shape"]: card for card in page.read("refusedStatements")}
    for _, shape, code, gives in HELPED:
        card = by_shape.get(shape, {"code": "", "help": ""})
        right = card["code"] == code and card["help"].endswith(gives)
        report.check(f"the help for {shape}", right, f"{card}")
    report.check("no engine", "There is no scratch engine" in page.text("#refusedNote"))
    check_secrets(page, report)


def check_restart(page, proxy, client, report):
    """The page says that the proxy is gone, and goes on when it is back."""
    run_some(client, 50)
    tier = "tier 1: the server, on ciphertext"
    counted = lambda: page.read("numbers").get(tier, 0)
    report.check("statements are counted", page.wait(lambda: counted() >= 50))
    refused = ["status of 401", "ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET",
               "ERR_EMPTY_RESPONSE", "ERR_INTERNET_DISCONNECTED"]
    check_quiet(page, report, refused)
    proxy.stop()
    gone = lambda: page.text("#note").startswith("No answer")
    report.check("the page says that the proxy is gone", page.wait(gone), page.text("#note"))
    report.check("no part is said to be well", page.text("#parts") == "no answer")
    check_texts(page, report, 40)
    page.read("watchSigns")
    # what the page sees first of the new proxy has counted something, and less than the old one
    page.cut_off(True)
    proxy.start()
    run_some(Client(proxy.port), 5)
    page.cut_off(False)
    report.check("the page goes on", page.wait(lambda: not page.text("#note") and counted() == 5))
    signs = page.js("return window.signs")
    report.check("no number is below zero", not signs, f"{signs}")
    check_quiet(page, report, refused)


def run_some(client, statements):
    for _ in range(statements):
        client.run("SELECT name FROM people WHERE id = 1")


def prepare(proxy):
    """Tables, rows and refused statements; the account's name is hostile, too."""
    root = Client(proxy.port, database="")
    for sql in TABLES:
        root.run(sql)
    client = Client(proxy.port, HOSTILE_ACCOUNT, "of the account")
    client.run(f"INSERT INTO people VALUES (0, '{SECRETS[0]}', 1, '{SECRETS[1]}', NULL, NULL)")
    client.run(f"SELECT * FROM {HOSTILE}")
    for statements, _, code in REFUSED:
        for sql in statements:
            client.refused(sql, code)
    return client


def attempt(report, look, *arguments):
    """What is not on the page, or cannot be clicked, ends one look and not the others."""
    from selenium.common.exceptions import WebDriverException
    try:
        look(*arguments)
    except WebDriverException as error:
        report.check("the look gets to its end", False, error.msg)


def run(options, folder, report):
    proxy = Proxy(folder / "one")
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    other = Proxy(folder / "two", f'admin_token_file = "{token}"', proxy)
    client = prepare(proxy)
    ports = [proxy.admin, other.admin]
    if options.page:
        ports = [changed_page(port, options.page.read_bytes()) for port in ports]
    with browser(folder) as driver:
        check_that_faults_are_seen(driver, report)
        for way in options.ways.split(","):
            attempt(report, look_around, driver, ports[0], way, report, client)
    for way in options.ways.split(","):
        # a browser of its own for each: it remembers a token
        with browser(folder) as driver:
            attempt(report, look_with_token, driver, other, ports[1], way, report)
    other.stop()
    proxy.stop()


def main():
    parser = argparse.ArgumentParser(description="The status page in a real browser")
    parser.add_argument("--page", type=Path, help="another status.html")
    parser.add_argument("--ways", default=",".join(WAYS), help="some of them, by commas")
    options = parser.parse_args()
    environment()
    program("chromium"), program("chromedriver"), program("setpriv")
    if not PROGRAM.exists():
        sys.exit(f"browser_test: there is no {PROGRAM}; build it, or name it in ONIONSKIN_PROGRAM")
    # an end from outside is an end like any other: what was started ends as well
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    report = Report()
    with tempfile.TemporaryDirectory(prefix="os-browser-") as folder:
        # run by root, the server is the user mysql, who must get through
        Path(folder).chmod(0o711)
        try:
            run(options, Path(folder), report)
        finally:
            bench.stop_all()
    report.end()


if __name__ == "__main__":
    main()
