//! The names of the strategies.

use std::fmt;
use std::str::FromStr;

use super::error::{ConfigError, ValueError};

/// Who decides which replica holds which bucket (design section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum StrategyKind {
    /// Each bucket is raced for on its own, as Knative and client-go do.
    Standard,
    /// Every member gets its share.
    Balanced,
    /// By the Pod's ordinal, without Leases.
    StatefulSet,
    /// Everything is ours: high availability off.
    Unopposed,
}

/// What `strategy` means where nobody says it.
pub(super) const DEFAULT_STRATEGY: StrategyKind = StrategyKind::Standard;

const WORDS: &str = "standard, balanced, statefulset, unopposed";

impl StrategyKind {
    /// Every strategy that has a name.
    pub const ALL: [Self; 4] = [Self::Standard, Self::Balanced, Self::StatefulSet, Self::Unopposed];

    /// The word for it in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Balanced => "balanced",
            Self::StatefulSet => "statefulset",
            Self::Unopposed => "unopposed",
        }
    }
}

impl Default for StrategyKind {
    fn default() -> Self {
        DEFAULT_STRATEGY
    }
}

impl fmt::Display for StrategyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for StrategyKind {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| ValueError::Word { found: text.to_owned(), known: WORDS })
    }
}

/// Refuses what has a name but is not in this release. The only place that knows.
pub(super) fn in_this_release(key: &str, asked: StrategyKind) -> Result<StrategyKind, ConfigError> {
    match asked {
        StrategyKind::Balanced => {
            Err(ConfigError::StrategyNotBuilt { key: key.to_owned(), asked, known: "standard, statefulset, unopposed" })
        }
        built => Ok(built),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_its_strategy() {
        for kind in StrategyKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!(
            "Standard".parse::<StrategyKind>().unwrap_err().to_string(),
            "\"Standard\" is none of standard, balanced, statefulset, unopposed"
        );
    }

    #[test]
    fn what_is_not_built_is_refused_by_name() {
        for kind in StrategyKind::ALL {
            let answer = in_this_release("strategy", kind);
            assert_eq!(answer.is_err(), kind == StrategyKind::Balanced);
            if let Err(error) = answer {
                assert_eq!(
                    error.to_string(),
                    "strategy: \"balanced\" is not in this release; it has standard, statefulset, unopposed"
                );
            }
        }
        assert!(in_this_release("strategy", DEFAULT_STRATEGY).is_ok());
    }
}
