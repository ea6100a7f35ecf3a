//! A small model of what surrounds the rules: the API server, the scheduler, a kubelet, people who
//! disturb, and a controller that may crash after any write and whose caches may lag.
//!
//! It is as strict as the real ones where that matters for the rules: finalizers hold deleted
//! objects, unbound and terminal pods are deleted without grace, and a write on another UID or
//! version is a conflict. Every write of the controller is checked against the contract when it
//! arrives, with the knowledge of what really runs.

mod api;
mod boxes;
mod checks;
mod collector;
mod command;
mod controller;
mod disturb;
mod kubelet;
mod publish;
mod simulation;
mod supervisor;

pub(crate) use command::{Command, OnTerm, Start, Wait};
pub(crate) use disturb::Disturbance;
pub(crate) use simulation::{Crash, Plan, Report, run};
