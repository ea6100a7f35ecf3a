#!/usr/bin/env bash
# Removes the cluster that demo.sh and test.sh start.
# shellcheck source=tests/cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if uses_kind; then
    kind delete cluster --name "$KIND_NAME" --kubeconfig "$KIND_KUBECONFIG"
    rm -rf "${KIND_KUBECONFIG%/*}"
else
    cluster down "$@"
fi
