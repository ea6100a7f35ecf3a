//! Which paths there are.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::names::Target;

/// The API's group.
pub(crate) const GROUP: &str = "output.boxes.run";
/// Its one version.
pub(crate) const VERSION: &str = "v1alpha1";

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The output of a Box.
    Log(Target),
    /// `/apis`
    Groups,
    /// `/apis/output.boxes.run`
    Group,
    /// `/apis/output.boxes.run/v1alpha1`
    Resources,
    /// `/openapi/v2`
    OpenApiV2,
    /// `/openapi/v3`
    OpenApiV3Root,
    /// `/openapi/v3/apis/output.boxes.run/v1alpha1`
    OpenApiV3,
    /// Anything else.
    Nothing,
}

impl Route {
    /// Reads a path as it stood in the request. Segments are decoded after they are split, so that
    /// an encoded slash or dot never becomes one of the path's own.
    pub(crate) fn of(path: &str) -> Self {
        let Some(segments) = segments(path) else {
            return Self::Nothing;
        };
        let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
        match *segments.as_slice() {
            ["apis"] => Self::Groups,
            ["apis", GROUP] => Self::Group,
            ["apis", GROUP, VERSION] => Self::Resources,
            [
                "apis",
                GROUP,
                VERSION,
                "namespaces",
                namespace,
                "boxes",
                name,
                "log",
            ] => Target::new(namespace, name).map_or(Self::Nothing, Self::Log),
            ["openapi", "v2"] => Self::OpenApiV2,
            ["openapi", "v3"] => Self::OpenApiV3Root,
            ["openapi", "v3", "apis", GROUP, VERSION] => Self::OpenApiV3,
            _ => Self::Nothing,
        }
    }
}

/// The path of a log. Its names were checked: they are segments and nothing else.
pub(crate) fn log_path(target: &Target) -> String {
    let Target { namespace, name } = target;
    format!("/apis/{GROUP}/{VERSION}/namespaces/{namespace}/boxes/{name}/log")
}

fn segments(path: &str) -> Option<Vec<Cow<'_, str>>> {
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let decode = |segment| percent_decode_str(segment).decode_utf8().ok();
    path.split('/').map(decode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOXES: &str = "/apis/output.boxes.run/v1alpha1/namespaces";

    fn log(namespace: &str, name: &str) -> Route {
        Route::of(&format!("{BOXES}/{namespace}/boxes/{name}/log"))
    }

    #[rstest::rstest]
    #[case("/apis", Route::Groups)]
    #[case("/apis/", Route::Groups)]
    #[case("/apis/output.boxes.run", Route::Group)]
    #[case("/apis/output.boxes.run/v1alpha1", Route::Resources)]
    #[case("/openapi/v2", Route::OpenApiV2)]
    #[case("/openapi/v3", Route::OpenApiV3Root)]
    #[case("/openapi/v3/apis/output.boxes.run/v1alpha1", Route::OpenApiV3)]
    #[case("/", Route::Nothing)]
    #[case("", Route::Nothing)]
    #[case("apis", Route::Nothing)]
    #[case("//apis", Route::Nothing)]
    #[case("/apis/boxes.run/v1alpha1", Route::Nothing)]
    #[case("/apis/output.boxes.run/v1", Route::Nothing)]
    #[case("/apis/output.boxes.run/v1alpha1/boxes", Route::Nothing)]
    #[case("/apis/output.boxes.run/v1alpha1/namespaces/a/boxes", Route::Nothing)]
    #[case("/apis/output.boxes.run/v1alpha1/namespaces/a/boxes/b", Route::Nothing)]
    #[case("/metrics", Route::Nothing)]
    fn paths(#[case] path: &str, #[case] route: Route) {
        assert_eq!(Route::of(path), route);
    }

    #[test]
    fn a_log_is_named_by_namespace_and_name() {
        let target = Target::new("ns", "a.b").unwrap();
        assert_eq!(log("ns", "a.b"), Route::Log(target.clone()));
        assert_eq!(log("%6es", "a%2Eb"), Route::Log(target.clone()));
        assert_eq!(Route::of(&log_path(&target)), Route::Log(target));
    }

    #[rstest::rstest]
    #[case("..")]
    #[case("%2e%2e")]
    #[case("%2E%2E%2F%2E%2E%2Fother")]
    #[case("a%2Flog")]
    #[case("a%5C..")]
    #[case("a%00")]
    #[case("%")]
    #[case("%ff")]
    #[case("%252e%252e")]
    #[case("a b")]
    #[case("")]
    #[case("../../other/boxes/b")]
    fn forged_names_lead_nowhere(#[case] forged: &str) {
        assert_eq!(log("ns", forged), Route::Nothing);
        assert_eq!(log(forged, "b"), Route::Nothing);
    }

    #[test]
    fn endless_names_lead_nowhere() {
        assert_eq!(log("ns", &"a".repeat(100_000)), Route::Nothing);
        assert_eq!(log(&"a".repeat(100_000), "b"), Route::Nothing);
    }
}
