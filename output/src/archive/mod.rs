//! The archive: one object store that holds what boxes wrote.
//!
//! Output is a sequence of numbered [`Entry`]s: records, which are bytes of one stream, and gaps,
//! which say what is missing. It is stored in immutable segments, each named by the number of its
//! first entry and created only if that name is free: this is what makes an entry that was written
//! at least once be read exactly once. After the last segment comes the [`Manifest`].
//!
//! ```text
//! cluster.json                                              whose archive it is
//! runs/<box uid>/box.json                                   whose it is
//! runs/<box uid>/<pod uid>/<restart>/<first entry>.seg      entries, compressed
//! runs/<box uid>/<pod uid>/<restart>/manifest.json          the end: totals, digests, gaps
//! ```

mod args;
mod cluster;
mod codec;
mod cursor;
mod delete;
mod entry;
mod error;
mod key;
mod layout;
mod manifest;
mod merge;
mod names;
mod open;
mod position;
mod read;
mod reader;
mod seek;
mod segment;
mod store;
mod tally;
mod writer;

#[cfg(test)]
pub(crate) mod faulty;
#[cfg(test)]
mod tests;

pub use args::ArchiveArgs;
pub use entry::{Content, Entry, Gap, GapReason, Record, Stream};
pub use error::{Error, Result};
pub use key::{InvalidUid, RunKey, Uid};
pub use manifest::{Manifest, Saved, StreamTotals};
pub use merge::CALLS;
pub use open::Options;
pub use position::{LineHead, Position};
pub use reader::{Reader, Start};
pub use store::{Archive, Label};
pub(crate) use tally::hex;
pub use writer::{Flushed, Resumed, Writer};
