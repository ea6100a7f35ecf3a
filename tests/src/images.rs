//! The images that tests run, made from this machine's own files without a container engine.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::cluster::archive::{Archive, MANIFEST, digest};
use crate::cluster::reference::Reference;

/// The name of the image that holds a pod's namespaces.
pub const PAUSE: &str = "boxes.run/pause:1";
/// The name of the image in which tests run their commands, as a Box writes it.
pub const BUSYBOX: &str = "busybox";

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// Waits for its end in a way that ends at once on TERM.
const WAIT: &str = "trap 'exit 0' TERM INT; while :; do /bin/busybox sleep 3600 & wait $!; done";

const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n";
const GROUP: &str = "root:x:0:\nnobody:x:65534:\n";

/// What an image's only layer holds at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A folder with its mode.
    Folder(u32),
    /// A file with its mode and content.
    File(u32, Vec<u8>),
    /// A symbolic link to this.
    Link(String),
}

/// An image about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its name; what it leaves out is completed as container tools do.
    pub name: String,
    /// The `config` object of its configuration: `Env`, `Entrypoint`, `Cmd` and so on.
    pub config: Value,
    /// The layer, in this order.
    pub entries: Vec<(String, Entry)>,
}

/// `busybox`: Debian's static busybox with a link for each of its applets.
///
/// # Errors
/// When this machine has no static busybox.
pub fn busybox() -> Result<Image> {
    let program = program()?;
    let applets = crate::cluster::applets(&program)?;
    let file = |mode, text: &str| Entry::File(mode, text.as_bytes().to_vec());
    let mut entries: Vec<(String, Entry)> = [
        ("bin", Entry::Folder(0o755)),
        ("etc", Entry::Folder(0o755)),
        ("etc/passwd", file(0o644, PASSWD)),
        ("etc/group", file(0o644, GROUP)),
        ("root", Entry::Folder(0o700)),
        ("tmp", Entry::Folder(0o1777)),
        ("usr", Entry::Folder(0o755)),
        ("usr/bin", Entry::Folder(0o755)),
        ("usr/bin/env", Entry::Link("/bin/busybox".to_owned())),
        ("bin/busybox", Entry::File(0o755, read(&program)?)),
    ]
    .map(|(path, entry)| (path.to_owned(), entry))
    .into();
    let links = applets.into_iter().filter(|applet| applet != "busybox");
    entries.extend(links.map(|it| (format!("bin/{it}"), Entry::Link("busybox".to_owned()))));
    let config = json!({"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        "Cmd": ["sh"]});
    Ok(Image {
        name: BUSYBOX.to_owned(),
        config,
        entries,
    })
}

/// The pause image: busybox, waiting.
///
/// # Errors
/// When this machine has no static busybox.
pub fn pause() -> Result<Image> {
    let entries = vec![
        ("bin".to_owned(), Entry::Folder(0o755)),
        (
            "bin/busybox".to_owned(),
            Entry::File(0o755, read(&program()?)?),
        ),
    ];
    let config = json!({"Entrypoint": ["/bin/busybox", "sh", "-c", WAIT]});
    Ok(Image {
        name: PAUSE.to_owned(),
        config,
        entries,
    })
}

impl Image {
    /// The image as the content of an OCI archive.
    ///
    /// # Errors
    /// When its name is none.
    pub fn to_archive(&self) -> Result<Vec<u8>> {
        self.archive()?.write()
    }

    pub(crate) fn archive(&self) -> Result<Archive> {
        let mut archive = Archive::default();
        let layer = layer(&self.entries)?;
        let config = serde_json::to_vec(&json!({
            "architecture": architecture(),
            "os": "linux",
            "config": self.config,
            "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
        }))?;
        let config = archive.add_blob(CONFIG, config);
        let layer = archive.add_blob(LAYER, layer);
        let manifest = serde_json::to_vec(&json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer],
        }))?;
        let manifest = archive.add_blob(MANIFEST, manifest);
        archive
            .images
            .push((Reference::parse(&self.name)?, manifest));
        Ok(archive)
    }
}

/// This machine's architecture, in the words of images.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// A layer of entries that all belong to root and have no time, so that equal ones are equal bytes.
fn layer(entries: &[(String, Entry)]) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, entry) in entries {
        append(&mut tar, path, entry).with_context(|| format!("cannot add {path} to the layer"))?;
    }
    tar.into_inner().context("cannot finish the layer")
}

fn append(tar: &mut tar::Builder<Vec<u8>>, path: &str, entry: &Entry) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    match entry {
        Entry::Folder(mode) => {
            header.set_entry_type(tar::EntryType::Directory);
            header.set_mode(*mode);
            tar.append_data(&mut header, format!("{path}/"), std::io::empty())
        }
        Entry::File(mode, content) => {
            header.set_size(content.len() as u64);
            header.set_mode(*mode);
            tar.append_data(&mut header, path, content.as_slice())
        }
        Entry::Link(target) => {
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_mode(0o777);
            tar.append_link(&mut header, path, target)
        }
    }
}

/// Where the machine's busybox is, which must need no other file.
fn program() -> Result<std::path::PathBuf> {
    let path = crate::cluster::find_program("busybox")
        .context("there is no busybox: install the package busybox-static")?;
    if needs_a_loader(&read(&path)?) {
        bail!(
            "{} is not static: install the package busybox-static",
            path.display()
        );
    }
    Ok(path)
}

/// Whether a program names a dynamic loader in its first bytes.
fn needs_a_loader(program: &[u8]) -> bool {
    let start = &program[..program.len().min(4096)];
    start.windows(4).any(|window| window == b"/ld-")
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use super::*;

    fn example() -> Image {
        let entries = vec![
            ("tmp".to_owned(), Entry::Folder(0o1777)),
            (
                "etc/passwd".to_owned(),
                Entry::File(0o644, b"root".to_vec()),
            ),
            ("bin/sh".to_owned(), Entry::Link("busybox".to_owned())),
        ];
        Image {
            name: "example".to_owned(),
            config: json!({"Cmd": ["sh"]}),
            entries,
        }
    }

    #[test]
    fn the_layer_keeps_modes_links_and_content() {
        let bytes = layer(&example().entries).unwrap();
        let mut seen = BTreeMap::new();
        for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            let link = entry
                .link_name()
                .unwrap()
                .map(|link| link.display().to_string());
            let path = entry.path().unwrap().display().to_string();
            seen.insert(path, (entry.header().mode().unwrap(), content, link));
        }
        assert_eq!(seen["tmp/"].0, 0o1777);
        assert_eq!(seen["etc/passwd"], (0o644, "root".to_owned(), None));
        assert_eq!(seen["bin/sh"].2.as_deref(), Some("busybox"));
    }

    #[test]
    fn the_manifest_leads_to_the_configuration_and_the_layer() {
        let archive = example().archive().unwrap();
        let (name, manifest) = &archive.images[0];
        assert_eq!(name.to_string(), "docker.io/library/example:latest");
        let manifest: Value = serde_json::from_slice(&archive.blobs[&manifest.digest]).unwrap();
        let blob = |pointer: &str| {
            &archive.blobs[manifest.pointer(pointer).and_then(Value::as_str).unwrap()]
        };
        let config: Value = serde_json::from_slice(blob("/config/digest")).unwrap();
        assert_eq!(config["config"]["Cmd"], json!(["sh"]));
        assert_eq!(
            config["rootfs"]["diff_ids"][0],
            json!(digest(blob("/layers/0/digest")))
        );
    }

    #[test]
    fn the_same_image_is_the_same_bytes() {
        assert_eq!(
            example().to_archive().unwrap(),
            example().to_archive().unwrap()
        );
    }

    #[test]
    fn a_dynamic_program_is_recognised() {
        assert!(needs_a_loader(b"\x7fELF..../lib64/ld-linux-x86-64.so.2"));
        assert!(!needs_a_loader(b"\x7fELF...."));
    }
}
