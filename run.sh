k(){ echo "\$ kubectl $*"; timeout 20 kubectl --kubeconfig $KC "$@" 2>&1; echo "rc=$?"; }
k apply -f lease.yaml
k apply -f lease.yaml
k apply -f lease2.yaml
k get lease att -o jsonpath='{.spec}{.metadata.labels}{"\n"}'
k apply --server-side -f lease.yaml
k apply --server-side --force-conflicts -f lease.yaml
k get lease att -o yaml --show-managed-fields
k create -f lease.yaml
k create -f bad1.yaml
k create -f bad1.yaml --validate=false
k create -f bad2.yaml
k create -f bad2.yaml --validate=ignore
k create -f bad3.yaml
k create -f bad3.yaml --validate=false
k apply -f bad1.yaml --dry-run=server
k apply -f lease2.yaml --dry-run=server
k diff -f lease2.yaml
k patch lease att --type=json -p '[{"op":"replace","path":"/spec/holderIdentity","value":"zz"}]'
k patch lease att --type=json -p '[{"op":"remove","path":"/spec/nope"}]'
k patch lease att --type=json -p '[{"op":"test","path":"/spec/holderIdentity","value":"no"}]'
k patch lease att --type=merge -p '{"spec":{"holderIdentity":null}}'
k patch lease att --type=merge -p '{"spec":null}'
k patch lease att --type=strategic -p '{"spec":{"leaseDurationSeconds":7}}'
k patch lease att --type=merge -p '{"spec":{"leaseDurationSeconds":0}}'
k patch lease att --type=merge -p '{"spec":{"foo":1}}'
k patch lease att --type=merge -p '{"metadata":{"resourceVersion":"1"}}'
k patch lease att --type=merge -p '{"metadata":{"uid":"xx"}}'
k patch lease att --type=merge -p '{"metadata":{"name":"xx"}}'
k patch lease nope --type=merge -p '{}'
k patch lease att --type=merge -p 'garbage'
k label lease att x=y
k label lease att x=z
k label lease att x=z --overwrite
k annotate lease att k=v
k get lease -l x=z
k get lease -l 'x in (z,q),a!=b'
k get lease --field-selector metadata.name=att
k get lease --field-selector spec.holderIdentity=zz
k get lease att nope
k get lease att -o custom-columns=N:.metadata.name,H:.spec.holderIdentity
k describe lease att
k apply -f ev.yaml
k get events
k get events -o wide
k get events --field-selector involvedObject.name=att
k describe events ev1
k events
k apply -f cm.yaml
k apply -f cm2.yaml
k get cm cm1 -o yaml
k apply --server-side -f cm.yaml
k describe cm cm1
k create cm cm3 --from-literal=x=y
k create cm 'BAD' --from-literal=x=y
k create cm big --from-literal=x="$(head -c 1100000 /dev/zero | tr '\0' a | head -c 100000)"
EDITOR="sed -i s/hello2/hello3/" k edit cm cm3
EDITOR="sed -i 's/x: y/x: edited/'" k edit cm cm3
k get cm cm3 -o jsonpath='{.data}{"\n"}'
EDITOR="sed -i 's/leaseDurationSeconds: 7/leaseDurationSeconds: 9/'" k edit lease att
EDITOR="sed -i 's/leaseDurationSeconds: 9/leaseDurationSeconds: -9/'" k edit lease att
k get lease att -o jsonpath='{.spec}{"\n"}'
k create ns attns
k create ns Bad_NS
k get ns attns
k describe ns attns
k -n attns create cm x --from-literal=a=b
k -n nons create cm x --from-literal=a=b
k -n nons apply -f lease.yaml
k delete ns attns --timeout=10s
k get ns attns
k apply -f ps.yaml
k apply -f /work/wt/attack/config/crd-pingsource.yaml
k wait --for=condition=Established crd/pingsources.sources.knative.dev --timeout=10s
k get crd pingsources.sources.knative.dev
k api-resources --api-group=sources.knative.dev
k explain pingsource.spec.schedule
k explain lease.spec
k apply -f ps.yaml
k get pingsources
k get pingsource p1 -o jsonpath='{.spec}{"\n"}'
k describe pingsource p1
k apply -f psbad.yaml
k apply -f psbad.yaml --validate=false
k apply --server-side -f ps.yaml
k patch pingsource p1 --type=merge -p '{"spec":{"schedule":"bad"}}'
k patch pingsource p1 --type=strategic -p '{"spec":{"schedule":"bad"}}'
k patch pingsource p1 --subresource=status --type=merge -p '{"status":{"sinkUri":"http://x"}}'
k get pingsource p1 -o jsonpath='{.status}{"\n"}'
EDITOR="sed -i 's/schedule: bad/schedule: worse/'" k edit pingsource p1
k get all -A
k get pingsource,lease,cm -o name
k delete pingsource p1
k delete crd pingsources.sources.knative.dev --timeout=10s
k get pingsources
k delete lease att --dry-run=server
k delete lease att
k delete lease att
k delete lease att --ignore-not-found
k delete cm cm1 cm3 big
k delete -f ev.yaml
k delete lease -l nope=1
k replace -f lease.yaml
k replace --force -f lease.yaml
k delete lease att --cascade=foreground
k create -f lease.yaml --save-config -o name
k scale lease att --replicas=1
k get lease att --watch --output-watch-events=true --request-timeout=1s
k delete lease att --now
k get --raw /version
k get --raw /healthz
k get --raw /readyz
k get --raw /api
k get --raw /apis/coordination.k8s.io
k get --raw /nope
k get --raw /apis/coordination.k8s.io/v1/namespaces/default/leases/nope
k get --raw '/apis/coordination.k8s.io/v1/namespaces/default/leases?limit=-1'
k get --raw '/apis/coordination.k8s.io/v1/namespaces/default/leases?resourceVersion=abc'
k get --raw '/apis/coordination.k8s.io/v1/namespaces/default/leases?labelSelector=%21%21'
k get --raw '/apis/coordination.k8s.io/v1/namespaces/default/leases?continue=zzz'
k get --raw '/apis/coordination.k8s.io/v1/namespaces/default/leases?watch=1&resourceVersion=99999999&timeoutSeconds=1'
k auth can-i get leases
k get lease att -o yaml --show-managed-fields
