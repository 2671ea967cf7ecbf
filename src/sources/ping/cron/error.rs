//! Why a schedule was refused, in robfig's words where it has some.

use thiserror::Error;

use super::quote;
use crate::config::duration::DurationError;

/// Why a schedule was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CronError {
    /// Nothing at all.
    #[error("empty spec string")]
    Empty,
    /// A time zone that there is not.
    #[error("provided bad location {name}: {reason}")]
    Zone {
        /// The zone as written.
        name: String,
        /// What is wrong with it.
        reason: ZoneError,
    },
    /// A time zone and no blank behind it, hence no schedule. (robfig panics.)
    #[error("no schedule in {}: write the time zone, a blank, then the schedule, as in \"CRON_TZ=Europe/Berlin 0 6 * * *\"", quote::strconv(.spec))]
    NoSchedule {
        /// The whole text.
        spec: String,
    },
    /// A time zone beside the schedule and another in it. (Knative's adapter drops such a source without a word.)
    #[error(
        "the time zone is given twice: {} beside the schedule, and in the schedule {}: keep one of them",
        quote::strconv(.beside),
        quote::strconv(.spec)
    )]
    TwoZones {
        /// The zone given beside the schedule.
        beside: String,
        /// The schedule, with the zone it names.
        spec: String,
    },
    /// Neither five nor six fields.
    #[error("expected 5 to 6 fields, found {}: [{}]", .fields.len(), .fields.join(" "))]
    FieldCount {
        /// The fields found.
        fields: Vec<String>,
    },
    /// A word behind `@` that is no descriptor.
    #[error("unrecognized descriptor: {descriptor}")]
    Descriptor {
        /// The whole descriptor, its `@` too.
        descriptor: String,
    },
    /// `@every` with something that is no duration.
    #[error("failed to parse duration {descriptor}: {reason}")]
    Every {
        /// The whole descriptor, its `@` too.
        descriptor: String,
        /// What is wrong with the duration.
        reason: DurationError,
    },
    /// Neither a number nor a name that this field knows.
    #[error("failed to parse int from {expr}: strconv.Atoi: parsing {}: {reason}", quote::strconv(.expr))]
    Int {
        /// The text in question.
        expr: String,
        /// What is wrong with it.
        reason: IntError,
    },
    /// A number below zero.
    #[error("negative number ({number}) not allowed: {expr}")]
    Negative {
        /// The number.
        number: i64,
        /// The text in question.
        expr: String,
    },
    /// A range of more than two ends.
    #[error("too many hyphens: {expr}")]
    Hyphens {
        /// The item of the list.
        expr: String,
    },
    /// More than one step.
    #[error("too many slashes: {expr}")]
    Slashes {
        /// The item of the list.
        expr: String,
    },
    /// Begins below what the field can be.
    #[error("beginning of range ({start}) below minimum ({min}): {expr}")]
    Below {
        /// Where the range begins.
        start: u64,
        /// The least the field can be.
        min: u32,
        /// The item of the list.
        expr: String,
    },
    /// Ends above what the field can be. A Sunday is 0, not 7.
    #[error("end of range ({end}) above maximum ({max}): {expr}")]
    Above {
        /// Where the range ends.
        end: u64,
        /// The most the field can be.
        max: u32,
        /// The item of the list.
        expr: String,
    },
    /// A range that ends before it begins.
    #[error("beginning of range ({start}) beyond end of range ({end}): {expr}")]
    Backwards {
        /// Where the range begins.
        start: u64,
        /// Where the range ends.
        end: u64,
        /// The item of the list.
        expr: String,
    },
    /// A step of zero.
    #[error("step of range should be a positive number: {expr}")]
    Step {
        /// The item of the list.
        expr: String,
    },
}

/// What is wrong with the name of a time zone, in the words of Go's `time.LoadLocation`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ZoneError {
    /// Not in the time zone data. Names are told apart by case, and abbreviations (`PST`) and offsets (`+01:00`) are
    /// not names.
    #[error("unknown time zone {0}")]
    Unknown(String),
    /// It would leave the directory of zones: `..`, or a slash or backslash in front.
    #[error("time: invalid location name")]
    Invalid,
    /// An area without a place, such as `America`.
    #[error("is a directory")]
    Area,
}

/// What is wrong with a number, in the words of Go's `strconv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IntError {
    /// Not an optional sign and ASCII digits.
    #[error("invalid syntax")]
    Syntax,
    /// Beyond 64 bits.
    #[error("value out of range")]
    Range,
}
