//! What a box wrote, kept after the box is gone.
//!
//! The command's stdout and stderr go from the node's log files into an archive, and from the
//! archive to whoever asks. Everything is bytes; nothing here decodes text.
//!
//! | question | module |
//! |---|---|
//! | who may read output, and how | [`api`] |
//! | how is output kept, read, followed and deleted | [`archive`] |

pub mod api;
pub mod archive;
