#!/bin/bash
# Installs the Debian package in a clean Debian 12 that a systemd of its own has booted, with a MariaDB beside it:
# the unit as it is runs the proxy and a scratch engine, reloads, hands over to a newer package without losing a
# session, comes back when it is killed, and goes away but for the keys. Needs root, systemd-nspawn and debootstrap.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "package: $*"; }
[ "$(id -u)" = 0 ] || { say "SKIPPED: needs root" >&2; exit 0; }
root=$PWD/.servers/bookworm-systemd
if [ ! -e "$root/.complete" ]; then
    say "making a clean Debian in $root"
    if [ -z "${http_proxy:-}" ]; then
        eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
        [ -z "${http_proxy:-}" ] || export http_proxy
    fi
    rm -rf "$root"
    debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,mariadb-server bookworm "$root" >"$root.log" 2>&1 ||
        { tail -5 "$root.log" >&2; exit 1; }
    touch "$root/.complete"
fi

work=$(mktemp -d)
leader=
end() {
    [ -z "$leader" ] || kill -KILL "$leader" 2>/dev/null || true
    [ -z "${machine:-}" ] || { kill "$machine" 2>/dev/null; wait "$machine" 2>/dev/null; } || true
    rm -rf "$work"
}
trap end EXIT

# Two packages that differ in nothing but their version.
mkdir "$work/packages"
cp target/package/onionskin_*.deb "$work/packages/one.deb"
dpkg-deb --raw-extract "$work/packages/one.deb" "$work/newer"
sed -i 's/^Version: \(.*\)$/Version: \1+newer/' "$work/newer/DEBIAN/control"
dpkg-deb -Znone --root-owner-group --build "$work/newer" "$work/packages/two.deb" >/dev/null

# What it writes is in memory and gone afterwards.
systemd-nspawn -q --directory="$root" --volatile=overlay --private-network --register=no --keep-unit \
    --system-call-filter=@memlock \
    --bind-ro="$work/packages:/packages" --boot </dev/null >"$work/boot.log" 2>&1 &
machine=$!
descendants() { local child; for child in $(pgrep -P "$1"); do echo "$child"; descendants "$child"; done; }
inside() { nsenter --target "$leader" --mount --uts --ipc --net --pid -- "$@"; }
for _ in $(seq 120); do
    for process in $(descendants "$machine"); do
        [ "$(cat "/proc/$process/comm" 2>/dev/null)" != systemd ] || { leader=$process; break; }
    done
    [ -z "$leader" ] || ! inside systemctl is-active --quiet mariadb 2>/dev/null || break
    sleep 0.5
done
inside systemctl is-active --quiet mariadb || { say "no MariaDB in the clean Debian" >&2; tail -5 "$work/boot.log" >&2; exit 1; }

failed() {
    say "FAILED: $*" >&2
    inside journalctl --no-pager -u onionskin 2>/dev/null | tail -20 >&2
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
active() { inside systemctl is-active --quiet onionskin; }
main_pid() { inside systemctl show --property=MainPID --value onionskin; }
sql() { inside mariadb --host=127.0.0.1 --port=3307 --user=app --password=secret --batch --skip-column-names --execute="$1"; }
installed() { inside dpkg --install "/packages/$1.deb"; }
as_written() { [ "$(sql 'SELECT name FROM clinic.patients WHERE name = "Hb4YqMz7"')" = Hb4YqMz7 ]; }

that "the package is installed" installed one
that "it says how to begin" says "onionskin init --dir /etc/onionskin" "$work/last"
that "without a configuration nothing is started" inside systemctl start onionskin
that "and nothing runs" not active
that "keys and configuration are made" inside runuser -u onionskin -- onionskin init --dir /etc/onionskin --backend 127.0.0.1:3306
that "with an engine that comes by itself" inside grep -q '^engine = "auto"' /etc/onionskin/onionskin.toml
inside sed -i '1i control = "/run/onionskin/control.sock"' /etc/onionskin/onionskin.toml
inside sh -c 'printf "[audit]\nfolder = \"/var/log/onionskin/audit\"\nheads = \"/var/lib/onionskin/audit.heads\"\n" >>/etc/onionskin/onionskin.toml'
inside mariadb --execute="CREATE USER app@localhost IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO app@localhost;
    CREATE USER app@127.0.0.1 IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO app@127.0.0.1"
that "the service starts" inside systemctl start onionskin
that "and is ready" active
that "its keys are out of swap" not inside sh -c "journalctl -u onionskin | grep -q 'cannot be locked'"
that "a table is protected" sql "CREATE DATABASE clinic; CREATE TABLE clinic.patients (id INT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (eq))"
that "and written" sql "INSERT INTO clinic.patients VALUES (1, 'Hb4YqMz7')"
that "and read" as_written
that "the engine computes under the unit's restrictions" sql "SELECT UPPER(REVERSE(name)) FROM clinic.patients WHERE LENGTH(name) + 1 = 9"
that "what it has computed is right" says 7ZMQY4BH "$work/last"
inside mariadb --execute="FLUSH TABLES clinic.patients FOR EXPORT"
that "the server's file has no plaintext" inside sh -c '! grep -rq Hb4YqMz7 /var/lib/mysql'
that "it reloads" inside systemctl reload onionskin
that "the keys are its user's alone" inside sh -c '[ "$(stat -c %U:%a /etc/onionskin/keys.json)" = onionskin:600 ]'

before=$(main_pid)
sql "SELECT SLEEP(6); SELECT CONCAT(name, ' is kept') FROM clinic.patients WHERE id = 1" >"$work/session" 2>&1 &
session=$!
sleep 1
that "a newer package is installed" installed two
another() { [ "$(main_pid)" != "$before" ] && active; }
that "its program takes over" soon another
that "and serves" as_written
wait "$session" || failed "the session of before: $(cat "$work/session")"
that "a session of before goes on to its end" says "Hb4YqMz7 is kept" "$work/session"

before=$(main_pid)
inside kill -KILL "$before"
that "it comes back when it is killed" soon another
that "and serves again" soon as_written
that "the audit log names who has read" inside sh -c 'grep -q "app@.*clinic.patients.name" /var/log/onionskin/audit/*.jsonl'
that "and no value" not inside sh -c 'grep -rq Hb4YqMz7 /var/log/onionskin /var/lib/onionskin'
that "nothing is missing in it" inside runuser -u onionskin -- onionskin audit-log verify -c /etc/onionskin/onionskin.toml
that "not what the killed program has written" says "was killed" "$work/last"
that "systemd finds it little exposed" inside systemd-analyze security --threshold=20 --no-pager onionskin.service

that "it is removed" inside dpkg --remove onionskin
that "and ended" not active
that "and purged" inside dpkg --purge onionskin
that "which leaves the keys, and says so" says "/etc/onionskin is left" "$work/last"
that "they are there" inside test -s /etc/onionskin/keys.json
that "installed again, it serves what was written" installed one
that "it starts" inside systemctl start onionskin
that "and reads" soon as_written
inside rm -r /etc/onionskin/keys.json /etc/onionskin/onionskin.toml
that "purged without keys" inside dpkg --purge onionskin
that "it leaves no folder" inside test ! -e /etc/onionskin
that "and no user" not inside getent passwd onionskin
say "the package was installed, run, replaced and removed"
