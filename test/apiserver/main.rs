//! The API server in memory over HTTP: kubectl against every kind it serves, and what only a socket shows.
//!
//! The tests that need kubectl say so and pass where there is none.

mod http;
mod kinds;
mod kubectl;
mod support;
