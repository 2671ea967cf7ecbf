//! SIGTERM and SIGINT: the first stops in good order, the second at once.

use futures::{Stream, StreamExt};
use std::io;
use std::pin::Pin;
use tokio::signal::unix::{Signal as Unix, SignalKind, signal};

/// A wish that the process end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM: Kubernetes.
    Terminate,
    /// SIGINT: a person.
    Interrupt,
}

/// Where the wishes come from.
pub type Signals = Pin<Box<dyn Stream<Item = Signal> + Send>>;

/// The signals of the process. From this call on they no longer end it by themselves.
///
/// # Errors
/// The kernel refuses a handler.
pub(super) fn of_the_process() -> io::Result<Signals> {
    let stream = |kind, means| {
        signal(kind).map(|unix: Unix| {
            Box::pin(futures::stream::unfold(
                unix,
                move |mut unix| async move { unix.recv().await.map(|()| (means, unix)) },
            ))
        })
    };
    let terminate = stream(SignalKind::terminate(), Signal::Terminate)?;
    let interrupt = stream(SignalKind::interrupt(), Signal::Interrupt)?;
    Ok(futures::stream::select(terminate, interrupt).boxed())
}
