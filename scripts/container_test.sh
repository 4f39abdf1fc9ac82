#!/bin/bash
# Builds the image of packaging/Containerfile as it is, and runs it as its first lines say, before a MariaDB of its own:
# what is in the image, what the process may do, statements, checks of health, a reload, the end. No registry is asked:
# the base is made of Debian's packages (debootstrap) under the name that FROM has. Needs root, podman and debootstrap,
# and the package that is in target/package.
#
# Everything runs in namespaces of processes, mounts and, behind the build, networks: no process, mount, interface or
# rule of a firewall is left, however it ends. Images lie in target/container, which is removed. Two things are not as
# Docker has them: the steps of the build run in a chroot, and containers get no control groups, so that limits of
# memory and processes are not tried.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "container: $*"; }
fail() { say "FAILED: $*" >&2; exit 1; }
work=$PWD/target/container

# ---- outside: the base, and an end to all ---------------------------------------------------------------------------

if [ $# = 0 ]; then
    [ "$(id -u)" = 0 ] || { say "SKIPPED: needs root" >&2; exit 0; }
    [ -e target/package/Containerfile ] || fail "no target/package/Containerfile: make package"
    for tool in podman crun netavark iptables ip debootstrap getcap mariadbd mariadb curl; do
        [ -x "/usr/lib/podman/$tool" ] || command -v "$tool" >/dev/null || fail "$tool is missing: scripts/install-deps.sh container"
    done
    from=$(sed -n 's/^FROM //p' target/package/Containerfile)
    release=${from#debian:}
    release=${release%-slim}
    base=$PWD/.servers/$release-base
    # The build's apt finds a mirror through it, too.
    if [ -z "${http_proxy:-}" ]; then
        eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
    fi
    [ -z "${http_proxy:-}" ] || export http_proxy
    if [ ! -e "$base.complete" ]; then
        say "making $from in $base"
        rm -rf "$base"
        debootstrap --variant=minbase "$release" "$base" >"$base.log" 2>&1 || { tail -5 "$base.log" >&2; exit 1; }
        # As in the images that Debian makes: no documents, no packages and lists of apt that were read.
        mkdir -p "$base/etc/dpkg/dpkg.cfg.d"
        for folder in doc info linda lintian locale man; do
            echo "path-exclude /usr/share/$folder/*"
        done >"$base/etc/dpkg/dpkg.cfg.d/docker"
        echo "path-include /usr/share/doc/*/copyright" >>"$base/etc/dpkg/dpkg.cfg.d/docker"
        printf '%s\n' 'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };' \
            'Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";' >"$base/etc/apt/apt.conf.d/docker-clean"
        rm -rf "$base"/var/cache/apt/archives/*.deb "$base"/var/cache/apt/*.bin "$base"/var/lib/apt/lists/* \
            "$base"/usr/share/{doc,info,locale,man}/*
        touch "$base.complete"
    fi
    rm -rf "$work"
    mkdir -p "$work"
    everything=
    end() {
        # The first process of the namespace goes with it, and takes all others along.
        [ -z "$everything" ] || { kill -KILL "$everything" 2>/dev/null; wait "$everything" 2>/dev/null; } || true
        rm -rf "$work"
    }
    trap end EXIT
    trap 'exit 1' INT TERM
    unshare --mount --pid --fork --kill-child --mount-proc "$0" build "$from" "$base" </dev/null &
    everything=$!
    wait "$everything" && code=0 || code=$?
    everything=
    exit "$code"
fi

# ---- podman, with nothing of this machine's own settings ------------------------------------------------------------

export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf
export CONTAINERS_REGISTRIES_CONF=$work/registries.conf
# Without CAP_SYS_RESOURCE no limit can be raised; podman lowers that of processes to what the kernel can number.
files=$(ulimit -Hn)
[ "$files" != unlimited ] || files=$(cat /proc/sys/fs/nr_open)
processes=$(printf '%s\n' "$(ulimit -Hu)" "$(cat /proc/sys/kernel/pid_max)" | sort -n | sed '/unlimited/d' | head -1)
if [ "$1" = build ]; then
    cat >"$CONTAINERS_CONF" <<END
[containers]
cgroups = "disabled"
default_ulimits = ["nofile=$files:$files", "nproc=$processes:$processes"]
log_driver = "k8s-file"
[engine]
runtime = "crun"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "$work/tmp"
[network]
network_backend = "netavark"
network_config_dir = "$work/networks"
END
    cat >"$CONTAINERS_STORAGE_CONF" <<END
[storage]
driver = "overlay"
graphroot = "$work/images"
runroot = "$work/run"
END
    # No registry: what is not there is not asked for.
    echo 'unqualified-search-registries = []' >"$CONTAINERS_REGISTRIES_CONF"
    mkdir "$work/networks"
fi

# ---- the build ------------------------------------------------------------------------------------------------------

if [ "$1" = build ]; then
    from=$2
    base=$3
    # crun does not start where groups of both versions are mounted, even if it is to make none.
    [ ! -d /sys/fs/cgroup/unified ] || umount /sys/fs/cgroup/unified
    # Leases of addresses and the like, whose places cannot be chosen.
    for folder in /run/containers /run/crun /run/netns /var/lib/containers; do
        mkdir -p "$folder"
        mount -t tmpfs none "$folder"
    done
    began=$(date +%s%N)
    tar -C "$base" -c . | podman import -q - "docker.io/library/$from" >"$work/import.log" 2>&1 || { cat "$work/import.log" >&2; fail "no base"; }
    built=$(date +%s%N)
    podman build --pull=never --isolation=chroot --no-cache --tag onionskin --file target/package/Containerfile target/package >"$work/build.log" 2>&1 ||
        { tail -20 "$work/build.log" >&2; fail "it does not build"; }
    now=$(date +%s%N)
    size() { podman image inspect --format '{{.Size}}' "$1"; }
    layer=$(($(size onionskin) - $(size "docker.io/library/$from")))
    say "ok: it is built: base $(((built - began) / 1000000)) ms, image $(((now - built) / 1000000)) ms"
    say "ok: $((layer / 1000000)) MB over $(($(size "docker.io/library/$from") / 1000000)) MB of the base"
    # The program takes a tenth of it, the engine nearly all the rest.
    [ "$layer" -lt 230000000 ] || fail "the image has grown"

    image=$(podman image mount onionskin)
    # What the image has and the base does not, by name and rights.
    listed() { (cd "$1" && find . -xdev -mindepth 1 "${@:2}" -printf '%P %m\n' | sort); }
    listed "$base" -type f -perm /6000 >"$work/before"
    listed "$image" -type f -perm /6000 >"$work/after"
    cmp -s "$work/before" "$work/after" || { diff "$work/before" "$work/after" >&2 || true; fail "more programs that change the user"; }
    [ -s "$work/before" ] || fail "no such program in the base: nothing was compared"
    say "ok: no more programs that change the user than the $(wc -l <"$work/before") of the base"
    [ -z "$(getcap -r "$image")" ] || fail "a file with capabilities"
    say "ok: no file with capabilities"
    listed "$base" -perm -o+w ! -type l >"$work/before"
    listed "$image" -perm -o+w ! -type l >"$work/after"
    cmp -s "$work/before" "$work/after" || { diff "$work/before" "$work/after" >&2 || true; fail "more that everybody may write"; }
    say "ok: nothing more that everybody may write"
    [ "$(stat -c %u:%g:%a "$image/etc/onionskin")" = 10001:10001:700 ] || fail "the owner of /etc/onionskin"
    [ -z "$(ls -A "$image/etc/onionskin")" ] || fail "something in /etc/onionskin"
    # A private key in the files of OpenSSL and the like has this first line; a program that can read one has its words.
    keys=$({ grep -rIlE -- '-----BEGIN ([A-Z]+ )?PRIVATE KEY' "$image" 2>/dev/null
        find "$image" -xdev \( -name 'keys*.json' -o -name onionskin.toml -o -name '*.key' -o -name 'id_*' -o -name '*.deb' \); } || true)
    [ -z "$keys" ] || { echo "$keys" >&2; fail "keys, configuration or packages in the image"; }
    say "ok: no key, no configuration and no package in it"
    find "$image" -xdev -user 10001 ! -path "$image/etc/onionskin" | grep -q . && fail "files of the user it runs as"
    say "ok: nothing belongs to the user that it runs as but the empty /etc/onionskin"
    podman image unmount onionskin >/dev/null
    unshare --net "$0" run
    exit
fi

# ---- running --------------------------------------------------------------------------------------------------------

ip link set lo up
configuration=$work/onionskin
install -d -o 10001 -g 10001 -m 0700 "$configuration"
# The first addresses of podman's own network: the server is this side of the bridge.
host=10.88.0.1

# As the first lines of the Containerfile say, and no more of podman's own than Docker gives.
restricted=(--pull=never --read-only --read-only-tmpfs=false --cap-drop=ALL --security-opt=no-new-privileges --tmpfs /run/onionskin --shm-size=512m
    --add-host "db:$host")
once() { podman run --rm "${restricted[@]}" "$@"; }

failed() {
    say "FAILED: $*" >&2
    podman logs onionskin 2>&1 | tail -20 >&2
    exit 1
}
that() { # what, command...
    local what=$1
    shift
    "$@" >"$work/now" 2>&1 || { cat "$work/now" >&2; failed "$what"; }
    [ "$1" = says ] || mv "$work/now" "$work/last"
    say "ok: $what"
}
not() { ! "$@"; }
says() { grep -qF -- "$1" "$2"; }
soon() { local n; for n in $(seq 60); do "$@" && return; sleep 0.5; done; return 1; }
inside() { podman exec onionskin "$@"; }
logged() { podman logs onionskin 2>&1 | grep -qF -- "$1"; }
client() { mariadb --no-defaults --protocol=tcp --host=127.0.0.1 --port=3307 --user=app --password=secret --batch --skip-column-names "$@"; }
sql() { client --execute="$1"; }
server() { mariadb --no-defaults --socket="$work/db/socket" --user=root --batch --skip-column-names --execute="$1"; }
answers() { [ "$(curl -s --max-time 5 -o "$work/answer" -w '%{http_code}' "${@:3}" "http://127.0.0.1:3380/$1")" = "$2" ]; }
as_written() { [ "$(sql 'SELECT name FROM clinic.patients WHERE name = "Hb4YqMz7"')" = Hb4YqMz7 ]; }

mkdir "$work/db"
mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db --user=root --datadir="$work/db/data" >"$work/db/log" 2>&1 ||
    { tail -5 "$work/db/log" >&2; fail "no MariaDB"; }
mariadbd --no-defaults --user=root --datadir="$work/db/data" --socket="$work/db/socket" --pid-file="$work/db/pid" \
    --bind-address=0.0.0.0 --port=3306 --skip-name-resolve >>"$work/db/log" 2>&1 &
soon server "SELECT 1" >"$work/now" 2>&1 || { tail -5 "$work/db/log" >&2; fail "no MariaDB"; }
server "CREATE USER app@'%' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO app@'%'"

that "its program runs" once onionskin --version
that "and is the package's" says "onionskin $(dpkg-deb --field target/package/*.deb Version | sed 's/-[^-]*$//')" "$work/last"
that "without a configuration it ends" not once onionskin
that "and says what is missing" says "/etc/onionskin/onionskin.toml" "$work/last"
that "keys and configuration are made" once -v "$configuration:/etc/onionskin" onionskin init --dir /etc/onionskin --backend db:3306
that "of the image's user alone" [ "$(stat -c %u:%g:%a "$configuration/keys.json")" = 10001:10001:600 ]
that "with an engine that comes by itself" grep -q '^engine = "auto"' "$configuration/onionskin.toml"
that "not made twice" not once -v "$configuration:/etc/onionskin" onionskin init --dir /etc/onionskin --backend db:3306

printf 'a-token-of-this-test-alone' >"$configuration/admin.token"
chown 10001:10001 "$configuration/admin.token"
chmod 0600 "$configuration/admin.token"
sed -i 's/^listen .*/listen = "0.0.0.0:3307"\nadmin = "0.0.0.0:3380"\nadmin_token_file = "admin.token"\ncontrol = "\/run\/onionskin\/control.sock"/' \
    "$configuration/onionskin.toml"
that "the configuration is good" once -v "$configuration:/etc/onionskin:ro" onionskin check -c /etc/onionskin/onionskin.toml

start() { podman run --detach --name onionskin "${restricted[@]}" -v "$configuration:/etc/onionskin:ro" -p 3307:3307 -p 3380:3380 onionskin; }
that "it starts, with its configuration read-only" start
that "and lives" soon answers live 200
that "and is ready" soon answers ready 200
pid=$(podman inspect --format '{{.State.Pid}}' onionskin)

that "a table is protected" sql "CREATE DATABASE clinic; CREATE TABLE clinic.patients (id INT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (eq))"
that "and written" sql "INSERT INTO clinic.patients VALUES (1, 'Hb4YqMz7')"
that "and read" as_written
that "the server has a row" [ "$(server 'SELECT COUNT(*) FROM clinic.patients')" = 1 ]
server "FLUSH TABLES clinic.patients FOR EXPORT"
that "and no plaintext" sh -c '! grep -rq Hb4YqMz7 "$1"' sh "$work/db/data"
that "the engine computes" sql "SELECT UPPER(REVERSE(name)) FROM clinic.patients WHERE LENGTH(name) + 1 = 9"
that "what it has computed is right" says 7ZMQY4BH "$work/last"

# Every process of the container: the proxy and its engine.
processes() {
    local process
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/ns/pid" 2>/dev/null)" != "$(readlink "/proc/$pid/ns/pid")" ] || echo "$process"
    done
}
# what, its value in /proc/…/status
each() {
    local process
    for process in $(processes); do
        [ "$(sed -n "s/^$1:[[:space:]]*//p" "$process/status" | xargs)" = "$2" ] || { grep -E "^(Name|$1):" "$process/status"; return 1; }
    done
}
that "its processes are the proxy and the engine" [ "$(for process in $(processes); do cat "$process/comm"; done | sort | xargs)" = "mariadbd onionskin" ]
that "none is root" each Uid "10001 10001 10001 10001"
that "none is of root's group" each Gid "10001 10001 10001 10001"
that "nor of another" each Groups "10001"
for set in CapInh CapPrm CapEff CapBnd CapAmb; do
    that "none has a capability ($set)" each "$set" 0000000000000000
done
that "none can gain rights" each NoNewPrivs 1
that "their system calls are filtered" each Seccomp 2
read_only() { not podman exec --user "$1" onionskin touch "${2%/}/new" && says "Read-only file system" "$work/now"; }
for folder in / /etc /etc/onionskin /usr/bin /tmp /var/tmp /var/lib /run; do
    that "nothing is written to $folder" read_only 10001 "$folder"
done
that "nor by root" read_only 0 /usr/bin
# mountinfo: options in field 6, and the kind of file system behind a lone "-"
on_disk() { awk '$6 ~ /(^|,)rw(,|$)/ { for (i = 7; $i != "-"; i++); if ($(i + 1) !~ /^(tmpfs|proc|devpts|mqueue)$/) print }' "/proc/$pid/mountinfo"; }
that "what it can write to is in memory" [ -z "$(on_disk)" ]
that "that is seen by its mounts" grep -q ' /run/onionskin rw.* - tmpfs ' "/proc/$pid/mountinfo"
that "its keys are out of swap" not logged "cannot be locked"
that "metrics are for those who have the token" answers metrics 401
that "and for them" answers metrics 200 -H "Authorization: Bearer a-token-of-this-test-alone"
that "it tells how it is" inside onionskin status -c /etc/onionskin/onionskin.toml
that "all of its parts are well" [ "$(sed -n 's/^  \(proxy\|keys\|server\|scratch\): //p' "$work/last" | xargs)" = "ok ok ok ok" ]
that "it reloads" inside onionskin reload -c /etc/onionskin/onionskin.toml
# Of scratch_memory's 256 MiB; the 64 MB that /dev/shm has of itself are too small for it.
sql "CREATE TABLE clinic.letters (id INT PRIMARY KEY, text MEDIUMTEXT ENCRYPTED FOR ())"
{ for n in $(seq 50); do printf 'INSERT INTO clinic.letters VALUES (%d, "' "$n"; head -c 1000000 /dev/zero | tr '\0' x; echo '");'; done; } >"$work/letters"
client <"$work/letters" || failed "long values are not written"
for n in 1 2 3; do sql "INSERT INTO clinic.letters SELECT id + 50 * $n, text FROM clinic.letters WHERE id <= 50"; done
that "the engine has room for 200 MB" sql "SELECT SUM(LENGTH(REVERSE(text))) FROM clinic.letters"
that "and computes with all of them" says 200000000 "$work/last"

that "no value is in the log" not logged Hb4YqMz7
sql "SELECT SLEEP(3)" >"$work/session" 2>&1 &
session=$!
sleep 1
began=$(date +%s%N)
podman stop --time 10 onionskin >"$work/stop" 2>&1 &
stop=$!
that "while it ends it is not ready" soon answers ready 503
wait "$stop" || failed "it cannot be stopped: $(cat "$work/stop")"
took=$((($(date +%s%N) - began) / 1000000))
wait "$session" || failed "the statement that ran: $(cat "$work/session")"
that "a statement that runs comes to its end" [ "$(cat "$work/session")" = 0 ]
that "SIGTERM ends it in order" [ "$(podman inspect --format '{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}}' onionskin)" = "exited 0 false" ]
that "as its log says, after $took ms" logged "onionskin::serve: ended"
podman rm onionskin >/dev/null
that "another container of the same keys starts" start
that "and is ready, too" soon answers ready 200
that "and reads what was written" as_written
podman kill --signal INT onionskin >/dev/null
ended() { [ "$(podman inspect --format '{{.State.Status}} {{.State.ExitCode}}' onionskin)" = "exited 0" ]; }
that "SIGINT ends it as well" soon ended
[ "$(find "$configuration" -mindepth 1 -printf '%P\n' | sort | xargs)" = "admin.token keys.json onionskin.toml" ] || failed "the folder of the configuration: $(ls -A "$configuration")"
say "the image was built, run and ended"
