package command_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// painter is an operator that paints its process on every ConfigMap, again and again, whatever the answers are. It does nothing
// about leader election.
func painter() command.Config {
	return command.Config{
		Name: "painter",
		New: func(_ context.Context, deps *operator.Dependencies) ([]*framework.Framework, error) {
			source, err := deps.NewSource(&corev1.ConfigMap{})
			if err != nil {
				return nil, err
			}
			f, err := deps.NewFramework(framework.Config{
				Name: "canvases", Source: source, DisableFinalizer: true, Resources: []framework.Resource{&brush{deps.Client}},
			})
			return []*framework.Framework{f}, err
		},
	}
}

// strokePause is the pause between two writes of a brush.
const strokePause = 20 * time.Millisecond

type brush struct{ client client.Client }

func (b *brush) Name() string { return "brush" }

func (b *brush) EnsureCreated(ctx context.Context, obj any) error {
	canvas := obj.(*corev1.ConfigMap)
	if !strings.HasPrefix(canvas.Name, "canvas") {
		return nil
	}
	for stroke := 0; ctx.Err() == nil; stroke++ {
		canvas.Data = map[string]string{"painter": fmt.Sprint(os.Getpid()), "stroke": fmt.Sprint(stroke)}
		if err := b.client.Update(ctx, canvas); err != nil {
			_ = b.client.Get(ctx, client.ObjectKeyFromObject(canvas), canvas)
		}
		select {
		case <-ctx.Done():
		case <-time.After(strokePause):
		}
	}
	return ctx.Err()
}

func (b *brush) EnsureDeleted(context.Context, any) error { return nil }

// studio is a namespace with canvases, and the painters that work on them, each a process.
type studio struct {
	t         *testing.T
	instance  *operatortest.Instance
	client    client.Client
	namespace string
	canvases  int
}

func newStudio(t *testing.T) *studio {
	t.Helper()
	instance := operatortest.Start(t)
	s := &studio{t: t, instance: instance, client: operatortest.NewClient(t, instance.RESTConfig(), nil), namespace: instance.Namespace(t), canvases: 3}
	for i := range s.canvases {
		canvas := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprint("canvas-", i)}}
		if err := s.client.Create(t.Context(), canvas); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// paintedBy tells whether the last stroke on every canvas is that of a process.
func (s *studio) paintedBy(p *operatortest.Replica) error {
	list := &corev1.ConfigMapList{}
	if err := s.client.List(s.t.Context(), list, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	for _, canvas := range list.Items {
		if got, want := canvas.Data["painter"], fmt.Sprint(p.Pid()); strings.HasPrefix(canvas.Name, "canvas") && got != want {
			return fmt.Errorf("%s was painted by %q, want %s", canvas.Name, got, want)
		}
	}
	return nil
}

// start starts a painter, which ends with the test.
func (s *studio) start(args ...string) *operatortest.Replica {
	s.t.Helper()
	return operatortest.StartReplica(s.t, operatortest.ReplicaConfig{Path: "painter", Config: s.instance.RESTConfig(), Args: append([]string{
		"run", "--namespace", s.namespace, "--listen-address", "", "--inspector-address", "",
		"--leader-elect", "--leader-election-namespace", s.namespace, "--log-format", "text",
	}, args...)})
}

// shortLease is a lease that ends within the time that a test has.
var shortLease = []string{
	"--leader-election-lease-duration", "9s", "--leader-election-renew-deadline", "7s", "--leader-election-retry-period", "100ms",
}

func TestR17ALeaderThatWasPausedForLongerThanItsLeaseBeginsNoRequestAfterwards(t *testing.T) {
	s := newStudio(t)
	a := s.start(shortLease...)
	operatortest.Eventually(t, "a paints", func() error { return s.paintedBy(a) })
	b := s.start(shortLease...)
	operatortest.Eventually(t, "b waits for the lease", func() bool {
		return slices.ContainsFunc(b.Requests(), func(e operatortest.Exchange) bool { return operatortest.Leases(e.Request) })
	})

	pause := a.PausedUntil("b paints", func() error { return s.paintedBy(b) }, time.Minute)
	if code := a.Wait(); code != command.ExitFailure {
		t.Errorf("a ended with %d, want %d", code, command.ExitFailure)
	}

	// A request that was past the fence when the process was paused names the resource version that it changes. Without an answer the process has
	// ended before that came: the canvases are looked at below.
	if len(pause.Late) > s.canvases {
		t.Errorf("%d requests began after the pause, the first of which are %v", len(pause.Late), pause.Late[:s.canvases])
	}
	for _, e := range pause.Late[:min(len(pause.Late), s.canvases)] {
		if e.Status != http.StatusConflict && e.Status != 0 {
			t.Errorf("%s of a was answered with %d after the pause", e.Request, e.Status)
		}
	}
	if err := s.paintedBy(b); err != nil {
		t.Error(err)
	}
	if !strings.Contains(a.Log(), "lease lost") {
		t.Errorf("a does not say why it ended:\n%s", a.Log())
	}
}
