# The images: each one static binary and nothing else. Nothing is compiled or fetched here, so any
# builder makes them without network access. `make image` runs the commands that it takes:
#
#   host=$(rustc -vV | sed -n 's/^host: //p') && export RUSTFLAGS='-C target-feature=+crt-static' && \
#     cargo build --release --locked --target "$host" -p boxes-controller && \
#     cargo build --profile supervisor --locked --target "$host" -p boxes-supervisor && \
#     install -D "target/$host/release/boxes-controller" target/image/boxes-controller && \
#     install -D "target/$host/supervisor/boxes-supervisor" target/image/boxes-supervisor
#   docker build --target controller --tag boxes.run/boxes:dev .
#   docker build --target supervisor --tag boxes.run/supervisor:dev .
#
# With buildah, as root in a container and without an engine, the last ones are
#
#   buildah --storage-driver vfs bud --isolation chroot --target controller --tag boxes.run/boxes:dev .
#
# More architectures: one such build for each, with --platform and --build-arg BINARY=…, under one
# manifest list. Only the binaries in target/image are in the build context (.dockerignore).

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

USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/boxes-controller"]
