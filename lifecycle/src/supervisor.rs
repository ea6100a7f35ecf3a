//! How the supervisor gets into a box: the part of the pod that is ours and not the user's.

use boxes_crds::{BoxSpec, CONTAINER, SUPERVISOR_ANNOTATION};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, EmptyDirVolumeSource, EnvVar, ImageVolumeSource, Pod, SeccompProfile,
    SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::report::report_key;

/// Name of its volume, and of the init container that fills it.
pub const SUPERVISOR: &str = "boxes-supervisor";

/// The variable that only the supervisor gets: what its report proves itself with.
pub(crate) const KEY: &str = "BOXES_REPORT_KEY";

/// Where it is in the box.
pub(crate) const FOLDER: &str = "/.boxes";

/// How much longer the kubelet waits than the supervisor before it kills, in seconds: time enough
/// to end what is left and to write the report.
pub const GRACE_MARGIN: i64 = 2;

/// The user that the init container runs as: not root, and nobody's.
const NOBODY: i64 = 65532;

/// The supervisor that the controller puts into boxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supervisor {
    /// Its image, which holds the program and nothing else; best named by digest.
    pub image: String,
    /// When the image is pulled; the kubelet's default when absent.
    pub pull_policy: Option<String>,
    /// How it gets into a box.
    pub injection: Injection,
}

/// A way into a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injection {
    /// Its image is mounted. A second faster; needs kubelet 1.35 and containerd 2.1 on the node.
    ImageVolume,
    /// An init container copies it to a volume in memory. Works everywhere.
    InitContainer,
}

impl Injection {
    /// The word for it on a pod.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ImageVolume => "image-volume",
            Self::InitContainer => "init-container",
        }
    }
}

/// Whether a Box's command runs under the supervisor. The cluster does not know an image's own
/// program, so nothing can be put before it.
#[must_use]
pub fn is_supervised(spec: &BoxSpec) -> bool {
    spec.command
        .as_ref()
        .is_some_and(|command| !command.is_empty())
}

/// The field of a template that puts the command into a PID namespace which is not its container's
/// own: the supervisor is not its first process there and cannot find every process of the box.
pub(crate) fn shares_processes(spec: &BoxSpec) -> Option<&'static str> {
    let template = spec.template.as_ref()?.spec.as_ref()?;
    let fields = ["hostPID", "shareProcessNamespace"];
    fields
        .into_iter()
        .find(|field| template.get(*field) == Some(&serde_json::Value::Bool(true)))
}

/// Puts the supervisor before the command of a pod. `grace` is the Box's, in seconds.
pub(crate) fn inject(pod: &mut Pod, supervisor: &Supervisor, grace: i64, box_uid: &str) {
    let Some(spec) = pod.spec.as_mut() else {
        return;
    };
    let injection = if spec.runtime_class_name.is_some() {
        // Not every runtime mounts images.
        Injection::InitContainer
    } else {
        supervisor.injection
    };
    let Some(container) = spec.containers.iter_mut().find(|it| it.name == CONTAINER) else {
        return;
    };
    let command = container.command.take().unwrap_or_default();
    container.command = Some(before(command, grace));
    container.env.get_or_insert_default().push(key(box_uid));
    container
        .volume_mounts
        .get_or_insert_default()
        .push(mount(true));
    if injection == Injection::InitContainer {
        let init = init_container(supervisor, container);
        spec.init_containers.get_or_insert_default().insert(0, init);
    }
    spec.volumes
        .get_or_insert_default()
        .push(volume(supervisor, injection));
    spec.termination_grace_period_seconds = Some(grace.saturating_add(GRACE_MARGIN));
    pod.metadata.annotations.get_or_insert_default().insert(
        SUPERVISOR_ANNOTATION.to_owned(),
        injection.as_str().to_owned(),
    );
}

fn program() -> String {
    format!("{FOLDER}/{SUPERVISOR}")
}

fn before(command: Vec<String>, grace: i64) -> Vec<String> {
    let own = [
        program(),
        "run".to_owned(),
        format!("--grace={grace}"),
        "--".to_owned(),
    ];
    own.into_iter().chain(command).collect()
}

fn key(box_uid: &str) -> EnvVar {
    EnvVar {
        name: KEY.to_owned(),
        value: Some(report_key(box_uid)),
        value_from: None,
    }
}

fn mount(read_only: bool) -> VolumeMount {
    VolumeMount {
        name: SUPERVISOR.to_owned(),
        mount_path: FOLDER.to_owned(),
        read_only: Some(read_only),
        ..VolumeMount::default()
    }
}

fn volume(supervisor: &Supervisor, injection: Injection) -> Volume {
    let named = Volume {
        name: SUPERVISOR.to_owned(),
        ..Volume::default()
    };
    match injection {
        Injection::ImageVolume => Volume {
            image: Some(ImageVolumeSource {
                reference: Some(supervisor.image.clone()),
                pull_policy: supervisor.pull_policy.clone(),
            }),
            ..named
        },
        Injection::InitContainer => Volume {
            empty_dir: Some(EmptyDirVolumeSource {
                medium: Some("Memory".to_owned()),
                size_limit: Some(Quantity("4Mi".to_owned())),
                ..EmptyDirVolumeSource::default()
            }),
            ..named
        },
    }
}

/// With the resources of the box, so that a quota counts it as nothing more, and with what the
/// strictest Pod Security asks.
fn init_container(supervisor: &Supervisor, of: &Container) -> Container {
    Container {
        name: SUPERVISOR.to_owned(),
        image: Some(supervisor.image.clone()),
        image_pull_policy: supervisor.pull_policy.clone(),
        command: Some(vec![
            format!("/{SUPERVISOR}"),
            "install".to_owned(),
            FOLDER.to_owned(),
        ]),
        resources: of.resources.clone(),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities {
                add: None,
                drop: Some(vec!["ALL".to_owned()]),
            }),
            privileged: Some(false),
            read_only_root_filesystem: Some(true),
            run_as_group: Some(NOBODY),
            run_as_non_root: Some(true),
            run_as_user: Some(NOBODY),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                localhost_profile: None,
            }),
            ..SecurityContext::default()
        }),
        volume_mounts: Some(vec![mount(false)]),
        ..Container::default()
    }
}
