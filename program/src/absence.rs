//! When an answer of the API server says that an object does not exist.

/// Whether it is the object of this name, and not its kind or the server, that is absent. A bare 404
/// from something between us and the API server is no absence.
#[must_use]
pub fn says_absent(error: &kube::Error, name: &str) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let details = status.details.as_ref();
    let named = details.is_some_and(|details| details.name == name);
    status.code == 404 && status.reason == "NotFound" && named
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use kube::core::response::StatusDetails;

    use super::*;

    fn answer(code: u16, reason: &str, name: Option<&str>) -> kube::Error {
        let named = |name: &str| StatusDetails {
            name: name.to_owned(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: 0,
        };
        kube::Error::Api(Box::new(Status {
            details: name.map(named),
            ..Status::failure("", reason).with_code(code)
        }))
    }

    #[test]
    fn an_object_is_absent_if_that_is_said_of_it_by_name() {
        assert!(says_absent(&answer(404, "NotFound", Some("it")), "it"));
        for other in [
            answer(404, "NotFound", Some("another")),
            answer(404, "NotFound", None),
            answer(404, "", Some("it")),
            answer(403, "NotFound", Some("it")),
            answer(410, "Expired", Some("it")),
            kube::Error::LinesCodecMaxLineLengthExceeded,
        ] {
            assert!(!says_absent(&other, "it"), "{other:?}");
        }
    }
}
