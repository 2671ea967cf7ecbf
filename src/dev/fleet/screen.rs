//! What a person sees while a run goes on: a table that is drawn over itself on a terminal, a line every few seconds
//! elsewhere.

use crate::clock::Instant;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// From one drawing of the table to the next.
const REDRAWN: Duration = Duration::from_millis(250);
/// From one line to the next.
const LINES: Duration = Duration::from_secs(5);
/// How much of the log the table shows.
const LOGGED: usize = 6;

/// One replica.
#[derive(Debug, Clone)]
pub(super) struct ReplicaRow {
    /// Its Pod's name.
    pub(super) name: String,
    /// What it does.
    pub(super) state: &'static str,
    /// How many buckets it acts for.
    pub(super) holds: usize,
}

/// One bucket.
#[derive(Debug, Clone)]
pub(super) struct BucketRow {
    /// Its name.
    pub(super) name: String,
    /// Who acts for it, since when, and how long its deadline is away; none where there is none.
    pub(super) holder: Option<(String, Duration, Option<Duration>)>,
    /// Events per second.
    pub(super) rate: f64,
}

/// Everything on the screen, as plain data.
#[derive(Debug, Clone)]
pub(super) struct View {
    /// The run in a line.
    pub(super) title: String,
    /// Where it is, and how long that lasts yet.
    pub(super) phase: String,
    /// The replicas.
    pub(super) replicas: Vec<ReplicaRow>,
    /// The buckets.
    pub(super) buckets: Vec<BucketRow>,
    /// Events per second, all together.
    pub(super) rate: f64,
    /// Events so far.
    pub(super) events: u64,
    /// How many buckets there have to be.
    pub(super) of: usize,
}

impl View {
    fn held(&self) -> usize {
        self.buckets.iter().filter(|b| b.holder.is_some()).count()
    }

    /// In one line.
    pub(super) fn line(&self) -> String {
        let replicas: Vec<String> =
            self.replicas.iter().map(|r| format!("{} {} ({})", r.name, r.state, r.holds)).collect();
        format!(
            "{}; {}/{} buckets held; {:.1} events/s, {} so far; {}",
            self.phase,
            self.held(),
            self.of,
            self.rate,
            self.events,
            replicas.join(", ")
        )
    }

    /// As a table of at most `height` lines, none wider than `width`.
    pub(super) fn table(&self, log: &[String], width: usize, height: usize) -> Vec<String> {
        let mut lines = vec![
            self.title.clone(),
            format!(
                "{}   {:.1} events/s, {} so far   {}/{} buckets held",
                self.phase,
                self.rate,
                self.events,
                self.held(),
                self.of
            ),
            String::new(),
        ];
        lines.extend(self.replicas.iter().map(|r| format!("{:<16} {:<9} {:>4} buckets", r.name, r.state, r.holds)));
        lines.push(String::new());
        let log = &log[log.len().saturating_sub(LOGGED)..];
        // Buckets get what is left; a terminal too small for all is told so.
        let room = height.saturating_sub(lines.len() + 3 + log.len()).max(1);
        lines.push(format!("{:<12} {:<16} {:>8} {:>9} {:>9}", "BUCKET", "HOLDER", "SINCE", "DEADLINE", "EVENTS/S"));
        let shown = if self.buckets.len() > room { room - 1 } else { self.buckets.len() };
        lines.extend(self.buckets[..shown].iter().map(BucketRow::line));
        if shown < self.buckets.len() {
            lines.push(format!(".. and {} more", self.buckets.len() - shown));
        }
        lines.push(String::new());
        lines.extend(log.iter().cloned());
        lines.truncate(height);
        lines.iter().map(|line| line.chars().take(width).collect()).collect()
    }
}

impl BucketRow {
    fn line(&self) -> String {
        // The last part tells them apart: 03-of-10.
        let name = self.name.rsplit('.').next().unwrap_or(&self.name);
        let name = if name.is_empty() { "(all)" } else { name };
        let seconds = |d: Duration| format!("{:.1}s", d.as_secs_f64());
        match &self.holder {
            None => format!("{name:<12} {:<16} {:>8} {:>9} {:>9.1}", "-", "", "", self.rate),
            Some((holder, since, left)) => {
                let left = left.map_or_else(|| "never".to_owned(), seconds);
                format!("{name:<12} {holder:<16} {:>8} {left:>9} {:>9.1}", seconds(*since), self.rate)
            }
        }
    }
}

/// Where it is shown.
#[derive(Debug)]
pub(super) struct Screen {
    table: bool,
    began: Instant,
    next: Instant,
    /// How many lines the last table had.
    drawn: usize,
    log: Vec<String>,
}

impl Screen {
    /// On standard output: as a table where that is a terminal and nothing else is to be written to it.
    pub(super) fn new(table: bool, now: Instant) -> Self {
        let table = table && std::io::stdout().is_terminal();
        Self { table, began: now, next: now, drawn: 0, log: Vec::new() }
    }

    /// Something happened.
    pub(super) fn say(&mut self, at: Instant, text: &str) {
        let line = format!("{:7.1}s  {text}", at.since(self.began).as_secs_f64());
        if !self.table {
            write(&format!("{line}\n"));
        }
        self.log.push(line);
        // The table shows the newest only.
        if self.log.len() > 2 * LOGGED {
            self.log.drain(..LOGGED);
        }
    }

    /// Whether it is time to show the state of things again.
    pub(super) fn due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Shows the state of things.
    pub(super) fn show(&mut self, view: &View, now: Instant) {
        self.next = now + if self.table { REDRAWN } else { LINES };
        if !self.table {
            write(&format!("{:7.1}s  {}\n", now.since(self.began).as_secs_f64(), view.line()));
            return;
        }
        let (width, height) = size();
        let lines = view.table(&self.log, width, height.saturating_sub(1));
        let mut text = String::new();
        if self.drawn > 0 {
            // Up to where the last table began, and everything below it away.
            text = format!("\x1b[{}F\x1b[J", self.drawn);
        }
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        self.drawn = lines.len();
        write(&text);
    }
}

fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (usize::from(size.ws_col), usize::from(size.ws_row)),
        _ => (80, 24),
    }
}

fn write(text: &str) {
    // A closed terminal is no reason to end a run.
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(buckets: usize) -> View {
        let bucket = |n: usize| BucketRow {
            name: format!("a.b.{n:02}-of-{buckets:02}"),
            holder: (n != 1)
                .then(|| ("replica-0-0".to_owned(), Duration::from_millis(12_340), Some(Duration::from_secs(8)))),
            rate: 4.0,
        };
        View {
            title: "3 replicas, standard".to_owned(),
            phase: "running, 12 s left".to_owned(),
            replicas: vec![
                ReplicaRow { name: "replica-0-0".to_owned(), state: "up", holds: 2 },
                ReplicaRow { name: "replica-1-3".to_owned(), state: "paused", holds: 0 },
            ],
            buckets: (0..buckets).map(bucket).collect(),
            rate: 39.96,
            events: 1234,
            of: buckets,
        }
    }

    #[test]
    fn the_table() {
        let log = vec!["    5.0s  kill: replica-1-2, which holds 1".to_owned()];
        insta::assert_snapshot!(view(3).table(&log, 80, 24).join("\n"), @r"
        3 replicas, standard
        running, 12 s left   40.0 events/s, 1234 so far   2/3 buckets held

        replica-0-0      up           2 buckets
        replica-1-3      paused       0 buckets

        BUCKET       HOLDER              SINCE  DEADLINE  EVENTS/S
        00-of-03     replica-0-0         12.3s      8.0s       4.0
        01-of-03     -                                         4.0
        02-of-03     replica-0-0         12.3s      8.0s       4.0

            5.0s  kill: replica-1-2, which holds 1
        ");
    }

    #[test]
    fn the_line() {
        insta::assert_snapshot!(view(3).line(), @"running, 12 s left; 2/3 buckets held; 40.0 events/s, 1234 so far; replica-0-0 up (2), replica-1-3 paused (0)");
    }

    #[test]
    fn a_table_fits_its_terminal() {
        let log: Vec<String> = (0..20).map(|n| format!("line {n}")).collect();
        for (width, height) in [(80, 24), (20, 10), (1, 1), (200, 60)] {
            let lines = view(2048).table(&log, width, height);
            assert!(lines.len() <= height && lines.iter().all(|l| l.chars().count() <= width), "{width}x{height}");
        }
        let lines = view(2048).table(&log, 80, 40);
        assert!(lines.iter().any(|line| line.starts_with(".. and 20")), "{lines:#?}");
        assert_eq!(lines.last().map(String::as_str), Some("line 19"));
    }
}
