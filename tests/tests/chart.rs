//! The Helm chart: its lint, its manifests, and that its CRD is the one in `crds/`.
//!
//! Needs no cluster, only the program that `HELM` names.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs helm in the repository, away from the settings of whoever runs the test.
fn run_helm(args: &[&str]) -> Output {
    let program = std::env::var("HELM").unwrap_or_else(|_| {
        panic!(
            "HELM does not name the helm program. `make test` sets it; for this test alone: \
             HELM=$(tests/cluster/tools/build.sh helm)/helm cargo test -p boxes-tests --test chart"
        )
    });
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("helm");
    Command::new(&program)
        .args(args)
        .current_dir(repository())
        .env("HELM_CACHE_HOME", home.join("cache"))
        .env("HELM_CONFIG_HOME", home.join("config"))
        .env("HELM_DATA_HOME", home.join("data"))
        .env("KUBECONFIG", "/dev/null")
        .output()
        .unwrap_or_else(|error| panic!("cannot run HELM={program}: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What helm printed; it must have succeeded.
fn helm(args: &[&str]) -> String {
    let output = run_helm(args);
    assert!(
        output.status.success(),
        "helm {args:?}: {}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// What helm said; it must have refused.
fn helm_refuses(args: &[&str]) -> String {
    let output = run_helm(args);
    assert!(
        !output.status.success(),
        "helm {args:?} succeeded:\n{}",
        text(&output.stdout)
    );
    text(&output.stderr)
}

fn template(more: &[&str]) -> String {
    let args = [
        "template",
        "boxes",
        "charts/boxes",
        "--namespace",
        "boxes-system",
    ];
    helm(&[&args[..], more].concat())
}

const ALL_VALUES: &str = "tests/tests/chart-values.yaml";

#[test]
fn lint_finds_nothing() {
    helm(&["lint", "--strict", "charts/boxes"]);
    helm(&["lint", "--strict", "charts/boxes", "--values", ALL_VALUES]);
}

#[test]
fn manifests_with_default_values() {
    insta::assert_snapshot!(template(&[]));
}

#[test]
fn manifests_with_every_value_set() {
    insta::assert_snapshot!(template(&["--values", ALL_VALUES]));
}

#[test]
fn what_is_off_is_absent() {
    let off = "aggregateRoles=false,metrics.service.enabled=false,\
               serviceAccount.create=false,serviceAccount.name=mine";
    let manifests = template(&["--set", off]);
    for absent in [
        "\nkind: Service\n",
        "\nkind: ServiceAccount\n",
        "boxes-edit",
    ] {
        assert!(!manifests.contains(absent), "{absent} in\n{manifests}");
    }
    let account = "serviceAccountName: mine\n";
    assert!(manifests.contains(account), "no {account} in\n{manifests}");
}

#[test]
fn values_that_do_not_exist_are_refused() {
    for (set, named) in [
        ("replica=2", "replica"),
        ("image.tga=dev", "tga"),
        ("logLevel=loud", "logLevel"),
        ("image.digest=sha256:beef", "digest"),
        ("serviceAccount.create=false", "serviceAccount"),
        ("tracing.endpoint=collector:4318", "endpoint"),
        ("tracing.endpoint=https://collector", "caConfigMap"),
    ] {
        let said = helm_refuses(&["template", "boxes", "charts/boxes", "--set", set]);
        assert!(said.contains(named), "--set {set}: {said}");
    }
}

#[test]
fn its_definition_is_the_one_in_crds() {
    let ours = std::fs::read_to_string(repository().join("crds/boxes.yaml")).unwrap();
    let shown = helm(&["show", "crds", "charts/boxes"]);
    assert!(
        shown.trim_start_matches("---\n").trim_end() == ours.trim_start_matches("---\n").trim_end(),
        "`helm show crds charts/boxes` is not crds/boxes.yaml"
    );
}
