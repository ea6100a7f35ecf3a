//! What a box wrote, kept after the box is gone.
//!
//! The command's stdout and stderr go from the node's log files into an archive, and from the
//! archive to whoever asks. Everything is bytes; nothing here decodes text.
//!
//! | question | module |
//! |---|---|
//! | who may read output, and how | [`api`] |
//! | how is output kept, read, followed and deleted | [`archive`] |
//! | how does output get from log files to the archive | [`collector`] |
//! | what do log files say | [`cri`] |
//! | which pods of a node are collected, and when are they let go | [`node`] |
//! | how are log files read while they are written, rotated and removed | [`tail`] |

pub mod api;
pub mod archive;
pub mod collector;
pub mod cri;
mod names;
pub mod node;
pub mod tail;
