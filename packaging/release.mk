# Releases. `make release` needs git, Python 3, npm and dpkg-deb; `make test-release` also mmdebstrap, and root.

# Targets of rustc; the first must be this machine's. Each needs a line in packaging/facts.py
# and `rustup target add`.
TARGETS ?= x86_64-unknown-linux-gnu
# The oldest glibc that the program must run with; renameat2 came with 2.28.
GLIBC ?= 2.28
# Where the files will be published, and the project's page.
RELEASE_URL ?= https://example.com/portway
HOMEPAGE ?=
MAINTAINER ?= The Portway maintainers <portway@example.com>
# Where the release is written.
DIST ?= dist
# To try the packages: a binary that is already built, and uncommitted changes.
BINARY ?=
DIRTY ?=

.PHONY: release test-release
# Imports leave no compiled files beside the scripts.
release test-release: export PYTHONDONTWRITEBYTECODE := 1
release test-release: export CARGO := $(CARGO)
release test-release: export TARGETS := $(TARGETS)
release test-release: export GLIBC := $(GLIBC)
release test-release: export RELEASE_URL := $(RELEASE_URL)
release test-release: export HOMEPAGE := $(HOMEPAGE)
release test-release: export MAINTAINER := $(MAINTAINER)
release test-release: export BINARY := $(BINARY)
release test-release: export DIRTY := $(DIRTY)

release: console ## make all packages of this commit, into dist
	@packaging/release.sh $(DIST)

test-release: ## install, start, upgrade and remove each package of dist in a clean root
	@packaging/test/run.sh $(DIST)
