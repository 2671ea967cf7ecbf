//! The process environment, as a value.
//!
//! # Guarantees
//! A variable set to the empty string means the same as one that is not set. The values, which may be secrets, do
//! not appear in the Debug form.

use std::collections::BTreeMap;
use std::fmt;

use super::error::ConfigError;
use super::keys;

const CONFIG_NAME: &str = "CONFIG_LEADERELECTION_NAME";
const DEFAULT_CONFIG_NAME: &str = "config-leader-election";
const SYSTEM_NAMESPACE: &str = "SYSTEM_NAMESPACE";
const FIXED_CONFIG: &str = "K_LEADER_ELECTION_CONFIG";

/// A snapshot of environment variables.
///
/// ```
/// use leasehold::config::Env;
/// let env = Env::from_iter([("SYSTEM_NAMESPACE", "sources")]);
/// assert_eq!(env.system_namespace().unwrap(), "sources");
/// assert_eq!(env.config_map_name(), "config-leader-election");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<String, String>);

impl Env {
    /// The variables of this process, as they are now. What is not UTF-8 has its bad bytes replaced.
    pub fn process() -> Self {
        std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .collect()
    }

    /// The value of a variable; None where it is not set or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The name of the ConfigMap: CONFIG_LEADERELECTION_NAME, else `config-leader-election`.
    pub fn config_map_name(&self) -> &str {
        self.get(CONFIG_NAME).unwrap_or(DEFAULT_CONFIG_NAME)
    }

    /// The namespace of the Leases and of the ConfigMap: SYSTEM_NAMESPACE.
    ///
    /// # Errors
    /// [`ConfigError::NoNamespace`] where it is not set or empty.
    pub fn system_namespace(&self) -> Result<&str, ConfigError> {
        self.get(SYSTEM_NAMESPACE).ok_or_else(|| ConfigError::NoNamespace {
            found: if self.0.contains_key(SYSTEM_NAMESPACE) { "empty" } else { "not set" },
        })
    }

    /// The configuration that wins over any ConfigMap: K_LEADER_ELECTION_CONFIG.
    pub fn fixed_config(&self) -> Option<&str> {
        self.get(FIXED_CONFIG)
    }

    /// The variable that overrides one of our own keys, and its value: LEASEHOLD_STRATEGY for `strategy`.
    pub(super) fn own(&self, key: &str) -> Option<(String, &str)> {
        let name = keys::variable(key);
        self.get(&name).map(|value| (name, value))
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_is_not_set() {
        let env = Env::from_iter([
            (FIXED_CONFIG, ""),
            (CONFIG_NAME, ""),
            (SYSTEM_NAMESPACE, ""),
            ("LEASEHOLD_STRATEGY", ""),
            ("LEASEHOLD_BUCKET_HASH", "ring"),
        ]);
        assert_eq!(env.fixed_config(), None);
        assert_eq!(env.config_map_name(), "config-leader-election");
        assert_eq!(env.own("strategy"), None);
        assert_eq!(env.own("bucket-hash"), Some(("LEASEHOLD_BUCKET_HASH".to_owned(), "ring")));
        assert!(env.system_namespace().unwrap_err().to_string().contains("SYSTEM_NAMESPACE is empty"));
    }

    #[test]
    fn a_missing_namespace_says_what_to_set() {
        let error = Env::default().system_namespace().unwrap_err().to_string();
        assert!(error.contains("SYSTEM_NAMESPACE is not set") && error.contains("metadata.namespace"), "{error}");
        assert_eq!(Env::from_iter([(CONFIG_NAME, "other")]).config_map_name(), "other");
    }

    #[test]
    fn values_are_not_shown() {
        let shown = format!("{:?}", Env::from_iter([("PASSWORD", "hunter2")]));
        assert!(shown.contains("PASSWORD") && !shown.contains("hunter2"));
    }
}
