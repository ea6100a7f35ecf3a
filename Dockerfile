# The images: static binaries and nothing else. Nothing is compiled or fetched here, so any
# builder makes them without network access. `make image` runs the commands that it takes:
#
#   host=$(rustc -vV | sed -n 's/^host: //p') && export RUSTFLAGS='-C target-feature=+crt-static' && \
#     cargo build --release --locked --target "$host" -p boxes-controller -p boxes-output && \
#     cargo build --profile supervisor --locked --target "$host" -p boxes-supervisor && \
#     install -D "target/$host/release/boxes-controller" target/image/boxes-controller && \
#     install -D -t target/image "target/$host/release/boxes-collector" "target/$host/release/boxes-log-api" && \
#     install -D "target/$host/supervisor/boxes-supervisor" target/image/boxes-supervisor
#   docker build --target controller --tag boxes.run/boxes:dev .
#   docker build --target supervisor --tag boxes.run/supervisor:dev .
#   docker build --target output --tag boxes.run/output:dev .
#
# With buildah, as root in a container and without an engine, the last ones are
#
#   buildah --storage-driver vfs bud --isolation chroot --target controller --tag boxes.run/boxes:dev .
#
# More architectures: one such build for each, with --platform and --build-arg BINARY=… (COLLECTOR=…
# and LOG_API=… for output), under one manifest list. Only the binaries in target/image are in the build context (.dockerignore).

# What runs as PID 1 in every box. It is mounted there as it is, or copies itself there.
FROM scratch AS supervisor

ARG BINARY=target/image/boxes-supervisor
ARG VERSION=dev
ARG REVISION=unknown

LABEL org.opencontainers.image.title="boxes-supervisor" \
      org.opencontainers.image.description="First process of a Box: reports how its command ended and leaves no process behind" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

COPY ${BINARY} /boxes-supervisor

USER 65532:65532
ENTRYPOINT ["/boxes-supervisor"]

# The collector, which needs root on its node, and the log API.
FROM scratch AS output

ARG COLLECTOR=target/image/boxes-collector
ARG LOG_API=target/image/boxes-log-api
ARG VERSION=dev
ARG REVISION=unknown

LABEL org.opencontainers.image.title="boxes-output" \
      org.opencontainers.image.description="Saves what Boxes write, and serves it" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

COPY ${COLLECTOR} /boxes-collector
COPY ${LOG_API} /boxes-log-api

# glibc makes a heap for each thread that allocates, and each keeps what was freed. Two are enough.
ENV MALLOC_ARENA_MAX=2
USER 65532:65532
EXPOSE 8080 8443
# The collector is started as /boxes-collector.
ENTRYPOINT ["/boxes-log-api"]

# The controller.
FROM scratch AS controller

ARG BINARY=target/image/boxes-controller
ARG VERSION=dev
ARG REVISION=unknown

LABEL org.opencontainers.image.title="boxes" \
      org.opencontainers.image.description="Controller of Boxes: one command in one pod, with a durable record of how it ended" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

COPY ${BINARY} /boxes-controller

# As above.
ENV MALLOC_ARENA_MAX=2
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/boxes-controller"]
