//! Buckets and keys.
