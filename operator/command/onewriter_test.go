package command_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
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

// door is a way to an API server that keeps what came through it.
type door struct {
	kubeconfig string

	mu       sync.Mutex
	requests []request
}

// request is one that came through a door, with its answer.
type request struct {
	method, path string
	status       int
}

func newDoor(t *testing.T, instance *operatortest.Instance) *door {
	t.Helper()
	config := instance.RESTConfig()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	d := &door{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     passing{d, transport},
		FlushInterval: -1,
	})
	t.Cleanup(server.Close)
	writeKubeconfig(t, d.kubeconfig, server.URL)
	return d
}

// passing is the transport of a door.
type passing struct {
	door *door
	next http.RoundTripper
}

func (p passing) RoundTrip(r *http.Request) (*http.Response, error) {
	p.door.mu.Lock()
	place := len(p.door.requests)
	p.door.requests = append(p.door.requests, request{method: r.Method, path: r.URL.Path})
	p.door.mu.Unlock()
	resp, err := p.next.RoundTrip(r)
	if err == nil {
		p.door.mu.Lock()
		defer p.door.mu.Unlock()
		p.door.requests[place].status = resp.StatusCode
	}
	return resp, err
}

// since returns the requests after the first n that are not about leases.
func (d *door) since(n int) []request {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []request
	for _, r := range d.requests[n:] {
		if !strings.Contains(r.path, "/leases") {
			found = append(found, r)
		}
	}
	return found
}

// count is how many requests there were.
func (d *door) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.requests)
}

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
func (s *studio) paintedBy(p *painting) error {
	list := &corev1.ConfigMapList{}
	if err := s.client.List(s.t.Context(), list, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	for _, canvas := range list.Items {
		if got, want := canvas.Data["painter"], fmt.Sprint(p.cmd.Process.Pid); strings.HasPrefix(canvas.Name, "canvas") && got != want {
			return fmt.Errorf("%s was painted by %q, want %s", canvas.Name, got, want)
		}
	}
	return nil
}

// painting is a painter that runs.
type painting struct {
	t     *testing.T
	door  *door
	cmd   *exec.Cmd
	log   *log
	ended chan error
}

// start starts a painter, which ends with the test.
func (s *studio) start(args ...string) *painting {
	s.t.Helper()
	p := &painting{t: s.t, door: newDoor(s.t, s.instance), log: &log{}, ended: make(chan error, 1)}
	args = append([]string{
		"run", "--kubeconfig", p.door.kubeconfig, "--namespace", s.namespace, "--listen-address", "", "--inspector-address", "",
		"--leader-elect", "--leader-election-namespace", s.namespace, "--log-format", "text",
	}, args...)
	p.cmd = exec.Command("painter", args...)
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended //nolint:errcheck // it was killed
	})
	return p
}

func (p *painting) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits until the process has ended, and returns its exit code.
func (p *painting) wait() int {
	p.t.Helper()
	select {
	case err := <-p.ended:
		p.ended <- err
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return exit.ExitCode()
		}
		return 0
	case <-time.After(time.Minute):
		p.t.Fatalf("the painter does not end:\n%s", p.log)
	}
	return 0
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
	operatortest.Eventually(t, "b waits for the lease", func() bool { return b.door.count() > len(b.door.since(0)) })

	a.signal(syscall.SIGSTOP)
	operatortest.Eventually(t, "b paints", func() error { return s.paintedBy(b) })
	before := a.door.count()
	a.signal(syscall.SIGCONT)
	if code := a.wait(); code != command.ExitFailure {
		t.Errorf("a ended with %d, want %d", code, command.ExitFailure)
	}

	// A request that was past the fence when the process was paused names the resource version that it changes.
	late := a.door.since(before)
	if len(late) > s.canvases {
		t.Errorf("%d requests began after the pause, the first of which are %v", len(late), late[:s.canvases])
	}
	for _, r := range late[:min(len(late), s.canvases)] {
		if r.status != http.StatusConflict {
			t.Errorf("%s %s of a was answered with %d after the pause", r.method, r.path, r.status)
		}
	}
	if err := s.paintedBy(b); err != nil {
		t.Error(err)
	}
	if !strings.Contains(a.log.String(), "lease lost") {
		t.Errorf("a does not say why it ended:\n%s", a.log)
	}
}
