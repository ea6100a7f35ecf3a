//! From a request to its answer.

use axum::response::{IntoResponse, Response};
use http::Method;
use http::request::Parts;
use rustls::pki_types::CertificateDer;

use super::context::Context;
use super::discovery::{group, groups, json_answer, resources};
use super::failure::Failure;
use super::route::Route;
use super::{log, openapi};

/// Answers a request that came over a connection with these client certificates.
pub(crate) async fn handle(
    cx: &Context,
    certificates: &[CertificateDer<'_>],
    request: &Parts,
) -> Response {
    let answer = respond(cx, certificates, request).await;
    let code = answer.as_ref().map_or_else(Failure::code, Response::status);
    cx.metrics.count_request(code);
    answer.unwrap_or_else(Failure::into_response)
}

/// First who asks, then what for.
async fn respond(
    cx: &Context,
    certificates: &[CertificateDer<'_>],
    request: &Parts,
) -> Result<Response, Failure> {
    let user = cx.identify(certificates, &request.headers)?;
    let route = Route::of(request.uri.path());
    if route == Route::Nothing {
        return Err(Failure::no_such_path());
    }
    if request.method != Method::GET {
        return Err(Failure::method_not_allowed());
    }
    match route {
        Route::Log(target) => {
            let query = request.uri.query().unwrap_or("");
            log::answer(cx, &user, &target, query).await
        }
        Route::Groups => Ok(groups(&request.headers)),
        Route::Group => Ok(group()),
        Route::Resources => Ok(resources()),
        Route::OpenApiV2 => Ok(json_answer(&openapi::v2())),
        Route::OpenApiV3Root => Ok(json_answer(&openapi::v3_root())),
        Route::OpenApiV3 => Ok(json_answer(&openapi::v3())),
        Route::Nothing => Err(Failure::no_such_path()),
    }
}
