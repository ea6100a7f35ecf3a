//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use boxes_program::Logging;
use clap::Parser;

use super::upstream::Upstream;
use crate::archive::ArchiveArgs;

/// Serves the output of Boxes as an aggregated API: output.boxes.run/v1alpha1, boxes/log.
#[derive(Clone, Debug, Parser)]
#[command(name = "boxes-log-api", version)]
#[command(mut_arg("url", |url| url.required(false).required_unless_present("place").conflicts_with("place")))]
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

    /// Where output is kept. Absent if another server reads it.
    #[command(flatten)]
    pub archive: Option<ArchiveArgs>,

    /// The server that reads it instead.
    #[command(flatten)]
    pub(crate) reader: Option<Upstream>,

    /// Serve a front, which is started with --reader, and no API server: file of the authority that
    /// signed its certificate, PEM. Any authority will do that signs for nobody else the common name
    /// boxes-log-api. Read again when it changes.
    #[arg(long, value_name = "FILE", conflicts_with = "place")]
    pub front_ca: Option<PathBuf>,

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
        assert_eq!(parse(args).is_ok(), good);
    }

    const READER: [&str; 5] = [
        "--self-signed=n",
        "--reader=https://reader:8443",
        "--reader-ca=c",
        "--reader-cert=c",
        "--reader-key=k",
    ];

    #[rstest::rstest]
    #[case(&["--self-signed=n"], false)]
    #[case(&["--self-signed=n", "--archive-option=a=b"], false)]
    #[case(&READER, true)]
    #[case(&READER[..4], false)]
    #[case(&[READER[0], READER[2], READER[3], READER[4]], false)]
    #[case(&["--self-signed=n", "--archive=file:///a", "--reader-ca=c"], false)]
    #[case(&["--self-signed=n", "--archive=file:///a", "--front-ca=c"], true)]
    fn output_is_read_here_or_there(#[case] args: &[&str], #[case] good: bool) {
        assert_eq!(parse(args).is_ok(), good);
        let parsed = parse(args).ok();
        assert!(parsed.is_none_or(|args| args.archive.is_some() != args.reader.is_some()));
    }

    #[rstest::rstest]
    #[case("--archive=file:///a")]
    #[case("--front-ca=c")]
    fn a_front_has_neither_an_archive_nor_a_front(#[case] more: &str) {
        let args: Vec<&str> = READER.into_iter().chain([more]).collect();
        assert!(parse(&args).is_err());
    }

    fn parse(args: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from(["boxes-log-api"].iter().chain(args))
    }
}
