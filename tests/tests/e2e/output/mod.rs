//! Output outlives the pod: it is read by name, whole, by those who may.

mod access;
mod bytes;
mod proof;
mod reading;
