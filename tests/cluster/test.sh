#!/usr/bin/env bash
# The tests that need more than cargo: those of the chart, then the end-to-end suite.
#
# On somebody's cluster that $KUBECONFIG names, with what is installed there; else on one that this
# starts, installs the controller in, and removes again unless it was running before. KEEP=1 keeps it.
# shellcheck source=tests/cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

own_cluster() {
    if ! cluster_runs && [ -z "${KEEP:-}" ]; then
        # Quietly, so that the last words are those of the tests.
        trap 'tests/cluster/down.sh --quiet' EXIT
    fi
    start_cluster
    tests/cluster/image.sh
    load_images
    KUBECONFIG=$(kubeconfig)
    export KUBECONFIG
    install_chart
}

prepare_machine
HELM=$(tool helm)
KUBECTL=$(tool kubectl)
export HELM KUBECTL
cargo test --locked --package boxes-tests --test chart
if [ -n "${KUBECONFIG:-}" ] && [ "$KUBECONFIG" != "$(kubeconfig)" ]; then
    say "end-to-end tests on the cluster of KUBECONFIG=$KUBECONFIG, as it is"
else
    own_cluster
fi
cargo test --locked --package boxes-tests --test e2e -- --test-threads 8
cargo test --locked --package boxes-tests --test faults -- --test-threads 8
