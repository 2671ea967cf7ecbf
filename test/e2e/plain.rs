//! Plain HTTP to loopback: probes and metrics of replicas, etcd's gateway.

use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer's status and body.
pub(crate) async fn request(at: &str, method: &str, path: &str, body: &str) -> std::io::Result<(u16, String)> {
    let asking = async {
        let mut stream = TcpStream::connect(at).await?;
        // 1.0: the body is what comes until the end.
        let head = format!("{method} {path} HTTP/1.0\r\nHost: {at}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(head.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = tokio::time::timeout(Duration::from_secs(20), asking).await.map_err(std::io::Error::other)??;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    Ok((status, body.to_owned()))
}

/// A gauge or counter on a page of metrics: the sum of the samples of `name` that have all of `labels`.
pub(crate) fn metric(page: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    let samples = page.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let (own, given) = series.split_once('{').unwrap_or((series, ""));
        let all = labels.iter().all(|(key, value)| given.contains(&format!("{key}=\"{value}\"")));
        (own == name && all).then(|| value.parse::<f64>().ok()).flatten()
    });
    samples.sum()
}
