package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

func TestNobodyAnswers(t *testing.T) {
	s := serve(t, nil)
	s.Close()
	for _, address := range []string{s.URL, oci(s)} {
		_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(address), fetch.Credentials{})
		fails(t, err, fetch.ErrUnavailable, false, "connection refused", s.Listener.Addr().String())
	}
	_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart("https://charts.invalid"), fetch.Credentials{})
	fails(t, err, fetch.ErrUnavailable, false, "charts.invalid")
}

// dying ends the connection in the middle of archives, as long as it is told to.
type dying struct {
	next http.Handler
	path string
}

func (d dying) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, d.path) {
		d.next.ServeHTTP(w, r)
		return
	}
	d.next.ServeHTTP(&half{ResponseWriter: w}, r)
	panic(http.ErrAbortHandler)
}

// half is an answer that ends too early.
type half struct{ http.ResponseWriter }

func (h *half) Write(p []byte) (int, error) {
	_, err := h.ResponseWriter.Write(p[:len(p)/2])
	h.ResponseWriter.(http.Flusher).Flush()
	return len(p), err
}

func TestServerThatDiesInTheMiddle(t *testing.T) {
	archive := chartOf(t, "app", "1.0.0", entry{name: "app/noise", data: noise(100 << 10)})
	charts := newStore(t)
	charts.pushChart(t, "app:1.0.0", archive)
	web := repository(map[string][]byte{"app-1.0.0.tgz": archive})
	for name, test := range map[string]struct {
		handler http.Handler
		address func(*server) string
		path    string
	}{
		"repository, archive": {web, func(s *server) string { return s.URL }, ".tgz"},
		"repository, index":   {web, func(s *server) string { return s.URL }, "index.yaml"},
		"registry, chart":     {charts.front(t), oci, "/blobs/"},
		"registry, manifest":  {charts.front(t), oci, "/manifests/"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, dying{test.handler, test.path})
			f := newFetcher(t, fetch.Config{})
			_, err := f.Chart(t.Context(), chart(test.address(s)), fetch.Credentials{})
			fails(t, err, fetch.ErrUnavailable, false, "EOF")
			s.become(test.handler)
			if _, err := f.Chart(t.Context(), chart(test.address(s)), fetch.Credentials{}); err != nil {
				t.Error("after the server has come back:", err)
			}
		})
	}
}

// trickle sends a byte of an endless archive from time to time, and tells when its caller has gone.
func trickle(gone chan<- struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte("a"))
			w.(http.Flusher).Flush()
			select {
			case <-time.After(time.Millisecond):
			case <-r.Context().Done():
			}
		}
		gone <- struct{}{}
	})
}

func TestSlowServer(t *testing.T) {
	gone := make(chan struct{}, 10)
	s := serve(t, trickle(gone))
	from := v1alpha1.Artifact{URL: s.URL + "/a.tgz"}

	_, err := newFetcher(t, fetch.Config{Limits: fetch.Limits{Timeout: 50 * time.Millisecond}}).Files(t.Context(), from, fetch.Credentials{})
	fails(t, err, fetch.ErrUnavailable, false, "no complete answer within 50ms", "raise Limits.Timeout")

	f := newFetcher(t, fetch.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err = f.Files(ctx, from, fetch.Credentials{}); !errors.Is(err, context.DeadlineExceeded) || fetch.Permanent(err) {
		t.Errorf("at the deadline of the caller the error is %v", err)
	}
	// The server notices that nobody waits.
	for range s.asked("GET") {
		<-gone
	}
}

func TestSlowIndex(t *testing.T) {
	charts := repository(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0")})
	s := serve(t, charts)
	folder := t.TempDir()
	if _, err := newFetcher(t, fetch.Config{Folder: folder}).Chart(t.Context(), chart(s.URL), fetch.Credentials{}); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{}, 10)
	s.become(trickle(gone))
	impatient := fetch.Config{Trust: -1, Limits: fetch.Limits{Timeout: 50 * time.Millisecond}}
	_, err := newFetcher(t, impatient).Chart(t.Context(), chart(s.URL), fetch.Credentials{})
	fails(t, err, fetch.ErrUnavailable, false, "no complete answer within 50ms")

	impatient.Folder = folder
	if _, err := newFetcher(t, impatient).Chart(t.Context(), chart(s.URL), fetch.Credentials{}); err != nil {
		t.Error("what is in the cache is not used:", err)
	}
	for range s.asked("GET") - 2 {
		<-gone
	}
}

func TestCallersShareOneFetch(t *testing.T) {
	charts := repository(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0")})
	release := make(chan struct{})
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			<-release
		}
		charts.ServeHTTP(w, r)
	}))
	f := newFetcher(t, fetch.Config{Trust: -1})
	const callers = 20
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			if _, err := f.Chart(t.Context(), chart(s.URL), fetch.Credentials{}); err != nil {
				t.Error(err)
			}
		})
	}
	// One that gives up does not take the fetch away from the others.
	ctx, cancel := context.WithCancel(t.Context())
	done.Go(func() {
		if _, err := f.Chart(ctx, chart(s.URL), fetch.Credentials{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that gave up got %v", err)
		}
	})
	waiting := func(n int) {
		operatortest.Eventually(t, fmt.Sprintf("%d callers wait", n), func() bool { return f.Waiting() == n })
	}
	waiting(callers + 1)
	cancel()
	waiting(callers)
	close(release)
	done.Wait()
	if n := s.asked(".tgz"); n != 1 {
		t.Errorf("%d callers took %d fetches", callers, n)
	}
}

func TestFetchEndsWithItsLastCaller(t *testing.T) {
	gone := make(chan struct{}, 10)
	s := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		gone <- struct{}{}
	}))
	f := newFetcher(t, fetch.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := f.Chart(ctx, chart(s.URL), fetch.Credentials{})
			result <- err
		}()
	}
	operatortest.Eventually(t, "the server is asked", func() bool { return s.asked("") == 1 })
	cancel()
	for range 2 {
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	<-gone
}

func TestWhatIsInTheCacheIsUsedWhileNobodyAnswers(t *testing.T) {
	archive := chartOf(t, "app", "1.0.0")
	charts := newStore(t)
	charts.pushChart(t, "app:1.0.0", archive)
	files := pack(t, entry{name: "a"})
	everything := http.NewServeMux()
	everything.Handle("/v2/", charts.front(t))
	everything.Handle("/", repository(map[string][]byte{"app-1.0.0.tgz": archive}).with("/files.tgz", files))
	s := serve(t, everything)
	// A little trust, which has run out when the next thing is asked for.
	f := newFetcher(t, fetch.Config{Trust: 1})
	all := func() []error {
		_, repositoryErr := f.Chart(t.Context(), chart(s.URL), fetch.Credentials{})
		_, registryErr := f.Chart(t.Context(), chart(oci(s)), fetch.Credentials{})
		_, filesErr := f.Files(t.Context(), v1alpha1.Artifact{URL: s.URL + "/files.tgz"}, fetch.Credentials{})
		return []error{repositoryErr, registryErr, filesErr}
	}
	answer := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	if err := errors.Join(all()...); err != nil {
		t.Fatal(err)
	}
	s.become(answer(http.StatusBadGateway))
	if err := errors.Join(all()...); err != nil {
		t.Error(err)
	}
	s.become(answer(http.StatusForbidden))
	for _, err := range all() {
		fails(t, err, fetch.ErrUnauthorized, true)
	}
	s.become(answer(http.StatusNotFound))
	for _, err := range all() {
		fails(t, err, fetch.ErrNotFound, false)
	}
	s.Close()
	if err := errors.Join(all()...); err != nil {
		t.Error(err)
	}
}

func TestPanicIsThatOfTheCaller(t *testing.T) {
	defer func() {
		r := recover()
		if p, ok := r.(*panics.Error); !ok || p.Value != "broken" || !strings.Contains(string(p.Stack), "outage_test.go") {
			t.Errorf("the caller panicked with %v: want the panic of the call, and its stack", r)
		}
	}()
	_, err := fetch.Share(t.Context(), func(context.Context) (int, error) { panic("broken") })
	t.Errorf("the caller got %v", err)
}
