package helm_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// reads counts how often each object is read, by path.
type reads struct {
	mu sync.Mutex
	of map[string]int
}

// reading is a transport that counts.
type reading struct {
	next http.RoundTripper
	*reads
}

func (r reading) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet && request.URL.Query().Get("watch") == "" {
		r.mu.Lock()
		r.of[request.URL.Path]++
		r.mu.Unlock()
	}
	return r.next.RoundTrip(request)
}

// counted has the kit count what is read from now on.
func (k *kit) counted() *reads {
	k.t.Helper()
	counting := &reads{of: map[string]int{}}
	cfg := k.cluster.RESTConfig()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return reading{next, counting} })
	var err error
	if k.cluster, err = newCluster(cfg); err != nil {
		k.t.Fatal(err)
	}
	return counting
}

// TestARemovalReadsEachObjectAtMostTwice: once to plan its deletion, and once to see that it is gone. The release is read with the list
// of its revisions, and not by itself as well.
func TestARemovalReadsEachObjectAtMostTwice(t *testing.T) {
	k := newKit(t, helm.Config{})
	chart := hookChart("1.0.0").with("templates/job.yaml", strings.ReplaceAll(jobTemplate, "ANNOTATIONS", "{}"))
	for i := range 5 {
		chart = chart.with(fmt.Sprintf("templates/extra%d.yaml", i), strings.Replace(extraTemplate, "-extra", fmt.Sprintf("-extra%d", i), 1))
	}
	k.settle(k.service(chart))
	k.ends(batchv1.JobComplete, "")
	counting := k.counted()
	k.eventually(k.service(nil, gone), "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
	counting.mu.Lock()
	defer counting.mu.Unlock()
	objects := 0
	for path, n := range counting.of {
		if strings.Contains(path, "/secrets/sh.helm.release") {
			t.Errorf("%s is read", path)
		}
		if !strings.HasPrefix(path, "/api/v1/namespaces/"+k.namespace+"/configmaps/web-") && !strings.Contains(path, "/jobs/") || strings.HasSuffix(path, "-hook") {
			continue
		}
		if objects++; n > 2 {
			t.Errorf("%s is read %d times", path, n)
		}
	}
	if objects != 7 {
		t.Errorf("%d objects are read, and not 7: %v", objects, counting.of)
	}
}
