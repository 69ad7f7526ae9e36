package machines_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// wire is a connection to an engine that is cut at a write, for good.
type wire struct {
	t      *testing.T
	server *http.Server
	engine http.Handler
	// before says how many writes go through before the one that is lost, and after that the one is carried out and its answer lost.
	before int
	after  bool

	mu     sync.Mutex
	writes int
	// cut is closed when it is cut.
	cut chan struct{}
}

// newWire listens at a socket, for an engine with another one.
func newWire(t *testing.T, socket, engine string, before int, after bool) *wire {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", engine)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	proxy.Transport, proxy.FlushInterval = transport, -1
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	w := &wire{t: t, engine: proxy, before: before, after: after, cut: make(chan struct{})}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	w.server = &http.Server{Handler: w}
	served := make(chan error, 1)
	go func() { served <- w.server.Serve(listener) }()
	t.Cleanup(func() {
		_ = w.server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return w
}

// ServeHTTP implements http.Handler.
func (w *wire) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	if !writes(r) {
		w.engine.ServeHTTP(to, r)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	if w.writes <= w.before {
		w.engine.ServeHTTP(to, r)
		return
	}
	if w.writes == w.before+1 {
		w.t.Logf("cut at %s %s", r.Method, r.URL.Path)
		if w.after {
			w.engine.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
		}
		close(w.cut)
		_ = w.server.Close()
	}
	panic(http.ErrAbortHandler)
}

// writes tells whether a request changes something on an engine.
func writes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.HasSuffix(r.URL.Path, "/wait")
}

// callsOfALife is how many calls that change something a life of an operator has, the one at which it crashes included: one,
// two, and so on up to this, and one again. What is repeated at the beginning of plans must not be all that is ever done.
const callsOfALife = 4

// socketFolder makes a folder with a short path, as sockets need it.
func socketFolder() (string, error) { return os.MkdirTemp("", "wires") }

// TestContainersAreAsTheyShouldBeWhateverCallOfAnEngineTheOperatorCrashesAt makes, changes and removes a service while the operator
// crashes at calls of an engine that change something, and comes back, over and over.
func TestContainersAreAsTheyShouldBeWhateverCallOfAnEngineTheOperatorCrashesAt(t *testing.T) {
	for name, test := range map[string]struct {
		after bool
		first int
	}{
		"when it was not carried out": {false, 0}, "when it was not carried out, otherwise": {false, 2},
		"when its answer is lost": {true, 0}, "when its answer is lost, otherwise": {true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			folder, err := socketFolder()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(folder) })
			lives, crashes := 0, 0
			// live starts operators, one after the other, until something holds.
			live := func(holds func() error) {
				t.Helper()
				for {
					socket := filepath.Join(folder, fmt.Sprint(lives))
					wire := newWire(t, socket, w.engines[0].Socket(), (crashes+test.first)%callsOfALife, test.after)
					change(w, w.machine(0), func(m *v1alpha1.Machine) { m.Spec.Address = "unix://" + socket })
					faults := operatortest.NewFaults()
					ctx, crash := context.WithCancel(context.Background())
					ended := make(chan error, 1)
					go func() { ended <- w.operate(ctx, faults.Wrap(w.kube.RESTConfig()), w.namespace) }()
					end := sync.OnceFunc(func() {
						crash()
						t.Log("an operator ended with", <-ended)
					})
					t.Cleanup(end)
					cut := false
					operatortest.Eventually(t, "the operator crashes, or is done", func() error {
						select {
						case <-wire.cut:
							faults.Cut()
							cut = true
							return nil
						default:
							return holds()
						}
					})
					lives++
					if !cut {
						end()
						return
					}
					crash()
					if crashes++; crashes > 100 {
						t.Fatal("there is no end to it")
					}
				}
			}
			web := unchecked("web", 2)
			deployed := func() error {
				if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
					return err
				}
				for _, c := range web.Status.Conditions {
					if c.Type == "Ready" && c.Status == metav1.ConditionTrue && c.ObservedGeneration == web.Generation {
						return nil
					}
				}
				return fmt.Errorf("generation %d has the status %+v", web.Generation, web.Status)
			}
			w.create(web)
			live(deployed)
			w.wantContainers("web", "app:1 running, app:1 running")
			change(w, web, func(s *v1alpha1.MachineService) { s.Spec.Container.Image, s.Spec.Replicas = "app:2", new(int32(1)) })
			live(func() error {
				if got := w.containers(w.engines[0], "web"); !strings.Contains(strings.Join(got, ", "), "running") {
					t.Errorf("none works: %q", got)
				}
				return deployed()
			})
			w.wantContainers("web", "app:2 running")
			if err := w.user.Delete(t.Context(), web); err != nil {
				t.Fatal(err)
			}
			live(func() error {
				if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(web), web); !apierrors.IsNotFound(err) {
					return errors.Join(errors.New("it is still there"), err)
				}
				return nil
			})
			w.wantContainers("web", "")
			t.Logf("it crashed %d times", crashes)
			if crashes < 3 {
				t.Errorf("it crashed %d times only", crashes)
			}
		})
	}
}
