//! The end-to-end suite: run it with `make test`.
