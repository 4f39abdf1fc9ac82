#!/usr/bin/env python3
"""Speed of an object store's clients for the same bytes: `onionskin seal`, `aws s3 cp`, `rclone`.

    scripts/bench_objects.py [--program target/release/onionskin] [--size MIB] [--rounds N] [--folder DIR]

A SeaweedFS (.servers/seaweedfs, by scripts/install-deps.sh tests) runs on this machine, with everything in --folder (default: a new
folder in /dev/shm, so that no disk takes part), which needs about four times --size and is removed in the end. The input does not
compress. It goes up from a pipe, as a backup does, and comes back into a pipe. All variants run in turns, round after round;
the tables show medians, with the smallest and the largest. CPU is user and system time of the client. `aws` and `rclone` take part
where they are in the PATH. What comes back is compared.
"""

import argparse
import hashlib
import http.client
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
IDENTITIES = {
    "identities": [
        {
            "name": "all",
            "credentials": [{"accessKey": "KEY1", "secretKey": "SECRET1"}],
            "actions": ["Admin", "Read", "List", "Tagging", "Write"],
        }
    ]
}


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Store:
    """A SeaweedFS with a bucket `bench`."""

    def __init__(self, folder):
        (folder / "data").mkdir()
        (folder / "identities.json").write_text(json.dumps(IDENTITIES))
        names = ["master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc", "s3.port", "s3.port.grpc"]
        ports = dict(zip(names, free_ports(len(names))))
        command = [HERE / ".servers/seaweedfs/weed", "-logtostderr=true", "server", "-filer", "-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
        command += [f"-{name}={port}" for name, port in ports.items()]
        command += ["-volume.max=1000", "-master.volumeSizeLimitMB=256", "-s3.port.iceberg=0", "-s3.port.lance=0"]
        command += [f"-dir={folder}/data", f"-s3.config={folder}/identities.json", f"-filer.localSocket={folder}/filer", f"-s3.localSocket={folder}/s3"]
        self.filer, self.endpoint = ports["filer.port"], f"http://127.0.0.1:{ports['s3.port']}"
        log = open(folder / "log", "wb")
        self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=folder)
        for _ in range(240):
            try:
                self.request("POST", "/buckets/bench/")
                socket.create_connection(("127.0.0.1", ports["s3.port"])).close()
                break
            except OSError:
                time.sleep(0.25)
        time.sleep(1)

    def request(self, method, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.filer)
        connection.request(method, path)
        status = connection.getresponse().status
        connection.close()
        if status >= 300:
            raise OSError(f"{method} {path}: {status}")

    def end(self):
        self.process.terminate()
        self.process.wait()


def run(command, environment):
    """Wall and CPU seconds of a shell command and all it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(["bash", "-o", "pipefail", "-c", command], check=True, env=environment)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def variants(program, data, keys):
    """Name: up, down, name of the object."""
    ours = f"{program}"
    found = {
        "onionskin, sealed": (
            f"cat {data} | {ours} seal -q --level 0 --keys {keys} -o s3://bench/ours.sealed",
            f"{ours} open -q --keys {keys} s3://bench/ours.sealed",
            "ours.sealed",
        )
    }
    if shutil.which("aws"):
        found["aws s3 cp"] = (f"cat {data} | aws s3 cp --only-show-errors - s3://bench/aws", "aws s3 cp --only-show-errors s3://bench/aws -", "aws")
        found["onionskin seal, aws s3 cp"] = (
            f"cat {data} | {ours} seal -q --level 0 --keys {keys} | aws s3 cp --only-show-errors - s3://bench/both",
            f"aws s3 cp --only-show-errors s3://bench/both - | {ours} open -q --keys {keys}",
            "both",
        )
    if shutil.which("rclone"):
        found["rclone rcat, cat"] = (f"cat {data} | rclone rcat bench:bench/rclone", "rclone cat bench:bench/rclone", "rclone")
    return found


def table(title, times):
    print(f"\n| {title} | wall s | CPU s | wall, relative |\n|---|---|---|---|")
    first = next(iter(times))
    for name, measured in times.items():
        ratios = [m[0] / base[0] for m, base in zip(measured, times[first])]
        relative = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if name != first else "1"
        wall, cpu = (statistics.median(column) for column in zip(*measured))
        print(f"| {name} | {wall:.2f} | {cpu:.2f} | {relative} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=HERE / "target/release/onionskin", type=Path)
    parser.add_argument("--size", type=int, default=512, help="MiB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", default="/dev/shm", type=Path)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-objects-", dir=arguments.folder))
    program = arguments.program.resolve()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_") and not name.lower().endswith("_proxy")}
    store = None
    try:
        store = Store(folder)
        data, keys = folder / "input", folder / "keys.json"
        with open(data, "wb") as file:
            for _ in range(arguments.size):
                file.write(os.urandom(1 << 20))
        subprocess.run([program, "init", "--dir", folder], check=True, stdout=subprocess.DEVNULL)
        environment |= {
            "AWS_ENDPOINT_URL": store.endpoint,
            "AWS_ACCESS_KEY_ID": "KEY1",
            "AWS_SECRET_ACCESS_KEY": "SECRET1",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "HOME": str(folder),
            "RCLONE_CONFIG_BENCH_TYPE": "s3",
            "RCLONE_CONFIG_BENCH_PROVIDER": "Other",
            "RCLONE_CONFIG_BENCH_ENDPOINT": store.endpoint,
            "RCLONE_CONFIG_BENCH_ENV_AUTH": "true",
        }
        wanted = hashlib.file_digest(open(data, "rb"), "sha256").hexdigest()
        all_variants = variants(program, data, keys)
        up, down = ({name: [] for name in all_variants} for _ in range(2))
        # The first round warms the store up, compares what comes back, and is not counted.
        for n in range(-1, arguments.rounds):
            for name, (upload, download, key) in all_variants.items():
                sent, received = run(upload, environment), run(f"{download} >/dev/null", environment)
                if n < 0:
                    digest = subprocess.run(["bash", "-c", f"{download} | sha256sum"], env=environment, check=True, capture_output=True, text=True)
                    assert digest.stdout.split()[0] == wanted, name
                else:
                    up[name].append(sent)
                    down[name].append(received)
                store.request("DELETE", f"/buckets/bench/{key}")
        print(f"{arguments.size} MiB, {arguments.rounds} rounds, {os.cpu_count()} processors")
        table("up", up)
        table("down", down)
    finally:
        if store:
            store.end()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
