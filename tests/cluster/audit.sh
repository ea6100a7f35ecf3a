#!/usr/bin/env bash
# What cargo deny finds in the dependencies; its rules are in deny.toml.
# shellcheck source=tests/cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if ! cargo deny --version >/dev/null 2>&1; then
    say "building cargo-deny, once; this takes some minutes"
    cargo install --locked cargo-deny
fi
cargo deny --locked check bans licenses sources
if log=$(timeout 120 cargo deny --locked fetch db 2>&1); then
    cargo deny --locked check --disable-fetch advisories
else
    say "advisories: their database cannot be fetched from here, so they were not checked"
    tail -n 3 <<<"$log" >&2
fi
