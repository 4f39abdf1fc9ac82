#!/usr/bin/env python3
"""Two applications that many people run, WordPress and MediaWiki as Debian has them, with every column protected: `make applications`.

    scripts/applications.py [wordpress] [mediawiki] [--server mariadb,mysql] [--binary target/release/onionskin]

Each is installed, used and administered twice, on an empty database each time:

    plain      application → server
    protected  application → onionskin → server, with a scratch engine; one wildcard protects all columns for `eq`

What it says must be the same line by line; times, random numbers and paths are left out. MediaWiki's table of words to search for
(FULLTEXT) stays plaintext. Differences are listed in target/applications/NAME-SERVER.txt, and make the exit code 1. At the
end the tables are looked at on the server itself: most of their columns must be sealed, or nothing was tried.
"""

import argparse
import difflib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench  # private servers
from orm_suites import Protected

CHECKOUT = Path(__file__).resolve().parent.parent
HOME = CHECKOUT / "target/applications"
SCRIPTS = CHECKOUT / "scripts/applications"
SOURCES = {"wordpress": Path("/usr/share/wordpress"), "mediawiki": Path("/usr/share/mediawiki")}
POLICY = '\n[protect."{0}.searchindex"]\n"*" = "plain"\n[protect."{0}.*"]\n"*" = ["eq"]\nenforce = true\n'
# What differs between two runs on the same server, too.
NOISE = [
    (r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?Z?", "TIME"),
    (r"\d\d:\d\d, \d+ [A-Z][a-z]+ 20\d\d", "TIME"),
    (r"\b20[23]\d{11}\b", "TIME"),
    (r"\b\d+\.\d+ ?m?s\b", "TIME"),
    (r"\b\d+\.\d+ seconds?", "TIME"),
    # behind times, which may have so many digits
    (r"\b[0-9a-f]{16,}\b", "HEX"),
    (r"\bt=\d+", "t=N"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"/[\w/.-]*target/applications/\w+-\w+", "HOME"),
    (r'"jobs":\d+', "JOBS"),
    (r"up to .* old\b", "TIME"),
    (r"\b\d\d:\d\d\b", "TIME"),
    (r'"(?:lg|csrf|login|rollback|watch)?token":"[^"]*"', "TOKEN"),
]

# Each program and each request of MediaWiki's has a minute of its own, so that nothing depends on how fast they follow each other.
CLOCK = """
$clock = __DIR__ . "/clock";
$minute = (is_file($clock) ? (int)file_get_contents($clock) : (int)getenv("APP_CLOCK")) + 60;
file_put_contents($clock, $minute);
Wikimedia\\Timestamp\\ConvertibleTimestamp::setFakeTime(static fn () => $minute);
"""


def quiet(line):
    for pattern, word in NOISE:
        line = re.sub(pattern, word, line)
    return line.rstrip()


class WordPress:
    def __init__(self, port, database, home):
        self.environment = {**os.environ, "APP_PORT": str(port), "APP_DATABASE": database, "APP_HOME": str(SOURCES["wordpress"])}

    def run(self):
        said = []
        for what in ("install", "use"):
            done = subprocess.run(["php", "-d", "memory_limit=512M", SCRIPTS / "wordpress.php", what], env=self.environment,
                                  capture_output=True, text=True, timeout=600, errors="replace")
            said += (done.stdout + done.stderr).splitlines()
            said.append(f"exit code {done.returncode}")
        return said


class MediaWiki:
    PAGES = [
        "title=Main_Page", "title=Page_1", "title=Page_1&action=history", "title=Page_1&action=info", "title=Page_1&diff=prev&oldid=6",
        "title=Category:Cat2", "title=Special:Search&search=unicorn&fulltext=1",
        *(f"title=Special:{name}" for name in (
            "RecentChanges", "AllPages", "WhatLinksHere/Page_22", "Log", "ListUsers", "Categories", "Contributions/Admin", "NewPages",
            "PrefixIndex/Pa", "MostLinked", "WantedPages", "DoubleRedirects", "ShortPages", "LongPages", "AncientPages",
            "UncategorizedPages", "UnusedCategories", "LonelyPages", "ListFiles", "ProtectedPages", "BlockList", "ActiveUsers", "Tags",
            "DeadendPages", "MostRevisions", "FewestRevisions", "WantedCategories", "MostCategories", "RecentChangesLinked/Page_1",
            "LinkSearch&target=example.org", "RandomInCategory/Cat1", "TrackingCategories", "PagesWithProp", "ListDuplicatedFiles")),
    ]
    QUERIES = [
        "list=allpages", "list=search&srsearch=unicorn", "list=recentchanges&rcprop=title|user|comment", "list=backlinks&bltitle=Page_22",
        "prop=links|categories|templates|extlinks|revisions|info&titles=Page_22", "list=usercontribs&ucuser=Admin&ucprop=title|comment",
        "list=users&ususers=Admin|Bob&usprop=groups|editcount", "list=allusers", "list=logevents&leprop=title|type|user",
        "list=allcategories&acprop=size", "list=categorymembers&cmtitle=Category:Cat1", "list=alllinks", "list=alltransclusions",
        "list=exturlusage", "meta=siteinfo&siprop=statistics", "list=prefixsearch&pssearch=Pa", "list=allrevisions&arvprop=user|comment",
    ]
    # Which of two equal rows comes first is not said.
    TIES = ["ShortPages", "LongPages", "ListUsers", "FewestRevisions", "MostRevisions", "Wanted", "list=users", "action=watch", "AncientPages"]
    # As a logged-in administrator.
    ACTIONS = [
        "action=edit&title=Web&text=webtext [[Page 1]]&summary=made", "action=edit&title=Web&appendtext= more&summary=more",
        "action=edit&title=Web&text=x&createonly=1", "action=protect&title=Web&protections=edit=sysop", "action=move&from=Web&to=Web2",
        "action=query&list=logevents&leprop=title|type|user", "action=delete&title=Web2&reason=gone", "action=undelete&title=Web2",
        "action=block&user=Bob&reason=x&expiry=infinite", "action=query&list=blocks&bkprop=user|by|reason", "action=block&user=Bob",
        "action=unblock&user=Bob", "action=watch&titles=Page_1|Web2", "action=query&list=watchlist&wlprop=title",
        "action=query&list=watchlistraw", "action=userrights&user=Bob&add=bureaucrat&tokentype=userrights", "action=purge&titles=Page_1&forcelinkupdate=1",
        "action=options&change=language=de", "action=query&meta=userinfo&uiprop=options|groups|editcount",
        "action=edit&title=Page_1&undo=6&summary=undone",
    ]

    def __init__(self, port, database, home):
        self.home, self.database, self.address = home, database, f"127.0.0.1:{port}"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(SOURCES["mediawiki"], home, symlinks=False, ignore_dangling_symlinks=True)
        (home / "LocalSettings.php").unlink(missing_ok=True)
        for folder in ("cache", "images"):
            (home / folder).mkdir(exist_ok=True)
        self.said = []

    def tell(self, name, text):
        self.said.append(f"== {name}")
        # jobs run in a random order, and some make others
        lines = [quiet(line) for line in text.splitlines() if not re.search(r" STARTING$| good$|^Job queue is empty", line)]
        ties = any(word in name for word in self.TIES)
        self.said += [" ".join(sorted(re.findall(r"\w+", " ".join(lines))))] if ties else lines

    def maintenance(self, script, *arguments, text=""):
        done = subprocess.run(["php", "-d", "memory_limit=512M", f"maintenance/{script}.php", *arguments], cwd=self.home, input=text,
                              capture_output=True, text=True, timeout=600, errors="replace")
        self.tell(" ".join([script, *arguments]), f"{done.stdout}{done.stderr}\nexit code {done.returncode}")

    def run(self):
        self.maintenance("install", "--dbtype=mysql", f"--dbserver={self.address}", f"--dbname={self.database}", "--dbuser=root", "--dbpass=",
                         "--pass=a long password", "--scriptpath=/", "--server=http://127.0.0.1", "Wiki", "Admin")
        settings = self.home / "LocalSettings.php"
        if not settings.exists():
            return self.said
        with open(settings, "a") as file:
            file.write(CLOCK)
            file.write("\n$wgShowExceptionDetails = $wgShowDBErrorBacktrace = true; $wgMainCacheType = CACHE_NONE; $wgJobRunRate = 0;\n"
                       '$wgSecretKey = str_repeat("5", 64); $wgRateLimits = []; $wgPasswordAttemptThrottle = [];\n')
        for page in (1, 2, 3):
            text = f"text {page} [[Page {page + 1}]] [[Category:Cat{page}]] {{{{Tpl}}}} http://example.org/{page}"
            self.maintenance("edit", "-u", "Admin", "-s", f"sum {page}", f"Page {page}", text=text)
        self.maintenance("edit", "-u", "Admin", "Template:Tpl", text="from a template")
        self.maintenance("edit", "-u", "Admin", "Page 1", text="changed searchable unicorn [[Category:Cat1]]")
        self.maintenance("createAndPromote", "--sysop", "Bob", "another long password")
        pages = self.home / "pages"
        for script, arguments, names in (
            ("runJobs", [], ""), ("rebuildtextindex", [], ""), ("rebuildrecentchanges", [], ""), ("refreshLinks", [], ""),
            ("initSiteStats", ["--update"], ""), ("showSiteStats", [], ""), ("updateSpecialPages", [], ""), ("dumpBackup", ["--full", "--quiet"], ""),
            ("deleteBatch", ["-u", "Admin", "pages"], "Page 3"), ("undelete", ["Page 3"], ""), ("moveBatch", ["-u", "Admin", "pages"], "Page 2|Page 22"),
            ("runJobs", [], ""), ("update", ["--quick"], ""), ("cleanupTitles", [], ""), ("namespaceDupes", [], ""), ("purgeExpiredUserrights", [], ""),
            ("deleteOldRevisions", ["--delete"], ""), ("purgeOldText", ["--purge"], ""), ("edit", ["-u", "Admin", "Page 1"], "unicorn again [[Category:Cat1]]"),
            ("cleanupUsersWithNoId", ["--prefix", "old"], ""), ("populateCategory", [], ""), ("rebuildImages", [], ""), ("attachLatest", [], ""),
        ):
            pages.write_text(names + "\n")
            self.maintenance(script, *arguments, text=names)
        self.in_a_browser()
        self.maintenance("runJobs")
        return self.said

    def in_a_browser(self):
        port = bench.free_port()
        log = self.home.parent / f"{self.home.name}-php.log"
        server = bench.start(["php", "-d", "memory_limit=512M", "-S", f"127.0.0.1:{port}", "-t", self.home], stdout=open(log, "w"), stderr=subprocess.STDOUT)
        bench.wait_for_port(port, server, log)
        jar = self.home / "jar"

        def fetch(path, **fields):
            data = [part for name, value in fields.items() for part in ("--data-urlencode", f"{name}={value}")]
            done = subprocess.run(["curl", "-s", "--max-time", "120", "-c", jar, "-b", jar, *data, f"http://127.0.0.1:{port}/{path}"],
                                  capture_output=True, text=True, errors="replace")
            return done.stdout

        for page in self.PAGES:
            page = page.replace("&target", "?target") if "?" in page else page
            text = re.sub(r"(?s)<script.*?</script>|<style.*?</style>|<!--.*?-->", "", fetch(f"index.php?{page}"))
            text = re.sub(r"<[^>]*>", "\n", text)
            self.tell(page, "\n".join(line.strip() for line in text.splitlines() if line.strip()))
        for query in self.QUERIES:
            self.tell(query, fetch(f"api.php?action=query&format=json&{query.replace(' ', '%20')}"))

        def token(kind):
            answer = json.loads(fetch(f"api.php?action=query&meta=tokens&type={kind}&format=json") or "{}")
            return answer.get("query", {}).get("tokens", {}).get(f"{kind}token", "")

        login = fetch("api.php", action="login", lgname="Admin", lgpassword="a long password", lgtoken=token("login"), format="json")
        self.tell("login", login)
        for action in self.ACTIONS:
            fields = dict(urllib.parse.parse_qsl(action))
            kind = fields.pop("tokentype", "watch" if fields["action"] == "watch" else "csrf")
            self.tell(action, fetch("api.php", **fields, token=token(kind), format="json"))
        server.send_signal(signal.SIGTERM)
        server.wait()


APPLICATIONS = {"wordpress": WordPress, "mediawiki": MediaWiki}


def sealed_columns(server, database):
    """How many columns a database has, to a client that sees physical ones, and how many are sealed."""
    names = server.sql(f"SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '{database}'").split()
    sealed = [name for name in names if name.endswith("$enc")]
    return len(sealed), len([name for name in names if "$" not in name]) + len(sealed)


def compare(name, kind, binary):
    folder = Path(tempfile.mkdtemp(prefix="os-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        place = Protected(folder, binary, POLICY.format(name), kind)
        plain = bench.Server(kind, Path(tempfile.mkdtemp(dir=folder)), False)
        said = {}
        # a minute that has not come yet: what is as old as the installation is older
        os.environ["APP_CLOCK"] = str(int(time.time()) // 3600 * 3600 + 7200)
        for side, server, port in (("plain", plain, plain.port), ("protected", place.server, place.port)):
            server.sql(f"CREATE DATABASE {name} DEFAULT CHARSET utf8mb4")
            began = time.monotonic()
            lines = APPLICATIONS[name](port, name, HOME / f"{name}-{kind}").run()
            said[side] = [quiet(line) for line in lines]
            print(f"{name} on {kind}, {side}: {len(lines)} lines in {time.monotonic() - began:.0f} s", flush=True)
        differences = [line for line in difflib.unified_diff(said["plain"], said["protected"], "plain", "protected", n=2, lineterm="")]
        (HOME / f"{name}-{kind}.txt").write_text("\n".join(differences) + "\n")
        sealed, columns = sealed_columns(place.server, name)
        print(f"{name} on {kind}: {sealed} of {columns} columns sealed; {len(differences)} lines of differences", flush=True)
        return not differences and sealed * 2 > columns
    finally:
        bench.stop_all()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("applications", nargs="*", metavar="APPLICATION", help=" or ".join(APPLICATIONS))
    parser.add_argument("--server", default="mariadb,mysql")
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "target/release/onionskin")
    options = parser.parse_args()
    HOME.mkdir(parents=True, exist_ok=True)
    good = True
    for name in options.applications or APPLICATIONS:
        for kind in options.server.split(","):
            good &= compare(name, kind, options.binary.resolve())
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
