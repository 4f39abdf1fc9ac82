"""C."""

import os
import re
import shutil

from drivers import HOME, Suite, bounded, databases, debian_source, made, needs, run, tap

# Seconds for one program.
PATIENCE = 300


class C(Suite):
    """MariaDB Connector/C's own tests of the C API, from the sources of Debian's server."""
    name = "c"

    def prepare(self):
        needs("cmake", "cc", "make")
        self.home = made(HOME / "c", self.build)

    def build(self, home):
        shutil.copytree(debian_source("mariadb", "mariadb-*/libmariadb"), home / "libmariadb")
        tests = home / "libmariadb/unittest/libmariadb"
        # one crashes where the server itself has no TLS
        connection = tests / "connection.c"
        connection.write_text(re.sub("(#ifdef) HAVE_test_conc748(\\n  {)", r"\1 NEVER\2", connection.read_text()))
        run(["cmake", "-S", home / "libmariadb", "-B", home / "build", "-DWITH_SSL=OPENSSL", "-DWITH_UNIT_TESTS=ON", "-DWITH_CURL=OFF",
             "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_C_FLAGS=-Wno-error -Wno-unused-function", "-DCLIENT_PLUGIN_AUTH_GSSAPI_CLIENT=OFF"])
        run(["make", "-C", home / "build", f"-j{os.cpu_count()}"])

    def run(self, server, port):
        folder = self.home / "build/unittest/libmariadb"
        text = (self.home / "libmariadb/unittest/libmariadb/CMakeLists.txt").read_text()
        programs = [*re.findall(r'"([\w-]+)"', re.search(r"SET\(API_TESTS (.*?)\)", text)[1]), "dyncol", "async"]
        environment = {"MARIADB_CC_TEST": "1", "MARIADB_PLUGIN_DIR": str(self.home / "build"), "MYSQL_TEST_PLUGINDIR": str(self.home / "build")}
        results, reasons = {}, {}
        for program in programs:
            databases(server, "testc", charset="latin1")
            said = bounded([folder / program, "-h", "127.0.0.1", "-P", port, "-u", "root", "-d", "testc"], folder, environment, PATIENCE)
            part, words, end = tap(said, behind=False)
            results |= {f"{program} {name}": outcome for (_, name), outcome in part.items()}
            reasons |= {f"{program} {test[1]}": text for test, text in words.items() if test}
            results[f"{program} end"] = end
            reasons[f"{program} end"] = words.get(None, "")
        return results, reasons

    def program(self, test):
        return test.split(" ")[0]
