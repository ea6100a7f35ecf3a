#!/usr/bin/env bash
# Installs the system packages that a cluster on this machine needs. Says nothing when all are there.
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }

# What must be found: a program in the search path, or a file; and Debian's package for it.
needed() {
    cat <<'EOF'
ip                      iproute2
nft                     nftables
runc                    runc
mount                   mount
setsid                  util-linux
busybox                 busybox-static
buildah                 buildah
cc                      gcc
/usr/lib/cni/bridge     containernetworking-plugins
EOF
}

# Debian puts administrators' programs where a user's search path may not look.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

is_there() {
    case $1 in
    /*) [ -e "$1" ] || [ -e "/opt/cni/bin/${1##*/}" ] ;;
    # The dynamic busybox of other packages would need files that its image does not have.
    busybox) command -v busybox >/dev/null && ! head -c 4096 "$(command -v busybox)" | grep -qa '/ld-' ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

missing() {
    local what package
    while read -r what package; do
        is_there "$what" || printf '%s\n' "$package"
    done < <(needed)
}

languages() {
    local missing=()
    # An older Go does not fetch the newer one that the module files ask for.
    [[ $(go env GOVERSION 2>/dev/null) =~ ^go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge 21 ] ||
        missing+=("Go 1.26 or newer (https://go.dev/dl)")
    command -v cargo >/dev/null || missing+=("Rust (https://rustup.rs)")
    [ ${#missing[@]} -eq 0 ] || { say "error: missing: ${missing[*]}"; exit 1; }
}

languages
mapfile -t packages < <(missing)
[ ${#packages[@]} -gt 0 ] || exit 0
if ! command -v apt-get >/dev/null; then
    say "error: this machine has no apt. Install what Debian calls: ${packages[*]}"
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    say "error: only root can install packages. As root: apt-get install ${packages[*]}"
    exit 1
fi
say "installing ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { apt-get install -y --no-install-recommends "${packages[@]}" >"$log" 2>&1; }
# The lists of packages may be old, or not be there at all.
install || { apt-get update >"$log" 2>&1 && install; } || {
    say "error: apt-get failed; its last lines:"
    tail -n 15 "$log" >&2
    exit 1
}
mapfile -t packages < <(missing)
[ ${#packages[@]} -eq 0 ] || { say "error: still missing after the installation: ${packages[*]}"; exit 1; }
