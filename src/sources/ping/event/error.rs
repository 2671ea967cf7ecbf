//! What is wrong with a PingSource, for the status and the events that its owner looks at.

use thiserror::Error;

use super::super::cron::CronError;
use crate::adapter::sink::{ContentTypeError, ExtensionError};

/// Everything that is wrong with a source; at least one thing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Invalid(pub(super) Vec<Problem>);

impl Invalid {
    /// Each thing, in the order of the fields: name, schedule, data, content type, overrides.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}

/// One thing that is wrong with a source.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// It has no name.
    #[error("metadata.name: missing")]
    Name,
    /// Its schedule cannot be read.
    #[error("spec.schedule {schedule:?}: {reason}")]
    Schedule {
        /// The schedule.
        schedule: String,
        /// What is wrong with it.
        reason: CronError,
    },
    /// Its time zone is none, or one of two.
    #[error("spec.timezone {timezone:?}: {reason}")]
    Timezone {
        /// The time zone.
        timezone: String,
        /// What is wrong with it.
        reason: CronError,
    },
    /// Its data is not base64. (Knative sends what comes before the fault.)
    #[error(
        "spec.dataBase64: {0} (line breaks left out): write standard base64 with padding, or plain text in spec.data"
    )]
    Base64(base64::DecodeError),
    /// Its content type is none. (Knative fails each send.)
    #[error("spec.contentType {content_type:?}: {reason}: write a media type such as application/json")]
    ContentType {
        /// The content type.
        content_type: String,
        /// What is wrong with it.
        reason: ContentTypeError,
    },
    /// An override cannot be sent. (Knative fails each send.)
    #[error("spec.ceOverrides: {0}")]
    Override(ExtensionError),
}
