//! PingSources from a YAML file, followed as it changes.

use super::Keeper;
use crate::manifest;
use crate::sources::ping::source::PingSource;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(2);
/// A file that changed is read again after this, and taken when it has not changed meanwhile: whoever writes it may be in
/// the middle.
const SETTLED: Duration = Duration::from_millis(100);

impl Keeper {
    /// Reads `path`; the answer is its text, for [`Keeper::follow`].
    ///
    /// # Errors
    /// It cannot be read, or is no manifest of PingSources: the text names the file and what is wrong.
    pub(in crate::sources::ping) async fn read(&mut self, path: &Path) -> Result<String, String> {
        let text = tokio::fs::read_to_string(path).await.map_err(|e| in_file(path, e))?;
        self.take(path, &text)?;
        Ok(text)
    }

    fn take(&mut self, path: &Path, text: &str) -> Result<(), String> {
        let sources: Vec<PingSource> = manifest::objects(text).map_err(|e| in_file(path, e))?;
        let mut all = BTreeMap::new();
        for source in sources {
            let key = source.key();
            if all.insert(key.clone(), source).is_some() {
                return Err(in_file(path, format!("PingSource {key} stands in it twice")));
            }
        }
        self.replace(all.into_values());
        self.publish();
        Ok(())
    }

    /// Follows the file, whose text was `text`. Never ends.
    pub(in crate::sources::ping) async fn follow(mut self, path: PathBuf, text: String) {
        // None: it can't be read; back again, it counts as changed, whatever stands in it.
        let mut text = Some(text);
        let mut said = None;
        loop {
            tokio::time::sleep(LOOK).await;
            let result = match settled(&path, text.as_deref()).await {
                Ok(None) => continue,
                Ok(Some(now)) => {
                    let taken = self.take(&path, &now);
                    if taken.is_ok() {
                        tracing::info!(path = %path.display(), sources = self.judged.len(), "the file of PingSources has changed");
                    }
                    text = Some(now);
                    taken
                }
                Err(e) => {
                    text = None;
                    Err(in_file(&path, e))
                }
            };
            if let Err(why) = &result
                && said.as_ref() != Some(why)
            {
                tracing::error!(%why, "the file of PingSources can't be used; the last good ones stay in force");
            }
            said = result.err();
        }
    }
}

/// What the file holds now, once that holds still; None: the same as before.
async fn settled(path: &Path, before: Option<&str>) -> std::io::Result<Option<String>> {
    let mut now = tokio::fs::read_to_string(path).await?;
    while Some(&*now) != before {
        tokio::time::sleep(SETTLED).await;
        let again = tokio::fs::read_to_string(path).await?;
        if again == now {
            return Ok(Some(now));
        }
        now = again;
    }
    Ok(None)
}

fn in_file(path: &Path, what: impl std::fmt::Display) -> String {
    format!("{}: {what}", path.display())
}
