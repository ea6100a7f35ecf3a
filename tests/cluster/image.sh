#!/usr/bin/env bash
# Builds the images from the Dockerfile, those of the controller, the supervisor, and the collector with
# the log API: with Docker where an engine works, else with buildah, which needs none and leaves OCI
# archives that name them in target/image (*.tar).
# shellcheck source=tests/cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

folder=target/image
host=$(rustc -vV | sed -n 's/^host: //p')

# Each static, as the Dockerfile says. A program's path without it is that of a build of the host's.
static() { RUSTFLAGS='-C target-feature=+crt-static' cargo build --locked --target "$host" "$@"; }
take() { install -D "${CARGO_TARGET_DIR:-target}/$host/$1/$2" "$folder/$2"; }

# Without link-time optimisation, which is for what is published (see the Dockerfile): with it, each
# change takes four minutes instead of half a minute, for a binary that is 6 % smaller.
static_release() {
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 static --release "$@"
}

build_controller() {
    say "building the controller, static, for $host"
    static_release --package boxes-controller
    take release boxes-controller
}

build_output() {
    say "building the collector and the log API, static, for $host"
    static_release --package boxes-output --bins
    take release boxes-collector
    take release boxes-log-api
}

build_supervisor() {
    say "building the supervisor, static, for $host"
    static --profile supervisor --package boxes-supervisor
    take supervisor boxes-supervisor
}

# buildah with its storage beside its result, so that nothing of it is left elsewhere.
in_buildah() {
    buildah --storage-driver vfs --root "$PWD/$folder/storage" --runroot "$PWD/$folder/run" "$@"
}

# The same binary always gives the same digest: the time of the build is not in it.
build_with_buildah() { # target image
    local archive=$folder/$1.tar
    rm -f "$archive"
    in_buildah build --quiet --isolation chroot --timestamp 0 --target "$1" --tag "$2" . >/dev/null
    in_buildah push --quiet "$2" "oci-archive:$archive:$2"
    rm -rf "$folder/storage" "$folder/run"
    say "image $2: $(du -h "$archive" | cut -f1) compressed, in $archive"
}

build_with_docker() { # target image
    docker build --quiet --target "$1" --tag "$2" . >/dev/null
    say "image $2: $(docker image inspect --format '{{.Size}}' "$2" | numfmt --to=iec) in Docker"
}

# Whether the image of the last time is still there.
is_built() { # target image
    if docker_works; then docker image inspect "$2" >/dev/null 2>&1; else [ -f "$folder/$1.tar" ]; fi
}

build_image() { # target image binary...
    local id stamp=$folder/$1.id
    local binaries=("${@:3}")
    binaries=("${binaries[@]/#/$folder/}")
    id=$(cat Dockerfile "${binaries[@]}" | sha256sum | cut -d' ' -f1)
    if is_built "$@" && [ "$(cat "$stamp" 2>/dev/null)" = "$id" ]; then
        say "image $2: unchanged"
        return
    fi
    rm -f "$stamp"
    if docker_works; then build_with_docker "$@"; else build_with_buildah "$@"; fi
    say "what is in it: $(du -hc "${binaries[@]}" | tail -n 1 | cut -f1)"
    printf '%s\n' "$id" >"$stamp"
}

build_controller
build_supervisor
build_output
build_image controller "$IMAGE" boxes-controller
build_image supervisor "$SUPERVISOR_IMAGE" boxes-supervisor
build_image output "$OUTPUT_IMAGE" boxes-collector boxes-log-api
