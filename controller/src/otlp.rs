//! Where traces go: the receiver that the standard variables of OpenTelemetry name, by OTLP over HTTP
//! with protobuf. The variables for headers and the resource are read by its libraries.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use http::Uri;
use http::uri::Scheme;
use hyper_rustls::HttpsConnectorBuilder;
use opentelemetry::KeyValue;
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_EXPORTER_OTLP_TIMEOUT_DEFAULT,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_TIMEOUT, RetryPolicy,
    SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::trace::SpanExporter as _;
use rustls::{ClientConfig, RootCertStore};

use crate::http_sender::HttpSender;

/// The variables that name the certificates to trust, which the libraries do not read over HTTP.
const CERTIFICATES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
];

/// What takes traces.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Receiver {
    pub(crate) endpoint: Uri,
    /// For a batch with all attempts.
    pub(crate) timeout: Duration,
    /// A PEM file; the system's certificates without one.
    pub(crate) certificates: Option<PathBuf>,
}

impl Receiver {
    /// The one that the environment names, if it does.
    ///
    /// # Errors
    /// What it names is no address.
    pub(crate) fn of_environment() -> anyhow::Result<Option<Self>> {
        Self::of(|name| std::env::var(name).ok())
    }

    /// The one that variables name. An empty one is none.
    fn of(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Option<Self>> {
        let variable = |name: &&str| variable(name).filter(|value| !value.is_empty());
        let first = |names: &[&str]| names.iter().find_map(&variable);
        let for_traces = variable(&OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);
        let for_all = variable(&OTEL_EXPORTER_OTLP_ENDPOINT);
        let endpoint = match (for_traces, for_all) {
            (Some(url), _) => address(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, &url)?,
            (None, Some(url)) => {
                let url = format!("{}/v1/traces", url.trim_end_matches('/'));
                address(OTEL_EXPORTER_OTLP_ENDPOINT, &url)?
            }
            (None, None) => return Ok(None),
        };
        let timeout = first(&[
            OTEL_EXPORTER_OTLP_TRACES_TIMEOUT,
            OTEL_EXPORTER_OTLP_TIMEOUT,
        ]);
        let milliseconds = timeout.and_then(|it| it.parse().ok());
        Ok(Some(Self {
            endpoint,
            timeout: milliseconds.map_or(OTEL_EXPORTER_OTLP_TIMEOUT_DEFAULT, Duration::from_millis),
            certificates: first(&CERTIFICATES).map(PathBuf::from),
        }))
    }

    /// Its host, which is all of the address that is told: the rest may hold a password.
    pub(crate) fn host(&self) -> &str {
        self.endpoint.host().unwrap_or_default()
    }

    /// What sends to it.
    ///
    /// # Errors
    /// There are no certificates to know it by.
    pub(crate) fn exporter(&self) -> anyhow::Result<SpanExporter> {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(self.tls()?)
            .https_or_http()
            .enable_http1()
            .build();
        let client = HttpSender::new(connector, self.timeout);
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(self.endpoint.to_string())
            .with_timeout(self.timeout)
            .with_retry_policy(retries())
            .build()?;
        exporter.set_resource(&resource());
        Ok(exporter)
    }

    fn tls(&self) -> anyhow::Result<ClientConfig> {
        let roots = if self.endpoint.scheme() == Some(&Scheme::HTTPS) {
            roots(self.certificates.as_deref())?
        } else {
            RootCertStore::empty()
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        Ok(ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth())
    }
}

/// An address with a scheme that can be sent to. What is wrong with it is told without it.
fn address(variable: &str, url: &str) -> anyhow::Result<Uri> {
    let fits =
        |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    let uri = url.parse().ok().filter(fits);
    uri.with_context(|| format!("{variable} is not a URL that begins with http:// or https://"))
}

/// The certificates of a file, or those of the system.
fn roots(file: Option<&Path>) -> anyhow::Result<RootCertStore> {
    let found = match file {
        Some(_) => rustls_native_certs::load_certs_from_paths(file, None),
        None => rustls_native_certs::load_native_certs(),
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let name = CERTIFICATES[1];
        bail!("no certificates to trust for https: {name} must name a PEM file that has some");
    }
    Ok(roots)
}

/// Half a second, doubling: a receiver that is started anew is back within that. The timeout bounds
/// the whole.
fn retries() -> RetryPolicy {
    RetryPolicy::recommended()
        .with_max_retries(4)
        .with_initial_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(5))
}

/// Who exports: what `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say, else us.
fn resource() -> Resource {
    let ours = Resource::builder_empty()
        .with_service_name(env!("CARGO_PKG_NAME"))
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_detector(Box::new(EnvResourceDetector::new()));
    match std::env::var("OTEL_SERVICE_NAME") {
        Ok(name) if !name.is_empty() => ours.with_service_name(name).build(),
        Ok(_) | Err(_) => ours.build(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

    fn named(variables: &[(&str, &str)]) -> anyhow::Result<Option<Receiver>> {
        Receiver::of(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[rstest]
    #[case::for_all(&[(ALL, "http://there:4318")], "http://there:4318/v1/traces")]
    #[case::for_all_with_a_path(&[(ALL, "https://there/otlp/")], "https://there/otlp/v1/traces")]
    #[case::for_traces(&[(TRACES, "http://there/as/it/is")], "http://there/as/it/is")]
    #[case::both(&[(ALL, "http://all"), (TRACES, "http://there/x")], "http://there/x")]
    #[case::empty_for_traces(&[(ALL, "http://there"), (TRACES, "")], "http://there/v1/traces")]
    fn traces_go_where_the_variables_say(
        #[case] variables: &[(&str, &str)],
        #[case] expected: &str,
    ) {
        let receiver = named(variables).unwrap().unwrap();
        assert_eq!(receiver.endpoint, expected);
        assert_eq!(receiver.host(), "there");
        assert_eq!(receiver.timeout, Duration::from_secs(10));
    }

    #[rstest]
    #[case::nothing(&[])]
    #[case::empty(&[(ALL, ""), (TRACES, "")])]
    #[case::something_else(&[("OTEL_EXPORTER_OTLP_TIMEOUT", "5000")])]
    fn they_go_nowhere_when_no_endpoint_is_named(#[case] variables: &[(&str, &str)]) {
        assert_eq!(named(variables).unwrap(), None);
    }

    #[rstest]
    #[case::for_all(&[("OTEL_EXPORTER_OTLP_TIMEOUT", "5000")], 5000)]
    #[case::for_traces(
        &[("OTEL_EXPORTER_OTLP_TIMEOUT", "1"), ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "700")], 700
    )]
    #[case::no_number(&[("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")], 10_000)]
    fn the_timeout_is_in_milliseconds(#[case] more: &[(&str, &str)], #[case] expected: u64) {
        let variables: Vec<_> = more
            .iter()
            .chain(&[(ALL, "http://there")])
            .copied()
            .collect();
        let receiver = named(&variables).unwrap().unwrap();
        assert_eq!(receiver.timeout, Duration::from_millis(expected));
    }

    #[rstest]
    #[case::no_scheme("secret:4318")]
    #[case::another_scheme("ftp://secret")]
    #[case::no_host("/secret")]
    #[case::no_url("http://sec ret")]
    fn what_is_no_address_is_an_error_that_does_not_repeat_it(#[case] url: &str) {
        let error = named(&[(ALL, url)]).unwrap_err();
        let told = format!("{error:#}");
        assert!(told.contains(ALL) && !told.contains("sec"), "{told}");
    }

    #[test]
    fn a_password_in_the_address_is_not_told() {
        let receiver = named(&[(ALL, "https://user:password@there")]).unwrap();
        assert_eq!(receiver.unwrap().host(), "there");
    }

    #[test]
    fn https_needs_certificates() {
        let receiver = Receiver {
            certificates: Some(PathBuf::from("/does/not/exist")),
            ..named(&[(ALL, "https://there")]).unwrap().unwrap()
        };
        let error = receiver.exporter().map(drop).unwrap_err().to_string();
        assert!(error.contains("OTEL_EXPORTER_OTLP_CERTIFICATE"), "{error}");
    }
}
