package servicesets_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// reconcileAll reconciles every object again, as a resync does, and waits until that is done.
func (r *running) reconcileAll(t *testing.T) {
	t.Helper()
	for _, f := range r.frameworks {
		for _, key := range f.Keys() {
			f.Enqueue(key)
		}
	}
	r.settle(t)
}

// settle waits until there is nothing left to do, of what has begun for sure.
func (r *running) settle(t *testing.T) {
	t.Helper()
	operatortest.Eventually(t, "there is nothing to do", func() error {
		for _, f := range r.frameworks {
			if s := f.Status(); s.Fresh+s.Backlog+s.Active+s.Retrying+s.Asked > 0 {
				return fmt.Errorf("%s: %+v", f.Name(), s)
			}
		}
		return nil
	})
}

func TestNothingIsWrittenWhenNothingChanges(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "m-1-0-0")
	r := w.start()
	bad := cluster("bad", "gold", service("a=a-1-0-0", "absent"))
	good := cluster("good", "gold", service("a=a-1-0-0"), service("missing=missing-1"))
	mcs := w.multi("base", "gold", service("m=m-1-0-0"))
	mcs.Spec.ServiceSpec.Provider.SelfManagement = true
	w.create(bad, good, mcs)
	for _, cd := range []*v1alpha1.ClusterDeployment{nil, bad, good} {
		w.report(w.setName(cd, mcs), v1alpha1.ServiceStateDeployed, "m")
	}
	w.report(w.setName(good, nil), v1alpha1.ServiceStateDeployed, "a")
	w.wants(mcs, "Ready=True Deployed: all services are deployed on 3 clusters")
	w.wants(bad, "Blocked=True DependencyAbsent")
	w.wants(good, "Blocked=True TemplateMissing", "Progressing=False")
	r.reconcileAll(t)

	before := w.faults.Count()
	r.reconcileAll(t)
	r.reconcileAll(t)
	r.stop()
	again := w.start()
	w.synced(again)
	again.reconcileAll(t)
	for _, write := range w.faults.Writes()[before:] {
		t.Errorf("it wrote %s", write)
	}
}

// synced waits until the sources of an operator hold everything.
func (w *world) synced(r *running) {
	w.t.Helper()
	for _, f := range r.frameworks {
		for _, source := range f.Sources() {
			if err := source.WaitForSync(w.t.Context()); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func TestARestartInTheMiddleChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "b-1-0-0", "m-1-0-0")
	r := w.start()
	one := cluster("one", "gold", service("a=a-1-0-0"), service("b=b-1-0-0", "a"))
	mcs := w.multi("base", "gold", service("m=m-1-0-0"))
	w.create(one, mcs)
	w.wants(one, "Ready=False InFlight: a 1.0.0 is on its way; b waits for a")
	r.stop()
	w.report(w.setName(one, nil), v1alpha1.ServiceStateDeployed, "a")
	r = w.start()
	w.wants(one, "Ready=False InFlight: b 1.0.0 is on its way")
	w.report(w.setName(one, mcs), v1alpha1.ServiceStateDeployed, "m")
	r.stop()
	w.start()
	w.report(w.setName(one, nil), v1alpha1.ServiceStateDeployed, "b")
	w.wants(one, "Ready=True")
	w.wants(mcs, "Ready=True")
}

const manyServices = 10

// manyClusters is how many clusters there are, of which one changes.
func manyClusters() int {
	if testing.Short() {
		return 40
	}
	return 200
}

func TestAChangeOfOneClusterIsWrittenThereOnly(t *testing.T) {
	w := newWorld(t)
	var services []v1alpha1.Service
	var names []string
	for i := range manyServices {
		name := fmt.Sprintf("s%d", i)
		w.templates(name + "-1-0-0")
		names = append(names, name)
		services = append(services, service(name+"="+name+"-1-0-0"))
	}
	r := w.start()
	mcs, other := w.multi("base", "gold", services[:5]...), w.multi("other", "silver", services[:5]...)
	w.create(mcs, other)
	clusters := w.createMany(services[5:])
	for _, cd := range clusters {
		w.report(w.setName(cd, mcs), v1alpha1.ServiceStateDeployed, names[:5]...)
		w.report(w.setName(cd, nil), v1alpha1.ServiceStateDeployed, names[5:]...)
	}
	w.wants(mcs, fmt.Sprintf("Ready=True Deployed: all services are deployed on %d clusters", manyClusters()))
	w.wantAllReady()
	r.reconcileAll(t)

	before, reconciled, one := w.faults.Count(), r.reconciliations(t), clusters[17]
	w.report(w.setName(one, mcs), v1alpha1.ServiceStateFailed, names[0])
	w.wants(mcs, "Blocked=True Failed: s0: 1.0.0 failed: the hook failed (on "+w.namespace+"/"+one.Name+")")
	r.settle(t)
	var written []string
	for _, write := range w.faults.Writes()[before:] {
		written = append(written, fmt.Sprintf("%s %s/%s", write.Verb, write.Resource, write.Name))
	}
	slices.Sort(written)
	want := []string{"patch clusterdeployments/" + one.Name, "patch multiclusterservices/" + mcs.Name}
	if diff := cmp.Diff(want, slices.Compact(written)); diff != "" {
		t.Errorf("what was written differs (-want +got):\n%s", diff)
	}
	if len(written) > 3 {
		t.Errorf("there were %d writes: %q", len(written), written)
	}
	if count := r.reconciliations(t) - reconciled; count > uint64(manyClusters()/4) {
		t.Errorf("a change on one cluster made %d reconciliations", count)
	}
}

// createMany creates clusters with services.
func (w *world) createMany(services []v1alpha1.Service) []*v1alpha1.ClusterDeployment {
	w.t.Helper()
	clusters := make([]*v1alpha1.ClusterDeployment, manyClusters())
	for i := range clusters {
		clusters[i] = cluster(fmt.Sprintf("c%03d", i), "gold", services...)
		w.create(clusters[i])
	}
	return clusters
}

// wantAllReady waits until all clusters are ready.
func (w *world) wantAllReady() {
	w.t.Helper()
	operatortest.Eventually(w.t, "all clusters are ready", func() error {
		list := &v1alpha1.ClusterDeploymentList{}
		if err := w.user.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if !meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, v1alpha1.ConditionReady) {
				return fmt.Errorf("%s is not: %+v", list.Items[i].Name, list.Items[i].Status.Conditions)
			}
		}
		return nil
	})
}

// reconciliations returns how many there were so far.
func (r *running) reconciliations(t *testing.T) uint64 {
	t.Helper()
	families, err := r.deps.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	count := uint64(0)
	for _, family := range families {
		if family.GetName() == "operatorkit_framework_reconciliation_duration_seconds" {
			for _, metric := range family.GetMetric() {
				count += metric.GetHistogram().GetSampleCount()
			}
		}
	}
	return count
}

func TestAStatusThatSomebodyElseChangedIsWrittenAtOnce(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0")
	released := make(chan struct{})
	held := w.faults.On(func(r operatortest.Request) bool {
		return r.Verb == "patch" && r.Subresource == "status" && r.Namespace == w.namespace
	}, operatortest.DelayUntil(released)).Times(1)
	r := w.start()
	one := cluster("one", "gold", service("a=a-1-0-0"))
	w.create(one)
	operatortest.Eventually(t, "the status is on its way", func() bool { return held.Hits() == 1 })
	change(w, one, func(cd *v1alpha1.ClusterDeployment) {
		cd.Annotations = map[string]string{"example.com/changed": "true"}
	})
	close(released)
	w.wants(one, "Ready=False InFlight")
	r.reconcileAll(t)
	conflicts := 0
	for _, write := range w.faults.Writes() {
		if write.Status == http.StatusConflict {
			conflicts++
		}
	}
	if conflicts != 1 {
		t.Errorf("the API server refused %d writes", conflicts)
	}
	for _, m := range w.gather(r, "operatorkit_framework_conflicts_total") {
		if count := m.GetCounter().GetValue(); count != 0 {
			t.Errorf("%g reconciliations had to be tried again", count)
		}
	}
}

func TestConditionsOfOthersStayAndOursKeepTheirTimes(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0")
	one := cluster("one", "gold", service("a=a-1-0-0"))
	w.create(one)
	long := metav1.NewTime(time.Now().Add(-time.Hour)).Rfc3339Copy()
	one.Status.Conditions = []metav1.Condition{
		{Type: "Reachable", Status: metav1.ConditionTrue, Reason: "Answered", LastTransitionTime: long},
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonFailed, LastTransitionTime: long},
		{Type: v1alpha1.ConditionBlocked, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFailed, LastTransitionTime: long},
	}
	if err := w.user.Status().Update(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.wants(one, "Ready=False InFlight", "Blocked=False")
	for conditionType, keeps := range map[string]bool{"Reachable": true, v1alpha1.ConditionReady: true, v1alpha1.ConditionBlocked: false} {
		c := meta.FindStatusCondition(one.Status.Conditions, conditionType)
		if c == nil || c.LastTransitionTime.Equal(&long) != keeps {
			t.Errorf("%s is %+v", conditionType, c)
		}
	}
}

// What was just written is known to the next reconciliation, although that follows at once.
func TestNoReconciliationComesBeforeItsEcho(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "m-1-0-0")
	r := w.start()
	mcs := w.multi("base", "gold", service("m=m-1-0-0"))
	mcs.Spec.ServiceSpec.Provider.SelfManagement = true
	w.create(mcs)
	for i := range 20 {
		w.create(cluster(fmt.Sprintf("c%02d", i), "gold", service("a=a-1-0-0")))
	}
	operatortest.Eventually(t, "all clusters have both service sets", func() error {
		list := &v1alpha1.ServiceSetList{}
		if err := w.user.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil || len(list.Items) != 41 {
			return fmt.Errorf("%d service sets, %w", len(list.Items), err)
		}
		return nil
	})
	r.reconcileAll(t)
	for _, name := range []string{"operatorkit_framework_conflicts_total", "operatorkit_framework_errors_total"} {
		for _, m := range w.gather(r, name) {
			if count := m.GetCounter().GetValue(); count != 0 {
				t.Errorf("%s is %g", name, count)
			}
		}
	}
	for _, write := range w.faults.Writes() {
		if write.Status >= http.StatusBadRequest {
			t.Errorf("%s was refused with %d", write, write.Status)
		}
	}
}
