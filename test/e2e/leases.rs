//! What the server does with each request for a Lease, and what `lease::LeaseClient` makes of it. Protocol rules rest on these
//! facts, so each is asserted, not assumed.

use crate::fleet::{Fleet, SLACK, Timing};
use crate::harness::{Verdict, World};
use crate::space::{Space, until};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{WatchEvent, WatchParams};
use kube::core::DynamicObject;
use leasehold::clock::{Boottime, Clock};
use leasehold::leader::observe::Event;
use leasehold::lease::{Connector, Draft, Failure, LayoutId, LeaseClient, Record, Spec, Times};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const BOUND: Duration = Duration::from_secs(20);
const LEASE: Duration = Duration::from_secs(15);

pub(crate) fn client(space: &Space) -> LeaseClient {
    let connect = Connector::config(space.config.clone());
    LeaseClient::new(connect, &space.namespace, Arc::new(Boottime), Arc::new(|_: &Event| {})).expect("a client")
}

pub(crate) fn layout() -> LayoutId {
    LayoutId { uid: "u".to_owned(), generation: 1 }
}

pub(crate) fn now() -> Times {
    Times { wall: Boottime.wall() }
}

/// A Lease as a person or client-go writes it.
pub(crate) fn body(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": name }, "spec": spec })
}

fn version(lease: &Value) -> (String, String) {
    let field = |name: &str| lease["metadata"][name].as_str().expect("it is there").to_owned();
    (field("uid"), field("resourceVersion"))
}

/// A write of exactly this object.
fn as_it_is(lease: &Value) -> Draft {
    let object: DynamicObject = serde_json::from_value(lease.clone()).expect("an object");
    Draft { object: Box::new(object), spec: Spec::default() }
}

/// The table of facts, by raw requests.
pub(crate) async fn facts(world: World) -> Verdict {
    let space = Space::new(world.shared().await?, "facts").await;
    let (all, one) = (space.leases(""), space.leases("one"));
    let chosen = "11111111-2222-3333-4444-555555555555";
    let mut made = body(
        "one",
        json!({ "holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z" }),
    );
    made["metadata"]["uid"] = json!(chosen);
    made["metadata"]["labels"] = json!({ "mark": "x" });
    let (code, first) = space.request("POST", &all, Some(&made)).await;
    assert_eq!(code, 201, "{first}");
    let (uid, rv) = version(&first);
    assert_ne!(uid, chosen, "a uid that the client chose is replaced");
    assert_eq!(space.request("POST", &all, Some(&made)).await.0, 409, "a second POST of the name");

    let (code, same) = space.request("PUT", &one, Some(&first)).await;
    assert_eq!(
        (code, version(&same)),
        (200, (uid.clone(), rv.clone())),
        "an identical PUT leaves the version as it was"
    );

    let mut bare = first.clone();
    bare["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
    let (code, answer) = space.request("PUT", &one, Some(&bare)).await;
    assert_eq!(code, 422, "a PUT without resourceVersion: {answer}");

    let mut next = first.clone();
    next["spec"]["renewTime"] = json!("2026-01-01T00:00:01.000000Z");
    let (code, second) = space.request("PUT", &one, Some(&next)).await;
    assert_eq!(code, 200, "{second}");
    assert_ne!(version(&second).1, rv);
    assert_eq!(space.request("PUT", &one, Some(&next)).await.0, 409, "a PUT on an old resourceVersion");

    // A watch by label says DELETED where the label goes and the Lease stays.
    let leases = space.api::<Lease>();
    let marked = WatchParams::default().labels("mark=x");
    let mut events = leases.watch(&marked, &version(&second).1).await.expect("a watch").boxed();
    let mut plain = second.clone();
    plain["metadata"]["labels"] = json!({});
    let (code, third) = space.request("PUT", &one, Some(&plain)).await;
    assert_eq!(code, 200, "{third}");
    let event = tokio::time::timeout(SLACK, events.try_next()).await.expect("an event").expect("no error");
    match event.expect("not the end") {
        WatchEvent::Deleted(lease) => assert_eq!(lease.metadata.uid.as_deref(), Some(uid.as_str())),
        other => panic!("{other:?}"),
    }
    assert_eq!(version(&space.lease("one").await.expect("it lives on")).0, uid);

    let on = |uid: &str, rv: &str| json!({ "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": { "uid": uid, "resourceVersion": rv } });
    assert_eq!(space.request("DELETE", &one, Some(&on(&uid, &rv))).await.0, 409, "an old resourceVersion");
    assert_eq!(space.request("DELETE", &one, Some(&on(chosen, &version(&third).1))).await.0, 409, "another uid");
    assert_eq!(space.request("DELETE", &one, Some(&on(&uid, &version(&third).1))).await.0, 200);
    assert_eq!(space.request("DELETE", &one, Some(&on(&uid, &version(&third).1))).await.0, 404, "once more");

    // Why each write carries the uid (rule S3).
    assert_eq!(space.request("PUT", &one, Some(&third)).await.0, 409, "a PUT with the uid of what was deleted");
    let mut nameless = third.clone();
    nameless["metadata"].as_object_mut().expect("metadata").remove("uid");
    let (code, anew) = space.request("PUT", &one, Some(&nameless)).await;
    assert_eq!(code, 201, "a PUT without a uid makes what was deleted anew: {anew}");
    assert_ne!(version(&anew).0, uid);
    assert_eq!(space.request("PUT", &one, Some(&third)).await.0, 409, "a PUT with the uid of the one before");
    space.close().await;
    Ok(())
}

/// The life of a bucket by the client, and what it refuses to take for success.
pub(crate) async fn paths(world: World) -> Verdict {
    let space = Space::new(world.shared().await?, "paths").await;
    let leases = client(&space);
    let draft = Draft::make("b", LEASE, None);
    assert!(draft.object.metadata.uid.is_none() && draft.object.metadata.resource_version.is_none());
    let made = leases.create(&draft, BOUND).await.expect("made");
    assert!(!made.is_held() && made.is_fresh() && made.released().is_none(), "{made:?}");
    assert!(matches!(leases.create(&draft, BOUND).await, Err(Failure::Conflict(_))), "made twice");

    let times = now();
    let take = Draft::take(&made, "me_1", LEASE, &layout(), times);
    assert_eq!(take.object.metadata.uid.as_ref(), Some(&made.uid), "every PUT names the uid");
    let taken = leases.replace(&take, BOUND).await.expect("taken");
    assert_eq!((taken.spec.holder.as_str(), taken.spec.transitions, taken.uid == made.uid), ("me_1", 1, true));
    assert!(taken.vouched().is_some() && taken.revision > made.revision);
    let late = Draft::take(&made, "other_1", LEASE, &layout(), now());
    assert!(
        matches!(leases.replace(&late, BOUND).await, Err(Failure::Conflict(_))),
        "another take on the same version"
    );

    // A renewal is later than the one before, also on a clock that stands still.
    let renewed = leases.replace(&Draft::renew(&taken, LEASE, &layout(), None, times), BOUND).await.expect("renewed");
    assert!(renewed.spec.renewed() > taken.spec.renewed() && renewed.revision > taken.revision);
    assert!(matches!(
        leases.replace(&Draft::renew(&taken, LEASE, &layout(), None, now()), BOUND).await,
        Err(Failure::Conflict(_))
    ));

    let released = leases.replace(&Draft::release(&renewed, LEASE, None, now()), BOUND).await.expect("released");
    assert!(released.released().is_some() && released.spec.duration == Some(1), "{released:?}");
    let again =
        leases.replace(&Draft::take(&released, "other_1", LEASE, &layout(), now()), BOUND).await.expect("taken");
    assert_eq!((again.spec.transitions, again.released().is_none()), (2, true));

    assert!(matches!(leases.delete(&released, BOUND).await, Err(Failure::Conflict(_))), "on an old version");
    assert_eq!(leases.get("b", BOUND).await.expect("read").expect("it stands").revision, again.revision);
    leases.delete(&again, BOUND).await.expect("deleted");
    assert!(matches!(leases.delete(&again, BOUND).await, Err(Failure::NotFound)));
    assert!(leases.get("b", BOUND).await.expect("read").is_none());

    // A renewal of what was deleted makes nothing anew; nor does one of what was made anew since.
    let renewal = Draft::renew(&again, LEASE, &layout(), None, now());
    assert!(matches!(leases.replace(&renewal, BOUND).await, Err(Failure::Conflict(_))));
    assert!(leases.get("b", BOUND).await.expect("read").is_none());
    let other = leases.create(&Draft::make("b", LEASE, None), BOUND).await.expect("made anew");
    assert_ne!(other.uid, again.uid);
    assert!(matches!(leases.replace(&renewal, BOUND).await, Err(Failure::Conflict(_))));
    // A uid that is gone is no better with the version that stands.
    let mixed = Record { revision: other.revision, ..again };
    let renewal = Draft::renew(&mixed, LEASE, &layout(), None, now());
    assert!(matches!(leases.replace(&renewal, BOUND).await, Err(Failure::Conflict(_))));
    let (revision, all) = leases.list(BOUND).await.expect("listed");
    assert!(revision >= other.revision && all.iter().any(|r| r.uid == other.uid));
    space.close().await;
    Ok(())
}

/// Rule S2: the server says 200 and nothing has happened, so no observer has seen a sign of life.
pub(crate) async fn a_write_that_changes_nothing_is_no_renewal(world: World) -> Verdict {
    let space = Space::new(world.shared().await?, "noop").await;
    let leases = client(&space);
    let made = leases.create(&Draft::make("b", LEASE, None), BOUND).await.expect("made");
    leases.replace(&Draft::take(&made, "me_1", LEASE, &layout(), now()), BOUND).await.expect("taken");
    let stands = space.lease("b").await.expect("it stands");
    let said = leases.replace(&as_it_is(&stands), BOUND).await;
    assert!(matches!(&said, Err(Failure::Unknown(why)) if why.contains("resourceVersion")), "{said:?}");
    assert_eq!(version(&space.lease("b").await.expect("it stands")), version(&stands));
    // Without a uid the client's own drafts do not exist; without a version the server refuses.
    let bare = Record { revision: 0, ..made };
    let said = leases.replace(&Draft::take(&bare, "me_1", LEASE, &layout(), now()), BOUND).await;
    assert!(matches!(said, Err(Failure::Refused { code: 422, .. })), "{said:?}");
    space.close().await;
    Ok(())
}

/// The bucket Lease of a holder is deleted and made anew with the same content while it cannot see: another uid is a loss, and
/// its own name in it no holding.
pub(crate) async fn a_lease_made_anew_is_a_loss(world: World) -> Verdict {
    let space = Space::new(world.shared().await?, "anew").await;
    let mut fleet = Fleet::new(space, 1, Timing::ROOMY).await;
    let one = fleet.start().await;
    fleet.all_acted_on(&[one], SLACK).await;
    let (name, replica) = (fleet.buckets[0].clone(), &fleet.replicas[one]);

    replica.proxy.hole(true);
    let stood = fleet.lease(&name).await.expect("it stands");
    assert_eq!(fleet.request("DELETE", &fleet.leases(&name), None).await.0, 200);
    let mut copy = stood.clone();
    let meta = copy["metadata"].as_object_mut().expect("metadata");
    meta.retain(|key, _| key == "name" || key == "annotations");
    let (code, anew) = fleet.request("POST", &fleet.leases(""), Some(&copy)).await;
    assert_eq!(code, 201, "{anew}");
    let let_go = Boottime.now().as_nanos();
    replica.proxy.hole(false);

    until("the term has ended", SLACK, async || replica.log().terms.iter().any(|t| !t.open)).await;
    let lost = replica.metric("leasehold_terms_ended_total", &[("reason", "lost")]).await;
    assert_eq!(lost, 1.0, "{}", replica.written());
    fleet.all_acted_on(&[one], Timing::ROOMY.lease + SLACK).await;
    let terms = replica.log().terms.clone();
    assert_eq!(terms.len(), 2);
    // Its own name, written by nobody it knows, is waited out like a stranger's.
    let waited = Duration::from_nanos(terms[1].from.saturating_sub(let_go));
    assert!(waited >= Timing::ROOMY.lease, "acted again {waited:?} after it could see");
    assert_eq!(version(&fleet.lease(&name).await.expect("it stands")).0, version(&anew).0);
    fleet.close().await;
    Ok(())
}
