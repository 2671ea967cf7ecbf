//! The watch, over HTTP to a server of one ConfigMap, on virtual time.

mod api;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use self::api::{ApiServer, Mood};
use super::{ConfigSource, ConfigWatch, Origin, StartError, Status};
use crate::config::{Config, Env, Timing};

type Data = BTreeMap<String, String>;

fn data<const N: usize>(entries: [(&str, &str); N]) -> Data {
    entries.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn source(server: &ApiServer) -> ConfigSource {
    ConfigSource::config_map("c", server.client(), "ns", "cm", &Env::default())
}

/// A source that was read and is being followed, until it is dropped.
struct Followed {
    watch: ConfigWatch,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Followed {
    async fn of(server: &ApiServer) -> Self {
        let (watch, watching) = source(server).start().await.unwrap();
        let stop = CancellationToken::new();
        Self { watch, stop: stop.clone(), task: tokio::spawn(watching.run(stop)) }
    }

    /// Waits for a state; an hour of virtual time is for ever.
    async fn until(&self, state: impl FnMut(&Arc<Status>) -> bool) -> Arc<Status> {
        let mut status = self.watch.subscribe_status();
        let found = tokio::time::timeout(Duration::from_hours(1), status.wait_for(state)).await;
        found.expect("the state never came").unwrap().clone()
    }

    async fn end(self) {
        assert!(!self.task.is_finished(), "it ends only when it is told to");
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

fn lease_seconds(watch: &ConfigWatch) -> i32 {
    watch.config().timing.lease_seconds()
}

#[tokio::test(start_paused = true)]
async fn the_start_reads_the_config_map_or_has_the_defaults() {
    let (watch, _watching) =
        source(&ApiServer::new(Some(data([("buckets", "3"), ("bucket", "4")])))).start().await.unwrap();
    assert_eq!((watch.config().buckets, lease_seconds(&watch)), (3, 60));
    let status = watch.status();
    assert_eq!(status.origin.to_string(), "ConfigMap ns/cm");
    assert_eq!((status.present, status.generation, status.warnings.len()), (true, 1, 1));

    let (watch, _watching) = source(&ApiServer::new(None)).start().await.unwrap();
    assert_eq!((watch.config().buckets, watch.config().timing), (1, Timing::default()));
    assert!(!watch.status().present);
}

#[tokio::test(start_paused = true)]
async fn a_bad_config_map_is_an_error_at_the_start_and_will_not_pass() {
    let error =
        source(&ApiServer::new(Some(data([("lease-duration", "15")])))).start_patiently(|_| {}).await.unwrap_err();
    assert!(!error.may_pass());
    assert_eq!(
        error.to_string(),
        r#"ConfigMap ns/cm: failed to parse "lease-duration": time: missing unit in duration "15""#
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_told_apart() {
    let server = ApiServer::new(Some(data([])));
    server.set_mood(Mood::Forbids);
    let error = source(&server).start().await.unwrap_err();
    assert!(matches!(error, StartError::Forbidden { .. }) && error.may_pass());
    assert_eq!(
        error.to_string(),
        "ConfigMap ns/cm cannot be read: 403 Forbidden: the server says Forbidden; the service account needs get, list and \
         watch on configmaps there"
    );
    server.set_mood(Mood::Breaks);
    let error = source(&server).start().await.unwrap_err();
    assert!(matches!(error, StartError::Unreachable { .. }) && error.may_pass());
    server.set_mood(Mood::Hangs);
    let before = tokio::time::Instant::now();
    let error = source(&server).start().await.unwrap_err();
    assert!(matches!(error, StartError::NoAnswer { .. }) && error.may_pass());
    assert_eq!(before.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_patient_start_outlasts_an_outage() {
    let server = ApiServer::new(Some(data([("buckets", "4")])));
    server.set_mood(Mood::Forbids);
    let start = source(&server);
    let patient = tokio::spawn(async move { start.start_patiently(|_| {}).await.map(|(watch, _)| watch) });
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(!patient.is_finished());
    let tries = server.requests().len();
    assert!((20..=60).contains(&tries), "{tries} requests in ten minutes");
    server.set_mood(Mood::Well);
    assert_eq!(patient.await.unwrap().unwrap().config().buckets, 4);
}

#[tokio::test(start_paused = true)]
async fn durations_change_live() {
    let server = ApiServer::new(Some(data([("buckets", "3")])));
    let followed = Followed::of(&server).await;
    let mut config = followed.watch.subscribe();
    server.put(Some(data([("buckets", "3"), ("lease-duration", "90s"), ("drain-timeout", "3s")])));
    let status = followed.until(|status| status.applied == 1).await;
    assert_eq!((status.generation, status.refused, status.refusal.as_deref()), (2, 0, None));
    assert_eq!(lease_seconds(&followed.watch), 90);
    assert!(config.has_changed().unwrap());
    assert_eq!(config.borrow_and_update().drain_timeout, Duration::from_secs(3));
    followed.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_bad_edit_keeps_the_last_good_configuration() {
    let server = ApiServer::new(Some(data([("lease-duration", "90s")])));
    let followed = Followed::of(&server).await;
    server.put(Some(data([("lease-duration", "90")])));
    let status = followed.until(|status| status.refused == 1).await;
    assert_eq!(
        status.refusal.as_deref(),
        Some(
            r#"failed to parse "lease-duration": time: missing unit in duration "90"; what was in force stays in force"#
        )
    );
    assert_eq!((status.generation, status.applied, lease_seconds(&followed.watch)), (1, 0, 90));
    // Another mistake is another refusal; a good edit ends it.
    server.put(Some(data([("lease-duration", "20s")])));
    let status = followed.until(|status| status.refused == 2).await;
    assert!(status.refusal.as_ref().unwrap().starts_with("leaseDuration must be greater than renewDeadline"));
    server.put(Some(data([("lease-duration", "120s")])));
    let status = followed.until(|status| status.applied == 1).await;
    assert_eq!((status.refusal.as_deref(), status.refused, status.generation), (None, 2, 2));
    assert_eq!(lease_seconds(&followed.watch), 120);
    followed.end().await;
}

#[tokio::test(start_paused = true)]
async fn going_back_to_what_is_in_force_ends_a_refusal_and_applies_nothing() {
    let server = ApiServer::new(Some(data([("buckets", "3")])));
    let followed = Followed::of(&server).await;
    server.put(Some(data([("buckets", "11")])));
    let status = followed.until(|status| status.refused == 1).await;
    assert!(status.refusal.as_ref().unwrap().starts_with("buckets stays 3 and does not become 11, bucket-hash stays"));
    server.put(Some(data([("buckets", "3")])));
    let status = followed.until(|status| status.refusal.is_none()).await;
    assert_eq!((status.generation, status.applied, status.refused), (1, 0, 1));
    assert_eq!(followed.watch.config().buckets, 3);
    followed.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_durations_and_layout_changes_the_durations() {
    let server = ApiServer::new(Some(data([("buckets", "3")])));
    let followed = Followed::of(&server).await;
    server.put(Some(data([("buckets", "4"), ("lease-duration", "90s"), ("x", "y")])));
    let status = followed.until(|status| status.refused == 1).await;
    assert_eq!((status.applied, status.generation, status.warnings.len()), (1, 2, 1));
    assert!(status.refusal.as_ref().unwrap().starts_with("buckets stays 3 and does not become 4:"));
    assert_eq!((followed.watch.config().buckets, lease_seconds(&followed.watch)), (3, 90));
    followed.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_config_map_keeps_what_is_in_force() {
    let server = ApiServer::new(Some(data([("lease-duration", "90s")])));
    let followed = Followed::of(&server).await;
    server.put(Some(data([("lease-duration", "bad")])));
    followed.until(|status| status.refused == 1).await;
    server.put(None);
    let status = followed.until(|status| !status.present).await;
    assert_eq!((status.refusal.as_deref(), status.generation, lease_seconds(&followed.watch)), (None, 1, 90));
    server.put(Some(data([("lease-duration", "120s")])));
    let status = followed.until(|status| status.present).await;
    assert_eq!((status.applied, lease_seconds(&followed.watch)), (1, 120));
    followed.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_config_map_that_is_made_later_takes_effect() {
    let server = ApiServer::new(None);
    let followed = Followed::of(&server).await;
    server.put(Some(data([("buckets", "2")])));
    let status = followed.until(|status| status.present).await;
    // Its missing keys are 60 s, 40 s, 10 s, where without it they were 15 s, 10 s, 2 s.
    assert_eq!((status.applied, status.refused), (1, 1));
    assert_eq!((followed.watch.config().buckets, lease_seconds(&followed.watch)), (1, 60));
    followed.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_edit_is_judged_once() {
    let server = ApiServer::new(Some(data([("lease-duration", "90s")])));
    let followed = Followed::of(&server).await;
    server.put(Some(data([("lease-duration", "bad")])));
    followed.until(|status| status.refused == 1).await;
    // Told again: by a change of its metadata, after a cut, after 410, by the list after five quiet minutes.
    server.put(Some(data([("lease-duration", "bad")])));
    server.cut();
    tokio::time::sleep(Duration::from_secs(5)).await;
    server.compact();
    tokio::time::sleep(Duration::from_secs(1_000)).await;
    let lists = server.requests().iter().filter(|request| *request == "/api/v1/namespaces/ns/configmaps").count();
    assert!(lists >= 5, "{:?}", server.requests());
    server.put(Some(data([("lease-duration", "120s")])));
    let status = followed.until(|status| status.applied == 1).await;
    assert_eq!(status.refused, 1);
    followed.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_shown_and_survived() {
    for mood in [Mood::Breaks, Mood::Forbids] {
        let server = ApiServer::new(Some(data([("lease-duration", "90s")])));
        let followed = Followed::of(&server).await;
        server.put(Some(data([("lease-duration", "120s")])));
        followed.until(|status| status.applied == 1).await;
        server.set_mood(mood);
        server.cut();
        let status = followed.until(|status| status.watch_error.is_some()).await;
        assert!(status.watch_error.as_ref().unwrap().contains("the server says"), "{status:?}");
        tokio::time::sleep(Duration::from_secs(1_000)).await;
        let before = server.requests().len();
        tokio::time::sleep(Duration::from_mins(10)).await;
        let tries = server.requests().len() - before;
        assert!((20..=40).contains(&tries), "{tries} requests in ten minutes");
        assert_eq!(lease_seconds(&followed.watch), 120);

        server.put(Some(data([("lease-duration", "180s")])));
        server.set_mood(Mood::Well);
        followed.until(|status| status.watch_error.is_none()).await;
        followed.until(|status| status.applied == 2).await;
        assert_eq!(lease_seconds(&followed.watch), 180);
        followed.end().await;
    }
}

/// Lists are answered in between: they show what stands there, and not that it can be watched.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_is_shown_for_as_long_as_it_is() {
    let server = ApiServer::new(Some(data([("lease-duration", "90s")])));
    let followed = Followed::of(&server).await;
    server.set_mood(Mood::ForbidsWatches);
    server.cut();
    followed.until(|status| status.watch_error.is_some()).await;
    let mut seen = followed.watch.subscribe_status();
    server.put(Some(data([("lease-duration", "120s")])));
    let flickers = async {
        seen.wait_for(|status| status.watch_error.is_none()).await.unwrap();
    };
    tokio::time::timeout(Duration::from_mins(10), flickers).await.unwrap_err();
    assert_eq!(lease_seconds(&followed.watch), 120, "an edit is seen by the next list");
    let before = server.requests().len();
    tokio::time::sleep(Duration::from_mins(10)).await;
    let tries = server.requests().len() - before;
    assert!((40..=80).contains(&tries), "{tries} requests in ten minutes");
    assert!(followed.watch.status().watch_failures >= 20);
    server.set_mood(Mood::Well);
    followed.until(|status| status.watch_error.is_none()).await;
    followed.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_hangs_is_given_up() {
    let server = ApiServer::new(Some(data([("lease-duration", "90s")])));
    server.set_mood(Mood::Well);
    let followed = Followed::of(&server).await;
    server.set_mood(Mood::Hangs);
    server.put(Some(data([("lease-duration", "120s")])));
    server.cut();
    // Let it run into the hanging request before the server is well again.
    tokio::time::sleep(Duration::from_mins(1)).await;
    let before = tokio::time::Instant::now();
    server.set_mood(Mood::Well);
    followed.until(|status| status.applied == 1).await;
    assert!(before.elapsed() <= Duration::from_mins(5), "{:?}", before.elapsed());
    followed.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_variable_wins_and_nothing_is_asked_for() {
    let server = ApiServer::new(Some(data([("buckets", "3")])));
    let json = r#"{"Buckets":2,"LeaseDuration":15000000000,"RenewDeadline":10000000000,"RetryPeriod":2000000000}"#;
    let env = Env::from_iter([("K_LEADER_ELECTION_CONFIG", json)]);
    let (watch, watching) = ConfigSource::choose("c", &env, server.client()).unwrap().start().await.unwrap();
    assert_eq!((watch.config().buckets, watch.config().fixed), (2, true));
    assert_eq!(watch.status().origin, Origin::Variable);
    let stop = CancellationToken::new();
    let task = tokio::spawn(watching.run(stop.clone()));
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(!task.is_finished());
    stop.cancel();
    task.await.unwrap();
    assert_eq!(server.requests(), [""; 0]);
    assert!(!watch.subscribe().has_changed().unwrap(), "its receiver lives as long as the watch");
}

#[tokio::test(start_paused = true)]
async fn the_environment_names_the_config_map() {
    let server = ApiServer::new(Some(data([("buckets", "3")])));
    let env = |entries: &[(&str, &str)]| entries.iter().copied().collect::<Env>();
    let error = ConfigSource::choose("c", &env(&[]), server.client()).unwrap_err();
    assert!(error.to_string().contains("SYSTEM_NAMESPACE is not set"));
    let named =
        env(&[("SYSTEM_NAMESPACE", "ns"), ("CONFIG_LEADERELECTION_NAME", "cm"), ("K_LEADER_ELECTION_CONFIG", "")]);
    let (watch, _watching) = ConfigSource::choose("c", &named, server.client()).unwrap().start().await.unwrap();
    assert_eq!(watch.config().buckets, 3);
    let bad = env(&[("SYSTEM_NAMESPACE", "ns"), ("K_LEADER_ELECTION_CONFIG", "{}")]);
    assert!(ConfigSource::choose("c", &bad, server.client()).unwrap_err().to_string().contains("Buckets is missing"));
}

#[tokio::test(start_paused = true)]
async fn a_configuration_in_code_is_a_source_too() {
    let config = Config::builder().buckets(5).build().unwrap();
    let (watch, _watching) = ConfigSource::fixed(config.clone()).start().await.unwrap();
    assert_eq!((&*watch.config(), &watch.status().origin), (&config, &Origin::Code));
    assert_eq!(*ConfigWatch::fixed(config.clone()).config(), config);
}
