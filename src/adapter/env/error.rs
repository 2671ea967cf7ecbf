//! What is wrong with the environment, said so that it can be mended without reading code.

use std::fmt;

/// One variable whose value breaks its rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadVariable {
    /// The variable.
    pub variable: &'static str,
    /// What it holds.
    pub value: String,
    /// What it must hold, with an example.
    pub rule: String,
}

impl fmt::Display for BadVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A value may be a whole certificate: its beginning is enough to recognise it.
        let shown: String = self.value.chars().take(120).collect();
        let more = if shown.len() < self.value.len() { "…" } else { "" };
        write!(f, "environment variable {} is {shown:?}{more}: {}", self.variable, self.rule)
    }
}

/// All that is wrong with the environment, in the order of the variables' description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct EnvError(pub Vec<BadVariable>);

impl fmt::Display for EnvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, bad) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{bad}")?;
        }
        Ok(())
    }
}
