"""Java."""

import shutil

import orm_suites
from drivers import HOME, Suite, bounded, databases, debian_source, keep, made, needs, run

# What the driver and its tests are compiled and run with.
PARTS = """
junit:junit:4.13.2
net.java.dev.jna:jna:5.5.0
net.java.dev.jna:jna-platform:5.5.0
com.github.waffle:waffle-jna:2.2.1
ch.qos.logback:logback-classic:1.2.3
com.amazonaws:aws-java-sdk-rds:1.11.734
org.osgi:org.osgi.core:6.0.0
org.osgi:org.osgi.compendium:5.0.0
""".split()
RUNNER = "junit-platform-console-standalone", "1.10.5"


def fetch(folder, parts, to):
    """Fetches artefacts of Maven's repository with all that they need."""
    depends = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>".format(*part.split(":")) for part in parts)
    (folder / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>suites</groupId>'
        f"<artifactId>suites</artifactId><version>1</version><packaging>pom</packaging><dependencies>{depends}</dependencies></project>\n")
    run(["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={to}"], cwd=folder)


class Java(Suite):
    """MariaDB Connector/J's own tests, from Debian's sources: all that need one server only."""
    name = "java"
    # References to ids, which are not protected.
    plain_columns = ("id_ref*",)
    # Made before the tests of their classes, and of types that cannot be protected, or named by stored programs.
    plain_tables = tuple(f"testj.{table}" for table in """
        versionTable cross* getBestRowIdentifier* getTimePrecision* datatypetest yeartest geom_test tx_fore_key vendor_code_test2 vendor_code_test3 seq_* preparetest preparetestFactionnal
        table_10 table_5 testResultsetWithInoutParameterTb testCallableNullSettersTable testCallableThrowException1 testCallableThrowException2
        testCallableThrowException3 testCallableThrowException4 TMIX91P
        """.split())

    def prepare(self):
        needs("javac", "mvn")
        self.home = made(HOME / "java", self.build)

    def build(self, home):
        shutil.copytree(debian_source("mariadb-connector-java", "mariadb-connector-j-*") / "src", home / "src")
        properties = home / "src/main/resources/mariadb.properties"
        properties.write_text(properties.read_text().replace("${project.version}", "2.7.6"))
        fetch(home, [f"org.junit.platform:{RUNNER[0]}:{RUNNER[1]}"], home / "runner")
        fetch(home, PARTS, home / "lib")
        sources = [path for part in ("main", "test") for path in (home / "src" / part).rglob("*.java") if path.name != "module-info.java"]
        (home / "sources").write_text("\n".join(map(str, sources)))
        run(["javac", "-nowarn", "-encoding", "UTF-8", "-proc:none", "-d", home / "classes", "-cp", f"{home}/lib/*", f"@{home}/sources"])

    def run(self, server, port):
        databases(server, "testj")
        places = [self.home / "classes", self.home / "src/main/resources", self.home / "src/test/resources", *sorted((self.home / "lib").glob("*.jar"))]
        reports = self.home / f"reports-{port}"
        shutil.rmtree(reports, ignore_errors=True)
        said = bounded(
            ["java", "-Xmx1500m", "-jar", self.home / "runner" / "{}-{}.jar".format(*RUNNER), "execute", "-cp", ":".join(map(str, places)),
             "--scan-classpath", self.home / "classes", "--include-classname", ".*Test", "--exclude-package", "org.mariadb.jdbc.failover",
             "--details=none", "--reports-dir", reports, "--disable-banner", "--disable-ansi-colors"],
            self.home, {"TEST_DB_HOST": "127.0.0.1", "TEST_DB_PORT": str(port), "TEST_DB_DATABASE": "testj"})
        keep("java", said)
        found, told = orm_suites.junit(reports / "TEST-junit-vintage.xml", said)
        shutil.rmtree(reports, ignore_errors=True)
        short = {name: name.split(".")[-1].replace("::", ".") for name in found}
        return classes({short[name]: outcome for name, outcome in found.items()}, {short[name]: text for name, text in told.items()})

    def program(self, test):
        return test.removesuffix(" end").split(".")[0]


def classes(found, reasons):
    """What fails before the tests of a class fails for all of them: it counts once, and they as not run."""
    of_class = {}
    for test in found:
        of_class.setdefault(test.split(".")[0], []).append(test)
    results = dict(found)
    for name, tests in of_class.items():
        said = {reasons.get(test, "") for test in tests}
        fails = len(tests) > 1 and len(said) == 1 and not {found[test] for test in tests} - {"FAIL", "ERROR"}
        results[f"{name} end"] = "FAIL" if fails else "ok"
        if fails:
            reasons[f"{name} end"] = said.pop()
            for test in tests:
                del results[test]
    return results, reasons
