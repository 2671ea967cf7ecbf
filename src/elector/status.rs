//! What the readiness page says of a queue, in words.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A shared, small table: topic to sentence. Ready does not mean holding a bucket, so none of it fails readiness.
#[derive(Debug, Clone, Default)]
pub struct Status(Arc<Mutex<BTreeMap<String, String>>>);

impl Status {
    fn table(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says `sentence` about `topic`. True if that is news.
    pub fn say(&self, topic: &str, sentence: impl Into<String>) -> bool {
        let sentence = sentence.into();
        let mut table = self.table();
        if table.get(topic) == Some(&sentence) {
            return false;
        }
        table.insert(topic.to_owned(), sentence);
        true
    }

    /// Nothing more to say about `topic`. True if there was something.
    pub fn clear(&self, topic: &str) -> bool {
        self.table().remove(topic).is_some()
    }

    /// What is said about `topic`.
    pub fn get(&self, topic: &str) -> Option<String> {
        self.table().get(topic).cloned()
    }

    /// All of it, by topic.
    pub fn all(&self) -> BTreeMap<String, String> {
        self.table().clone()
    }
}
