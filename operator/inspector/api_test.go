package inspector_test

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestObjectsAreFoundByWhatIsKnownOfThem(t *testing.T) {
	paused := site("paused")
	paused.Annotations = map[string]string{framework.PausedAnnotation: "true"}
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home"), site("home-two"), site("broken", failsKey, "no space left on Ärmel"), paused, site("leaves")})
	w.reconciled(4)
	if err := w.sites.Delete(site("leaves")); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the object is gone", func() bool { return len(w.names("state=gone")) == 1 })
	operatortest.Eventually(t, "the pause is known", func() bool { return len(w.names("state=left+alone")) == 1 })

	for query, want := range map[string][]string{
		"":                                {"broken", "home", "home-two", "leaves", "paused"},
		"q=home":                          {"home", "home-two"},
		"q=HOME+two":                      {"home-two"},
		"q=space":                         {"broken"},
		"q=%C3%A4RMEL":                    {"broken"},
		"q=default/home":                  {"home", "home-two"},
		"q=nothing":                       nil,
		"state=failing":                   {"broken"},
		"state=fine":                      {"home", "home-two"},
		"state=gone":                      {"leaves"},
		"state=left+alone":                {"paused"},
		"name=home":                       {"home"},
		"namespace=default&name=home":     {"home"},
		"namespace=other&name=home":       nil,
		"kind=site&name=home":             {"home"},
		"kind=Site&name=home":             {"home"},
		"kind=sites&name=home":            {"home"},
		"kind=sites.example.com&q=broken": {"broken"},
		"kind=other&name=home":            nil,
		"framework=sites.example.com":     {"broken", "home", "home-two", "leaves", "paused"},
		"framework=other":                 nil,
		"limit=2":                         {"broken", "home"},
		"limit=2&offset=2":                {"home-two", "leaves"},
		"offset=99":                       nil,
	} {
		if diff := cmp.Diff(want, w.names(query)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
	if got := read[inspector.ObjectList](w, "objects?limit=2").Total; got != 5 {
		t.Errorf("of 5 objects, %d are counted", got)
	}
	for _, query := range []string{"state=bad", "limit=0", "limit=1001", "limit=x", "offset=-1"} {
		has(t, w.get("api/v1/objects?"+query, http.StatusBadRequest), `{"error":"`)
		w.get("objects?"+query, http.StatusBadRequest)
	}
}

func TestObjectTellsItsReconciliations(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home", "page", "hello")})
	w.reconciled(1)

	got := read[inspector.Object](w, objectPath("home"))
	if len(got.Reconciliations) != 1 {
		t.Fatalf("%d reconciliations are known, want 1", len(got.Reconciliations))
	}
	r := got.Reconciliations[0]
	if r.Outcome != framework.Succeeded || r.Event != plan.UpdateEvent || r.Started.IsZero() || r.Duration <= 0 || r.Triggers[0].Cause != framework.CauseBacklog {
		t.Errorf("the reconciliation is %+v", r.Record)
	}
	want := []plan.Change{{
		Action: plan.Create,
		Object: plan.Object{Kind: "ConfigMap", Namespace: "default", Name: "home-page"},
		Fields: []plan.FieldChange{{Path: "data.page", New: "hello"}},
	}}
	if diff := cmp.Diff(want, r.Resources[0].Changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	has(t, w.get("api/v1/"+objectPath("absent"), http.StatusNotFound), `{"error":"sites.example.com \"default/absent\" not found"}`)
	w.get(objectPath("absent"), http.StatusNotFound)
	w.get("object?framework=other&name=home", http.StatusNotFound)
}

func TestPlanShowsWhatWouldChangeAndChangesNothing(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home", "page", "one")})
	w.reconciled(1)
	planned := site("home", "page", "two")
	planned.Annotations = map[string]string{framework.PausedAnnotation: "true"}
	w.put(planned)
	operatortest.Eventually(t, "the pause is known", func() bool { return len(w.names("state=left+alone")) == 1 })

	has(t, w.post("api/v1/plan", queryOf("home"), http.StatusOK), `"outcome":"ignored"`, "paused")
	has(t, w.post("object", queryOf("home"), http.StatusOK), "0 to create, 0 to update, 0 to delete", "it is paused by an annotation")
	w.post("api/v1/plan", queryOf("absent"), http.StatusNotFound)
	w.post("object", queryOf("absent"), http.StatusNotFound)
	w.post("api/v1/plan", url.Values{"framework": {"other"}, "name": {"home"}}, http.StatusNotFound)
	if got := read[inspector.Overview](w, "overview").Frameworks[0].Reconciled; got != 1 {
		t.Errorf("%d reconciliations ended, want 1: planning is none", got)
	}
}

func TestStreamTellsOfNewReconciliationsAndEndsWithTheInspector(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home"), site("other")})
	w.reconciled(2)
	answer, err := w.client.Get(w.url + "/inspector/events?" + queryOf("home").Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if got := answer.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("the type is %q", got)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(answer.Body); s.Scan(); {
			if data, ok := strings.CutPrefix(s.Text(), "data: "); ok {
				lines <- data
			}
		}
	}()
	next := func() string {
		t.Helper()
		select {
		case line := <-lines:
			return line
		case <-time.After(30 * time.Second):
			t.Fatal("nothing was told")
			return ""
		}
	}
	first := next()
	w.put(site("other", "changed", "yes"))
	w.reconciled(3)
	w.put(site("home", "changed", "yes"))
	w.reconciled(4)
	second := next()
	if first == second {
		t.Errorf("the same version %s was told twice", first)
	}
	select {
	case more := <-lines:
		t.Errorf("more was told: %s; the change of another object is no news for this page", more)
	default:
	}
}

func TestPagesAreServedWithoutScript(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home", "page", "hello"), site("broken", failsKey, "no space left")})
	w.reconciled(2)

	has(t, w.get("", http.StatusOK), "1 object fails", "no space left", "default/broken", "Waiting objects", "Synced", "pages")
	has(t, w.get("objects?q=home", http.StatusOK), "1 to 1 of 1 objects", objectHref("home"))
	has(t, w.get(objectPath("home"), http.StatusOK), "it was there at the start", "home-page", "hello", "<rect", "Plan now")
	has(t, w.post("object", queryOf("home"), http.StatusOK), "0 to create, 0 to update, 0 to delete")
	traced := record("home", 7)
	traced.TraceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	w.inspector.Observe(traced)
	has(t, w.get(objectPath("home"), http.StatusOK), "loop 7 · trace 4bf92f3577b34da6a3ce929d0e0e4736 · started")
	has(t, w.get("api/v1/"+objectPath("home"), http.StatusOK), `"traceID":"4bf92f3577b34da6a3ce929d0e0e4736"`)
}

func objectHref(name string) string {
	return fmt.Sprintf(`href="/inspector/object?framework=%s&amp;name=%s&amp;namespace=default"`, kind, name)
}

// duo is a ring of two.
type duo struct{}

func (duo) Replicas() []inspector.Replica {
	return []inspector.Replica{{Name: "site-operator-a", This: true, Slots: 171, Objects: 17}, {Name: "site-operator-b", Slots: 85, Moving: 1, Objects: 4}}
}

func (duo) Owner(informer.Key) string { return "site-operator-b" }

func (duo) This() string { return "site-operator-a" }

func (duo) Page(string) (inspector.Page, error) {
	return inspector.Page{}, errors.New("it serves none")
}

func TestThePageShowsWhichReplicaHasWhatAndWhoseAnObjectIs(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home")})
	w.reconciled(1)
	lacks(t, w.get("", http.StatusOK), "Replica")
	lacks(t, w.get(objectPath("home"), http.StatusOK), "replica")
	w.inspector.ShareBy(duo{})
	has(t, w.get("", http.StatusOK), "site-operator-a<small>this one</small>", "site-operator-b</th>", ">17<", ">171<", ">85<")
	has(t, w.get(objectPath("home"), http.StatusOK), "reconciled by the replica site-operator-b")
	if got := read[inspector.Object](w, objectPath("home")).Owner; got != "site-operator-b" {
		t.Errorf("the owner is %q", got)
	}
	if got := read[inspector.Overview](w, "overview").Replicas; len(got) != 2 || got[1].Moving != 1 {
		t.Errorf("the replicas are %+v", got)
	}
}
