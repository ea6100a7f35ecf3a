//! Prints the CustomResourceDefinition of Box as YAML; `make crd` writes it to `crds/boxes.yaml`.

use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let yaml = serde_saphyr::to_string(&boxes_crds::crd())?;
    std::io::stdout().write_all(yaml.as_bytes())?;
    Ok(())
}
