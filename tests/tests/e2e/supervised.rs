//! How the supervisor gets into boxes, and what a command sees of it.

use anyhow::{Context, Result, ensure};
use boxes_tests::harness::{
    BoxBuilder, Evidence, LiveBox, Reason, State, World, a_box, e2e, e2e_alone, e2e_steady,
};
use k8s_openapi::api::core::v1::{Pod, PodSpec, ResourceQuota};
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::ResourceExt;
use kube::api::{Api, AttachParams, DeleteParams, PostParams};
use serde_json::json;
use tokio::io::AsyncWriteExt;

/// What is between the supervisor and the command.
const SUPERVISOR: &str = "boxes-supervisor";

/// Where it is in a box.
const PROGRAM: &str = "/.boxes/boxes-supervisor";

fn spec(pod: &Pod) -> PodSpec {
    pod.spec.clone().unwrap_or_default()
}

fn mounts_its_image(pod: &Pod) -> bool {
    let volumes = spec(pod).volumes.unwrap_or_default();
    volumes
        .iter()
        .any(|volume| volume.name == SUPERVISOR && volume.image.is_some())
}

fn copies_it(pod: &Pod) -> bool {
    let inits = spec(pod).init_containers.unwrap_or_default();
    inits.iter().any(|init| init.name == SUPERVISOR)
}

async fn exits_with_5(it: &LiveBox) -> Result<()> {
    let ending = it.ends_as(State::Exited, Reason::Exit).with_code(5);
    ending.by_evidence(Evidence::Observed).await.map(drop)
}

/// A RuntimeClass that is the node's ordinary runtime; with one, images are not mounted.
async fn ordinary_runtime(world: &World) -> Result<String> {
    let classes: Api<RuntimeClass> = Api::all(world.client());
    let name = world.namespace().to_owned();
    let class = serde_json::from_value(json!({
        "metadata": {"name": name}, "handler": "runc",
    }))?;
    classes.create(&PostParams::default(), &class).await?;
    Ok(name)
}

async fn remove_runtime(world: &World) -> Result<()> {
    let classes: Api<RuntimeClass> = Api::all(world.client());
    let removed = classes
        .delete(world.namespace(), &DeleteParams::default())
        .await;
    removed
        .context("the RuntimeClass cannot be removed")
        .map(drop)
}

#[tokio::test]
async fn a_pod_that_is_supervised_still_reads_like_its_box() {
    e2e_steady(async |world| {
        let it = a_box("readable")
            .runs(["sh", "-c"])
            .args(["exit 5"])
            .create(world)
            .await?;
        let pod = it.has_a_pod("its pod", |_| true).await?;
        exits_with_5(&it).await?;
        let spec = spec(&pod);
        let container = spec.containers.first().context("no container")?;
        let command = container.command.clone().unwrap_or_default();
        let own = [PROGRAM, "run", "--grace=10", "--", "sh", "-c"];
        ensure!(command == own, "{command:?}");
        ensure!(container.args.as_deref() == Some(&["exit 5".to_owned()][..]));
        ensure!(spec.termination_grace_period_seconds == Some(12));
        let mut volumes = spec.volumes.iter().flatten();
        let volume = volumes.find(|it| it.name == SUPERVISOR);
        let image = volume.and_then(|it| it.image.as_ref()?.reference.as_deref());
        if world.own_cluster().is_some() {
            ensure!(image.is_some_and(|it| it.contains("@sha256:")), "{image:?}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn with_a_runtime_class_an_init_container_brings_the_supervisor() {
    e2e(async |world| {
        let class = ordinary_runtime(world).await?;
        let it = a_box("copied").shell("exit 5").runtime_class_name(class);
        let it = it.create(world).await?;
        let pod = it.has_a_pod("its pod", |_| true).await?;
        let ended = exits_with_5(&it).await;
        remove_runtime(world).await?;
        ensure!(
            copies_it(&pod) && !mounts_its_image(&pod),
            "{:?}",
            spec(&pod)
        );
        ended
    })
    .await;
}

fn restricted(it: BoxBuilder) -> BoxBuilder {
    it.security_context(json!({
        "runAsNonRoot": true, "runAsUser": 1234, "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }))
}

#[tokio::test]
async fn both_ways_satisfy_restricted_pod_security_and_a_quota_for_the_box_alone() {
    e2e(async |world| {
        world
            .kubectl()?
            .run([
                "label",
                "namespace",
                world.namespace(),
                "pod-security.kubernetes.io/enforce=restricted",
            ])
            .await?
            .ok()?;
        let quotas: Api<ResourceQuota> = world.api();
        let quota = serde_json::from_value(json!({
            "metadata": {"name": "one-box"}, "spec": {"hard": {"limits.memory": "64Mi"}},
        }))?;
        quotas.create(&PostParams::default(), &quota).await?;
        let class = ordinary_runtime(world).await?;
        let line = "kill -ABRT $$$$";
        let mounted = restricted(a_box("mounted").shell(line).memory_limit("64Mi"));
        let copied = restricted(a_box("copied").shell(line).memory_limit("64Mi"));
        for it in [mounted, copied.runtime_class_name(&class)] {
            let it = it.create(world).await?;
            it.ends_as(State::Exited, Reason::Signal)
                .with_signal(6)
                .by_evidence(Evidence::Observed)
                .await?;
            it.is_cleaned_up().await?;
        }
        remove_runtime(world).await
    })
    .await;
}

/// A node that cannot mount images, whatever else it is, makes new boxes take the slower way; when it
/// is gone they take the other again.
#[tokio::test]
async fn the_way_follows_the_nodes_of_the_cluster() {
    e2e_alone(async |world| {
        let it = a_box("before").shell("exit 5").create(world).await?;
        let before = it.has_a_pod("its pod", |_| true).await?;
        exits_with_5(&it).await?;
        ensure!(mounts_its_image(&before), "{:?}", spec(&before));

        let node = world.played_node().await?;
        node.has_versions("v1.34.3", "containerd://1.7.27").await?;
        let with = a_box_until(world, "with", copies_it).await?;
        exits_with_5(&with).await?;
        node.remove().await?;
        let after = a_box_until(world, "after", mounts_its_image).await?;
        exits_with_5(&after).await
    })
    .await;
}

/// The first of some boxes whose pod is like this: the controller hears of a node a little later than
/// the test.
async fn a_box_until(world: &World, name: &str, is: fn(&Pod) -> bool) -> Result<LiveBox> {
    for number in 0..20 {
        let it = a_box(format!("{name}-{number}")).shell("exit 5");
        let it = it.create(world).await?;
        let pod = it.has_a_pod("its pod", |_| true).await?;
        if is(&pod) {
            return Ok(it);
        }
    }
    anyhow::bail!("no box of 20 was made so")
}

#[tokio::test]
async fn without_a_command_nothing_is_put_before_it_and_the_condition_says_what_that_costs() {
    e2e(async |world| {
        let it = a_box("no-command").create(world).await?;
        let pod = it.has_a_pod("its pod", |_| true).await?;
        it.ends_as(State::Exited, Reason::Exit)
            .with_code(0)
            .by_evidence(Evidence::Derived)
            .await?;
        ensure!(
            !mounts_its_image(&pod) && !copies_it(&pod),
            "{:?}",
            spec(&pod)
        );
        ensure!(spec(&pod).termination_grace_period_seconds == Some(10));
        let accepted = it.has_condition("Accepted", "True").await?;
        ensure!(
            accepted.message.contains("without the supervisor"),
            "{accepted:?}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn in_a_shared_process_namespace_the_command_is_observed_and_the_condition_warns() {
    e2e(async |world| {
        for field in ["shareProcessNamespace", "hostPID"] {
            let it = a_box(field.to_lowercase())
                .shell("setsid sleep 1000 & [ $$$$ != 1 ] && exit 5")
                .pod_template(&json!({field: true}));
            let it = it.create(world).await?;
            exits_with_5(&it).await?;
            let accepted = it.has_condition("Accepted", "True").await?;
            ensure!(accepted.message.contains(field), "{accepted:?}");
            it.is_cleaned_up().await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn names_of_the_supervisors_are_refused_with_what_to_do() {
    e2e(async |world| {
        let mount = json!([{"name": "own", "mountPath": "/.boxes/own"}]);
        let own = json!([{"name": "own", "emptyDir": {}}]);
        let volume = json!([{"name": SUPERVISOR, "emptyDir": {}}]);
        let side = json!({"containers": [{"name": SUPERVISOR, "image": "busybox"}]});
        let all = [
            a_box("mount").volumes(own).volume_mounts(mount),
            a_box("volume").volumes(volume),
            a_box("container").pod_template(&side),
        ];
        for it in all {
            let it = it.shell("exit 5").create(world).await?;
            let refused = it.has_condition("Accepted", "False").await?;
            ensure!(refused.reason == "NameReserved", "{refused:?}");
            ensure!(refused.message.contains("choose another"), "{refused:?}");
        }
        Ok(())
    })
    .await;
}

/// Interrupted from the terminal, as in a plain container.
#[tokio::test]
async fn a_terminal_is_the_commands_own_and_ctrl_c_reaches_it() {
    e2e(async |world| {
        let line = "[ -t 0 ] || exit 8; trap 'exit 5' INT; echo ready; \
            while :; do read -r _ || sleep 0.1; done";
        let it = a_box("terminal").shell(line).tty(true).stdin(true);
        let it = it.create(world).await?;
        it.says("ready").await?;
        let pod = it.has_a_pod("its pod", |_| true).await?.name_any();
        let terminal = AttachParams::interactive_tty();
        let mut attached = world.pods().attach(&pod, &terminal).await?;
        let mut keys = attached.stdin().context("no standard input")?;
        keys.write_all(b"\x03").await?;
        exits_with_5(&it).await
    })
    .await;
}

#[tokio::test]
async fn a_stop_reaches_the_command_as_term_and_its_children_too() {
    e2e(async |world| {
        let line = "sh -c 'trap \"echo child-told; exit\" TERM; echo ready; sleep 1000 & wait' & \
            trap 'wait; exit 5' TERM; wait";
        let it = a_box("family").shell(line).create(world).await?;
        it.says("ready").await?;
        it.stop().await?;
        it.ends_as(State::Stopped, Reason::Stopped)
            .with_code(5)
            .by_evidence(Evidence::Observed)
            .await?;
        Ok(())
    })
    .await;
}
