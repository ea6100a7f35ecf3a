//! The deletion of a namespace that is full of running boxes.

use std::time::Duration;

use boxes_tests::harness::{LiveBox, State, a_box, e2e_steady, until};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::help::UNTIL_TOLD;

/// It takes some 20 s; what stays until someone looks would stay for ever.
const IN_THE_END: Duration = Duration::from_secs(150);

/// One ignores TERM, and one has a record that this build cannot read.
#[tokio::test]
async fn a_namespace_full_of_running_boxes_goes() {
    e2e_steady(async |world| {
        let mut all: Vec<LiveBox> = Vec::new();
        for number in 0..14 {
            let it = a_box(format!("it-{number}")).shell(UNTIL_TOLD);
            all.push(it.create(world).await?);
        }
        let deaf = a_box("deaf")
            .shell("trap '' TERM; echo ready; sleep 1000")
            .termination_grace_period_seconds(5);
        all.push(deaf.create(world).await?);
        try_join_all(all.iter().map(|it| it.is(State::Running))).await?;
        let newer = json!({"status": {"state": "Hibernating", "dream": {"depth": 3}}});
        let params = PatchParams::default();
        world
            .dynamic_boxes()
            .patch_status("it-0", &params, &Patch::Merge(&newer))
            .await?;

        let namespaces: Api<Namespace> = Api::all(world.client());
        let name = world.namespace();
        namespaces.delete(name, &DeleteParams::default()).await?;
        let is_gone = |seen: Option<&Namespace>| seen.is_none().then_some(());
        until(
            &namespaces,
            name,
            "the namespace to be gone",
            IN_THE_END,
            is_gone,
        )
        .await
    })
    .await;
}
