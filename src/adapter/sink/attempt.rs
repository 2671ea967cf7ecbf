//! One attempt: a POST, its redirects, its answer.

use super::encode::Encoded;
use super::outcome::{Failure, Refusal};
use http::StatusCode;
use http::header::{HeaderMap, LOCATION};
use reqwest::{Client, Response};
use std::error::Error;
use std::time::Duration;
use url::Url;

/// As Go's client.
const MOST_REQUESTS: usize = 10;
/// An answer's body is read up to here, so that the connection can be used again; beyond it the connection is closed.
const MOST_BODY: usize = 64 * 1024;
/// So much of it is kept for people.
const SHOWN_BODY: usize = 1024;
/// An answer counts from its head on. Its body is waited for no longer than this.
const BODY_PATIENCE: Duration = Duration::from_secs(1);

/// What came of one attempt.
pub(super) enum Attempt {
    Answer { status: StatusCode, headers: HeaderMap, body: String },
    Failed(Failure),
    Refused(Refusal),
}

/// Sends once. `limit` is for the whole of it, redirects included, up to the head of the answer.
pub(super) async fn attempt(client: &Client, url: &Url, event: &Encoded, limit: Option<Duration>) -> Attempt {
    let asked = ask(client, url, event);
    let response = match limit {
        None => asked.await,
        Some(limit) => match tokio::time::timeout(limit, asked).await {
            Ok(response) => response,
            Err(_) => return Attempt::Failed(Failure::Timeout(limit)),
        },
    };
    match response {
        Ok(mut response) => {
            let body = read(&mut response).await;
            Attempt::Answer { status: response.status(), headers: std::mem::take(response.headers_mut()), body }
        }
        Err(other) => other,
    }
}

/// Follows 307 and 308, which keep the method and the body.
async fn ask(client: &Client, url: &Url, event: &Encoded) -> Result<Response, Attempt> {
    let mut at = url.clone();
    for _ in 0..MOST_REQUESTS {
        let request = client.post(at.clone()).headers(event.headers.clone()).body(event.body.clone());
        let response = request.send().await.map_err(|e| judge(&e))?;
        let status = response.status();
        let Some(location) = response.headers().get(LOCATION).filter(|_| status.is_redirection()) else {
            return Ok(response);
        };
        let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
        let refuse =
            |why| Err(Attempt::Refused(Refusal::Redirect { status: status.as_u16(), location: location.clone(), why }));
        match status {
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {}
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => {
                return refuse("which would be asked by GET, without the event");
            }
            _ => return Ok(response),
        }
        at = match at.join(&location) {
            Ok(next) if !matches!(next.scheme(), "http" | "https") => return refuse("which is neither http nor https"),
            Ok(next) if at.scheme() == "https" && next.scheme() == "http" => {
                return refuse("which would send the event in the clear");
            }
            Ok(next) => next,
            Err(_) => return refuse("which is no URL"),
        };
    }
    Err(Attempt::Failed(Failure::Redirects(at.to_string())))
}

/// Reads the body, within bounds, and gives its beginning. An answer is an answer even where its body breaks off.
async fn read(response: &mut Response) -> String {
    let mut shown = Vec::new();
    let all = async {
        let mut length = 0;
        while let Ok(Some(chunk)) = response.chunk().await {
            length += chunk.len();
            shown.extend_from_slice(&chunk[..chunk.len().min(SHOWN_BODY - shown.len())]);
            if length > MOST_BODY {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(BODY_PATIENCE, all).await;
    String::from_utf8_lossy(&shown).into_owned()
}

/// Whether an error is the network's, which may pass, or will be the same next time.
pub(super) fn judge(error: &reqwest::Error) -> Attempt {
    let causes = causes(error);
    if error.is_builder() {
        return Attempt::Refused(Refusal::Url(said(&causes)));
    }
    let parse_status =
        |e: &&(dyn Error + 'static)| e.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse_status);
    if causes.iter().any(parse_status) {
        return Attempt::Refused(Refusal::NoStatus);
    }
    if let Some(name) = causes.iter().find(|e| is_other_name(**e)) {
        return Attempt::Refused(Refusal::TlsName(name.to_string()));
    }
    Attempt::Failed(Failure::Network(said(&causes)))
}

/// The error and what caused it, outermost first. An io::Error hides the one it carries from `source`.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut all = vec![error];
    let mut at = error;
    // Bounded: an error that is its own cause must not hold a bucket.
    while all.len() < 16 {
        let carried = at.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let next: Option<&'a (dyn Error + 'static)> = match carried {
            Some(inner) => Some(inner),
            None => at.source(),
        };
        let Some(next) = next else { break };
        all.push(next);
        at = next;
    }
    all
}

/// The sentences of all causes, those left out that an earlier one already says.
fn said(causes: &[&(dyn Error + 'static)]) -> String {
    let mut sentences: Vec<String> = Vec::new();
    for sentence in causes.iter().map(ToString::to_string) {
        if !sentences.iter().any(|s| s.contains(&sentence)) {
            sentences.push(sentence);
        }
    }
    sentences.join(": ")
}

#[cfg(feature = "program")]
fn is_other_name(error: &(dyn Error + 'static)) -> bool {
    use rustls::{CertificateError, Error as Tls};
    matches!(
        error.downcast_ref(),
        Some(Tls::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        ))
    )
}

/// Without the program's TLS its errors have no type here: they are retried like the network's.
#[cfg(not(feature = "program"))]
fn is_other_name(_: &(dyn Error + 'static)) -> bool {
    false
}

#[cfg(all(test, feature = "program"))]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_certificate_for_another_name_is_found_behind_the_layers() {
        let tls =
            |e| io::Error::other(io::Error::new(io::ErrorKind::InvalidData, rustls::Error::InvalidCertificate(e)));
        let found = |e: io::Error| causes(&e).iter().any(|e| is_other_name(*e));
        assert!(found(tls(rustls::CertificateError::NotValidForName)));
        assert!(!found(tls(rustls::CertificateError::Expired)));
        assert!(!found(io::Error::other("not valid for name")));
    }

    #[test]
    fn causes_are_said_once() {
        let inner = io::Error::other("connection refused");
        let outer = io::Error::other(inner);
        assert_eq!(said(&causes(&outer)), "connection refused");
    }
}
