"""Go."""

import json
import re
import shutil

from drivers import HOME, PATIENCE, Suite, bounded, databases, made, needs, run


class Go(Suite):
    """go-sql-driver/mysql's own tests; the module has them."""
    name, version = "go", "1.8.1"
    # One connects to an address of the Internet; one waits for ever where its INSERT of SLEEP(1) is refused.
    LEFT_OUT = ("TestConnectorReturnsTimeout", "TestContextCancelBegin")

    def prepare(self):
        needs("go")
        self.home = made(HOME / "go", self.build)

    def build(self, home):
        (home / "go.mod").write_text("module suites\n\ngo 1.18\n")
        said = run(["go", "mod", "download", "-json", f"github.com/go-sql-driver/mysql@v{self.version}"], cwd=home)
        shutil.copytree(json.loads(said)["Dir"], home / "mysql", copy_function=shutil.copyfile)
        for path in (home / "mysql").rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        run(["go", "test", "-mod=mod", "-c", "-o", home / "driver.test", "."], cwd=home / "mysql")

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
