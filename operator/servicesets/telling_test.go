package servicesets_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// events returns what was told of an object, as "type reason: message" with the number of times, sorted. What the framework
// tells of failed reconciliations is left out.
func (w *world) events(o client.Object) ([]string, error) {
	list := &corev1.EventList{}
	if err := w.user.List(w.t.Context(), list, client.InNamespace(o.GetNamespace())); err != nil {
		return nil, err
	}
	var events []string
	for _, e := range list.Items {
		if e.InvolvedObject.UID == o.GetUID() && e.Reason != framework.ReasonReconciliationFailed && e.Reason != framework.ReasonPlanned {
			events = append(events, fmt.Sprintf("%d %s %s: %s", max(e.Count, 1), e.Type, e.Reason, e.Message))
		}
	}
	slices.Sort(events)
	return events, nil
}

func (w *world) wantEvents(o client.Object, want ...string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%s has the events %q", o.GetName(), want), func() error {
		got, err := w.events(o)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%s", diff)
		}
		return nil
	})
}

func TestEventsTellWhatBlocksAndWhenAllIsReady(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "b-1-0-0")
	r := w.start()
	one := cluster("one", "gold", service("a=a-1-0-0", "b"))
	w.create(one)
	absent := "1 Warning DependencyAbsent: service default/a depends on default/b, which is not listed: list it or take it out of dependsOn"
	w.wantEvents(one, absent)
	r.reconcileAll(t)
	r.stop()
	r = w.start()
	w.synced(r)
	r.reconcileAll(t)
	w.wantEvents(one, absent)

	change(w, one, func(cd *v1alpha1.ClusterDeployment) {
		cd.Spec.ServiceSpec.Services = []v1alpha1.Service{service("a=a-1-0-0"), service("c=c-1")}
	})
	missing := "1 Warning TemplateMissing: c: ServiceTemplate c-1 does not exist: create it"
	w.wantEvents(one, absent, missing)
	// The status changes, and what blocks does not.
	w.report(w.setName(one, nil), v1alpha1.ServiceStateDeployed, "a")
	w.wants(one, "Progressing=False TemplateMissing", "Blocked=True TemplateMissing")

	change(w, one, func(cd *v1alpha1.ClusterDeployment) {
		cd.Spec.ServiceSpec.Services = []v1alpha1.Service{service("a=a-1-0-0")}
	})
	w.wantEvents(one, "1 Normal Ready: the service is deployed", absent, missing)
}

func TestMetricsCountServicesAndTellHowLongSomethingIsBlocked(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "b-1-0-0", "m-1-0-0")
	r := w.start()
	one := cluster("one", "gold", service("a=a-1-0-0"), service("b=b-1-0-0"))
	mcs := w.multi("base", "gold", service("m=m-1-0-0"))
	mcs.Spec.ServiceSpec.Provider.SelfManagement = true
	w.create(one, mcs)
	w.report(w.setName(one, nil), v1alpha1.ServiceStateDeployed, "a")
	w.report(w.setName(one, nil), v1alpha1.ServiceStateFailed, "b")
	w.report(w.setName(one, mcs), v1alpha1.ServiceStateDeployed, "m")
	w.wantMetrics(r, "cluster=one,state=Deployed 2", "cluster=one,state=Failed 1", "cluster=,state=Pending 1")
	w.wants(one, "Blocked=True")
	operatortest.Eventually(t, "the cluster has been blocked for some time", func() bool {
		return w.metric(r, "operatorkit_servicesets_cluster_blocked_seconds", "one") > 0
	})
	if seconds := w.metric(r, "operatorkit_servicesets_multiclusterservice_blocked_seconds", mcs.Name); seconds != 0 {
		t.Errorf("the MultiClusterService is blocked for %f seconds", seconds)
	}

	if err := w.user.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	w.wantGone(one)
	w.wantMetrics(r, "cluster=,state=Pending 1")
	operatortest.Eventually(t, "nothing is left of the cluster", func() bool {
		return w.metric(r, "operatorkit_servicesets_cluster_blocked_seconds", "one") < 0
	})
	problems, err := testutil.GatherAndLint(r.deps.Registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range slices.DeleteFunc(problems, func(p promlint.Problem) bool { return !strings.Contains(p.Metric, "servicesets") }) {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// wantMetrics waits until these are the services that metrics tell of, states without any left out.
func (w *world) wantMetrics(r *running, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	operatortest.Eventually(w.t, fmt.Sprintf("metrics tell %q", want), func() error {
		var got []string
		for _, m := range w.gather(r, "operatorkit_servicesets_services") {
			if m.GetGauge().GetValue() != 0 {
				got = append(got, fmt.Sprintf("cluster=%s,state=%s %v", labelOf(m, "cluster"), labelOf(m, "state"), m.GetGauge().GetValue()))
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%s", diff)
		}
		return nil
	})
}

// metric returns the value of a metric of one object, -1 without any.
func (w *world) metric(r *running, name, object string) float64 {
	w.t.Helper()
	for _, m := range w.gather(r, name) {
		if labelOf(m, "cluster") == object || labelOf(m, "multiclusterservice") == object {
			return m.GetGauge().GetValue()
		}
	}
	return -1
}

func (w *world) gather(r *running, name string) []*dto.Metric {
	w.t.Helper()
	families, err := r.deps.Registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()
		}
	}
	return nil
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func TestWhatIsOnlyPlannedStandsInACondition(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "m-1-0-0")
	w.plan = true
	r := w.start()
	one := cluster("one", "gold", service("a=a-1-0-0"))
	mcs := w.multi("base", "gold", service("m=m-1-0-0"))
	w.create(one, mcs)
	w.wants(one, "Planned=True ChangesPlanned: 4 to create, 0 to update, 0 to delete")
	w.wants(mcs, "Planned=False NothingPlanned: there is nothing to do")
	r.reconcileAll(t)
	before := w.faults.Count()
	r.reconcileAll(t)
	if writes := w.faults.Writes()[before:]; len(writes) > 0 {
		t.Errorf("planning again wrote %v", writes)
	}
	p, err := r.frameworks[0].Plan(t.Context(), client.ObjectKeyFromObject(one))
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range p.Resources {
		for _, c := range resource.Changes {
			if slices.ContainsFunc(c.Fields, func(f plan.FieldChange) bool { return strings.Contains(f.Path, v1alpha1.ConditionPlanned) }) {
				t.Errorf("the plan is about itself: %v", c)
			}
		}
	}
	r.stop()

	w.plan = false
	w.start()
	w.report(w.setName(one, nil), v1alpha1.ServiceStateDeployed, "a")
	w.wants(one, "Ready=True")
	settles(w, one, "it is not only planned for any more", func(cd *v1alpha1.ClusterDeployment) error {
		if c := meta.FindStatusCondition(cd.Status.Conditions, v1alpha1.ConditionPlanned); c != nil {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})

	change(w, one, func(cd *v1alpha1.ClusterDeployment) {
		cd.Annotations = map[string]string{framework.PlanAnnotation: "true"}
		cd.Spec.ServiceSpec.Services = nil
	})
	w.wants(one, "Planned=True ChangesPlanned")
}

func TestAPlanSaysAllThatApplyingItWrites(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "m-1-0-0")
	one, mcs := cluster("one", "gold", service("a=a-1-0-0")), w.multi("base", "gold", service("m=m-1-0-0"))
	w.create(one, mcs)
	r := w.watch()
	key := client.ObjectKeyFromObject(one)
	p, err := r.frameworks[0].Plan(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var objects []string
	for _, resource := range p.Resources {
		for _, c := range resource.Changes {
			objects = append(objects, fmt.Sprintf("%s %s", c.Action, c.Object.Kind))
		}
	}
	slices.Sort(objects)
	want := []string{"create ServiceSet", "update ClusterDeployment"}
	if diff := cmp.Diff(want, slices.Compact(slices.DeleteFunc(objects, func(o string) bool { return strings.HasSuffix(o, " service") }))); diff != "" {
		t.Errorf("the plan differs (-want +got):\n%s", diff)
	}
	if err := r.frameworks[0].ApplyPlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.wants(one, "Ready=False InFlight: a 1.0.0 is on its way")
	for _, name := range []client.ObjectKey{w.setName(one, nil), w.setName(one, mcs)} {
		if err := w.user.Get(t.Context(), name, &v1alpha1.ServiceSet{}); err != nil {
			t.Error(err)
		}
	}
}
