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

/// Without the certificate, which is made anew each time where there is no cluster to ask for it.
fn without_certificate(manifests: &str) -> String {
    let keys = ["ca.crt:", "tls.crt:", "tls.key:", "caBundle:"];
    let line = |line: &str| {
        let key = line.split_inclusive(": ").next().unwrap_or_default();
        let made = keys.contains(&key.trim());
        if made {
            format!("{key}<made>\n")
        } else {
            format!("{line}\n")
        }
    };
    manifests.lines().map(line).collect()
}

#[test]
fn manifests_with_default_values() {
    insta::assert_snapshot!(without_certificate(&template(&[])));
}

#[test]
fn manifests_with_every_value_set() {
    insta::assert_snapshot!(template(&["--values", ALL_VALUES]));
}

const BUCKET: [&str; 2] = ["--set", "output.archive.url=s3://bucket/a"];

#[test]
fn manifests_of_output_in_a_bucket() {
    let manifests = without_certificate(&template(&BUCKET));
    let of_output = manifests
        .split("\n---\n")
        .filter(|it| it.contains("/output/"));
    insta::assert_snapshot!(of_output.collect::<Vec<_>>().join("\n---\n"));
}

/// The manifest of this kind and name.
fn manifest<'a>(all: &'a str, kind: &str, name: &str) -> &'a str {
    let (kind, name) = (format!("\nkind: {kind}\n"), format!("\n  name: {name}\n"));
    let mut found = all
        .split("\n---\n")
        .filter(|it| it.contains(&kind) && it.contains(&name));
    found
        .next()
        .unwrap_or_else(|| panic!("no {kind}{name} in\n{all}"))
}

/// While none of its replicas is ready, no namespace can be deleted: a volume that is not there must
/// not keep them from it.
#[test]
fn the_log_api_waits_for_no_volume() {
    for more in [&[][..], &["--values", ALL_VALUES], &BUCKET] {
        let all = template(more);
        let volumes = manifest(&all, "Deployment", "boxes-log-api")
            .split_once("\n      volumes:\n")
            .expect("volumes")
            .1;
        for held in ["persistentVolumeClaim:", "hostPath:", "nfs:"] {
            assert!(!volumes.contains(held), "{held} in\n{volumes}");
        }
    }
}

/// Who is in front of the archive, and who opens it.
#[test]
fn a_folder_has_a_reader_of_its_own_and_a_bucket_has_none() {
    let folder = template(&[]);
    let (front, reader) = (
        manifest(&folder, "Deployment", "boxes-log-api"),
        manifest(&folder, "Deployment", "boxes-output-reader"),
    );
    let url = "--reader=https://boxes-output-reader.boxes-system.svc:8443\n";
    assert!(
        front.contains(url) && !front.contains("archive="),
        "{front}"
    );
    assert!(reader.contains("--archive=file:///archive\n"), "{reader}");
    assert!(
        reader.contains("--front-ca=/etc/boxes/tls/ca.crt\n"),
        "{reader}"
    );
    manifest(&folder, "Service", "boxes-output-reader");

    let bucket = template(&BUCKET);
    assert!(!bucket.contains("boxes-output-reader"), "{bucket}");
    let alone = manifest(&bucket, "Deployment", "boxes-log-api");
    assert!(alone.contains("--archive=s3://bucket/a\n"), "{alone}");
    assert!(!alone.contains("--reader"), "{alone}");
}

#[test]
fn whoever_finds_output_may_read_boxes() {
    let (folder, bucket) = (template(&[]), template(&BUCKET));
    for (all, name, finds) in [
        (&folder, "boxes-log-api", false),
        (&folder, "boxes-output-reader", true),
        (&bucket, "boxes-log-api", true),
    ] {
        let role = manifest(all, "ClusterRole", name);
        assert_eq!(role.contains("resources: [boxes]"), finds, "{role}");
        assert!(role.contains("subjectaccessreviews"), "{role}");
    }
}

#[test]
fn certificates_of_ones_own_are_taken() {
    let all = template(&["--values", ALL_VALUES]);
    assert!(!all.contains("\nkind: Secret\n"), "{all}");
    for (deployment, secret) in [
        ("boxes-log-api", "reader-client"),
        ("boxes-output-reader", "reader-tls"),
    ] {
        let of = manifest(&all, "Deployment", deployment);
        assert!(of.contains(&format!("secretName: {secret}\n")), "{of}");
    }
}

#[test]
fn what_is_off_is_absent() {
    let off = "aggregateRoles=false,metrics.service.enabled=false,output.enabled=false,\
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

/// What is rendered for saved output, and nothing else.
const OUTPUT: [&str; 10] = [
    "\nkind: DaemonSet\n",
    "\nkind: APIService\n",
    "\nkind: PodDisruptionBudget\n",
    "\nkind: ValidatingAdmissionPolicy\n",
    "\nkind: ValidatingAdmissionPolicyBinding\n",
    "boxes-collector",
    "boxes-log-api",
    "boxes-output-reader",
    "output.boxes.run",
    "- --output\n",
];

#[test]
fn output_is_left_out_as_a_whole() {
    let (with, without) = (template(&[]), template(&["--set", "output.enabled=false"]));
    for part in OUTPUT.into_iter().chain(["boxes-archive"]) {
        assert!(with.contains(part), "no {part} in\n{with}");
        assert!(!without.contains(part), "{part} in\n{without}");
    }
}

#[test]
fn the_log_api_is_left_out_alone() {
    let manifests = template(&["--set", "output.logApi.enabled=false"]);
    for absent in ["boxes-log-api", "boxes-output-reader", "APIService"] {
        assert!(!manifests.contains(absent), "{absent} in\n{manifests}");
    }
    assert!(manifests.contains("kind: DaemonSet"), "{manifests}");
}

#[test]
fn a_single_log_api_can_be_drained() {
    let single = "output.logApi.replicas=1,output.reader.replicas=1";
    let manifests = template(&["--set", single]);
    assert!(!manifests.contains("PodDisruptionBudget"), "{manifests}");
}

#[test]
fn an_archive_is_one_of_several() {
    for (set, shown, makes_a_claim) in [
        ("archive.hostPath=/var/boxes", "path: \"/var/boxes\"", false),
        ("archive.volume.nfs.server=a", "server: a", false),
        (
            "archive.persistence.existingClaim=mine",
            "claimName: mine",
            false,
        ),
        ("archive.persistence.size=1Ti", "storage: 1Ti", true),
        (
            "archive.url=file:///elsewhere",
            "mountPath: \"/elsewhere\"",
            true,
        ),
        (
            "archive.url=s3://bucket/a",
            "--archive=s3://bucket/a",
            false,
        ),
    ] {
        let manifests = template(&["--set", &format!("output.{set}")]);
        assert!(manifests.contains(shown), "no {shown} in\n{manifests}");
        let made = manifests.contains("kind: PersistentVolumeClaim");
        assert_eq!(made, makes_a_claim, "--set {set}:\n{manifests}");
        let mounted = manifests.contains("name: archive\n");
        assert_eq!(mounted, !set.contains("s3:"), "--set {set}:\n{manifests}");
    }
}

#[test]
fn only_collectors_write_to_the_archive() {
    let manifests = template(&[]);
    let mounts = manifests.split("mountPath: \"/archive\"").skip(1);
    let read_only: Vec<bool> = mounts
        .map(|after| after.trim_start().starts_with("readOnly: true"))
        .collect();
    assert_eq!(read_only, [false, true], "collectors first\n{manifests}");
}

#[test]
fn a_folder_without_a_volume_is_refused() {
    let set = "output.archive.persistence.enabled=false";
    let said = helm_refuses(&["template", "boxes", "charts/boxes", "--set", set]);
    assert!(said.contains("output.archive needs"), "{said}");
}

#[test]
fn values_that_do_not_exist_are_refused() {
    for (set, named) in [
        ("output.enable=false", "enable"),
        ("output.archive.url=ftp://host/folder", "url"),
        ("output.archive.hostPath=relative", "hostPath"),
        (
            "output.archive.persistence.accessModes={ReadOnlyMany}",
            "accessModes",
        ),
        ("output.collector.podLogs=", "podLogs"),
        ("output.logApi.replicas=-1", "replicas"),
        ("output.logApi.tls.caBundle=none", "caBundle"),
        ("output.reader.replicas=-1", "replicas"),
        ("output.reader.tls.existingSecret=alone", "tls"),
        ("output.reader.tls.existingClientSecret=alone", "tls"),
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
