package clusteraccess_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/inspector/graph"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/granter"
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

// drawn returns what the page and explain show of an object.
func (w *world) drawn(framework string, o client.Object) (*graph.Graph, error) {
	graphs, err := w.deps.Inspector.Graphs(w.t.Context(), w.frameworks[framework], client.ObjectKeyFromObject(o))
	if err != nil || len(graphs) != 1 {
		return nil, errors.Join(err, fmt.Errorf("there are %d graphs", len(graphs)))
	}
	return graphs[0], nil
}

func TestWhoHasWhichAccessSinceWhenByWhichPolicyAndUntilWhenIsTold(t *testing.T) {
	w := newWorld(t)
	w.named("databases")
	cluster := w.addCluster("c", "workload")
	w.addCluster("other", "workload")
	second := w.another("redis")
	mine, theirs, elsewhere := newAccess("a", "c", inNamespace("team", "get")), newAccess("b", "c"), newAccess("d", "other")
	mine.Annotations = map[string]string{clusteraccess.ObjectAnnotation: "team-blue/orders"}
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
	operatortest.Eventually(t, "the page tells who has access to the Cluster", func() error {
		g, err := w.drawn("cluster-health", cluster)
		if err != nil {
			return err
		}
		text := g.Title
		for _, n := range g.Nodes {
			text += fmt.Sprintf("\n%s: %s: %s: %s", n.Group, n.Label, n.State, n.Message)
		}
		for _, want := range []string{
			"Who has access to cluster c", "postgres: team-blue/orders: ready: provider postgres has access to cluster c since " + since.UTC().Format(time.RFC3339) + ", by policy databases",
			"redis: b: ready", "these credentials end at " + mine.Status.ExpirationTime.UTC().Format(time.RFC3339),
		} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("it lacks %q:\n%s", want, text)
			}
		}
		if len(g.Nodes) != 2 || g.Nodes[0].Group != "postgres" || g.Nodes[1].Group != "redis" {
			return fmt.Errorf("it tells of %d, or in another order than that of the providers", len(g.Nodes))
		}
		return nil
	})
	if g, err := w.drawn("granter", theirs); err != nil || len(g.Nodes) != 1 || !strings.Contains(g.Nodes[0].Message, "provider redis has access to cluster c") {
		t.Errorf("of the request it is told %+v, %v", g, err)
	}

	if err := w.user.Delete(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	w.wantGone(mine)
	operatortest.Eventually(t, "nothing is told of what is gone", func() error {
		granted, _ := w.measured("operatorkit_access_granted_timestamp_seconds")
		g, err := w.drawn("cluster-health", cluster)
		if err == nil && (len(granted) != 2 || len(g.Nodes) != 1) {
			err = fmt.Errorf("granted are %v", granted)
		}
		return err
	})
}

func TestAccessThatNobodyUsesIsTold(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	w.change = func(c *granter.Config) { c.UnusedAfter = 48 * time.Hour }
	w.start()
	forgotten := newAccess("forgotten", "workload")
	w.create(forgotten)
	w.granted(forgotten)
	used := func(ar *v1alpha1.AccessRequest, reason string) {
		t.Helper()
		settles(w, ar, ar.Name+" is "+reason, func(ar *v1alpha1.AccessRequest) error {
			c := apimeta.FindStatusCondition(ar.Status.Conditions, v1alpha1.ConditionUsed)
			if c == nil || c.Reason != reason {
				return fmt.Errorf("it is %+v", c)
			}
			return nil
		})
	}
	used(forgotten, v1alpha1.ReasonUsed)

	p := w.newProvider(func(c *clusteraccess.ProviderConfig) { c.Workload, c.TellUses = nil, 12*time.Second })
	request := object("db")
	mine, _ := w.asked(p, request)
	w.mcp(p, request)
	settles(w, mine, "the provider tells that it uses its access", func(ar *v1alpha1.AccessRequest) error {
		if _, err := time.Parse(time.RFC3339, ar.Annotations[v1alpha1.UsedAnnotation]); err != nil {
			return err
		}
		return nil
	})

	w.clock.SetTime(w.clock.Now().Add(49 * time.Hour))
	// It was used since, as its provider tells.
	later := w.clock.Now().UTC().Add(-time.Hour).Format(time.RFC3339)
	w.patch(forgotten, `{"metadata":{"annotations":{"`+v1alpha1.UsedAnnotation+`":"nonsense"}}}`)
	tells := newAccess("tells", "workload")
	tells.Annotations = map[string]string{v1alpha1.UsedAnnotation: later}
	w.create(tells)
	w.granted(tells)
	w.look(forgotten)
	w.look(tells)
	used(forgotten, v1alpha1.ReasonUnused)
	used(tells, v1alpha1.ReasonUsed)
	w.wants(forgotten, v1alpha1.PhaseGranted, v1alpha1.ReasonGranted) // nothing is taken away
	operatortest.Eventually(t, "an event tells", func() error {
		events := &corev1.EventList{}
		if err := w.user.List(context.Background(), events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == "forgotten" && e.Reason == v1alpha1.ReasonUnused && strings.Contains(e.Message, "Nobody has used the access since") {
				return nil
			}
		}
		return errors.New("there is none")
	})
	operatortest.Eventually(t, "a metric tells", func() error {
		unused, _ := w.measured("operatorkit_access_unused")
		uses, _ := w.measured("operatorkit_access_used_timestamp_seconds")
		if unused[w.namespace+"/forgotten"] != 1 || unused[w.namespace+"/tells"] != 0 {
			return fmt.Errorf("it is %v", unused)
		}
		if uses[w.namespace+"/forgotten"] != 0 || time.Unix(int64(uses[w.namespace+"/tells"]), 0).UTC().Format(time.RFC3339) != later {
			return fmt.Errorf("uses were %v", uses)
		}
		return nil
	})
	operatortest.Eventually(t, "the page tells", func() error {
		g, err := w.drawn("granter", forgotten)
		if err == nil && (g.Nodes[0].State != graph.Blocked || !strings.Contains(g.Nodes[0].Message, "nobody uses it")) {
			err = fmt.Errorf("it is %s: %s", g.Nodes[0].State, g.Nodes[0].Message)
		}
		return err
	})
	w.patch(forgotten, `{"metadata":{"annotations":{"`+v1alpha1.UsedAnnotation+`":"`+later+`"}}}`)
	w.look(forgotten)
	used(forgotten, v1alpha1.ReasonUsed)
}

func TestNothingIsToldToBeUnusedWhereThatIsNotAskedFor(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	w.change = func(c *granter.Config) { c.UnusedAfter = -1 }
	w.start()
	ar := newAccess("a", "c")
	w.create(ar)
	w.granted(ar)
	if c := apimeta.FindStatusCondition(ar.Status.Conditions, v1alpha1.ConditionUsed); c != nil {
		t.Errorf("the condition is %+v", c)
	}
}
