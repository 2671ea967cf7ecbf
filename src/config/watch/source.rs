//! Where the configuration comes from, and its first reading.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};

use super::follow::Watching;
use super::status::{ConfigWatch, Origin};
use crate::config::{Config, ConfigError, Env, Parsed};

/// The longest that the first reading may take; a connection can die without a sign.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The data of a ConfigMap.
pub(super) type Data = BTreeMap<String, String>;

/// Where the configuration of one component comes from.
#[derive(Clone, Debug)]
pub struct ConfigSource(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Fixed { parsed: Box<Parsed>, origin: Origin },
    ConfigMap(Box<Place>),
}

/// A ConfigMap, and for whom it is read.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) api: Api<ConfigMap>,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) component: String,
    pub(super) env: Env,
}

impl Place {
    pub(super) fn origin(&self) -> Origin {
        Origin::ConfigMap { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// Its data; None where there is no such ConfigMap.
    async fn read(&self) -> Result<Option<Data>, StartError> {
        let origin = self.origin();
        match tokio::time::timeout(READ_TIMEOUT, self.api.get_opt(&self.name)).await {
            Ok(Ok(found)) => Ok(found.map(|map| map.data.unwrap_or_default())),
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403) => {
                Err(StartError::Forbidden { origin, error: Box::new(kube::Error::Api(status)) })
            }
            Ok(Err(error)) => Err(StartError::Unreachable { origin, error: Box::new(error) }),
            Err(_) => Err(StartError::NoAnswer { origin }),
        }
    }

    fn parse(&self, data: Option<&Data>) -> Result<Parsed, StartError> {
        match data {
            Some(data) => Config::from_config_map(Some(data), &self.env),
            None => Config::default_without_config_map(&self.env),
        }
        .map_err(|error| StartError::Invalid { origin: self.origin(), error })
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("namespace", &self.namespace).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why a replica cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration is wrong. Only a person can mend it.
    #[error("{origin}: {error}")]
    Invalid {
        /// Where it comes from.
        origin: Origin,
        /// What is wrong.
        error: ConfigError,
    },
    /// The API server does not let us read the ConfigMap.
    #[error("{origin} cannot be read: {}; the service account needs get, list and watch on configmaps there", brief(.error))]
    Forbidden {
        /// The ConfigMap.
        origin: Origin,
        /// The API server's answer.
        error: Box<kube::Error>,
    },
    /// The API server gave an error.
    #[error("{origin} cannot be read: {}", brief(.error))]
    Unreachable {
        /// The ConfigMap.
        origin: Origin,
        /// What came of the request.
        error: Box<kube::Error>,
    },
    /// The API server gave no answer.
    #[error("{origin} cannot be read: the API server has not answered within {READ_TIMEOUT:?}")]
    NoAnswer {
        /// The ConfigMap.
        origin: Origin,
    },
}

impl StartError {
    /// Whether it may pass by itself: what the API server refuses or does not answer can, a wrong configuration
    /// cannot.
    pub fn may_pass(&self) -> bool {
        !matches!(self, Self::Invalid { .. })
    }
}

impl ConfigSource {
    /// K_LEADER_ELECTION_CONFIG where it is not empty, else the ConfigMap that `env` names.
    ///
    /// Any client does: a hung connection is bounded here.
    ///
    /// # Errors
    /// K_LEADER_ELECTION_CONFIG or a `LEASEHOLD_<KEY>` beside it is wrong; or without it, SYSTEM_NAMESPACE is not set.
    pub fn choose(component: &str, env: &Env, client: Client) -> Result<Self, ConfigError> {
        if let Some(json) = env.fixed_config() {
            let parsed = Config::from_json(component, json, env)?;
            return Ok(Self(Kind::Fixed { parsed: Box::new(parsed), origin: Origin::Variable }));
        }
        let namespace = env.system_namespace()?;
        Ok(Self::config_map(component, client, namespace, env.config_map_name(), env))
    }

    /// A ConfigMap. Of `env` only `LEASEHOLD_<KEY>` counts.
    pub fn config_map(component: &str, client: Client, namespace: &str, name: &str, env: &Env) -> Self {
        Self(Kind::ConfigMap(Box::new(Place {
            api: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            component: component.to_owned(),
            env: env.clone(),
        })))
    }

    /// A configuration made in code.
    pub fn fixed(config: Config) -> Self {
        Self(Kind::Fixed { parsed: Box::new(Parsed { config, warnings: Vec::new() }), origin: Origin::Code })
    }

    /// Reads it once, in at most 10 s. A ConfigMap that is not there is no error: the defaults hold until it is made.
    ///
    /// The [`Watching`] is to be run for as long as the process lives. Dropping the future before it is done sends
    /// nothing further.
    ///
    /// # Errors
    /// [`StartError`]; [`StartError::may_pass`] says whether trying again can help.
    pub async fn start(&self) -> Result<(ConfigWatch, Watching), StartError> {
        let (watch, watching) = match &self.0 {
            Kind::Fixed { parsed, origin } => {
                let watch = ConfigWatch::begin(Parsed::clone(parsed), origin.clone(), false);
                (watch.clone(), Watching::nothing(watch))
            }
            Kind::ConfigMap(place) => {
                let found = place.read().await?;
                let parsed = place.parse(found.as_ref())?;
                let watch = ConfigWatch::begin(parsed, place.origin(), found.is_some());
                (watch.clone(), Watching::of(watch, Place::clone(place), found))
            }
        };
        let status = watch.status();
        tracing::info!(origin = %status.origin, present = status.present, config = ?watch.config(), "configuration read");
        for warning in &status.warnings {
            tracing::warn!(origin = %status.origin, %warning, "configuration without effect");
        }
        Ok((watch, watching))
    }

    /// As [`start`](Self::start), but tries again, after at most half a minute, for as long as
    /// [trying can help](StartError::may_pass); logs each failure, counts it as one of the watch, and tells `failed`. Dropping
    /// the future ends it.
    ///
    /// # Errors
    /// The configuration is wrong.
    pub async fn start_patiently(
        &self,
        mut failed: impl FnMut(&StartError),
    ) -> Result<(ConfigWatch, Watching), StartError> {
        let mut pauses = pauses();
        let mut failures = 0;
        loop {
            match self.start().await {
                Err(error) if error.may_pass() => {
                    failures += 1;
                    failed(&error);
                    let pause = pauses.next().unwrap_or(LONGEST_PAUSE);
                    tracing::warn!(%error, retry_in = ?pause, "no configuration yet");
                    tokio::time::sleep(pause).await;
                }
                Ok((watch, watching)) => {
                    watch.note(|status| status.watch_failures = failures);
                    return Ok((watch, watching));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Pauses between attempts: from 1 s, doubling, with jitter, to 30 s.
pub(super) fn pauses() -> impl Iterator<Item = Duration> + Send {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_secs(1))
        .with_max_delay(LONGEST_PAUSE)
        .with_jitter()
        .without_max_times()
        .build()
        .map(|pause| pause.min(LONGEST_PAUSE))
}

/// A failure in one line: the API server's code and message, or what it came of, down to the cause.
pub(super) fn brief(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => brief_status(status),
        other => {
            let mut line = other.to_string();
            let mut cause = std::error::Error::source(other);
            while let Some(error) = cause {
                let text = error.to_string();
                // Many errors say their cause themselves.
                if !line.contains(&text) {
                    line = format!("{line}: {text}");
                }
                cause = error.source();
            }
            line
        }
    }
}

pub(super) fn brief_status(status: &kube::core::Status) -> String {
    format!("{} {}: {}", status.code, status.reason, status.message)
}
