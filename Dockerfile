# The controller's image: one static binary and nothing else. Nothing is compiled or fetched here, so
# any builder makes it without network access. `make image` runs the two commands that it takes:
#
#   host=$(rustc -vV | sed -n 's/^host: //p') && RUSTFLAGS='-C target-feature=+crt-static' \
#     cargo build --release --locked --target "$host" -p boxes-controller && \
#     install -D "target/$host/release/boxes-controller" target/image/boxes-controller
#   docker build --tag boxes.run/boxes:dev .
#
# With buildah, as root in a container and without an engine, the second one is
#
#   buildah --storage-driver vfs bud --isolation chroot --tag boxes.run/boxes:dev .
#
# More architectures: one such build for each, with --platform and --build-arg BINARY=…, under one
# manifest list. Only target/image/boxes-controller* is in the build context (.dockerignore).
FROM scratch

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
