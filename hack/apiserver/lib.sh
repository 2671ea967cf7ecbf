# Sourced by build, up, down and smoke: where the binaries of the real API server are.
# shellcheck shell=bash disable=SC2034 # they use what is set here

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# Where `build` puts what it builds, and looks for it on the next call.
OUT=${LEASEHOLD_APISERVER_DIR:-$HERE/out}
ME=hack/apiserver/$(basename "$0")

say() { echo "$ME: $*" >&2; }
die() {
  say "$*"
  exit 1
}

# has_both DIR: kube-apiserver and etcd are there and can be run.
has_both() { [ -f "$1/kube-apiserver" ] && [ -x "$1/kube-apiserver" ] && [ -f "$1/etcd" ] && [ -x "$1/etcd" ]; }

# Sets KUBE_APISERVER and ETCD to a pair that is on this machine; fails if there is none. The first of:
#   1. the folder KUBEBUILDER_ASSETS names, as envtest has it. A folder without them is an error, not a reason to look on.
#   2. PATH
#   3. what an earlier `build` left
find_binaries() {
  if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
    has_both "$KUBEBUILDER_ASSETS" ||
      die "KUBEBUILDER_ASSETS is $KUBEBUILDER_ASSETS, and kube-apiserver and etcd are not both there. Put them there, or unset it."
    KUBE_APISERVER=$KUBEBUILDER_ASSETS/kube-apiserver ETCD=$KUBEBUILDER_ASSETS/etcd
  elif KUBE_APISERVER=$(type -P kube-apiserver) && ETCD=$(type -P etcd); then
    :
  elif has_both "$OUT"; then
    KUBE_APISERVER=$OUT/kube-apiserver ETCD=$OUT/etcd
  else
    return 1
  fi
}
