#!/usr/bin/env bash
# The benchmark, on the project's own cluster: starts it if it is not up, installs Boxes in it, and
# measures. Arguments go to boxes-bench, such as `--only steady`. The cluster is left running.
# shellcheck source=tests/cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Of release builds like the controller's own, so that dependencies are shared and looking costs little.
build_bench() {
    local host
    host=$(rustc -vV | sed -n 's/^host: //p')
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        RUSTFLAGS='-C target-feature=+crt-static' \
        cargo build --quiet --release --locked --target "$host" --package boxes-tests --bin boxes-bench
    BENCH=${CARGO_TARGET_DIR:-target}/$host/release/boxes-bench
}

revision() {
    local dirty=
    [ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || dirty=" with changes"
    printf '%s%s\n' "$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)" "$dirty"
}

if uses_kind; then
    die "the benchmark reads the control plane's processes, so it needs the project's own cluster, not kind"
fi
tests/cluster/setup.sh
tests/cluster/tools/build.sh kubernetes containerd helm kwok >/dev/null
start_cluster
tests/cluster/image.sh
load_images
KUBECONFIG=$(kubeconfig)
export KUBECONFIG
install_chart
say "building the benchmark"
build_bench
# As in the controller's image.
export MALLOC_ARENA_MAX=2
exec "$BENCH" --revision "$(revision)" "$@"
