//! The output of a Box, read as its users read it: by name, through the API server.

use anyhow::{Context, Result, bail};
use boxes_crds::{BoxObject, OutputState, OutputStatus};
use futures::{AsyncBufRead, AsyncReadExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::{Api, Client, ResourceExt};

use super::controller::{NAMESPACE, whole_second};
use super::live::LiveBox;
use super::watch::PATIENCE;
use super::world::World;

/// Where the log API is, beside the API of Boxes.
const GROUP: &str = "/apis/output.boxes.run/";

/// What the log API's pods are found by.
pub(crate) const LOG_API: &str = "app.kubernetes.io/name=boxes,app.kubernetes.io/component=log-api";

/// What the pods are found by that read the archive for it.
pub(crate) const OUTPUT_READER: &str =
    "app.kubernetes.io/name=boxes,app.kubernetes.io/component=output-reader";

/// Reads the output of one Box.
#[derive(Clone)]
pub struct OutputReader {
    client: Client,
    path: String,
}

impl LiveBox {
    /// A reader of its output.
    #[must_use]
    pub fn output(&self) -> OutputReader {
        let boxes = self.boxes.resource_url();
        OutputReader {
            client: self.boxes.clone().into_client(),
            path: format!(
                "{}/{}/log",
                boxes.replace("/apis/boxes.run/", GROUP),
                self.name()
            ),
        }
    }

    /// Waits until it is final what is saved of its output.
    ///
    /// # Errors
    /// When it is not in time.
    pub async fn has_output(&self, expected: OutputState) -> Result<OutputStatus> {
        let said = |object: &BoxObject| {
            let output = object.status.as_ref()?.output.clone()?;
            OutputState::parse(&output.state)?
                .is_final()
                .then_some(output)
        };
        let object = self
            .wait_for("the output to be saved", |object| said(object).is_some())
            .await?;
        let output = said(&object).context("what was just said")?;
        if output.state != expected.as_str() {
            bail!("the output is {output:?}, not {expected}");
        }
        Ok(output)
    }
}

impl OutputReader {
    /// The same output for somebody else.
    #[must_use]
    pub fn read_by(self, client: Client) -> Self {
        Self { client, ..self }
    }

    /// The same name in another namespace.
    #[must_use]
    pub fn in_namespace(self, own: &str, other: &str) -> Self {
        let path = self.path.replace(own, other);
        Self { path, ..self }
    }

    /// Its path, for `kubectl get --raw`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Begins to read. The query is that of the log API, without its `?`.
    ///
    /// # Errors
    /// As the log API answers.
    pub async fn open(&self, query: &str) -> kube::Result<impl AsyncBufRead + Unpin + use<>> {
        let request = http::Request::get(format!("{}?{query}", self.path)).body(Vec::new());
        let request = request.map_err(kube::Error::HttpError)?;
        Ok(Box::pin(self.client.request_stream(request).await?))
    }

    /// Reads to the end.
    ///
    /// # Errors
    /// When the log API refuses, or cuts the answer off.
    pub async fn read(&self, query: &str) -> Result<Vec<u8>> {
        let reading = async {
            let mut stream = self.open(query).await?;
            let mut body = Vec::new();
            stream
                .read_to_end(&mut body)
                .await
                .with_context(|| format!("{} was cut off after {} bytes", self.path, body.len()))?;
            Ok(body)
        };
        let read = tokio::time::timeout(PATIENCE, reading).await;
        read.with_context(|| format!("{} did not come to its end", self.path))?
    }

    /// Reads text to the end.
    ///
    /// # Errors
    /// As [`Self::read`], and when it is no text.
    pub async fn text(&self, query: &str) -> Result<String> {
        Ok(String::from_utf8(self.read(query).await?)?)
    }

    /// The code that a request is refused with.
    ///
    /// # Errors
    /// When it is not refused.
    pub async fn refused(&self, query: &str) -> Result<u16> {
        match self.open(query).await {
            Err(kube::Error::Api(status)) => Ok(status.code),
            Err(error) => Err(error).context("not the answer of an API server"),
            Ok(_) => bail!("{} was not refused", self.path),
        }
    }
}

impl World {
    /// What the log API logged since the test began: the lines of all of its pods.
    ///
    /// # Errors
    /// When a log cannot be read.
    pub async fn log_of_the_log_api(&self) -> Result<String> {
        let pods: Api<Pod> = Api::namespaced(self.client(), NAMESPACE);
        let params = LogParams {
            since_time: Some(whole_second(self.began())),
            ..LogParams::default()
        };
        let mut text = String::new();
        for pod in pods.list(&ListParams::default().labels(LOG_API)).await? {
            text.push_str(&pods.logs(&pod.name_any(), &params).await?);
        }
        Ok(text)
    }
}
