"""Java."""

import re
import shutil

from drivers import HOME, Suite, bounded, databases, debian_source, keep, made, needs, run, told

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
    # Made before the tests of their classes, and of types that cannot be protected, or named by stored programs.
    plain_tables = tuple(f"testj.{table}" for table in """
        versionTable cross* getBestRowIdentifier* datatypetest yeartest geom_test tx_fore_key vendor_code_test2 vendor_code_test3 seq_* preparetest preparetestFactionnal
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
        said = bounded(
            ["java", "-Xmx1500m", "-jar", self.home / "runner" / "{}-{}.jar".format(*RUNNER), "execute", "-cp", ":".join(map(str, places)),
             "--scan-classpath", self.home / "classes", "--include-classname", ".*Test", "--exclude-package", "org.mariadb.jdbc.failover",
             "--details=testfeed", "--disable-banner", "--disable-ansi-colors"],
            self.home, {"TEST_DB_HOST": "127.0.0.1", "TEST_DB_PORT": str(port), "TEST_DB_DATABASE": "testj"})
        keep("java", said)
        results, reasons = feed(said)
        if "Test run finished" not in said:
            results["the suite itself"], reasons["the suite itself"] = "FAIL", told(said.splitlines()[-5:])
        # what comes before the tests of a class fails under the class's name
        for name in {test.split(".")[0] for test in results if "." in test}:
            results.setdefault(f"{name} end", "ok")
        return results, reasons

    def program(self, test):
        return test.removesuffix(" end").split(".")[0]


def feed(said):
    """What JUnit's console says of each test as it ends."""
    results, reasons, failing, running = {}, {}, None, None
    for line in said.splitlines():
        # what a test prints may stand before it in the line
        test = re.search(r"JUnit \w+ > (.*) :: (STARTED|SUCCESSFUL|ABORTED|FAILED|SKIPPED)", line)
        if test:
            name, failing = test[1].replace(" > ", "."), None
            name += "" if "." in name else " end"
            running = name if test[2] == "STARTED" else None
            if test[2] != "STARTED":
                results[name] = {"SUCCESSFUL": "ok", "FAILED": "FAIL"}.get(test[2], "skipped")
                failing = name if test[2] == "FAILED" else None
        elif failing and line.startswith("\t") and (failing not in reasons or "Caused by" in line or "OS1" in line):
            reasons[failing] = (reasons.get(failing, "") + " " + line.strip())[:600]
    if running:
        results[running], reasons[running] = "FAIL", "it does not end"
    return results, reasons
