# The book: `include docs/docs.mk` in the Makefile.
#
# mdBook: the one in PATH (Alpine and Homebrew package it), or else the crate of the mdBook project, which
# is compiled once into target/tools. Debian 12 has no package, npm has none, and the wheels on the Python index are not
# made by the mdBook project, so they are not used. Everything else is Python 3 without packages.

MDBOOK_VERSION := 0.5.4
MDBOOK := $(or $(shell command -v mdbook),$(CURDIR)/target/tools/bin/mdbook)
DOCS_BINARY ?= target/release/portway

.PHONY: docs docs-check docs-generate docs-commands

docs: docs-check $(MDBOOK) ## build the book into target/book and check its links
	$(MDBOOK) build docs
	docs/links.py --html target/book

docs-check: ## links, translations, and generated pages where DOCS_BINARY is built
	docs/links.py
	docs/compare.py
	@if [ -x $(DOCS_BINARY) ]; then docs/generate.py --check $(DOCS_BINARY); else echo "$(DOCS_BINARY) is not built: generated pages are not checked"; fi

docs-generate: ## write the generated pages, from DOCS_BINARY and bench/FIGURES.md
	docs/generate.py $(DOCS_BINARY)

docs-commands: ## run the shell commands of README and the book with DOCS_BINARY
	docs/commands.py $(DOCS_BINARY)

$(CURDIR)/target/tools/bin/mdbook:
	$(or $(CARGO),cargo) install --locked --debug --no-default-features --features search --version $(MDBOOK_VERSION) --root target/tools --target-dir target/tools/build mdbook
	rm -rf target/tools/build
