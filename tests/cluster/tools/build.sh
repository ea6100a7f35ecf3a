#!/usr/bin/env bash
# Builds the cluster's own programs from Go modules, once per content of their module files.
#
#   build.sh TOOL…   builds each TOOL (a folder beside this file) unless it is cached, and prints on
#                    stdout the folder that holds its programs, one line a tool. Progress: stderr.
#
# The cache lies outside the work tree, keyed by a hash of what decides the programs' bytes: the
# module files, the toolchain and the flags below. A folder appears there only when it is whole.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${BOXES_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/boxes}

say() { printf '%s\n' "$*" >&2; }

# The version of a module, stated once: in the tool's go.mod, within its `require` block.
version_of() { awk -v module="$2" '$1 == module && $2 ~ /^v[0-9]/ { print $2; exit }' "$here/$1/go.mod"; }

flags_of() {
    local version
    case $1 in
    kubernetes)
        version=$(version_of kubernetes k8s.io/kubernetes)
        printf '%s\n' -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$version")"
        ;;
    containerd)
        version=$(version_of containerd github.com/containerd/containerd/v2)
        printf '%s\n' -tags "no_btrfs no_devmapper no_zfs" -ldflags "-s -w -X github.com/containerd/containerd/v2/version.Version=$version"
        ;;
    *) printf '%s\n' -ldflags "-s -w" ;;
    esac
}

programs_of() { (cd "$here/$1" && go list -f '{{.ImportPath}}' tool); }

# A counter while `go build -v` names the packages it compiles.
show_progress() {
    awk -v tool="$1" -v total="$2" -v every=200 '
        { n++; if (n % every == 0) { printf "  %s: %d of at most %d packages\n", tool, n, total; fflush() } }' >&2
}

build() {
    local tool=$1 out=$2 total flags partial
    mapfile -t flags < <(flags_of "$tool")
    partial=$(mktemp -d "$out.partial.XXXXXX")
    cd "$here/$tool"
    mapfile -t programs < <(programs_of "$tool")
    total=$(go list -deps "${programs[@]}" 2>/dev/null | wc -l)
    say "building $tool: ${#programs[@]} programs, this happens once (see $out)"
    local log="$partial/build.log"
    if ! CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -v -trimpath "${flags[@]}" -o "$partial/" "${programs[@]}" \
        2> >(tee "$log" | show_progress "$tool" "$total"); then
        say "building $tool failed; its last lines:"
        tail -n 20 "$log" >&2
        return 1
    fi
    # etcd's main package lies in a folder named "server".
    if [ -e "$partial/server" ]; then mv "$partial/server" "$partial/etcd"; fi
    rm -f "$log"
    mv -T "$partial" "$out"
}

mkdir -p "$cache"
for tool in "$@"; do
    key=$( (cat "$here/$tool/go.mod" "$here/$tool/go.sum" && go version && flags_of "$tool") | sha256sum | cut -c1-16)
    out=$cache/$tool-$key
    # Two runs at once on a new machine build once.
    exec 9>"$cache/$tool.lock"
    flock 9
    if [ ! -d "$out" ]; then
        rm -rf "$cache/$tool"-*.partial.*
        (build "$tool" "$out")
    fi
    exec 9>&-
    printf '%s\n' "$out"
done
