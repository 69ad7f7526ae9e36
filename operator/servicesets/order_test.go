package servicesets_test

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// takeAwayRemoved tells of a service that it is gone, as soon as it is being removed.
func (w *world) takeAwayRemoved(key client.ObjectKey, name string) {
	w.t.Helper()
	set := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	settles(w, set, fmt.Sprintf("%s removes %s", key, name), func(set *v1alpha1.ServiceSet) error {
		if len(set.Spec.Removing) != 1 || set.Spec.Removing[0].Name != name {
			return fmt.Errorf("%+v", set.Spec)
		}
		return nil
	})
	w.takeAway(key)
}

func TestMultiClusterServicesComeUpAndLeaveInTheirOrder(t *testing.T) {
	w := newWorld(t)
	w.templates("m-1-0-0", "n-1-0-0")
	r := w.start()
	one, two := cluster("one", "gold"), cluster("two", "gold")
	base, apps := w.multi("base", "gold", service("m=m-1-0-0")), w.multi("apps", "gold", service("n=n-1-0-0"))
	base.Spec.ServiceSpec.Priority, apps.Spec.DependsOn = 200, []string{base.Name}
	w.create(one, two, base, apps)
	waits := "n waits for m (MultiClusterService " + apps.Name + " depends on " + base.Name + ")"
	w.wants(apps, "Ready=False WaitingForDependencies: "+waits+" (on "+w.namespace+"/one, "+w.namespace+"/two)", "Progressing=True", "Blocked=False")
	w.report(w.setName(one, base), v1alpha1.ServiceStateDeployed, "m")
	w.report(w.setName(one, apps), v1alpha1.ServiceStateDeployed, "n")
	w.wants(apps, "Ready=False WaitingForDependencies: "+waits+" (on "+w.namespace+"/two)")
	w.wantClusters(apps, "one 1/1", "two 0/1")
	w.wantGraphs(r, 0, two,
		"# Services of cluster ns/two",
		"m 1.0.0 progressing: 1.0.0 is on its way [MultiClusterService base-ns]",
		"n 1.0.0 waiting: waits for m (MultiClusterService apps-ns depends on base-ns) [MultiClusterService apps-ns] needs [default/m] held up by [default/m]",
		"# Services of MultiClusterService base-ns in service set ns/"+w.setName(two, base).Name,
		"m 1.0.0 progressing: 1.0.0 is on its way",
		"# Services of MultiClusterService apps-ns in service set ns/"+w.setName(two, apps).Name,
		"n 1.0.0 waiting: waits for m (MultiClusterService apps-ns depends on base-ns)",
	)
	w.wantGraphs(r, 1, base,
		"# Services of MultiClusterService base-ns",
		"m m-1-0-0 progressing: deployed on 1 of 2 clusters",
		"# What MultiClusterService base-ns comes after, and before",
		"apps-ns  progressing: deployed on 1/2 clusters needs [base-ns]",
		"base-ns  progressing: deployed on 1/2 clusters",
	)
	w.report(w.setName(two, base), v1alpha1.ServiceStateDeployed, "m")
	w.report(w.setName(two, apps), v1alpha1.ServiceStateDeployed, "n")
	w.wants(apps, "Ready=True")

	// The earlier one waits where the later one has something.
	change(w, two, func(cd *v1alpha1.ClusterDeployment) { cd.Labels["tier"] = "silver" })
	w.takeAway(w.setName(two, apps))
	w.takeAway(w.setName(two, base))
	w.wantClusters(base, "one 1/1")
	if err := w.user.Delete(t.Context(), base); err != nil {
		t.Fatal(err)
	}
	w.wants(base, "Ready=False Deleting: waits until its service sets are gone from "+w.namespace+"/one; those of MultiClusterService "+apps.Name+
		" go first there, because of dependsOn")
	w.wants(apps, "Blocked=True DependencyAbsent: MultiClusterService "+apps.Name+" depends on "+base.Name+
		", which is being deleted: delete "+apps.Name+" too, or take it out of dependsOn")
	set := &v1alpha1.ServiceSet{}
	set.Namespace, set.Name = w.namespace, w.setName(one, base).Name
	settles(w, set, "nothing is taken away", func(set *v1alpha1.ServiceSet) error {
		if len(set.Spec.Services) != 1 {
			return errors.New("it is")
		}
		return nil
	})
	if err := w.user.Delete(t.Context(), apps); err != nil {
		t.Fatal(err)
	}
	w.takeAwayRemoved(w.setName(one, apps), "n")
	w.takeAwayRemoved(w.setName(one, base), "m")
	w.wantGone(apps)
	w.wantGone(base)
}

func TestMultiClusterServicesThatCantBeOrderedSayWhy(t *testing.T) {
	w := newWorld(t)
	w.templates("m-1-0-0", "n-1-0-0")
	w.start()
	one := cluster("one", "gold")
	a, b := w.multi("a", "gold", service("m=m-1-0-0")), w.multi("b", "silver", service("n=n-1-0-0"))
	a.Spec.DependsOn, b.Spec.DependsOn = []string{b.Name}, []string{a.Name}
	w.create(one, a)
	w.wants(a, "Blocked=True DependencyAbsent: MultiClusterService "+a.Name+" depends on "+b.Name+", which does not exist: create it, or take it out of dependsOn")
	w.create(b)
	w.wants(a, "Blocked=True DependencyCycle: MultiClusterServices depend on each other: "+a.Name+" → "+b.Name+" → "+a.Name+": take one of these dependencies out")
	w.wants(b, "Blocked=True DependencyCycle: MultiClusterServices depend on each other: "+b.Name+" → "+a.Name+" → "+b.Name)
	w.wants(one, "Ready=True", "Blocked=False")
	change(w, b, func(mcs *v1alpha1.MultiClusterService) { mcs.Spec.DependsOn = nil })
	// Nothing of the other one is on the cluster, which has to look again all the same.
	w.report(w.setName(one, a), v1alpha1.ServiceStateDeployed, "m")
	w.wants(a, "Ready=True", "Blocked=False")
	w.wants(b, "Ready=True", "Blocked=False")
}
