#!/usr/bin/env python3
"""Adds up how often each fuzz target has run since the code that it runs was changed last.

    scripts/fuzz_count.py LOG

LOG is what scripts/fuzz.sh printed. The sums are in fuzz/runs.txt, with the size of the corpus after the last run: commit it
after a night. When the code is another one than the file says, they begin anew.
"""

import hashlib
import pathlib
import re
import sys

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
FILE = CHECKOUT / "fuzz/runs.txt"
WANTED = 100_000_000
HEAD = "# Runs of each fuzz target since its code was changed last, and its corpus: scripts/fuzz_count.py writes this file.\n"


def code():
    """A digest of everything that the targets run."""
    crates = re.findall(r'path = "\.\./crates/([a-z0-9-]+)"', (CHECKOUT / "fuzz/Cargo.toml").read_text())
    folders = [CHECKOUT / "crates" / name / "src" for name in crates] + [CHECKOUT / "fuzz/src"]
    digest = hashlib.sha256()
    for folder in sorted(folders):
        for path in sorted(folder.rglob("*.rs")):
            digest.update(f"{path.relative_to(CHECKOUT)}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def counted(log):
    """For each target: its runs, and the inputs in its corpus."""
    found = {}
    name = None
    corpus = 0
    for line in log.splitlines():
        if plain := re.search(r"target (\w+): (\d+) inputs in \d+ s, corpus of (\d+)", line):
            found[plain[1]] = (int(plain[2]), int(plain[3]))
        elif begins := re.match(r"==== (\w+)$", line):
            name = begins[1]
        elif size := re.search(r"\bcorp: (\d+)/", line):
            corpus = int(size[1])
        elif (done := re.match(r"Done (\d+) runs in", line)) and name:
            found[name] = (int(done[1]), corpus)
    return found


def main():
    now = code()
    before = {}
    if FILE.exists():
        text = FILE.read_text()
        if f"code {now}\n" in text:
            before = {m[1]: int(m[2]) for m in re.finditer(r"^(\w+) runs (\d+)", text, re.MULTILINE)}
            corpora = {m[1]: int(m[2]) for m in re.finditer(r"^(\w+) runs \d+ corpus (\d+)", text, re.MULTILINE)}
            before = {name: (runs, corpora.get(name, 0)) for name, runs in before.items()}
    found = counted(pathlib.Path(sys.argv[1]).read_text(errors="replace"))
    lines = [HEAD, f"code {now}\n"]
    for name in sorted(before.keys() | found.keys()):
        runs = before.get(name, (0, 0))[0] + found.get(name, (0, 0))[0]
        corpus = found.get(name, before.get(name, (0, 0)))[1]
        lines.append(f"{name} runs {runs} corpus {corpus}\n")
        missing = "" if runs >= WANTED else f", {WANTED - runs:,} to go"
        print(f"fuzz: {name}: {runs:,} runs since the code was changed{missing}; {corpus} inputs in the corpus")
    FILE.write_text("".join(lines))


if __name__ == "__main__":
    main()
