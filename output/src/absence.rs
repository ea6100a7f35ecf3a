//! When an answer of the API server says that an object does not exist.

/// Whether it is the object of this name, and not its kind or the server, that is absent.
pub(crate) fn says_absent(error: &kube::Error, name: &str) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let details = status.details.as_ref();
    let named = details.is_some_and(|details| details.name == name);
    status.code == 404 && status.reason == "NotFound" && named
}
