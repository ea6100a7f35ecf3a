//! The server, asked over TLS by clients with certificates good and bad.

mod client;
mod crowding;
mod following;
mod fronted;
mod fronted_identity;
mod health;
mod identity;
mod reading;
mod refusing;
mod server;
