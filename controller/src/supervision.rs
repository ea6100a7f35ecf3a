//! The supervisor that new pods get, and by which way: fixed by the command line, or what every node
//! of the cluster supports.

use std::sync::Arc;

use boxes_lifecycle::{Injection, NodeFacts, Supervisor, best_injection};
use kube::runtime::reflector::Store;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client};
use tokio::sync::watch;

use crate::args::{Args, InjectionChoice};
use crate::metrics::Metrics;
use crate::watches::follow;

/// What new pods get. Cheap to clone and to ask.
#[derive(Clone)]
pub(crate) struct Supervision {
    chosen: watch::Receiver<Option<Arc<Supervisor>>>,
    /// The one that works everywhere; absent where commands run unsupervised.
    any: Option<Arc<Supervisor>>,
}

impl Supervision {
    /// As the command line says; with `auto`, follows the nodes of the cluster from now on.
    pub(crate) fn start(client: Client, args: &Args, metrics: Arc<Metrics>) -> Self {
        let Some(image) = args.supervisor_image.clone() else {
            return Self::none();
        };
        let with = move |injection| Supervisor {
            image,
            pull_policy: args.supervisor_pull_policy.clone(),
            injection,
        };
        match args.supervisor_injection {
            InjectionChoice::ImageVolume => Self::fixed(with(Injection::ImageVolume)),
            InjectionChoice::InitContainer => Self::fixed(with(Injection::InitContainer)),
            InjectionChoice::Auto => {
                Self::following(client, metrics, with(Injection::InitContainer).into())
            }
        }
    }

    /// Commands run unsupervised.
    pub(crate) fn none() -> Self {
        Self {
            chosen: watch::channel(None).1,
            any: None,
        }
    }

    fn fixed(supervisor: Supervisor) -> Self {
        let any = Some(Arc::new(supervisor));
        Self {
            chosen: watch::channel(any.clone()).1,
            any,
        }
    }

    fn following(client: Client, metrics: Arc<Metrics>, any: Arc<Supervisor>) -> Self {
        let (choose, chosen) = watch::channel(None);
        tokio::spawn(follow_nodes(client, metrics, any.clone(), choose));
        Self {
            chosen,
            any: Some(any),
        }
    }

    /// What commands run under, whichever way it gets to them.
    pub(crate) fn any(&self) -> Option<Arc<Supervisor>> {
        self.any.clone()
    }

    /// What a new pod gets; waits for the first list of nodes.
    pub(crate) async fn for_new_pods(&self) -> Option<Arc<Supervisor>> {
        self.any.as_ref()?;
        let mut chosen = self.chosen.clone();
        let known = chosen.wait_for(Option::is_some).await;
        known.ok().and_then(|known| known.clone())
    }
}

/// Chooses anew whenever a node comes, goes or changes.
async fn follow_nodes(
    client: Client,
    metrics: Arc<Metrics>,
    supervisor: Arc<Supervisor>,
    choose: watch::Sender<Option<Arc<Supervisor>>>,
) {
    let (nodes, writer) = reflector::store::<NodeFacts>();
    let watch = watcher(Api::<NodeFacts>::all(client), watcher::Config::default());
    let mut listed = false;
    let news = |event: &Event<NodeFacts>| {
        listed |= matches!(event, Event::InitDone);
        if listed {
            adopt(&choose, &supervisor, best_of(&nodes));
        }
    };
    follow(&metrics, reflector(writer, watch.default_backoff()), news).await;
}

fn best_of(nodes: &Store<NodeFacts>) -> Injection {
    let known = nodes.state();
    best_injection(known.iter().map(AsRef::as_ref))
}

fn adopt(
    choose: &watch::Sender<Option<Arc<Supervisor>>>,
    supervisor: &Supervisor,
    injection: Injection,
) {
    choose.send_if_modified(|chosen| {
        let same = chosen.as_ref().is_some_and(|it| it.injection == injection);
        if !same {
            tracing::info!(
                injection = injection.as_str(),
                "new boxes get the supervisor"
            );
            *chosen = Some(Arc::new(Supervisor {
                injection,
                ..Supervisor::clone(supervisor)
            }));
        }
        !same
    });
}
