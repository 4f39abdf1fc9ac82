"""Ruby."""

import re
import shutil

from drivers import HOME, Suite, bounded, databases, debian_source, keep, made, needs

# A test file that needs a library which is not there is left out.
LOAD = """
Dir["test/cases/**/*_test.rb"].sort.each do |file|
  next if file.include?("/adapters/") && !file.include?("/adapters/mysql2/")
  begin
    require File.expand_path(file)
  rescue LoadError => why
    warn "left out: #{file}: #{why.message}"
  end
end
"""
CONFIGURATION = """
default_connection: mysql2
connections:
  mysql2:
    arunit: {{username: root, host: 127.0.0.1, port: {port}, encoding: utf8mb4, collation: utf8mb4_unicode_ci}}
    arunit2: {{username: root, host: 127.0.0.1, port: {port}, encoding: utf8mb4, collation: utf8mb4_general_ci}}
"""


class ActiveRecord(Suite):
    """ActiveRecord's own tests with the driver mysql2, from Debian's sources of Rails."""
    name = "activerecord"
    # On MySQL its tables have an index over an expression of a column that most tests need, which is refused.
    servers = ("mariadb",)
    # References to ids, which are not protected either; a name as long as the server allows; tables with a CHECK over two columns and
    # with FULLTEXT.
    plain_columns = ("*_id", "aaa*")
    plain_tables = ("activerecord_unittest.products", "activerecord_unittest.key_tests")

    def prepare(self):
        needs("ruby")
        self.home = made(HOME / "rails", self.copy)

    def copy(self, home):
        source = debian_source("rails", "rails-*")
        for part in ("activerecord", "activesupport/lib", "activemodel/lib"):
            shutil.copytree(source / part, home / part)
        # before all tests a procedure is made that reads a protected table, which is refused
        schema = home / "activerecord/test/schema/mysql2_specific_schema.rb"
        schema.write_text(schema.read_text().replace("SELECT * FROM topics LIMIT num;", "SELECT num;"))
        (home / "load.rb").write_text(LOAD)
        # a debugger that one of the files names, and does not use
        (home / "none").mkdir()
        (home / "none/byebug.rb").touch()

    def run(self, server, port):
        databases(server, "activerecord_unittest", collation="utf8mb4_unicode_ci")
        databases(server, "activerecord_unittest2", collation="utf8mb4_general_ci")
        (self.home / "config.yml").write_text(CONFIGURATION.format(port=port))
        said = bounded(["ruby", "-W0", "-I", self.home / "none", "-Itest", "-Ilib", "-I../activesupport/lib", "-I../activemodel/lib",
                        self.home / "load.rb", "--verbose", "--seed", "1"], self.home / "activerecord",
                       {"ARCONFIG": str(self.home / "config.yml"), "ARCONN": "mysql2"}, 3600)
        keep(self.name, said)
        return minitest(said)


def minitest(said):
    results, reasons = {}, {}
    for name, what in re.findall(r"(\S+#test_.*?) = [\d.]+ s = ([.FES])$", said, re.M):
        results[name] = {".": "ok", "F": "FAIL", "E": "ERROR", "S": "skipped"}[what]
    for name, text in re.findall(r"^ +\d+\) (?:Failure|Error):\n(\S+#test_.*?)(?: \[[^\n]*\])?:\n(.*?)(?=\n\n +\d+\) |\n\n\d+ runs, |\Z)", said, re.M | re.S):
        refused = re.search(r"[^\n]*OS1\d\d\d[^\n]*", text)
        reasons[name] = (refused[0] if refused else text.replace("\n", " "))[:400]
    if not results:
        return {"the suite itself": "ERROR"}, {"the suite itself": said[-600:].replace("\n", " / ")}
    return results, reasons
