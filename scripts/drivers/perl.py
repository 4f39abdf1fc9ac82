"""Perl."""

import shutil

from drivers import HOME, Suite, bounded, databases, debian_source, made, needs, tap

# Seconds for one file.
PATIENCE = 120


class Perl(Suite):
    """A DBI driver's own tests, from Debian's sources, with the driver that Debian has built."""
    # They look at the distribution's files.
    LEFT_OUT = ("manifest.t", "pod.t", "magic.t", "version.t")

    def prepare(self):
        needs("perl")
        self.home = made(HOME / self.name, lambda home: shutil.copytree(debian_source(self.package, self.folder) / "t", home / "t"))

    def run(self, server, port):
        databases(server, "test", collation="utf8mb4_unicode_ci")
        environment = {"DBI_DSN": f"DBI:{self.driver}:database=test;host=127.0.0.1;port={port}", "DBI_USER": "root", "DBI_PASS": "",
                       "PERL_USE_UNSAFE_INC": "1", "PERL5LIB": str(self.home / "t")}
        results, reasons = {}, {}
        for path in sorted((self.home / "t").glob("*.t")):
            if path.name in self.LEFT_OUT:
                continue
            said = bounded(["perl", path], self.home, environment, PATIENCE)
            part, words, end = tap(said, behind=True)
            results |= {f"{path.name} {number}": outcome for (number, _), outcome in part.items()}
            reasons |= {f"{path.name} {test[0]}": f"{test[1]}: {text}" for test, text in words.items() if test}
            results[f"{path.name} end"] = end
            reasons[f"{path.name} end"] = words.get(None, "")
        return results, reasons

    def program(self, test):
        return test.split(" ")[0]


class DbdMysql(Perl):
    name, driver, package, folder = "dbd-mysql", "mysql", "libdbd-mysql-perl", "DBD-mysql-*"


class DbdMariadb(Perl):
    name, driver, package, folder = "dbd-mariadb", "MariaDB", "libdbd-mariadb-perl", "DBD-MariaDB-*"
