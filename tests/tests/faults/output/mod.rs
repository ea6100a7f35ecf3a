//! Output when things fail. Everything is real but the kubelet and the runtime of the boxes' node, which
//! the test plays: the collector is a process of this machine, and the archive is the test's own.

mod abandoned;
mod archived;
mod deleted;
mod full;
mod gate;
mod killed;
mod machine;
mod mounted;
mod planted;
mod removed;
mod restarted;
mod s3;
mod s3_server;
mod stripped;
