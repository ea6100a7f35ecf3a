//! What the tests of Boxes share: a real cluster on this machine, and the images that run on it.

pub mod bench;
pub mod cluster;
pub mod harness;
pub mod images;
