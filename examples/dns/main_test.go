package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) { operatortest.VerifyTestMain(m) }

// server is a zone. It is safe for concurrent use.
type server struct {
	mu      sync.Mutex
	records map[string]string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	host := strings.TrimPrefix(r.URL.Path, "/records/")
	switch r.Method {
	case http.MethodPut:
		var put record
		if err := json.NewDecoder(r.Body).Decode(&put); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.records[host] = put.Address
	case http.MethodDelete:
		delete(s.records, host)
	default:
		address, ok := s.records[host]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(record{host, address})
	}
}

// hosts are the hosts of all records.
func (s *server) hosts() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(s.records)), " ")
}

func TestServicesHaveTheirRecordsWhateverCrashes(t *testing.T) {
	kube := operatortest.Start(t)
	var mu sync.Mutex
	servers := map[string]*server{}
	of := func(namespace string) *server {
		mu.Lock()
		defer mu.Unlock()
		if servers[namespace] == nil {
			servers[namespace] = &server{records: map[string]string{"theirs": "10.9.9.9"}}
		}
		return servers[namespace]
	}
	are := func(want string) operatortest.Step {
		return func(_ context.Context, _ client.Client, namespace string) error {
			if got := of(namespace).hosts(); got != want {
				return fmt.Errorf("the records are %q, not %q", got, want)
			}
			return nil
		}
	}
	host := func(host string) operatortest.Step {
		return func(ctx context.Context, user client.Client, namespace string) error {
			s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "home"}}
			return user.Patch(ctx, s, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"dns":"`+host+`"}}}`)))
		}
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "home", Labels: map[string]string{hostLabel: "home"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	operatortest.BreakAtEveryWrite(t, operatortest.Scenario{
		Name: "dns", Config: kube.RESTConfig(), Objects: []client.Object{&corev1.Service{}},
		Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
			zone := httptest.NewServer(of(namespace))
			defer zone.Close()
			connections := &http.Transport{}
			defer connections.CloseIdleConnections()
			config := newConfig(zone.URL, func(context.Context) http.RoundTripper { return operatortest.TransportOf(ctx, connections) })
			return commandtest.Start(config)(ctx, cfg, namespace)
		},
		Phases: []operatortest.Phase{
			{Name: "create", Do: operatortest.Create(service), Until: are("home theirs")},
			{Name: "move", Do: host("away"), Until: are("away theirs")},
			{Name: "delete", Do: operatortest.Delete(service), Until: operatortest.All(are("theirs"), operatortest.Gone(service))},
		},
	})
}
