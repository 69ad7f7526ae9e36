package clusteraccess_test

import (
	"fmt"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// named has the policy carry a name.
func (w *world) named(policy string) {
	w.policy.Name = policy
}

// measured returns the values of a metric by the namespace and the name of the request, and the labels of all as text.
func (w *world) measured(metric string) (values map[string]float64, labels string) {
	w.t.Helper()
	families, err := w.deps.Registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	values = map[string]float64{}
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, m := range family.Metric {
			of := map[string]string{}
			for _, l := range m.Label {
				of[l.GetName()] = l.GetValue()
				labels += fmt.Sprintf("%s=%s ", l.GetName(), l.GetValue())
			}
			values[of["namespace"]+"/"+of["name"]] = valueOf(m)
		}
	}
	return values, labels
}

func valueOf(m *dto.Metric) float64 { return m.GetGauge().GetValue() }

func TestWhoHasWhichAccessSinceWhenByWhichPolicyAndUntilWhenIsTold(t *testing.T) {
	w := newWorld(t)
	w.named("databases")
	w.addCluster("c", "workload")
	w.addCluster("other", "workload")
	second := w.another("redis")
	mine, theirs, elsewhere := newAccess("a", "c", inNamespace("team", "get")), newAccess("b", "c"), newAccess("d", "other")
	denied := newAccess("denied", "c", inNamespace(w.clusters, "get"))
	w.create(mine, elsewhere, denied)
	w.createIn(second, theirs)
	w.start()
	for _, ar := range []*v1alpha1.AccessRequest{mine, theirs, elsewhere} {
		w.granted(ar)
	}
	w.wants(denied, v1alpha1.PhaseDenied, v1alpha1.ReasonExceedsPolicy)
	for ar, provider := range map[*v1alpha1.AccessRequest]string{mine: "postgres", theirs: "redis"} {
		if ar.Status.Provider != provider || ar.Status.Policy != "databases" {
			t.Errorf("%s is of provider %q by policy %q, want %q by %q", ar.Name, ar.Status.Provider, ar.Status.Policy, provider, "databases")
		}
	}
	if denied.Status.Policy != "" || denied.Status.Provider != "postgres" {
		t.Errorf("what is denied is so by policy %q to %q", denied.Status.Policy, denied.Status.Provider)
	}

	since := apimeta.FindStatusCondition(mine.Status.Conditions, v1alpha1.ConditionGranted).LastTransitionTime
	keys := map[*v1alpha1.AccessRequest]string{mine: w.namespace + "/a", theirs: second + "/b"}
	operatortest.Eventually(t, "the metrics tell of all that is granted", func() error {
		expires, labels := w.measured("operatorkit_access_expiration_timestamp_seconds")
		granted, _ := w.measured("operatorkit_access_granted_timestamp_seconds")
		for ar, key := range keys {
			if expires[key] != float64(ar.Status.ExpirationTime.Unix()) {
				return fmt.Errorf("%s expires at %f", key, expires[key])
			}
		}
		if granted[keys[mine]] != float64(since.Unix()) || len(granted) != 3 {
			return fmt.Errorf("granted are %v", granted)
		}
		for _, want := range []string{"provider=postgres ", "provider=redis ", "cluster=c ", "policy=databases "} {
			if !strings.Contains(labels, want) {
				return fmt.Errorf("the labels %s lack %s", labels, want)
			}
		}
		return nil
	})
	if err := w.user.Delete(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	w.wantGone(mine)
	operatortest.Eventually(t, "nothing is told of what is gone", func() error {
		granted, _ := w.measured("operatorkit_access_granted_timestamp_seconds")
		if len(granted) != 2 {
			return fmt.Errorf("granted are %v", granted)
		}
		return nil
	})
}
