# Portway. `make` alone lists what can be made.

CARGO ?= cargo
PROJECT ?= examples/quickstart
# Most tests wait for processes more than they compute.
export RUST_TEST_THREADS ?= $(shell expr 3 \* $$(getconf _NPROCESSORS_ONLN))
# Tests that the machine cannot run and PORTWAY_TEST_WITHOUT excuses.
export PORTWAY_TEST_SKIPPED = $(CURDIR)/target/skipped-tests

.DEFAULT_GOAL := help
include packaging/release.mk docs/docs.mk deploy/image.mk
.PHONY: help run build test test-rust test-docs test-copilot browse check soak bench fmt tools console

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

run: console ## start Portway on examples/quickstart (PROJECT=DIR for another folder)
	$(CARGO) run --release --locked -- --project $(PROJECT)

build: console ## build the release binary
	$(CARGO) build --release --locked

test: tools console check ## everything that must hold before a merge
	@mkdir -p target && rm -f $(PORTWAY_TEST_SKIPPED)
	@# Side by side: a browser waits half of its time.
	$(MAKE) --no-print-directory --keep-going -j2 test-rust browse test-docs
	$(MAKE) --no-print-directory test-copilot
	@if [ -s $(PORTWAY_TEST_SKIPPED) ]; then echo "skipped tests:"; cat $(PORTWAY_TEST_SKIPPED); fi

test-rust: ## all tests of the default features
	$(CARGO) test --locked --no-fail-fast

test-docs: tools ## the book's links, translations and generated pages, and every command in it
	$(CARGO) build --locked -p portway --bins --example fixture
	$(MAKE) --no-print-directory docs-check docs-commands DOCS_BINARY=target/debug/portway

test-copilot: tools ## the tools in GitHub's own Copilot runtime, from Rust and from TypeScript
	$(CARGO) clippy --locked -p portway --features copilot --lib --test copilot --example copilot -- -D warnings
	$(CARGO) build --locked -p portway --features copilot --bins --example copilot --example fixture
	$(CARGO) test --locked -p portway --features copilot --test copilot
	$(CARGO) test --locked -p portway --features copilot --doc copilot
	cd adapters/copilot-ts && npm run --silent lint && npm test --silent -- $(CURDIR)/target/debug/portway $(CURDIR)/target/debug/examples/fixture

browse: console ## walk through the console with a real browser
	$(CARGO) build --locked -p portway --bins --example fixture
	cd ui && npm run --silent lint && npm test --silent -- $(CURDIR)/target/debug/portway $(CURDIR)/target/debug/examples/fixture

check: ## format, lints, documentation, unused dependencies; licences where cargo-deny is installed
	$(CARGO) fmt --check
	tests/tools/unused-dependencies.py
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny --offline check bans licenses sources; fi

soak: tools ## the long runs, optimised: process trees killed by the hundred
	$(CARGO) build --profile soak --locked -p portway --bins --examples
	PORTWAY_SOAK=1 $(CARGO) test --profile soak --locked -p portway --test it -- process:: npx:: soak b_edits:: mix_ups:: idle:: e_served::killed --nocapture --test-threads=1
	PORTWAY_SOAK=1 $(CARGO) test --profile soak --locked -p portway-store --lib -- --nocapture --test-threads=1

bench: build ## how fast it is: direct, through Portway and through nginx, side by side
	$(CARGO) run --release --locked -p portway-bench -- run --scale --write bench

fmt: ## format the sources, those of the console where its packages are installed
	$(CARGO) fmt
	@if [ -d ui/node_modules ]; then cd ui && npm run --silent format; fi

tools: ## install the servers and SDKs that the tests run against
	@tests/tools/install.sh

ifneq ($(shell command -v npm),)
console: ui/dist/index.html ## build the web console
else
console:
	@echo "npm is missing: the web console is left out"
endif

ui/dist/index.html: ui/node_modules/.package-lock.json $(shell find ui/src ui/index.html ui/vite.config.ts ui/compress.ts ui/tests/budget.ts ui/tsconfig.json -type f 2>/dev/null)
	cd ui && npm run --silent build
	@touch $@

ui/node_modules/.package-lock.json: ui/package.json ui/package-lock.json
	cd ui && npm ci --no-audit --no-fund --loglevel=error
	@touch $@
