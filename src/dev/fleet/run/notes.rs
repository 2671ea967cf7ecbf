//! What is remarked on the way.

/// How many notes of one kind are kept.
const NOTED: usize = 5;

/// Remarks of two kinds, of each the first few.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) refused: (u64, Vec<String>),
    pub(super) unreadable: (u64, Vec<String>),
    pub(super) other: Vec<String>,
}

impl Notes {
    pub(super) fn add(kind: &mut (u64, Vec<String>), text: String) {
        kind.0 += 1;
        if kind.1.len() < NOTED {
            kind.1.push(text);
        }
    }

    pub(super) fn all(self) -> Vec<String> {
        let list = |what: &str, (count, some): (u64, Vec<String>)| {
            (count > 0).then(|| format!("{count} {what}: {}", some.join("; ")))
        };
        let kinds = [
            list("requests to the sink were refused", self.refused),
            list("report lines were not read", self.unreadable),
        ];
        kinds.into_iter().flatten().chain(self.other).collect()
    }
}
