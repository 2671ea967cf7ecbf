// Command elector is client-go's own leader election, one elector per bucket Lease, driven as Knative's adapters drive it:
// what a Go replica beside leasehold does. It is built twice, with an old and a new client-go; see `build` beside this file.
//
// It prints one JSON line per thing that happens. Every time is CLOCK_BOOTTIME in nanoseconds, so that the lines of all
// replicas on one machine compare:
//
//	{"event":"hello","identity":"pod_uuid","pid":1,"at":1}
//	{"event":"started","bucket":"c.q.00-of-02","at":2}
//	{"event":"act","bucket":"c.q.00-of-02","at":3}
//	{"event":"stopped","bucket":"c.q.00-of-02","at":4}
//
// It acts from OnStartedLeading until OnStoppedLeading, as Knative's Promote and Demote do. On SIGTERM and SIGINT its electors
// are cancelled, and it exits when all have returned.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

type line struct {
	Event    string `json:"event"`
	Identity string `json:"identity,omitempty"`
	PID      int    `json:"pid,omitempty"`
	Bucket   string `json:"bucket,omitempty"`
	At       int64  `json:"at"`
}

func boottime() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		fatal("clock_gettime: %v", err)
	}
	return ts.Nano()
}

func fatal(format string, args ...interface{}) {
	fmt.Fprintf(os.Stderr, "elector: "+format+"\n", args...)
	os.Exit(1)
}

// out is a line at a time, each flushed: a process that is killed has said what it did until then.
type out struct {
	sync.Mutex
	w *bufio.Writer
}

func (o *out) say(l line) {
	o.Lock()
	defer o.Unlock()
	// Taken under the lock, so that the times in the output only grow.
	l.At = boottime()
	text, err := json.Marshal(l)
	if err == nil {
		_, err = o.w.Write(append(text, '\n'))
	}
	if err == nil {
		err = o.w.Flush()
	}
	if err != nil {
		fatal("cannot write: %v", err)
	}
}

// acting does the work of one bucket while told to.
type acting struct {
	o      *out
	bucket string
	every  time.Duration

	sync.Mutex
	leading bool
}

func (a *acting) set(event string, leading bool) {
	a.Lock()
	defer a.Unlock()
	// client-go says "stopped" of an elector that never led, too.
	if a.leading != leading {
		a.leading = leading
		a.o.say(line{Event: event, Bucket: a.bucket})
	}
}

func (a *acting) isLeading() bool {
	a.Lock()
	defer a.Unlock()
	return a.leading
}

func (a *acting) run() {
	for range time.Tick(a.every) {
		a.Lock()
		if a.leading {
			a.o.say(line{Event: "act", Bucket: a.bucket})
		}
		a.Unlock()
	}
}

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "the cluster")
	namespace := flag.String("namespace", "default", "where the Leases are")
	buckets := flag.String("buckets", "", "names of the Leases, with commas between them")
	pod := flag.String("pod", "", "the first part of the identity")
	lease := flag.Duration("lease-duration", 15*time.Second, "")
	renew := flag.Duration("renew-deadline", 10*time.Second, "")
	retry := flag.Duration("retry-period", 2*time.Second, "")
	linger := flag.Duration("linger", 0, "for how long the work on a bucket goes on when it is asked to end")
	every := flag.Duration("every", 20*time.Millisecond, "between two acts on a bucket")
	flag.Parse()
	if *buckets == "" || *pod == "" {
		fatal("-buckets and -pod are needed")
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fatal("%v", err)
	}
	// No limit of the client's own: what is measured is the election, not a queue in front of it.
	config.QPS = -1
	client, err := coordination.NewForConfig(config)
	if err != nil {
		fatal("%v", err)
	}
	identity := *pod + "_" + string(uuid.NewUUID())
	o := &out{w: bufio.NewWriter(os.Stdout)}
	o.say(line{Event: "hello", Identity: identity, PID: os.Getpid()})

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var all sync.WaitGroup
	for _, bucket := range strings.Split(*buckets, ",") {
		a := &acting{o: o, bucket: bucket, every: *every}
		go a.run()
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: *namespace, Name: bucket},
				Client:     client,
				LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
			},
			LeaseDuration:   *lease,
			RenewDeadline:   *renew,
			RetryPeriod:     *retry,
			ReleaseOnCancel: true,
			Name:            identity,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { a.set("started", true) },
				OnStoppedLeading: func() {
					if a.isLeading() {
						time.Sleep(*linger)
					}
					a.set("stopped", false)
				},
			},
		})
		if err != nil {
			fatal("%v", err)
		}
		all.Add(1)
		go func() {
			defer all.Done()
			for ctx.Err() == nil { // a lost term is followed by the next try, as in Knative's runUntilCancelled
				elector.Run(ctx)
			}
		}()
	}
	all.Wait()
}
