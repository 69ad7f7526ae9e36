package manifest_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// reading is a transport that counts how often each object is read, by path.
type reading struct {
	next http.RoundTripper
	mu   *sync.Mutex
	of   map[string]int
}

func (r reading) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet && request.URL.Query().Get("watch") == "" {
		r.mu.Lock()
		r.of[request.URL.Path]++
		r.mu.Unlock()
	}
	return r.next.RoundTrip(request)
}

// TestARemovalReadsEachObjectAtMostTwice: once to plan its deletion, and once to see that it is gone. The objects are of three stages.
func TestARemovalReadsEachObjectAtMostTwice(t *testing.T) {
	k := newKit(t)
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: %s-role\nrules: []\n"
	const slice = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: slice\naddressType: IPv4\nendpoints: []\n"
	one := k.service(files{
		"a.yaml": configMap("a", "1") + "---\n" + configMap("b", "1"), "role.yaml": strings.Replace(role, "%s", k.namespace, 1), "slice.yaml": slice,
	})
	k.carryOut(one, k.compute(one))
	read, mu := map[string]int{}, &sync.Mutex{}
	cfg := rest.CopyConfig(k.cluster.RESTConfig())
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return reading{next, mu, read} })
	var err error
	if k.cluster, err = newCluster(cfg); err != nil {
		t.Fatal(err)
	}
	for {
		result := k.compute(gone(one))
		if result.Found == nil {
			break
		}
		if len(result.Changes) > 0 {
			k.carryOut(gone(one), result)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	objects := 0
	for path, n := range read {
		if !strings.Contains(path, "/configmaps/") && !strings.Contains(path, "/clusterroles/") && !strings.Contains(path, "/endpointslices/") {
			continue
		}
		if objects++; n > 2 {
			t.Errorf("%s is read %d times", path, n)
		}
	}
	if objects != 4 {
		t.Errorf("%d objects are read, and not 4: %v", objects, read)
	}
}
