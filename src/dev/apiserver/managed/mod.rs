//! Managed fields: who set which field, and server-side apply on top of that.
//!
//! # Caveats
//! Events are tracked by their core/v1 names when they are written through either API, and by the names of the API in
//! use when they are applied.

mod apply;
mod fieldset;
mod track;

pub(crate) use apply::apply;
pub(crate) use track::{Writer, update};
