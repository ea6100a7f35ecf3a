//! What the controller counts.

use anyhow::Context;
use boxes_tests::harness::{PATIENCE, Reason, State, a_box, e2e_steady};

#[tokio::test]
async fn an_ending_is_counted_by_its_reason_and_with_its_lag() {
    e2e_steady(async |world| {
        let before = world.controller().metrics().await?;
        let it = a_box("counted").shell("exit 3").create(world).await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
        it.is_cleaned_up().await?;
        let after = world.controller().metrics().await?;
        let grown = |name: &str, labels: &[(&str, &str)]| {
            after.count(name, labels) - before.count(name, labels)
        };
        assert!(
            grown("boxes_endings_total", &[("reason", "Exit")]) >= 1.0,
            "{}",
            after.text()
        );
        assert!(
            grown("boxes_end_to_recorded_seconds_count", &[]) >= 1.0,
            "{}",
            after.text()
        );
        assert!(
            grown("boxes_reconciles_total", &[]) >= 1.0,
            "{}",
            after.text()
        );
        assert!(
            grown("boxes_writes_total", &[("write", "create_pod")]) >= 1.0,
            "{}",
            after.text()
        );
        let lag = after.count("boxes_end_to_recorded_seconds_sum", &[])
            / after.count("boxes_end_to_recorded_seconds_count", &[]);
        assert!((0.0..60.0).contains(&lag), "{lag}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn boxes_are_counted_by_their_state() {
    e2e_steady(async |world| {
        let it = a_box("one-more")
            .runs(["true"])
            .stopped(true)
            .create(world)
            .await?;
        it.is(State::Pending).await?;
        // Its own watch may tell it later than ours told us.
        let counted = async {
            loop {
                let metrics = world.controller().metrics().await?;
                let pending = metrics.sum("boxes_by_state", &[("state", "Pending")]);
                if pending.is_some_and(|count| count >= 1.0) {
                    return anyhow::Ok(metrics);
                }
            }
        };
        let metrics = tokio::time::timeout(PATIENCE, counted).await;
        let metrics = metrics.context("it is not counted")??;
        for state in ["Materializing", "Running", "Stopped", "Exited"] {
            let count = metrics.sum("boxes_by_state", &[("state", state)]);
            assert!(count.is_some(), "no {state}: {}", metrics.text());
        }
        Ok(())
    })
    .await;
}

/// No label of any metric may be a name: their number would have no bound.
#[tokio::test]
async fn no_name_is_in_the_metrics() {
    e2e_steady(async |world| {
        let it = a_box("nameless-in-metrics")
            .shell("exit 3")
            .create(world)
            .await?;
        it.is_cleaned_up().await?;
        let metrics = world.controller().metrics().await?;
        for name in [it.name(), it.uid(), world.namespace()] {
            assert!(!metrics.text().contains(name), "{name}: {}", metrics.text());
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn reconcile_errors_are_counted_by_class() {
    e2e_steady(async |world| {
        let metrics = world.controller().metrics().await?;
        let text = metrics.text();
        assert!(
            text.contains("# TYPE boxes_reconcile_errors counter"),
            "{text}"
        );
        // Also before there was any.
        for class in ["timeout", "forbidden", "conflict"] {
            let counted = format!("boxes_reconcile_errors_total{{class=\"{class}\"}}");
            assert!(text.contains(&counted), "{class}: {text}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn health_is_answered() {
    e2e_steady(async |world| {
        assert_eq!(world.controller().ask("livez").await?.trim(), "ok");
        assert_eq!(world.controller().ask("readyz").await?.trim(), "ok");
        Ok(())
    })
    .await;
}
