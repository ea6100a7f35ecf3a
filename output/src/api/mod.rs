//! The log API: what boxes wrote, for those who may read it.
//!
//! An aggregated API, `output.boxes.run/v1alpha1`, with one subresource and one verb:
//!
//! ```text
//! kubectl get --raw /apis/output.boxes.run/v1alpha1/namespaces/NS/boxes/NAME/log?follow=true
//! ```
//!
//! # Who may read
//! Users talk to the API server, which authenticates them and passes their requests on under its own
//! client certificate. Whoever has no such certificate is answered 401, whatever headers were sent.
//! Then a `SubjectAccessReview` asks for `get` on `boxes/log` in group `output.boxes.run`, in the
//! namespace and under the name of the path; this is also what the API server itself asks before
//! it passes the request on, so a Role needs just that:
//!
//! ```yaml
//! rules:
//!   - apiGroups: [output.boxes.run]
//!     resources: [boxes/log]
//!     verbs: [get]
//! ```
//!
//! # Front and reader
//! An archive that is a volume is read by a server of its own. A pod does not start without its volumes,
//! and while no pod of the log API is ready, no namespace can be deleted. So the log API is then a front
//! (`--reader`): it does all of the above, and has the same program read (`--front-ca`), which takes
//! its client certificate for the API server's, and authorises again. What comes back is passed on as it
//! is, but that each log has to end with its trailers: without them it was cut off.
//!
//! # What is read
//! The name leads to the Box, and its UID and the UID of its pod lead to the output; a name is never
//! a key. The query is that of `pods/log`: `follow`, `stream` (`stdout`, `stderr`, `all`),
//! `tailLines`, `sinceTime`, `sinceSeconds`, `timestamps`, `limitBytes`. Where it differs:
//!
//! * `tailLines` may be combined with `stream`, and counts whole lines of any length (the kubelet
//!   counts the 16 KiB pieces that the runtime cuts them into). Without `stream` it counts the lines
//!   of both as they were written among each other.
//! * `sinceTime` is a place, not a filter: from the first record of that time on everything is given,
//!   also if the node's clock was set back later.
//! * A Box that has not started yet has no output, which is an empty answer with a `Warning`, not an
//!   error; with `follow` the answer waits. A Box that ended without having run has none either. Only
//!   a Box that does not exist is 404.
//! * `previous` and other containers are refused.
//!
//! `follow` ends once the end of the output is archived, or when the Box is cleaned up and nothing
//! more can come. If the Box is deleted meanwhile, or the archive fails for longer than a minute, the
//! answer is cut off in the middle of a chunk: a client sees an unexpected end, never a short answer
//! that looks whole.
//!
//! # What is missing
//! The body is byte for byte what was saved, as `text/plain` without a promise of a character set.
//! That something is missing from it is said beside it:
//!
//! | where | what |
//! |---|---|
//! | header `X-Boxes-Output` | `Saved`, `Partial`, `Unfinished` (no end is archived yet) or `None` (no run) |
//! | trailer `X-Boxes-End` | the same at the end of an answer with `follow` |
//! | header `Warning` | in words, where it is known before the first byte; `kubectl` prints it |
//! | trailer `X-Boxes-Gaps` | how many gaps were passed |
//! | `gaps=inline` | a line of text in the body where output is missing: no longer byte for byte |
//! | `gaps=only` | the gaps alone, one JSON object a line |
//!
//! # Going on after a cut
//! The headers `X-Boxes-Uid` and `X-Boxes-From` name the Box and the entry that the answer begins
//! with. With the same `stream`, `timestamps` and `gaps`, and instead of `tailLines` or `sinceTime`
//!
//! ```text
//! uid=<X-Boxes-Uid>&from=<X-Boxes-From>&skipBytes=<bytes received>
//! ```
//!
//! gives the bytes that come next, exactly; 409 says that the name has become another Box's. After
//! an answer that came to its end, `from=<trailer X-Boxes-Next>` gives what was written since; the trailer
//! is absent where the answer ends inside an entry, or inside a line that needs a timestamp.
//! (`X-Boxes-From` is absent while a follower of `tailLines` or `sinceTime` waits for its first line:
//! if nothing came, the same request again is right.)

mod access;
pub mod args;
mod authn;
mod certificate;
mod cluster;
mod context;
mod discovery;
mod endpoints;
mod failure;
#[cfg(test)]
mod fake;
mod feed;
mod forward;
mod front_proxy;
mod handle;
mod handshakes;
mod health;
mod late;
mod live;
mod log;
mod metrics;
mod names;
mod openapi;
mod options;
mod pump;
mod render;
mod route;
pub mod run;
mod serve;
mod slots;
#[cfg(test)]
mod test_certificates;
#[cfg(test)]
mod tests;
mod tls;
mod upstream;
mod user;
