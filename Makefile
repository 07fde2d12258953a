# SPDX-License-Identifier: Apache-2.0
#
# A front end of Meson. "make help" lists the targets.

BUILD       ?= build
MESON_ARGS  ?=
PREFIX      ?= /usr/local
DESTDIR     ?=
LISTEN      ?= 127.0.0.1:8000
ISOLATION   ?=
SECONDS     ?=
MIRROR      ?=
SIGNING_KEY ?=
UNSIGNED    ?=
# Debian's interpreter, because Debian's pytest belongs to it.
PYTHON      ?= /usr/bin/python3

RELEASE  := build-release
CLANG    := build-clang
SANITIZE := -Db_sanitize=address,undefined -Db_lundef=false

.PHONY: all run languages with-tests quick t test check lint openapi man ci nightly asan fuzz bench bench-compare soak test-vm test-package install deb image release dist clean help setup-%

all: $(BUILD)/build.ninja ## build everything into ./build
	meson compile -C $(BUILD)

$(BUILD)/build.ninja:
	meson setup $(BUILD) $(MESON_ARGS)

setup-%:
	@tools/setup $*

# Neither installs nor builds what only tests need.
run: setup-run ## set up, build, start the daemon: make run [LISTEN=127.0.0.1:8000] [ISOLATION=strict]
	@$(MAKE) --no-print-directory all MESON_ARGS="-Dtests=disabled $(MESON_ARGS)"
	@tools/run $(BUILD) $(LISTEN) $(ISOLATION)

languages: setup-languages ## install the compilers and interpreters of all languages, by apt-get

# Adds the tests to a build directory that was made without them.
with-tests: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -t query tests/unit/base/test_base_error >/dev/null 2>&1 || meson configure $(BUILD) -Dtests=enabled
	meson compile -C $(BUILD)

quick: with-tests ## build, unit tests, layers, style, smoke tests: about a minute
	@$(PYTHON) tools/test $(BUILD) unit smoke

t: $(BUILD)/build.ninja ## some tests: make t T=core/pool, T=integration/test_sessions.py::name, T=changed
	@$(PYTHON) tools/test $(BUILD) one "$(T)"

test: setup-test ## set up, build, run all tests: as this user, and if that is root as ordinary users
	@$(MAKE) --no-print-directory with-tests
	@$(PYTHON) tools/test $(BUILD)

check: ## as test; a skipped test is a failure
	MILLIBOX_MUST_WORK=1 $(MAKE) test

# Nothing is compiled: clang-tidy needs only the compile commands.
$(CLANG)/build.ninja:
	CC=clang meson setup $(CLANG) -Dtests=enabled

lint: setup-lint ## layers, style, format, clang-tidy, clang's warnings, cppcheck, gcc's analyzer, shellcheck, spelling
	@$(MAKE) --no-print-directory $(CLANG)/build.ninja
	@tools/lint $(CLANG)

openapi: all ## write docs/api/openapi.yaml from the tables of the API and openapi.in.yaml
	@$(PYTHON) tools/make-openapi.py $(BUILD)/tools/openapi-tables.json docs/api/openapi.in.yaml --write docs/api/openapi.yaml

man: all ## write docs/man/millibox.1.scd from the tables of millibox and millibox.1.in.scd
	@$(PYTHON) tools/make-man.py $(BUILD)/tools/cli-tables.json docs/man/millibox.1.in.scd --write docs/man/millibox.1.scd

ci: setup-test setup-lint ## lint of what changed, all tests
	@$(MAKE) --no-print-directory with-tests $(CLANG)/build.ninja
	@$(PYTHON) tools/test $(BUILD) all lint

nightly: ## what a release needs beside ci: lint of everything, no flaky test, sanitizers, a soak, packages, a cgroup v2 kernel
	$(MAKE) lint
	MILLIBOX_FLAKY=fail $(MAKE) test
	$(MAKE) asan soak test-package test-vm

# What a sanitizer found once is an error, even if it is not found again.
asan: ## all tests with the address and undefined behaviour sanitizers
	MILLIBOX_FLAKY=fail $(MAKE) test BUILD=build-asan MESON_ARGS="$(SANITIZE)"

fuzz: setup-fuzz ## fuzz one target: make fuzz T=frame [SECONDS=60]
	@CC=clang $(MAKE) -s build-fuzz/build.ninja BUILD=build-fuzz MESON_ARGS="-Dfuzz=true -Dtests=disabled $(SANITIZE)"
	@tools/fuzz build-fuzz "$(T)" $(or $(SECONDS),60)

# Another compiler may have warnings that ours does not.
$(RELEASE)/build.ninja:
	meson setup $(RELEASE) --buildtype=release -Dtests=disabled -Dwerror=false

bench: setup-bench $(RELEASE)/build.ninja ## measure, beside the peers that are installed
	meson compile -C $(RELEASE)
	MILLIBOX_BUILD=$(abspath $(RELEASE)) $(PYTHON) tests/bench/bench.py

bench-compare: ## compare two runs of make bench: make bench-compare [A=OLDER.json B=NEWER.json]
	@$(PYTHON) tests/bench/compare.py $(A) $(B)

soak: setup-test ## random use and kills: make soak [SECONDS=600] [SEED=...]
	@$(MAKE) --no-print-directory all
	MILLIBOX_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/soak/soak.py --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED))

test-vm: setup-vm setup-test ## limits and teardown on a pure cgroup v2 kernel in QEMU
	@$(MAKE) --no-print-directory all
	@$(PYTHON) tools/test $(BUILD) vm

test-package: setup-package setup-test ## make packages, an image and a release, and use them in a clean Debian
	@$(MAKE) --no-print-directory all
	@$(PYTHON) tools/test $(BUILD) package

# Installs no packages: it may run as root on a host that is not the developer's. tools/setup names those that a build needs.
install: $(RELEASE)/build.ninja ## install a release build: DESTDIR= PREFIX=/usr/local
	meson configure $(RELEASE) --prefix=$(abspath $(PREFIX))
	meson install -C $(RELEASE) $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

deb: setup-deb ## Debian packages of this tree in dist/
	@tools/make-deb dist

image: setup-image ## container image of this tree in dist/, as an OCI archive: make image [MIRROR=...]
	@MIRROR=$(MIRROR) tools/make-image "dist/millibox_$$(tools/version).oci.tar"

release: setup-release ## all files of a release in dist/: make release SIGNING_KEY=FILE (or UNSIGNED=1) [MIRROR=...]
	@SIGNING_KEY="$(SIGNING_KEY)" UNSIGNED="$(UNSIGNED)" MIRROR="$(MIRROR)" tools/make-release dist

dist: ## source archive of the last commit in dist/
	@tools/make-source dist

clean: ## remove all build directories
	rm -rf build build-asan $(CLANG) build-fuzz build-deb $(RELEASE) dist

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16
