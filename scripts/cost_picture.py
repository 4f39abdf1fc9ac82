#!/usr/bin/env python3
"""Draws docs/images/cost.svg from the figures of docs/performance.md: throughput relative to a direct connection.

Called by `make performance` when it has made that page anew. Needs nothing but Python.
"""

import pathlib
import re

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
LOADS = [("oltp_read_write, 4 threads", "read/write, 4 clients"), ("oltp_insert, 4 threads", "inserts, 4 clients"),
         ("oltp_read_write, 24 threads", "read/write, 24 clients"), ("oltp_insert, 24 threads", "inserts, 24 clients")]
PATHS = [("HAProxy (TCP relay)", "HAProxy, which only copies bytes", "relay"),
         ("onionskin, unprotected tables", "Onionskin, unprotected tables", "plain"),
         ("onionskin, protected tables", "Onionskin, protected tables", "sealed")]
STYLE = """
.card{fill:#fff}.text{fill:#1f2328;font-size:14px}.small{fill:#57606a;font-size:12px}.name{fill:#1f2328;font-size:16px;font-weight:600}
.relay{fill:#9aa4af}.plain{fill:#5b9bd5}.sealed{fill:#2f6f4f}.whole{fill:none;stroke:#c3cad1}.noise{stroke:#1f2328;stroke-width:1.5}
@media (prefers-color-scheme: dark){.card{fill:#161b22}.text,.name{fill:#e6edf3}.small{fill:#9da7b3}.relay{fill:#7a848e}
.plain{fill:#4a90d0}.sealed{fill:#3fa272}.whole{stroke:#444c56}.noise{stroke:#e6edf3}}
"""


def ratios(page):
    """(server, load, path) → ratio, low, high."""
    found, server, load = {}, None, None
    for line in page.splitlines():
        if line.startswith("## "):
            heading = re.match(r"## Through the encrypting proxy, by threads \((.*)\)", line)
            server = heading and heading[1]
        elif line.startswith("### "):
            load = line[4:]
        elif server and line.startswith("| "):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            ratio = re.match(r"([\d.]+) \[([\d.]+), ([\d.]+)\]", cells[-1])
            if ratio:
                found[server, load, cells[0]] = tuple(map(float, ratio.groups()))
    return found


def picture(found):
    servers = list(dict.fromkeys(server for server, _, _ in found))
    bar, gap, group, left, unit, column = 13, 3, 66, 24, 250, 370
    height = 140 + group * len(LOADS)
    width = column * len(servers) + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="t d" '
           'font-family="system-ui, sans-serif">',
           '<title id="t">Throughput relative to a direct connection</title>',
           '<desc id="d">The figures are those of docs/performance.md, by server, load and path.</desc>',
           f"<style>{STYLE}</style>", f'<rect class="card" width="{width}" height="{height}" rx="10"/>',
           f'<text class="name" x="{left}" y="30">Throughput relative to a direct connection (1.0)</text>']
    x = left
    for _, label, style in PATHS:
        out += [f'<rect class="{style}" x="{x}" y="43" width="12" height="12"/>', f'<text class="small" x="{x + 18}" y="53">{label}</text>']
        x += 236
    for i, server in enumerate(servers):
        x, y = left + i * column, 84
        out.append(f'<text class="text" x="{x}" y="{y}">{server}</text>')
        for load, label in LOADS:
            y += 14
            out.append(f'<text class="small" x="{x}" y="{y + 2}">{label}</text>')
            y += 7
            for path, _, style in PATHS:
                ratio, low, high = found[server, load, path]
                out += [f'<rect class="whole" x="{x}" y="{y}" width="{unit}" height="{bar}"/>',
                        f'<rect class="{style}" x="{x}" y="{y}" width="{ratio * unit:.0f}" height="{bar}"/>',
                        f'<path class="noise" d="M{x + low * unit:.0f} {y + bar / 2} H{x + high * unit:.0f}"/>',
                        f'<text class="small" x="{x + unit + 8}" y="{y + 11}">{ratio:.2f}</text>']
                y += bar + gap
            y -= 3
    notes = ["Lines: 95 % confidence. Load, proxy and server share two processors.",
             "Protected: one column by equality and range, two sealed."]
    for i, note in enumerate(notes):
        out.append(f'<text class="small" x="{left}" y="{height - 30 + 17 * i}">{note}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    (DOCS / "images").mkdir(exist_ok=True)
    (DOCS / "images" / "cost.svg").write_text(picture(ratios((DOCS / "performance.md").read_text())))
