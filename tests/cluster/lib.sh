# What the scripts beside this file share. Source it; it changes to the repository's root.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

IMAGE=boxes.run/boxes:dev
SUPERVISOR_IMAGE=boxes.run/supervisor:dev
OUTPUT_IMAGE=boxes.run/output:dev
KIND_NAME=boxes
KIND_KUBECONFIG=$PWD/target/kind/kubeconfig

say() { printf '%s\n' "$*" >&2; }
heading() { printf '\n\033[1m== %s\033[0m\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# A docker command without an engine behind it is no use, so the engine is asked.
docker_works() { command -v docker >/dev/null && timeout 10 docker info >/dev/null 2>&1; }
uses_kind() { command -v kind >/dev/null && docker_works; }

# Installs what a cluster of our own needs; nothing for somebody else's.
prepare_machine() { [ -n "${KUBECONFIG:-}" ] || uses_kind || tests/cluster/setup.sh; }

# The cluster's command, built when its sources are newer.
cluster() { cargo run --quiet --locked --package boxes-tests --bin boxes-cluster -- "$@"; }

# A program that fits the cluster: with kind the user's own, if there is one.
tool() {
    if uses_kind && command -v "$1"; then return; fi
    cluster tool "$1"
}

# The kubeconfig of the cluster that `start_cluster` starts.
kubeconfig() {
    if uses_kind; then printf '%s\n' "$KIND_KUBECONFIG"; else cluster kubeconfig; fi
}

cluster_runs() {
    if uses_kind; then
        kind get clusters 2>/dev/null | grep -qx "$KIND_NAME"
    else
        cluster status >/dev/null
    fi
}

start_cluster() {
    if ! uses_kind; then
        cluster up
        return
    fi
    mkdir -p "${KIND_KUBECONFIG%/*}"
    if cluster_runs; then
        kind export kubeconfig --name "$KIND_NAME" --kubeconfig "$KIND_KUBECONFIG"
    else
        kind create cluster --config kind-config.yaml --kubeconfig "$KIND_KUBECONFIG" --wait 120s
    fi
}

# Makes the images known to the cluster's nodes.
load_images() {
    if uses_kind; then
        kind load docker-image "$IMAGE" "$SUPERVISOR_IMAGE" "$OUTPUT_IMAGE" --name "$KIND_NAME"
    else
        cluster import target/image/{controller,supervisor,output}.tar >/dev/null
    fi
}

# The digest that names the supervisor's image in a registry: what its archive's index lists. kind
# has no registry, and its nodes know the image by its tag alone.
supervisor_digest() {
    uses_kind && return
    tar -xOf target/image/supervisor.tar index.json | grep -o 'sha256:[0-9a-f]\{64\}'
}

# The node's folders: kind's node keeps pod logs where nodes do, and goes with all that it holds. The
# cluster of our own has both in its state folder, which `make down` removes.
node_folders() {
    local state
    if uses_kind; then
        printf '%s\n' output.collector.podLogs=/var/log/pods,output.archive.hostPath=/var/lib/boxes-archive
    else
        state=$(dirname "$(kubeconfig)")
        printf '%s\n' "output.collector.podLogs=$state/pods,output.archive.hostPath=$state/archive"
    fi
}

# Installs the chart with those images, the Box definition first: Helm never updates it. The annotations
# make new pods when the image under the same name is another.
install_chart() {
    local kubectl helm id output_id
    kubectl=$(tool kubectl)
    helm=$(tool helm)
    id=$(cut -c1-32 target/image/controller.id)
    output_id=$(cut -c1-32 target/image/output.id)
    "$kubectl" apply --server-side --force-conflicts -f crds/boxes.yaml >&2
    "$helm" upgrade --install boxes charts/boxes --namespace boxes-system --create-namespace \
        --values tests/cluster/values.yaml --set "$(node_folders)" \
        --set image.tag="${IMAGE##*:}" --set-string 'podAnnotations.boxes\.run/build'="$id" \
        --set supervisor.image.tag="${SUPERVISOR_IMAGE##*:}" \
        --set supervisor.image.digest="$(supervisor_digest)" \
        --set output.image.tag="${OUTPUT_IMAGE##*:}" \
        --set-string 'output.podAnnotations.boxes\.run/build'="$output_id" \
        --wait --timeout 3m >target/helm.log 2>&1 || install_failed "$kubectl"
    wait_for_output "$kubectl" || install_failed "$kubectl"
}

# What Helm does not wait for: that the API server reaches the log API.
wait_for_output() { # kubectl
    "$1" --namespace boxes-system rollout status daemonset/boxes-collector --timeout 2m >>target/helm.log 2>&1 &&
        "$1" wait --for=condition=Available --timeout 2m apiservice/v1alpha1.output.boxes.run \
            >>target/helm.log 2>&1
}

install_failed() { # kubectl
    local of
    cat target/helm.log >&2
    say "not everything became ready:"
    "$1" --namespace boxes-system get pods -o wide >&2 || true
    "$1" --namespace boxes-system describe pods >&2 || true
    for of in deployment/boxes-controller daemonset/boxes-collector deployment/boxes-log-api \
        deployment/boxes-output-reader; do
        "$1" --namespace boxes-system logs "$of" --tail 30 >&2 || true
    done
    "$1" get apiservice v1alpha1.output.boxes.run -o yaml >&2 || true
    die "charts/boxes could not be installed"
}
