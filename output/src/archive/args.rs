//! The part of a command line that names the archive.

use clap::Args;

use super::Options;

/// Where output is kept.
#[derive(Clone, Debug, Args)]
pub struct ArchiveArgs {
    /// The archive of output: <file:///folder>, <s3://bucket/prefix>, <gs://bucket/prefix> or
    /// <az://container/prefix>. Credentials come from the environment.
    #[arg(long = "archive", value_name = "URL", env = "BOXES_ARCHIVE")]
    pub url: String,

    /// A setting of the archive's backend, such as `aws_endpoint=http://minio:9000`; may be given
    /// more than once.
    #[arg(long = "archive-option", value_name = "KEY=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
}

impl ArchiveArgs {
    /// How it is reached.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            settings: self.settings.clone(),
            ..Options::default()
        }
    }
}

/// Reads a setting of the archive's backend, `KEY=VALUE`.
fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}
