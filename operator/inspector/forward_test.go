package inspector_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
)

// pair is the ring of one of two replicas, a and b.
type pair struct {
	this string
	// ofB are the names of the objects that b has.
	ofB map[string]bool
	// other is the page of the other one.
	other inspector.Page
	err   error
}

func (p pair) This() string { return p.this }

func (p pair) Replicas() []inspector.Replica {
	return []inspector.Replica{{Name: "a", This: p.this == "a"}, {Name: "b", This: p.this == "b"}, {Name: ""}}
}

func (p pair) Owner(key informer.Key) string {
	if p.ofB[key.Name] {
		return "b"
	}
	return "a"
}

func (p pair) Page(string) (inspector.Page, error) { return p.other, p.err }

// twoReplicas are two operators with the same sites, of which b has those of these names. What they have made of them differs.
func twoReplicas(t *testing.T, ofB ...string) (a, b *world) {
	t.Helper()
	a = start(t, inspector.Config{}, []*corev1.ConfigMap{site("home", "by", "made-by-a"), site("blog", "by", "made-by-a")})
	b = start(t, inspector.Config{}, []*corev1.ConfigMap{site("home", "by", "made-by-b"), site("blog", failsKey, "no space on b")})
	a.reconciled(2)
	b.reconciled(2)
	has := map[string]bool{}
	for _, name := range ofB {
		has[name] = true
	}
	a.inspector.ShareBy(pair{this: "a", ofB: has, other: inspector.Page{URL: b.url}})
	b.inspector.ShareBy(pair{this: "b", ofB: has, other: inspector.Page{URL: a.url}})
	return a, b
}

func TestEachReplicaAnswersForAnyObjectWhatItsOwnerKnows(t *testing.T) {
	a, b := twoReplicas(t, "home")
	for _, w := range []*world{a, b} {
		has(t, w.get(objectPath("home"), http.StatusOK), "made-by-b", "reconciled by the replica b")
		has(t, w.get("api/v1/"+objectPath("home"), http.StatusOK), "made-by-b")
		has(t, w.get(objectPath("blog"), http.StatusOK), "made-by-a", "reconciled by the replica a")
		lacks(t, w.get(objectPath("home"), http.StatusOK), "made-by-a")
		has(t, w.post("object", queryOf("home"), http.StatusOK), "0 to create, 0 to update, 0 to delete")
		has(t, w.post("api/v1/plan", queryOf("home"), http.StatusOK), `"event":"update"`)
	}
	answer, err := a.client.Get(a.url + "/inspector/" + objectPath("home"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if got := answer.Header.Values("Content-Security-Policy"); len(got) != 1 {
		t.Errorf("an answer that was passed on has the policies %q", got)
	}
}

func TestAReplicaListsTheObjectsOfAllAndWhatFailsOnAny(t *testing.T) {
	a, b := twoReplicas(t, "blog")
	for _, w := range []*world{a, b} {
		list := read[inspector.ObjectList](w, "objects")
		if list.Total != 2 || len(list.Objects) != 2 || list.Objects[0].State != "failing" || list.Objects[1].State != "fine" {
			t.Errorf("the objects are %+v", list)
		}
		if list := read[inspector.ObjectList](w, "objects?offset=1&limit=1"); list.Total != 2 || len(list.Objects) != 1 || list.Objects[0].Name != "home" {
			t.Errorf("the second of the objects is %+v", list)
		}
		if list := read[inspector.ObjectList](w, "objects?state=failing"); list.Total != 1 {
			t.Errorf("those that fail are %+v", list)
		}
		if o := read[inspector.Overview](w, "overview"); o.FailingCount != 1 || len(o.Failing) != 1 || o.Failing[0].Name != "blog" {
			t.Errorf("what fails is %+v", o.Failing)
		}
		has(t, w.get("", http.StatusOK), "1 object fails", "no space on b")
	}
	has(t, a.get("api/v1/objects?offset=9999&limit=10", http.StatusBadRequest), "search for less")
}

func TestAReplicaWhosePageCannotBeAskedIsToldOf(t *testing.T) {
	a, b := twoReplicas(t, "home")
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, other := range []pair{{other: inspector.Page{URL: gone.URL}}, {err: errors.New("it serves none")}} {
		other.this, other.ofB = "a", map[string]bool{"home": true}
		a.inspector.ShareBy(other)
		has(t, a.get(objectPath("home"), http.StatusOK), "made-by-a", "the page of the replica b can", "what it has done is not shown")
		if got := read[inspector.Object](a, objectPath("home")).Unreached; got == "" {
			t.Error("the object does not say that its owner was not asked")
		}
		list := read[inspector.ObjectList](a, "objects")
		if list.Total != 2 || len(list.Unreached) != 1 {
			t.Errorf("the objects are %+v", list)
		}
		has(t, a.get("objects", http.StatusOK), "how its objects are doing is not shown")
		has(t, a.get("", http.StatusOK), "what fails there is not shown")
	}
	lacks(t, b.get(objectPath("home"), http.StatusOK), "can't be asked")
}

func TestAQuestionIsPassedOnOnceAlsoIfTheOtherReplicaSaysThatTheFirstHasTheObject(t *testing.T) {
	a, b := twoReplicas(t)
	a.inspector.ShareBy(pair{this: "a", ofB: map[string]bool{"home": true}, other: inspector.Page{URL: b.url}})
	has(t, a.get(objectPath("home"), http.StatusOK), "made-by-b", "reconciled by the replica a")
}

func TestEachMessageThatIsPassedOnHasATimeOutOfItsOwn(t *testing.T) {
	a, _ := twoReplicas(t, "home")
	w := &timed{ResponseWriter: httptest.NewRecorder(), wrote: make(chan time.Duration, 100)}
	r := withLocalAddr(a.request(http.MethodGet, "events?"+queryOf("home").Encode(), nil), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var passing sync.WaitGroup
	passing.Go(func() { a.inspector.ServeHTTP(w, r.WithContext(ctx)) })
	if left := <-w.wrote; left <= 15*time.Second || left > 30*time.Second {
		t.Errorf("when the first message is written, the answer has %s left: want more than until the next one, and no minute", left)
	}
	cancel()
	passing.Wait()
}

// timed tells of each write how long all of it may still take.
type timed struct {
	http.ResponseWriter
	deadline time.Time
	wrote    chan time.Duration
}

func (w *timed) SetReadDeadline(time.Time) error { return nil }

func (w *timed) SetWriteDeadline(deadline time.Time) error {
	w.deadline = deadline
	return nil
}

func (w *timed) Write(p []byte) (int, error) {
	w.wrote <- time.Until(w.deadline)
	return w.ResponseWriter.Write(p)
}

func (w *timed) FlushError() error { return nil }

func digest(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}

func TestAnotherReplicaIsAskedAsTheUserAndOnlyWithTheCertificateThatItTells(t *testing.T) {
	a, _ := twoReplicas(t)
	var tokens, asked atomic.Int64
	other := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") == "Bearer of-the-user" {
			tokens.Add(1)
		}
		http.Error(w, "answered by the other", http.StatusTeapot)
	}))
	defer other.Close()
	request := func(certificate string) *http.Response {
		t.Helper()
		a.inspector.ShareBy(pair{this: "a", ofB: map[string]bool{"home": true}, other: inspector.Page{URL: other.URL, Certificate: certificate}})
		r := a.request(http.MethodGet, objectPath("home"), nil)
		r.Header.Set("Authorization", "Bearer of-the-user")
		answer, err := a.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer
	}
	for _, wrong := range []string{"", "00", digest([]byte("another"))} {
		if answer := request(wrong); answer.StatusCode != http.StatusOK || asked.Load() > 0 {
			t.Errorf("with the certificate %q: %s, and the other was asked %d times", wrong, answer.Status, asked.Load())
		}
	}
	if answer := request(digest(other.Certificate().Raw)); answer.StatusCode != http.StatusTeapot || tokens.Load() != 1 {
		t.Errorf("with its certificate: %s, and the token was sent %d times", answer.Status, tokens.Load())
	}
}
