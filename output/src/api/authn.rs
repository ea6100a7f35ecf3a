//! Keeps what is known about the front proxy as the cluster says it, or a file.

use std::path::PathBuf;
use std::sync::Arc;

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use tokio::sync::watch;

use super::certificate::{LOOK_EVERY, read};
use super::front_proxy::FrontProxy;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// Reads and watches the `ConfigMap`, for ever. What cannot be used changes nothing, and neither does
/// its deletion: the last good one holds.
pub(crate) async fn keep(client: Client, known: watch::Sender<Option<Arc<FrontProxy>>>) {
    let maps = Api::<ConfigMap>::namespaced(client, NAMESPACE);
    let only = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
    let maps = watcher(maps, only).default_backoff().applied_objects();
    pin_mut!(maps);
    while let Some(next) = maps.next().await {
        match next {
            Ok(map) => take(&map, &known),
            Err(error) => {
                tracing::warn!(error = %error, "the authentication ConfigMap cannot be watched; this is tried again");
            }
        }
    }
}

/// Reads the file of the authority that signed our own front's certificate, for ever. What cannot be
/// used changes nothing, as above.
pub(crate) async fn keep_file(path: PathBuf, known: watch::Sender<Option<Arc<FrontProxy>>>) {
    let mut seen = None;
    loop {
        match read(&path).await {
            Ok(ca) if seen.as_ref() == Some(&ca) => {}
            Ok(ca) => {
                take_file(&ca, &known);
                seen = Some(ca);
            }
            Err(error) => {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "the front's authority cannot be read; this is tried again"
                );
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn take_file(ca: &[u8], known: &watch::Sender<Option<Arc<FrontProxy>>>) {
    match FrontProxy::ours(&String::from_utf8_lossy(ca)) {
        Ok(proxy) => {
            tracing::info!(proxy = ?proxy, "the front proxy is known");
            known.send_replace(Some(Arc::new(proxy)));
        }
        Err(problem) => {
            tracing::error!(error = problem, "the front's authority cannot be used");
        }
    }
}

fn take(map: &ConfigMap, known: &watch::Sender<Option<Arc<FrontProxy>>>) {
    let data = map.data.clone().unwrap_or_default();
    match FrontProxy::new(&data) {
        Ok(proxy) => {
            tracing::info!(proxy = ?proxy, "the front proxy is known");
            known.send_replace(Some(Arc::new(proxy)));
        }
        Err(problem) => {
            tracing::error!(error = %problem, "the authentication ConfigMap cannot be used");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::test_certificates::Authority;
    use super::*;

    #[test]
    fn the_last_good_config_map_holds() {
        let (known, now) = watch::channel(None);
        let ca = Authority::new("front").pem();
        let data = BTreeMap::from([("requestheader-client-ca-file".to_owned(), ca)]);
        let map = |data| ConfigMap {
            data: Some(data),
            ..ConfigMap::default()
        };
        take(&map(BTreeMap::new()), &known);
        assert!(now.borrow().is_none());
        take(&map(data), &known);
        let good = now.borrow().clone().unwrap();
        take(&map(BTreeMap::new()), &known);
        assert!(Arc::ptr_eq(&good, now.borrow().as_ref().unwrap()));
    }

    #[test]
    fn the_last_good_file_holds() {
        let (known, now) = watch::channel(None);
        for bad in ["", "no certificate"] {
            take_file(bad.as_bytes(), &known);
            assert!(now.borrow().is_none());
        }
        take_file(Authority::new("front").pem().as_bytes(), &known);
        let good = now.borrow().clone().unwrap();
        take_file(b"", &known);
        assert!(Arc::ptr_eq(&good, now.borrow().as_ref().unwrap()));
    }
}
