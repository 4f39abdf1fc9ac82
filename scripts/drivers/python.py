"""Python."""

import json
import re
import shutil

import orm_suites
from drivers import HOME, Suite, databases, pytest, sdist


class Python(Suite):
    packages = []

    def prepare(self):
        self.home = HOME / self.name
        self.python = orm_suites.virtual_environment(self.home, ["pytest<8.4", "setuptools>=71,<81", *self.packages])
        self.source = sdist(self.python, self.sdist, self.version)


class MysqlClient(Python):
    name, sdist, version = "mysqlclient", "mysqlclient", "2.2.7"
    packages = [f"mysqlclient=={version}"]

    def run(self, server, port):
        databases(server, "test")
        (self.home / "tests.cnf").write_text(
            f"[MySQLdb-tests]\nhost = 127.0.0.1\nport = {port}\nuser = root\npassword =\ndatabase = test\ndefault-character-set = utf8mb4\n")
        # the tests beside the sources would find the sources, which are not compiled
        tests = self.home / "tests"
        shutil.rmtree(tests, ignore_errors=True)
        shutil.copytree(self.source / "tests", tests)
        return pytest(self.python, self.home, [tests], {"TESTDB": str(self.home / "tests.cnf")})


class PyMysql(Python):
    """The last release whose source distribution has its tests."""
    name, sdist, version = "pymysql", "PyMySQL", "0.10.1"

    def run(self, server, port):
        databases(server, "test1", "test2", charset="utf8mb4")
        common = {"host": "127.0.0.1", "port": port, "user": "root", "passwd": ""}
        (self.source / "pymysql/tests/databases.json").write_text(json.dumps([
            {**common, "db": "test1", "use_unicode": True, "local_infile": True}, {**common, "db": "test2"}]))
        return pytest(self.python, self.source, ["pymysql/tests"], {})


class AioMysql(Python):
    name, sdist, version = "aiomysql", "aiomysql", "0.3.2"
    packages = [f"aiomysql=={version}", "sqlalchemy<1.4", "uvloop", "cryptography"]

    def run(self, server, port):
        # the server has no TLS that its tests' certificates belong to
        tests = self.home / "tests"
        shutil.rmtree(tests, ignore_errors=True)
        shutil.copytree(self.source / "tests", tests)
        conftest = tests / "conftest.py"
        conftest.write_text(re.sub(r'\n *server_params\["ssl"\] = ctx|\n *assert result\[\'Value\'\]\.startswith\(\'TLS\'\).*?TLS"', "",
                                   conftest.read_text(), flags=re.S))
        return pytest(self.python, self.home, [tests], {"MYSQL_ROOT_PASSWORD": ""}, f"--mysql-address=server=127.0.0.1:{port}")
