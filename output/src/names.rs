//! Names as the API server lets them be: they lead nowhere else, in a path or in a URL.

/// The longest name of a namespace.
const LABEL: usize = 63;
/// The longest name of a Box or a pod.
const SUBDOMAIN: usize = 253;

/// Whether a namespace may have this name.
pub(crate) fn is_namespace(text: &str) -> bool {
    text.len() <= LABEL && is_label(text)
}

/// Whether a Box or a pod may have this name.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN && text.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edges = !text.starts_with('-') && !text.ends_with('-');
    !text.is_empty() && edges && text.bytes().all(inner)
}
