//! The server, asked over TLS by clients with certificates good and bad.

mod client;
mod following;
mod health;
mod identity;
mod reading;
mod refusing;
mod server;
