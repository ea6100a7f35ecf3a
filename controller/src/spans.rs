//! The trace of a run in the words of OpenTelemetry.

use boxes_lifecycle::{Attribute, Span, Trace};
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

/// Its spans.
pub(crate) fn spans_of(trace: Trace) -> impl Iterator<Item = SpanData> {
    let id = TraceId::from_bytes(trace.id);
    trace.spans.into_iter().map(move |span| span_data(id, span))
}

fn span_data(trace: TraceId, span: Span) -> SpanData {
    SpanData {
        span_context: SpanContext::new(
            trace,
            SpanId::from_bytes(span.id),
            TraceFlags::SAMPLED,
            false,
            TraceState::NONE,
        ),
        parent_span_id: span.parent.map_or(SpanId::INVALID, SpanId::from_bytes),
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: span.name.into(),
        start_time: span.start.into(),
        end_time: span.end.into(),
        attributes: span.attributes.into_iter().map(key_value).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        // A run that did not fail is left unset: nobody judged what its command did.
        status: span.error.map_or(Status::Unset, Status::error),
        instrumentation_scope: InstrumentationScope::builder(env!("CARGO_PKG_NAME"))
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

fn key_value((key, value): (&'static str, Attribute)) -> KeyValue {
    match value {
        Attribute::Text(text) => KeyValue::new(key, text),
        Attribute::Number(number) => KeyValue::new(key, number),
    }
}
