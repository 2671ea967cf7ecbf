//! JSON as Go's encoding/json decodes it into a `leaderelection.ComponentConfig`.
//!
//! A general JSON crate would refuse other inputs, in other words, and merge or refuse repeated fields otherwise;
//! what Go tells a person about a bad variable is what they will search for.
//!
//! # Guarantees
//! - Syntax is checked to the end before anything else, then the first field of a wrong type is named; both in the
//!   words of Go 1.27 (test/vectors/env-lec.json).
//! - Field names match in upper and lower case, a later field wins, null leaves a field as it is (and empties a map),
//!   maps are merged, a lone surrogate becomes U+FFFD: all as in Go.
//! - The depth of the input costs no stack, and is at most 10,000 as in Go.

mod fields;
mod scan;
mod text;

use std::borrow::Cow;

use super::component::ComponentConfig;
use super::quote;

pub(super) use fields::decode;

/// What was decoded, and the fields that meant nothing.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) config: ComponentConfig,
    pub(super) unknown: Vec<String>,
}

/// Why a text is not the JSON that is wanted; in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// It ends too early.
    #[error("unexpected end of JSON input")]
    UnexpectedEnd,
    /// A character stands where it cannot.
    #[error("invalid character {} {place}", quote::rune(*.found))]
    InvalidCharacter {
        /// The character.
        found: char,
        /// Where it was found.
        place: Cow<'static, str>,
    },
    /// A backslash in a string is followed by something that it does not escape.
    #[error("invalid escape sequence `{found}` in string")]
    InvalidEscape {
        /// The sequence.
        found: String,
    },
    /// Arrays and objects are nested more than 10,000 deep.
    #[error("exceeded max depth")]
    TooDeep,
    /// The whole is not an object.
    #[error("json: cannot unmarshal {found} into Go value of type leaderelection.ComponentConfig")]
    NotAnObject {
        /// The kind of JSON value.
        found: &'static str,
    },
    /// A field is of another type.
    #[error("json: cannot unmarshal {found} into Go struct field ComponentConfig.{field} of type {wanted}")]
    Field {
        /// The kind of JSON value, with the number where that is what does not fit.
        found: String,
        /// The field.
        field: String,
        /// Go's type.
        wanted: &'static str,
    },
}
