package natscontroller_test

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// touch updates a gateway, or creates it, and returns its revision.
func (w *world) touch(name string) uint64 {
	w.t.Helper()
	gateway, err := w.gateways.Get(w.t.Context(), name)
	if apierrors.IsNotFound(err) {
		gateway = &Gateway{}
		gateway.Name = name
		err = w.gateways.Create(w.t.Context(), gateway)
	} else if err == nil {
		err = w.gateways.Update(w.t.Context(), gateway)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return gateway.Revision()
}

// mirrored tells whether the route of a gateway is that of a revision, written by whom.
func (w *world) mirrored(name string, revision uint64, writer string) error {
	route, err := w.routes.Get(w.t.Context(), name)
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("%d by %s", revision, writer); route.Host != want {
		return fmt.Errorf("route %s is %q, want %q", name, route.Host, want)
	}
	return nil
}

// write is a write of a route, as the stream holds it.
type write struct {
	key      string
	revision uint64
	writer   string
}

// writes are all writes of routes, in their order.
func (w *world) writes() []write {
	w.t.Helper()
	kv, err := w.js.KeyValue(w.t.Context(), "routes")
	if err != nil {
		w.t.Fatal(err)
	}
	watcher, err := kv.WatchAll(w.t.Context(), jetstream.IncludeHistory())
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = watcher.Stop() }()
	var writes []write
	for entry := range watcher.Updates() {
		if entry == nil {
			return writes
		}
		_, said, _ := strings.Cut(string(entry.Value()), `"host":"`)
		said, _, _ = strings.Cut(said, `"`)
		number, writer, _ := strings.Cut(said, " by ")
		revision, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			w.t.Fatalf("route %s, revision %d: %s", entry.Key(), entry.Revision(), entry.Value())
		}
		writes = append(writes, write{entry.Key(), revision, writer})
	}
	return writes
}

// eachRevisionOnce checks that no revision of a gateway was carried over twice, and none after a later one.
func eachRevisionOnce(t *testing.T, writes []write) {
	t.Helper()
	last := map[string]uint64{}
	for _, w := range writes {
		if w.revision <= last[w.key] {
			t.Errorf("%s: revision %d was written by %s after %d", w.key, w.revision, w.writer, last[w.key])
		}
		last[w.key] = w.revision
	}
}

func TestLeaderThatIsStoppedAndWakesUpCannotWriteAndStepsDown(t *testing.T) {
	for _, lease := range []string{"NATS", "Kubernetes"} {
		t.Run(lease, func(t *testing.T) {
			t.Parallel()
			server := natsserver.Start(t)
			_, js := server.Connect(t)
			for _, name := range []string{"gateways", "routes", "leases", "events"} {
				natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: name, History: 64})
			}
			w := openWorld(t, js, nil)
			environment := []string{urlVariable + "=" + server.URL()}
			if lease == "Kubernetes" {
				w.withKubernetes()
				environment = append(environment, kubeconfigVariable+"="+operatortest.Start(t).Kubeconfig(), namespaceVariable+"="+w.namespace)
			}
			names := []string{trap, "one", "two", "three"}
			expect := func(writer string) {
				t.Helper()
				for _, name := range names[1:] {
					revision := w.touch(name)
					operatortest.Eventually(t, name+" is written by "+writer, func() error { return w.mirrored(name, revision, writer) })
				}
			}
			// The first one works, and the second one waits.
			first := w.touch(trap)
			a := startReplica(t, "a", environment...)
			operatortest.Eventually(t, "the trap is known", func() error { return w.mirrored(trap, first, "a") })
			b := startReplica(t, "b", environment...)
			expect("a")
			expect("a")

			// It is stopped in the middle of an update, and more is asked for while nobody works.
			caught := w.touch(trap)
			a.expect("trapped")
			a.signal(syscall.SIGSTOP)
			operatortest.Eventually(t, "the trap is written by b", func() error { return w.mirrored(trap, caught, "b") })
			expect("b")

			a.signal(syscall.SIGCONT)
			if _, err := a.input.Write([]byte("go on\n")); err != nil {
				t.Fatal(err)
			}
			a.expect("fenced write refused: true")
			if lease == "Kubernetes" {
				a.expect("fenced request refused: true")
			}
			a.expect("unfenced write refused: true")
			a.expect("leader election: lease lost")
			expect("b")
			b.signal(syscall.SIGTERM)
			b.expect("ended: <nil>")

			writes := w.writes()
			eachRevisionOnce(t, writes)
			var handedOver bool
			for _, written := range writes {
				if handedOver && written.writer == "a" {
					t.Errorf("a wrote revision %d of %s after b had taken over", written.revision, written.key)
				}
				handedOver = handedOver || written.writer == "b"
			}
			if w.kube != nil {
				err := w.kube.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "late"}, &corev1.ConfigMap{})
				if !apierrors.IsNotFound(err) {
					t.Errorf("the late ConfigMap: want IsNotFound, got %v", err)
				}
			}
		})
	}
}
