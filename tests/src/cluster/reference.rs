//! Names of images.

use std::fmt;

use anyhow::{Result, bail};

/// An image's full name: `busybox` is `docker.io/library/busybox:latest`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub(crate) host: String,
    pub(crate) repository: String,
    pub(crate) tag: String,
}

impl Reference {
    /// Reads a name as container tools do, completing what it leaves out.
    pub(crate) fn parse(name: &str) -> Result<Self> {
        let (path, tag) = match name.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, tag),
            _ => (name, "latest"),
        };
        let (host, repository) = match path.split_once('/') {
            Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => {
                (host, rest.to_owned())
            }
            Some(_) => ("docker.io", path.to_owned()),
            None => ("docker.io", format!("library/{path}")),
        };
        let reference = Self {
            host: host.to_owned(),
            repository,
            tag: tag.to_owned(),
        };
        if !reference.is_safe() {
            bail!("{name:?} is no name of an image: expected HOST/REPOSITORY:TAG");
        }
        Ok(reference)
    }

    /// Whether each part can be a file's name, for that is how the registry stores it.
    pub(crate) fn is_safe(&self) -> bool {
        let parts = self
            .repository
            .split('/')
            .chain([self.host.as_str(), self.tag.as_str()]);
        parts.into_iter().all(|part| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:[]".contains(&byte);
            !part.is_empty() && !part.starts_with(['.', '_']) && part.bytes().all(fits)
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}:{}", self.host, self.repository, self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_completed() {
        for (short, full) in [
            ("busybox", "docker.io/library/busybox:latest"),
            ("busybox:1", "docker.io/library/busybox:1"),
            ("some/tool", "docker.io/some/tool:latest"),
            ("boxes.run/boxes:dev", "boxes.run/boxes:dev"),
            ("localhost/boxes:dev", "localhost/boxes:dev"),
            ("127.0.0.1:1/none", "127.0.0.1:1/none:latest"),
        ] {
            assert_eq!(
                Reference::parse(short).unwrap().to_string(),
                full,
                "{short}"
            );
        }
    }

    #[test]
    fn names_that_would_leave_the_folder_are_refused() {
        for bad in ["", "../x", "a/../../b", "x:", "host.io/", "a b"] {
            assert!(Reference::parse(bad).is_err(), "{bad:?}");
        }
    }
}
