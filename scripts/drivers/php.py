"""PHP."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import orm_suites
from drivers import HOME, Suite, bounded, databases, debian_source, made, needs


class Php(Suite):
    """PHP's own tests of an extension, from Debian's sources."""
    ROWS = 6

    def prepare(self):
        needs("php")
        self.source = made(HOME / "php", self.copy)

    def copy(self, home):
        source = debian_source("php", "php-*")
        for part in ("ext/mysqli", "ext/pdo", "ext/pdo_mysql", "ext/mysqlnd"):
            shutil.copytree(source / part, home / part)
        shutil.copy(source / "run-tests.php", home)

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
