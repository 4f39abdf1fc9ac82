# Every target installs what it needs first (apt, as root or with sudo), and does nothing about what is there.
# `make test` builds everything once in the profile `ci`: optimised, with debug assertions and overflow checks.

CARGO ?= cargo
# Seconds for each fuzz target
SECONDS_EACH ?= 60

.PHONY: help demo test lint fuzz mariadb-tests mysql-tests orm-suites driver-suites applications bench bench-proxy bench-backup bench-migrate bench-like bench-tiers bench-scale performance counts book package package-test container-test browser-test assess-peers assess-open-data cluster-tests mariadb118 nightly deps

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

demo: ## build, start a private server and the proxy, run the example statements, show both sides, end
	@scripts/install-deps.sh
	$(CARGO) build --release --locked -p onionskin
	target/release/onionskin demo

test: ## everything that must hold: format, lints, unit, integration and short fuzz tests, on MariaDB and MySQL
	@scripts/install-deps.sh tests
	@scripts/test.sh

lint: ## format and lints only
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets --profile ci -- -D warnings

fuzz: ## coverage-guided fuzzing of every decoder (nightly Rust, cargo-fuzz); SECONDS_EACH=60
	@scripts/fuzz.sh $(SECONDS_EACH)

mariadb-tests: ## MariaDB's own test files, statement by statement, on a plain server and with every column protected
	@scripts/install-deps.sh tests
	@scripts/mariadb-tests.sh
	$(CARGO) test --locked --profile ci -p onionskin --test mtr mariadb -- --ignored --nocapture

mysql-tests: ## the same with MySQL's own test files
	@scripts/install-deps.sh tests
	@scripts/mysql-tests.sh
	$(CARGO) test --locked --profile ci -p onionskin --test mtr mysql -- --ignored --nocapture

orm-suites: ## test suites of Django, SQLAlchemy and SQLObject, and an application on Node's ORMs, on a plain server and through the proxy
	@scripts/install-deps.sh tests
	$(CARGO) build --release --locked -p onionskin
	python3 scripts/orm_suites.py
	python3 scripts/orm_suites.py --wildcard

driver-suites: ## the drivers' own test suites (Go, Python, PHP, C, Perl, Java, Node, Ruby), on a plain server and through the proxy; SUITES="go java"
	@scripts/install-deps.sh drivers
	$(CARGO) build --release --locked -p onionskin
	python3 scripts/driver_suites.py $(SUITES)

applications: ## WordPress and MediaWiki with every column protected, and on a plain server: what they say must be the same
	@scripts/install-deps.sh applications
	$(CARGO) build --release --locked -p onionskin
	python3 scripts/applications.py

bench: bench-proxy bench-backup bench-migrate bench-like bench-tiers ## the speed of all parts, each next to what else there is; takes hours

bench-proxy: ## speed and size against direct connections and HAProxy; BENCH="--quick" for a first impression
	@scripts/install-deps.sh tests
	$(CARGO) build --release --locked -p onionskin
	python3 scripts/bench.py $(BENCH)

bench-backup: ## backup and restore of a server, and streams alone, against zstd, openssl enc and age; BENCH="--size 256 --rounds 1"
	@scripts/install-deps.sh tests
	$(CARGO) build --release --locked -p onionskin
	python3 scripts/bench_backup.py $(BENCH)
	python3 scripts/bench_streams.py $(BENCH)

bench-migrate: ## changing a table under load, against native ALTER TABLE, pt-osc and gh-ost where they are installed; BENCH="--server mysql"
	@scripts/install-deps.sh tests
	$(CARGO) build --release --locked -p onionskin
	python3 scripts/bench_migrate.py --switches 50 --memory 500000,2000000 $(BENCH)

bench-like: ## LIKE on a million rows by the index over grams and by opening all rows; fails below 20 times, or if the index is not in force
	@scripts/install-deps.sh tests
	ONIONSKIN_LIKE_ROWS=1000000 $(CARGO) test --locked --profile ci -p onionskin --test like selective_patterns -- --test-threads 1 --nocapture

bench-tiers: ## cells that the proxy finishes in a second, and what the scratch engine adds to a statement; fails where a goal is missed
	@scripts/install-deps.sh tests
	$(CARGO) build --release --locked -p onionskin
	python3 scripts/bench_tiers.py $(BENCH)

bench-scale: ## 100,000 tables, 1,000 accounts, 10,000 sessions: what the proxy asks, keeps and uses then; BENCH="--parts sessions"
	@scripts/install-deps.sh tests
	$(CARGO) build --release --locked -p onionskin
	python3 scripts/bench_scale.py $(BENCH)

# Reports of this machine; docs/performance.md is their Markdown form.
PERFORMANCE ?= $(CURDIR)/target/performance

performance: ## onionskin bench --quick on MariaDB and MySQL; renews docs/performance.md and the README's picture
	@scripts/install-deps.sh tests
	$(CARGO) build --release --locked -p onionskin
	rm -rf $(PERFORMANCE)
	ONIONSKIN_MYSQLD=$(CURDIR)/scripts/mysqld97 target/release/onionskin bench --quick --server mariadb,mysql --out $(PERFORMANCE)
	{ cat $(PERFORMANCE)/report.md; echo; echo "Where the time of a statement goes in the proxy: [hot-path.md](hot-path.md)."; } >docs/performance.md
	scripts/cost_picture.py

counts: ## count the instructions of the hot paths anew (callgrind); `make test` compares with what is recorded
	@scripts/install-deps.sh tests
	ONIONSKIN_UPDATE=1 $(CARGO) test --locked --profile ci --workspace --test instruction_counts
	git diff --stat -- crates/proxy/tests/instruction_counts.txt

book: ## the documents as a searchable book, in target/book
	@scripts/book.sh

package: ## a Debian package, and the files of a container image, in target/package
	@scripts/package.sh

package-test: package ## install, run, replace and remove that package in a clean Debian under its own systemd (as root)
	@scripts/install-deps.sh package
	@scripts/package_test.sh

container-test: package ## build the container image on a Debian of debootstrap's, and run it as its Containerfile says (as root)
	@scripts/install-deps.sh container
	@scripts/container_test.sh

browser-test: ## the status page and the reports of assess in Debian's chromium: wide and on a phone, light and dark, with hostile names
	@scripts/install-deps.sh browser
	$(CARGO) build --release --locked -p onionskin
	python3 scripts/browser_test.py
	python3 scripts/browser_reports.py

assess-peers: ## presidio and piicatcher on the labelled tables that `assess data` is measured on: precision and recall, as a table
	@scripts/install-deps.sh tests
	python3 scripts/assess_peers.py

assess-open-data: ## `assess data` on open data sets that packages ship, labelled by hand: precision and recall
	@scripts/install-deps.sh tests
	$(CARGO) build --release --locked -p onionskin
	python3 scripts/assess_open_data.py --least 0.70 0.48

cluster-tests: ## tests of statements on nodes of clusters: Galera, a MySQL group, one that all members write to; CLUSTERS="galera"
	@scripts/install-deps.sh tests
	@scripts/cluster-tests.sh $(CLUSTERS)

mariadb118: ## all integration tests with MariaDB 11.8 in the place of the system's
	@scripts/install-deps.sh nightly
	PATH="$(CURDIR)/scripts/mariadb118:$$PATH" ONIONSKIN_TEST_MARIADB_ONLY=1 $(CARGO) test --locked --profile ci -p onionskin --no-fail-fast

# Random statements and sessions on each server; without a scratch engine among all tests, and then with one.
DIFFERENTIAL = ONIONSKIN_STATEMENTS=1000000 ONIONSKIN_SESSIONS=100000

nightly: ## the long versions: all tests with more rounds, ten minutes of fuzzing for each decoder, the benchmark
	@scripts/install-deps.sh tests
	$(DIFFERENTIAL) ONIONSKIN_TEST_LONG=1 scripts/test.sh
	$(DIFFERENTIAL) ONIONSKIN_TEST_LONG=1 ONIONSKIN_SCRATCH=1 $(CARGO) test --locked --profile ci -p onionskin --test differential
	# what is known of tables is old after every statement: the proxy's own questions come between any two
	ONIONSKIN_TEST_RECHECK=0 ONIONSKIN_STATEMENTS=100000 ONIONSKIN_SESSIONS=5000 $(CARGO) test --locked --profile ci -p onionskin --test differential
	# other values of the same kinds than the recorded ones
	python3 scripts/assess_corpus.py --seed $$(date +%j) --rows 60 --out target/assess-corpus.json
	ONIONSKIN_ASSESS_CORPUS=$(CURDIR)/target/assess-corpus.json $(CARGO) test --locked --profile ci -p onionskin-assess --test personal_data -- --nocapture
	$(MAKE) assess-peers
	$(MAKE) assess-open-data
	scripts/mariadb-tests.sh
	$(CARGO) test --locked --profile ci -p onionskin --test mtr mariadb -- --ignored --nocapture
	scripts/mysql-tests.sh
	$(CARGO) test --locked --profile ci -p onionskin --test mtr mysql -- --ignored --nocapture
	scripts/fuzz.sh 600
	$(CARGO) build --release --locked -p onionskin
	python3 scripts/orm_suites.py
	python3 scripts/orm_suites.py --wildcard
	$(MAKE) driver-suites
	$(MAKE) applications
	$(MAKE) browser-test
	$(MAKE) cluster-tests
	$(MAKE) mariadb118
	$(MAKE) package-test container-test
	python3 scripts/bench.py
	rm -rf target/bench-nightly
	ONIONSKIN_MYSQLD=$(CURDIR)/scripts/mysqld97 target/release/onionskin bench --quick --server mariadb,mysql --out target/bench-nightly

deps: ## install what the tests need, and nothing else
	@scripts/install-deps.sh tests
