package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/zone"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) { operatortest.VerifyTestMain(m) }

func TestServicesHaveTheirRecordsWhateverCrashes(t *testing.T) {
	operatortest.Survives(t, lifeOfRecords)
}

// lifeOfRecords is the life of a Service whose record moves, and a second operator, which has the same records in another zone. Each run has
// zones of its own.
func lifeOfRecords(t *testing.T) operatortest.Scenario {
	t.Helper()
	kube := operatortest.Start(t)
	var mu sync.Mutex
	servers := map[string]*zone.Server{}
	of := func(namespace string) *zone.Server {
		mu.Lock()
		defer mu.Unlock()
		if servers[namespace] == nil {
			servers[namespace] = zone.NewServer(map[string]string{"theirs": "10.9.9.9"})
		}
		return servers[namespace]
	}
	open := func(namespace string) bool {
		mu.Lock()
		defer mu.Unlock()
		return servers[namespace] != nil
	}
	are := func(want string) operatortest.Step {
		return func(_ context.Context, _ client.Client, namespace string) error {
			got := hosts(of(namespace))
			if got == want && open(namespace+next) {
				got = hosts(of(namespace + next))
			}
			if got != want {
				return fmt.Errorf("the records are %q, not %q", got, want)
			}
			return nil
		}
	}
	ready := func(ctx context.Context, user client.Client, namespace string) error {
		s := &corev1.Service{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "home"}, s); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(s.Status.Conditions, "DNSReady") {
			return fmt.Errorf("the conditions are %v", s.Status.Conditions)
		}
		return nil
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
	start := func(suffix string) func(ctx context.Context, cfg *rest.Config, namespace string) error {
		return func(ctx context.Context, cfg *rest.Config, namespace string) error {
			server := httptest.NewServer(of(namespace + suffix))
			defer server.Close()
			config := newConfig(server.URL)
			config.Name += suffix
			return commandtest.Start(config)(ctx, cfg, namespace)
		}
	}
	return operatortest.Scenario{
		Name: "dns", Config: kube.RESTConfig(), Objects: []client.Object{&corev1.Service{}},
		Start: start(""), Neighbour: start(next),
		// Who comes first has the condition.
		NeighbourAfter: func(ctx context.Context, user client.Client, namespace string) error {
			s := &corev1.Service{}
			err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "home"}, s)
			if err == nil && len(s.Status.Conditions) == 0 {
				err = errors.New("it has no conditions")
			}
			return err
		},
		Phases: []operatortest.Phase{
			{Name: "create", Do: operatortest.Create(service), Until: operatortest.All(are("home theirs"), ready)},
			{Name: "move", Do: host("away"), Until: operatortest.All(are("away theirs"), ready)},
			{Name: "delete", Do: operatortest.Delete(service), Until: operatortest.All(are("theirs"), operatortest.Gone(service))},
		},
	}
}

// hosts are the hosts of all records of a zone.
func hosts(s *zone.Server) string {
	var all []string
	for _, r := range s.Records() {
		all = append(all, r.Host)
	}
	return strings.Join(all, " ")
}

// next is what the name of a neighbour ends with.
const next = "-next-door"

// A zone that does not answer is told where people look: on the Service.
func TestAServiceTellsWhyItHasNoRecord(t *testing.T) {
	kube := operatortest.Start(t)
	namespace := kube.Namespace(t)
	user := operatortest.NewClient(t, kube.RESTConfig(), scheme.Scheme)
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }))
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- commandtest.Start(newConfig(silent.URL))(ctx, kube.RESTConfig(), namespace) }()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "home", Labels: map[string]string{hostLabel: "home"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if err := user.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "it tells that the zone does not answer", func() error {
		if err := user.Get(t.Context(), client.ObjectKeyFromObject(service), service); err != nil {
			return err
		}
		c := meta.FindStatusCondition(service.Status.Conditions, "DNSReady")
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "Retrying" || !strings.Contains(c.Message, "503 Service Unavailable") {
			return fmt.Errorf("the conditions are %v", service.Status.Conditions)
		}
		return nil
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
