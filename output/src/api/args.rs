//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use boxes_program::Logging;
use clap::Parser;

use crate::archive::ArchiveArgs;

/// Serves the output of Boxes as an aggregated API: output.boxes.run/v1alpha1, boxes/log.
#[derive(Clone, Debug, Parser)]
#[command(name = "boxes-log-api", version)]
pub struct Args {
    /// What is logged, and how.
    #[command(flatten)]
    pub logging: Logging,

    /// Address that the API is served on, with TLS.
    #[arg(long, default_value = "127.0.0.1:8443")]
    pub listen: SocketAddr,

    /// Address that /livez, /readyz and /metrics are served on, without TLS.
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub health_listen: SocketAddr,

    /// File of the serving certificate and what it is signed with, PEM. Read again when it changes.
    #[arg(long, requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// File of the certificate's key, PEM.
    #[arg(long, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Make a certificate for this DNS name at start instead; may be given more than once. Nobody
    /// can verify it: the `APIService` must then have insecureSkipTLSVerify.
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "tls_cert",
        required_unless_present = "tls_cert"
    )]
    pub self_signed: Vec<String>,

    /// Where output is kept.
    #[command(flatten)]
    pub archive: ArchiveArgs,

    /// How many logs may be read at once.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_streams: u16,

    /// How many of them by one user.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_streams_per_user: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(&["--archive=file:///a", "--tls-cert=c", "--tls-key=k"], true)]
    #[case(&["--archive=file:///a", "--self-signed=n", "--self-signed=m"], true)]
    #[case(&["--archive=file:///a"], false)]
    #[case(&["--archive=file:///a", "--tls-cert=c"], false)]
    #[case(&["--archive=file:///a", "--tls-cert=c", "--tls-key=k", "--self-signed=n"], false)]
    #[case(&["--archive=file:///a", "--self-signed=n", "--archive-option=x"], false)]
    fn a_certificate_is_given_or_made(#[case] args: &[&str], #[case] good: bool) {
        let args = ["boxes-log-api"].iter().chain(args);
        assert_eq!(Args::try_parse_from(args).is_ok(), good);
    }
}
