# SPDX-License-Identifier: Apache-2.0
#
# The door to the build: Meson does the work. "make help" lists what there is.

BUILD      ?= build
MESON_ARGS ?=
PREFIX     ?= /usr/local
DESTDIR    ?=
LISTEN     ?= 127.0.0.1:8000
SECONDS    ?= 60
# Debian's interpreter, because Debian's pytest belongs to it.
PYTHON     ?= /usr/bin/python3

RELEASE  := build-release
SANITIZE := -Db_sanitize=address,undefined -Db_lundef=false

.PHONY: all run with-tests test quick t check lint asan fuzz bench bench-compare soak test-vm install dist clean help setup-%

all: $(BUILD)/build.ninja ## build everything into ./build
	meson compile -C $(BUILD)

$(BUILD)/build.ninja:
	meson setup $(BUILD) $(MESON_ARGS)

setup-%:
	@tools/setup $*

# What is only needed for tests is neither installed nor built for it.
run: setup-run ## set up, build, start the daemon: make run [LISTEN=127.0.0.1:8000]
	@$(MAKE) --no-print-directory all MESON_ARGS="-Dtests=disabled $(MESON_ARGS)"
	@tools/run $(BUILD) $(LISTEN)

# A build that was made without tests, by "run" or for want of a library, gets them.
with-tests: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -t query tests/unit/base/test_base_error >/dev/null 2>&1 || meson configure $(BUILD) -Dtests=enabled
	meson compile -C $(BUILD)

test: setup-test ## set up, build, run all tests: as this user and as an ordinary one
	@$(MAKE) --no-print-directory with-tests
	@$(PYTHON) tools/test $(BUILD)

quick: with-tests ## build, unit tests, layers, style and some system tests: about a minute
	@$(PYTHON) tools/test $(BUILD) unit smoke

t: $(BUILD)/build.ninja ## one test: make t T=core/pool, make t T=integration/test_sessions.py::name
	@$(PYTHON) tools/test $(BUILD) one $(T)

check: ## as test, and a skipped test is a failure
	MILLIBOX_MUST_WORK=1 $(MAKE) test

lint: setup-lint ## layers, style, format, clang-tidy, cppcheck, shellcheck, spelling
	@CC=clang $(MAKE) --no-print-directory with-tests BUILD=build-clang
	@tools/lint build-clang

asan: ## all tests with the address and undefined behaviour sanitizers
	$(MAKE) test BUILD=build-asan MESON_ARGS="$(SANITIZE)"

fuzz: setup-fuzz ## fuzz one target: make fuzz T=frame [SECONDS=60]
	@CC=clang $(MAKE) -s build-fuzz/build.ninja BUILD=build-fuzz MESON_ARGS="-Dfuzz=true -Dtests=disabled $(SANITIZE)"
	@tools/fuzz build-fuzz "$(T)" $(SECONDS)

# Somebody else's compiler may know warnings that ours does not.
$(RELEASE)/build.ninja:
	meson setup $(RELEASE) --buildtype=release -Dtests=disabled -Dwerror=false

bench: setup-bench $(RELEASE)/build.ninja ## measure against the peers that are installed
	meson compile -C $(RELEASE)
	MILLIBOX_BUILD=$(abspath $(RELEASE)) $(PYTHON) tests/bench/bench.py

bench-compare: ## two runs of make bench beside each other: make bench-compare [A=OLDER.json B=NEWER.json]
	@$(PYTHON) tests/bench/compare.py $(A) $(B)

soak: setup-test ## random use and kills for a while: make soak [SECONDS=600] [SEED=...]
	@$(MAKE) --no-print-directory all
	MILLIBOX_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/soak/soak.py --seconds $(if $(filter 60,$(SECONDS)),600,$(SECONDS)) $(if $(SEED),--seed $(SEED))

test-vm: setup-vm setup-test ## limits and teardown on a pure cgroup-v2 kernel in QEMU
	@$(MAKE) --no-print-directory all
	@$(PYTHON) tools/test $(BUILD) vm

install: setup-run $(RELEASE)/build.ninja ## install a release build: DESTDIR= PREFIX=/usr/local
	meson configure $(RELEASE) --prefix=$(abspath $(PREFIX))
	meson install -C $(RELEASE) $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

dist: all ## source archive of the last commit
	meson dist -C $(BUILD) --no-tests --formats xztar

clean: ## remove all build directories
	rm -rf build build-asan build-clang build-fuzz $(RELEASE)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16
