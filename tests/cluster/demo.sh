#!/usr/bin/env bash
# Boxes on a real cluster, from nothing to the first box's end.
# shellcheck source=tests/cluster/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
started=$SECONDS

heading "1/6 What this machine needs"
if uses_kind; then
    say "a Docker engine and kind work here: using them"
else
    tests/cluster/setup.sh
    say "system packages: all there"
fi

heading "2/6 A Kubernetes cluster"
if ! uses_kind; then
    say "its programs come from Go modules; building them takes about 10 minutes, once"
    tests/cluster/tools/build.sh kubernetes containerd helm >/dev/null
fi
say "building the cluster's command"
cluster --version >/dev/null
start_cluster
KUBECONFIG=$(kubeconfig)
export KUBECONFIG
kubectl=$(tool kubectl)

heading "3/6 The images"
tests/cluster/image.sh
load_images

heading "4/6 The controller, the collector and the log API, with Helm"
install_chart
"$kubectl" --namespace boxes-system get deployments,daemonsets,pods

heading "5/6 A box"
# One of an earlier demonstration keeps its record, so it would not run again.
"$kubectl" delete --ignore-not-found --timeout 60s -f examples/exit-3.yaml
"$kubectl" apply -f examples/exit-3.yaml
"$kubectl" wait --for=condition=Ended --timeout 120s -f examples/exit-3.yaml
printf '\n$ kubectl get boxes\n'
"$kubectl" get boxes
printf '\n$ kubectl get box exit-3 -o yaml\n'
"$kubectl" get box exit-3 -o yaml

heading "6/6 What it wrote"
"$kubectl" wait --for=condition=CleanedUp --timeout 120s -f examples/exit-3.yaml
printf '\n$ kubectl get pods --selector boxes.run/box-uid\n'
"$kubectl" get pods --selector boxes.run/box-uid
log=/apis/output.boxes.run/v1alpha1/namespaces/default/boxes/exit-3/log
printf '\n$ kubectl get --raw %s\n' "$log"
"$kubectl" get --raw "$log"

heading "Done in $((SECONDS - started)) s. To go on"
cat >&2 <<EOF
  export KUBECONFIG=\$(make --silent kubeconfig)    # $KUBECONFIG
  alias kubectl=$kubectl
  kubectl apply -f examples/timeout.yaml            # more in examples/
  kubectl get boxes --watch
  kubectl explain box.spec
To remove the cluster: make down
EOF
