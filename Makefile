# The project's commands. What they do is in the scripts that they name.
.DEFAULT_GOAL := help
.PHONY: help demo test bench check audit down kubeconfig fmt image crd prepare

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## Start a real cluster, install Boxes in it and run a first box
	@tests/cluster/demo.sh

test: prepare check ## Run every test, the end-to-end ones on a cluster of their own or on $KUBECONFIG
	@tests/cluster/test.sh

bench: ## Measure Boxes on the cluster, which should have the machine for itself: about 17 minutes
	@tests/cluster/bench.sh

prepare:
	@bash -c 'source tests/cluster/lib.sh && prepare_machine'

check: ## Run the fast part: format, lints, unit and property tests, CRD drift
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --package boxes-tests --test chart --test e2e --test faults --locked -- -D warnings
	cargo test --workspace --locked

audit: ## Check the dependencies: bans, licences, sources, and advisories where the network has them
	@tests/cluster/audit.sh

down: ## Remove the cluster
	@tests/cluster/down.sh

kubeconfig: ## Print the path of the cluster's kubeconfig
	@bash -c 'source tests/cluster/lib.sh && kubeconfig'

fmt: ## Format the sources
	cargo fmt --all

image: ## Build the three images
	@tests/cluster/image.sh

crd: ## Write crds/boxes.yaml anew from the Rust types
	cargo run --quiet --locked --package boxes-crds --bin boxes-crds > target/boxes.yaml
	mv target/boxes.yaml crds/boxes.yaml
