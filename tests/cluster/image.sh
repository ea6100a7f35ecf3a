#!/usr/bin/env bash
# Builds the controller's image from the Dockerfile: with Docker where an engine works, else with
# buildah, which needs none. Leaves an OCI archive that names it in target/image/boxes.tar (buildah).
# shellcheck source=tests/cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

folder=target/image
stamp=$folder/boxes.id

# Without link-time optimisation, which is for what is published (see the Dockerfile): with it, each
# change takes four minutes instead of half a minute, for a binary that is 6 % smaller.
build_binary() {
    local host
    host=$(rustc -vV | sed -n 's/^host: //p')
    say "building the controller, static, for $host"
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        RUSTFLAGS='-C target-feature=+crt-static' \
        cargo build --release --locked --target "$host" --package boxes-controller
    install -D "${CARGO_TARGET_DIR:-target}/$host/release/boxes-controller" "$folder/boxes-controller"
}

# buildah with its storage beside its result, so that nothing of it is left elsewhere.
in_buildah() {
    buildah --storage-driver vfs --root "$PWD/$folder/storage" --runroot "$PWD/$folder/run" "$@"
}

build_with_buildah() {
    rm -f "$ARCHIVE"
    in_buildah build --quiet --isolation chroot --tag "$IMAGE" . >/dev/null
    in_buildah push --quiet "$IMAGE" "oci-archive:$ARCHIVE:$IMAGE"
    rm -rf "$folder/storage" "$folder/run"
    say "image $IMAGE: $(du -h "$ARCHIVE" | cut -f1) compressed, in $ARCHIVE"
}

build_with_docker() {
    docker build --quiet --tag "$IMAGE" . >/dev/null
    say "image $IMAGE: $(docker image inspect --format '{{.Size}}' "$IMAGE" | numfmt --to=iec) in Docker"
}

# Whether the image of the last time is still there.
is_built() {
    if docker_works; then docker image inspect "$IMAGE" >/dev/null 2>&1; else [ -f "$ARCHIVE" ]; fi
}

build_binary
id=$(cat Dockerfile "$folder/boxes-controller" | sha256sum | cut -d' ' -f1)
if is_built && [ "$(cat "$stamp" 2>/dev/null)" = "$id" ]; then
    say "image $IMAGE: unchanged"
    exit 0
fi
rm -f "$stamp"
if docker_works; then build_with_docker; else build_with_buildah; fi
say "the binary in it: $(du -h "$folder/boxes-controller" | cut -f1)"
printf '%s\n' "$id" >"$stamp"
