//! The names in a pod that are the supervisor's own, whether or not a box has one: a spec that is
//! accepted today is accepted tomorrow.

use boxes_crds::{BoxSpec, CONTAINER};
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec, Volume, VolumeMount};

use crate::supervisor::{FOLDER, KEY, SUPERVISOR};
use crate::template::Refused;

/// Refuses a spec, or the pod spec in its template, that takes such a name.
///
/// # Errors
/// Names the first field that does.
pub(crate) fn refuse_reserved(spec: &BoxSpec, template: &PodSpec) -> Result<(), Refused> {
    match in_fields(spec).or_else(|| in_template(template)) {
        None => Ok(()),
        Some(message) => Err(Refused {
            reason: "NameReserved",
            message,
        }),
    }
}

fn in_fields(spec: &BoxSpec) -> Option<String> {
    in_volumes("spec.volumes", spec.volumes.as_deref())
        .or_else(|| in_env("spec.env", spec.env.as_deref()))
        .or_else(|| in_mounts("spec.volumeMounts", spec.volume_mounts.as_deref(), true))
}

fn in_template(pod: &PodSpec) -> Option<String> {
    const AT: &str = "spec.template.spec";
    let inits = pod.init_containers.iter().flatten();
    let named = |field: &'static str| move |container| (field, container);
    let mut all = pod
        .containers
        .iter()
        .map(named("containers"))
        .chain(inits.map(named("initContainers")));
    in_volumes(&format!("{AT}.volumes"), pod.volumes.as_deref())
        .or_else(|| all.find_map(|(field, it)| in_container(&format!("{AT}.{field}"), it)))
}

fn in_container(field: &str, container: &Container) -> Option<String> {
    if container.name == SUPERVISOR {
        return Some(reserved(field, "name", SUPERVISOR));
    }
    let field = format!("{field}[{}]", container.name);
    let is_box = container.name == CONTAINER;
    let env = container.env.as_deref().filter(|_| is_box);
    let mounts = container.volume_mounts.as_deref();
    in_env(&format!("{field}.env"), env)
        .or_else(|| in_mounts(&format!("{field}.volumeMounts"), mounts, is_box))
}

fn in_volumes(field: &str, volumes: Option<&[Volume]>) -> Option<String> {
    let mut all = volumes.into_iter().flatten();
    all.any(|it| it.name == SUPERVISOR)
        .then(|| reserved(field, "name", SUPERVISOR))
}

/// The box would not get it: the supervisor hands on all but its own.
fn in_env(field: &str, env: Option<&[EnvVar]>) -> Option<String> {
    let mut all = env.into_iter().flatten();
    all.any(|it| it.name == KEY)
        .then(|| reserved(field, "name", KEY))
}

/// No container may change the program, and nothing may lie over it in the box.
fn in_mounts(field: &str, mounts: Option<&[VolumeMount]>, is_box: bool) -> Option<String> {
    let all = mounts.into_iter().flatten();
    all.into_iter().find_map(|it| {
        if it.name == SUPERVISOR {
            return Some(reserved(field, "volume", SUPERVISOR));
        }
        (is_box && is_in_folder(&it.mount_path))
            .then(|| reserved(field, "mountPath", &it.mount_path))
    })
}

fn reserved(field: &str, what: &str, name: &str) -> String {
    format!("{field}: the {what} {name} is the supervisor's own in every box; choose another")
}

/// Whether a path is the supervisor's folder or in it, in any spelling that runtimes take.
fn is_in_folder(path: &str) -> bool {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.first().copied() == FOLDER.strip_prefix('/')
}
