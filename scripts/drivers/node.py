"""Node."""

import shutil

from drivers import HOME, Suite, bounded, databases, debian_source, made, needs, run

# What the driver and its tests need, of the versions that its package.json names.
PACKAGES = ["after@0.8.2", "bignumber.js@9.0.0", "readable-stream@2.3.7", "safe-buffer@5.1.2", "seedrandom@3.0.5", "sqlstring@2.3.1",
            "timezone-mock@0.0.7", "urun@0.0.8", "utest@0.0.8"]


class NodeMysql(Suite):
    """The integration tests of Node's driver mysql, from Debian's sources. It does not know MySQL's way of authentication."""
    name, servers = "node-mysql", ("mariadb",)

    def prepare(self):
        needs("node", "npm")
        self.home = made(HOME / "node-mysql", self.build)

    def build(self, home):
        shutil.copytree(debian_source("node-mysql", "mysql-*"), home / "mysql")
        (home / "package.json").write_text('{"private": true}\n')
        run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES], cwd=home)

    def run(self, server, port):
        databases(server, "test")
        environment = {"MYSQL_HOST": "127.0.0.1", "MYSQL_PORT": str(port), "MYSQL_USER": "root", "MYSQL_PASSWORD": "", "MYSQL_DATABASE": "test"}
        results, reasons = {}, {}
        for path in sorted((self.home / "mysql/test/integration/connection").glob("*.js")):
            # a test is a program: its exit code counts
            said = bounded(["sh", "-c", 'node "$1"; echo "exit $?"', "sh", path], self.home / "mysql", environment, 60)
            results[path.name] = "skipped" if said.startswith("skipping") else "ok" if said.endswith("exit 0\n") else "FAIL"
            if results[path.name] == "FAIL":
                errors = [line.strip() for line in said.splitlines() if "Error" in line]
                reasons[path.name] = (" ".join(errors[:2]) or said)[-400:]
        return results, reasons
