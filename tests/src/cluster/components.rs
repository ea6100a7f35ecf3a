//! The control plane: what is started, with which flags.

use std::path::Path;

use serde_json::{Value, json};

use super::address::{
    API_PORT, CONTROLLER_MANAGER_PORT, ETCD_PEER_PORT, ETCD_PORT, LOOPBACK, NODE_IP,
    SCHEDULER_PORT, SERVICE_RANGE,
};
use super::kubeconfig;
use super::layout::Layout;
use super::pki::{Authority, Pki};
use super::process::Component;
use super::tools::Tools;

/// `--name=value`, for a path or anything else that can be shown.
pub(crate) fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}

fn path_flag(name: &str, path: &Path) -> String {
    flag(name, path.display())
}

/// etcd, for the API server alone. What it holds need not survive a crash of the machine.
pub(crate) fn etcd(layout: &Layout, tools: &Tools, pki: &Pki) -> Component {
    let client = format!("https://{LOOPBACK}:{ETCD_PORT}");
    let peer = format!("https://{LOOPBACK}:{ETCD_PEER_PORT}");
    let (certificate, key) = (pki.certificate("etcd"), pki.key("etcd"));
    let authority = pki.certificate(Authority::Etcd.name());
    Component {
        name: "etcd",
        program: tools.kubernetes.join("etcd"),
        arguments: vec![
            flag("name", "boxes"),
            path_flag("data-dir", &layout.etcd()),
            flag("listen-client-urls", &client),
            flag("advertise-client-urls", &client),
            flag("listen-peer-urls", &peer),
            flag("initial-advertise-peer-urls", &peer),
            flag("initial-cluster", format!("boxes={peer}")),
            path_flag("cert-file", &certificate),
            path_flag("key-file", &key),
            path_flag("trusted-ca-file", &authority),
            flag("client-cert-auth", true),
            path_flag("peer-cert-file", &certificate),
            path_flag("peer-key-file", &key),
            path_flag("peer-trusted-ca-file", &authority),
            flag("peer-client-cert-auth", true),
            flag("unsafe-no-fsync", true),
            flag("log-level", "warn"),
        ],
    }
}

/// The API server.
pub(crate) fn api_server(layout: &Layout, tools: &Tools, pki: &Pki) -> Component {
    let mut arguments = vec![
        flag("bind-address", "0.0.0.0"),
        flag("advertise-address", NODE_IP),
        flag("secure-port", API_PORT),
        flag("service-cluster-ip-range", SERVICE_RANGE),
        flag("authorization-mode", "Node,RBAC"),
        flag("enable-admission-plugins", "NodeRestriction"),
        flag("allow-privileged", true),
        flag("kubelet-preferred-address-types", "InternalIP"),
        flag("enable-aggregator-routing", true),
        flag("profiling", false),
        path_flag(
            "audit-policy-file",
            &layout.config().join("audit-policy.yaml"),
        ),
        path_flag("audit-log-path", &layout.audit_log()),
        flag("audit-log-maxsize", 1000),
    ];
    arguments.extend(api_server_certificates(pki));
    arguments.extend(front_proxy(pki));
    Component {
        name: "kube-apiserver",
        program: tools.kubernetes.join("kube-apiserver"),
        arguments,
    }
}

fn api_server_certificates(pki: &Pki) -> Vec<String> {
    vec![
        flag("etcd-servers", format!("https://{LOOPBACK}:{ETCD_PORT}")),
        path_flag("etcd-cafile", &pki.certificate(Authority::Etcd.name())),
        path_flag("etcd-certfile", &pki.certificate("etcd")),
        path_flag("etcd-keyfile", &pki.key("etcd")),
        path_flag("tls-cert-file", &pki.certificate("kube-apiserver")),
        path_flag("tls-private-key-file", &pki.key("kube-apiserver")),
        path_flag(
            "client-ca-file",
            &pki.certificate(Authority::Cluster.name()),
        ),
        path_flag(
            "kubelet-client-certificate",
            &pki.certificate("apiserver-kubelet-client"),
        ),
        path_flag("kubelet-client-key", &pki.key("apiserver-kubelet-client")),
        path_flag(
            "kubelet-certificate-authority",
            &pki.certificate(Authority::Cluster.name()),
        ),
        flag("service-account-issuer", "https://kubernetes.default.svc"),
        path_flag(
            "service-account-key-file",
            &pki.service_account_public_key(),
        ),
        path_flag(
            "service-account-signing-key-file",
            &pki.service_account_key(),
        ),
    ]
}

/// How extension API servers recognise requests that this one passes on.
fn front_proxy(pki: &Pki) -> Vec<String> {
    vec![
        path_flag(
            "requestheader-client-ca-file",
            &pki.certificate(Authority::FrontProxy.name()),
        ),
        flag("requestheader-allowed-names", "front-proxy-client"),
        flag("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
        flag("requestheader-group-headers", "X-Remote-Group"),
        flag("requestheader-username-headers", "X-Remote-User"),
        path_flag(
            "proxy-client-cert-file",
            &pki.certificate("front-proxy-client"),
        ),
        path_flag("proxy-client-key-file", &pki.key("front-proxy-client")),
    ]
}

/// Who did what, without bodies: the tests count writes. The cluster's own reading is left out.
pub(crate) fn audit_policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {
                "level": "None",
                "verbs": ["get", "list", "watch"],
                "userGroups": ["system:nodes", "system:masters"],
            },
            {
                "level": "None",
                "users": [
                    "system:apiserver",
                    "system:kube-controller-manager",
                    "system:kube-scheduler",
                    "system:kube-proxy",
                ],
                "verbs": ["get", "list", "watch"],
            },
            {"level": "None", "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
             "userGroups": ["system:nodes"]},
            {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*"]},
            {"level": "Metadata"},
        ],
    })
}

/// The controller manager.
pub(crate) fn controller_manager(layout: &Layout, tools: &Tools, pki: &Pki) -> Component {
    let name = "kube-controller-manager";
    let mut arguments = client_flags(layout, name);
    arguments.extend([
        flag("secure-port", CONTROLLER_MANAGER_PORT),
        flag("use-service-account-credentials", true),
        path_flag(
            "service-account-private-key-file",
            &pki.service_account_key(),
        ),
        path_flag("root-ca-file", &pki.certificate(Authority::Cluster.name())),
        path_flag(
            "cluster-signing-cert-file",
            &pki.certificate(Authority::Cluster.name()),
        ),
        path_flag(
            "cluster-signing-key-file",
            &pki.key(Authority::Cluster.name()),
        ),
    ]);
    Component {
        name,
        program: tools.kubernetes.join(name),
        arguments,
    }
}

/// The scheduler.
pub(crate) fn scheduler(layout: &Layout, tools: &Tools) -> Component {
    let name = "kube-scheduler";
    let mut arguments = client_flags(layout, name);
    arguments.push(flag("secure-port", SCHEDULER_PORT));
    Component {
        name,
        program: tools.kubernetes.join(name),
        arguments,
    }
}

/// What the controller manager and the scheduler have in common.
fn client_flags(layout: &Layout, user: &str) -> Vec<String> {
    let config = kubeconfig::path(layout, user);
    vec![
        path_flag("kubeconfig", &config),
        path_flag("authentication-kubeconfig", &config),
        path_flag("authorization-kubeconfig", &config),
        flag("bind-address", LOOPBACK),
        flag("leader-elect", false),
        flag("kube-api-qps", 300),
        flag("kube-api-burst", 600),
    ]
}
