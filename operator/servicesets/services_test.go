package servicesets_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// wantClusters waits until the status of a MultiClusterService lists clusters as "name deployed/desired".
func (w *world) wantClusters(mcs *v1alpha1.MultiClusterService, want ...string) {
	w.t.Helper()
	settles(w, mcs, fmt.Sprintf("%s lists %q", mcs.Name, want), func(mcs *v1alpha1.MultiClusterService) error {
		var got []string
		for _, c := range mcs.Status.Clusters {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %d/%d", c.Name, c.Deployed, c.Desired)))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%s%+v", diff, mcs.Status)
		}
		return nil
	})
}

func TestLabelsDecideWhichClustersGetAService(t *testing.T) {
	w := newWorld(t)
	w.templates("m-1-0-0")
	w.start()
	mcs := w.multi("base", "gold", service("m=m-1-0-0"))
	one, two := cluster("one", "gold"), cluster("two", "silver")
	w.create(mcs, one, two)
	w.wantClusters(mcs, "one 0/1")
	w.wants(mcs, "Ready=False InFlight: m 1.0.0 is on its way (on "+w.namespace+"/one)", "Progressing=True InFlight")
	w.report(w.setName(one, mcs), v1alpha1.ServiceStateDeployed, "m")
	w.wants(mcs, "Ready=True Deployed: all services are deployed on 1 cluster")
	w.wants(one, "Ready=True Deployed: no services are desired")

	change(w, two, func(cd *v1alpha1.ClusterDeployment) { cd.Labels["tier"] = "gold" })
	w.wantClusters(mcs, "one 1/1", "two 0/1")
	w.report(w.setName(two, mcs), v1alpha1.ServiceStateFailed, "m")
	w.wants(mcs, "Blocked=True Failed: m: 1.0.0 failed: the hook failed (on "+w.namespace+"/two)", "Ready=False Failed")

	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Labels["tier"] = "silver" })
	w.wantClusters(mcs, "one 0/0", "two 0/1")
	w.takeAway(w.setName(one, mcs))
	w.wantClusters(mcs, "two 0/1")

	change(w, mcs, func(mcs *v1alpha1.MultiClusterService) { mcs.Spec.ClusterSelector.MatchLabels["tier"] = "silver" })
	w.wantClusters(mcs, "one 0/1", "two 0/0")
	w.takeAway(w.setName(two, mcs))
	w.wantClusters(mcs, "one 0/1")
	if mcs.Status.ClustersDeployed != "0/1" {
		t.Errorf("clustersDeployed is %q", mcs.Status.ClustersDeployed)
	}
}

func TestAServiceWithoutAnyClusterLeftGoes(t *testing.T) {
	w := newWorld(t)
	w.templates("m-1-0-0")
	w.start()
	mcs := w.multi("base", "gold", service("m=m-1-0-0"))
	mcs.Spec.ServiceSpec.Provider.SelfManagement = true
	one, two := cluster("one", "gold"), cluster("two", "gold")
	w.create(mcs, one, two)
	keys := []client.ObjectKey{w.setName(nil, mcs), w.setName(one, mcs), w.setName(two, mcs)}
	for _, key := range keys {
		w.holdSet(key)
		w.report(key, v1alpha1.ServiceStateDeployed, "m")
	}
	w.wants(mcs, "Ready=True Deployed: all services are deployed on 3 clusters")
	if err := w.user.Delete(t.Context(), mcs); err != nil {
		t.Fatal(err)
	}
	prefix := "Ready=False Deleting: waits until its service sets are gone from "
	w.wants(mcs, prefix+w.namespace+"/one, "+w.namespace+"/two, the management cluster")
	for i, left := range []string{w.namespace + "/one, " + w.namespace + "/two", w.namespace + "/two"} {
		w.takeAway(keys[i])
		w.letSetGo(keys[i])
		w.wants(mcs, prefix+left)
	}
	w.takeAway(keys[2])
	w.letSetGo(keys[2])
	w.wantGone(mcs)
}

func TestTheManagementClusterHasServicesOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.templates("m-1-0-0", "n-1-0-0")
	w.start()
	base, more := w.multi("base", "gold", service("m=m-1-0-0")), w.multi("more", "gold", service("n=n-1-0-0"), service("m=m-1-0-0"))
	for _, mcs := range []*v1alpha1.MultiClusterService{base, more} {
		mcs.Spec.ClusterSelector = nil
		mcs.Spec.ServiceSpec.Provider.SelfManagement = true
	}
	base.Spec.ServiceSpec.Priority = 200
	w.create(base, more)
	w.report(w.setName(nil, base), v1alpha1.ServiceStateDeployed, "m")
	w.wants(base, "Ready=True Deployed: all services are deployed on 1 cluster")
	w.report(w.setName(nil, more), v1alpha1.ServiceStateDeployed, "n")
	w.wants(more, "Ready=True Deployed: all services are deployed on 1 cluster", "Blocked=False")
	w.wantClusters(more, "1/1")

	// The loser gets the service when the winner does not want it any more, without a change of its own.
	change(w, base, func(mcs *v1alpha1.MultiClusterService) { mcs.Spec.ServiceSpec.Services = nil })
	w.report(w.setName(nil, more), v1alpha1.ServiceStateDeployed, "m")
	w.wants(more, "Ready=True", "Blocked=False")
	change(w, more, func(mcs *v1alpha1.MultiClusterService) {
		mcs.Spec.ServiceSpec.Provider.SelfManagement = false
		mcs.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "none"}}
	})
	w.takeAway(w.setName(nil, more))
	w.wantGone(&v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: w.setName(nil, more).Name}})
	w.wants(more, "Ready=True Deployed: no cluster is selected")
	w.wantClusters(more)
}

func TestWhatAMultiClusterServiceHasWrongIsSaid(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "b-1-0-0")
	w.start()
	one := cluster("one", "gold")
	selector := w.multi("selector", "gold", service("a=a-1-0-0"))
	selector.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Likes"}}
	cycle := w.multi("cycle", "gold", service("a=a-1-0-0", "b"), service("b=b-1-0-0", "a"))
	w.create(one, selector, cycle)
	w.wants(selector, `Blocked=True SelectorInvalid: clusterSelector can't be read: "Likes" is not a valid label selector operator`)
	w.wants(cycle, "Blocked=True DependencyCycle: services depend on each other: default/a → default/b → default/a")
	// It is no fault of the cluster.
	w.wants(one, "Ready=True", "Blocked=False")
	settles(w, one, "the cluster sums it up", func(cd *v1alpha1.ClusterDeployment) error {
		if s := cd.Status.ServiceSets; len(s) != 1 || !s[0].Blocked || s[0].Reason != v1alpha1.ReasonDependencyCycle {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	change(w, cycle, func(mcs *v1alpha1.MultiClusterService) { mcs.Spec.ServiceSpec.Services[1].DependsOn = nil })
	w.report(w.setName(one, cycle), v1alpha1.ServiceStateDeployed, "b")
	w.report(w.setName(one, cycle), v1alpha1.ServiceStateDeployed, "a")
	w.wants(cycle, "Ready=True", "Blocked=False")
}

func TestAnOverriddenServiceIsNoneOfItsOwnersBusiness(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "a-2-0-0")
	w.start()
	one := cluster("one", "gold", service("a=a-1-0-0"))
	mcs := w.multi("base", "gold", service("a=a-2-0-0"))
	mcs.Spec.ServiceSpec.Priority = 50
	w.create(one, mcs)
	w.report(w.setName(one, nil), v1alpha1.ServiceStateDeployed, "a")
	w.wants(one, "Ready=True")
	w.wants(mcs, "Ready=True Deployed", "Blocked=False", "Progressing=False")
	w.wantClusters(mcs, "one 0/0")

	// The other way round: it gets the service as it runs, and then has its way.
	change(w, mcs, func(mcs *v1alpha1.MultiClusterService) { mcs.Spec.ServiceSpec.Priority = 200 })
	w.report(w.setName(one, mcs), v1alpha1.ServiceStateDeployed, "a=a-1-0-0")
	w.report(w.setName(one, mcs), v1alpha1.ServiceStateDeployed, "a=a-2-0-0")
	w.wants(mcs, "Ready=True Deployed: all services are deployed on 1 cluster", "Blocked=False", "Progressing=False")
	w.wantClusters(mcs, "one 1/1")
	w.wants(one, "Ready=True Deployed: no services are desired, and one is overridden by another owner")
	settles(w, one, "it says whose the service is", func(cd *v1alpha1.ClusterDeployment) error {
		for _, s := range cd.Status.Services {
			if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); c != nil && c.Reason == v1alpha1.ReasonOverridden {
				return nil
			}
		}
		return fmt.Errorf("%+v", cd.Status.Services)
	})
}

func TestUpgradePathsAreThoseOfEveryCluster(t *testing.T) {
	w := newWorld(t)
	w.templates("m-1-0-0", "m-2-0-0", "m-3-0-0")
	chain := &v1alpha1.ServiceTemplateChain{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	chain.Spec.SupportedTemplates = []v1alpha1.SupportedTemplate{
		{Name: "m-1-0-0", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "m-2-0-0"}}},
		{Name: "m-2-0-0", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "m-3-0-0"}}},
		{Name: "m-3-0-0"},
	}
	w.create(chain)
	w.start()
	wanted := service("m=m-1-0-0")
	wanted.TemplateChain = "m"
	mcs, one, two := w.multi("base", "gold", wanted), cluster("one", "gold", service("own=m-1-0-0")), cluster("two", "gold")
	one.Spec.ServiceSpec.Services[0].TemplateChain = "m"
	w.create(mcs, one, two)
	for _, cd := range []*v1alpha1.ClusterDeployment{one, two} {
		w.report(w.setName(cd, mcs), v1alpha1.ServiceStateDeployed, "m")
	}
	w.wantPaths(mcs, "from m-1-0-0: 2.0.0", "from m-1-0-0: 2.0.0 3.0.0")
	settles(w, one, "the cluster has paths of its own", func(cd *v1alpha1.ClusterDeployment) error {
		if p := cd.Status.ServicesUpgradePaths; len(p) != 1 || p[0].Name != "own" || len(p[0].AvailableUpgrades) != 2 {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})

	// While one cluster is ahead, only where both can go is listed.
	change(w, mcs, func(mcs *v1alpha1.MultiClusterService) { mcs.Spec.ServiceSpec.Services[0].Template = "m-2-0-0" })
	w.report(w.setName(one, mcs), v1alpha1.ServiceStateDeployed, "m")
	change(w, two, func(cd *v1alpha1.ClusterDeployment) { cd.Labels["tier"] = "silver" })
	w.wantPaths(mcs, "from m-2-0-0: 3.0.0")
}

// wantPaths waits until the paths of the one service of a MultiClusterService are these.
func (w *world) wantPaths(mcs *v1alpha1.MultiClusterService, want ...string) {
	w.t.Helper()
	settles(w, mcs, fmt.Sprintf("%s has paths %q", mcs.Name, want), func(mcs *v1alpha1.MultiClusterService) error {
		var got []string
		for _, paths := range mcs.Status.ServicesUpgradePaths {
			for _, path := range paths.AvailableUpgrades {
				line := "from " + paths.Template + ":"
				for _, step := range path.Versions {
					line += " " + step.Version
				}
				got = append(got, line)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%s", diff)
		}
		return nil
	})
}

func TestServiceSetsOfAClusterThatIsGoneGoToo(t *testing.T) {
	w := newWorld(t)
	w.templates("m-1-0-0")
	r := w.start()
	mcs, one := w.multi("base", "gold", service("m=m-1-0-0")), cluster("one", "gold")
	w.create(mcs, one)
	w.report(w.setName(one, mcs), v1alpha1.ServiceStateDeployed, "m")
	w.wants(mcs, "Ready=True")
	r.stop()
	// Somebody takes the finalizer off by hand: nobody cleans up.
	if err := w.user.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := w.user.Patch(t.Context(), one, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	w.wantGone(one)
	w.start()
	w.wantGone(&v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.setName(one, mcs).Name}})
	w.wants(mcs, "Ready=True Deployed: no cluster is selected")
}

func TestAClusterThatIsBehindCountsAsNotReady(t *testing.T) {
	w := newWorld(t)
	w.templates("m-1-0-0", "n-1-0-0")
	w.start()
	mcs, one := w.multi("base", "gold", service("m=m-1-0-0")), cluster("one", "gold")
	w.create(mcs, one)
	w.report(w.setName(one, mcs), v1alpha1.ServiceStateDeployed, "m")
	w.wants(mcs, "Ready=True")
	change(w, one, func(cd *v1alpha1.ClusterDeployment) {
		cd.Annotations = map[string]string{framework.PausedAnnotation: "true"}
	})
	change(w, mcs, func(mcs *v1alpha1.MultiClusterService) {
		mcs.Spec.ServiceSpec.Services = append(mcs.Spec.ServiceSpec.Services, service("n=n-1-0-0"))
	})
	w.wants(mcs, "Ready=False NotReconciled: the cluster has not taken note of the last change yet (on "+w.namespace+"/one)", "Progressing=True")
	w.wantClusters(mcs, "one 1/2")
	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Annotations = nil })
	w.report(w.setName(one, mcs), v1alpha1.ServiceStateDeployed, "n")
	w.wants(mcs, "Ready=True")
}

func TestTheSystemNamespaceIsSeenBesideLimits(t *testing.T) {
	w := newWorld(t)
	w.system = w.kube.Namespace(t)
	template := templateOf("m-1-0-0")
	template.Namespace = w.system
	w.create(template)
	w.start()
	mcs := w.multi("base", "gold", service("m=m-1-0-0"))
	mcs.Spec.ServiceSpec.Provider.SelfManagement = true
	elsewhere := cluster("elsewhere", "gold")
	elsewhere.Namespace = w.system
	w.create(mcs, elsewhere)
	w.report(w.setName(nil, mcs), v1alpha1.ServiceStateDeployed, "m")
	w.wants(mcs, "Ready=True Deployed: all services are deployed on 1 cluster")
	if err := w.user.Delete(t.Context(), mcs); err != nil {
		t.Fatal(err)
	}
	w.takeAway(w.setName(nil, mcs))
	w.wantGone(mcs)
}

func TestWithoutServicesAllIsWell(t *testing.T) {
	w := newWorld(t)
	w.start()
	mcs, one := w.multi("base", "gold"), cluster("one", "gold")
	mcs.Spec.ServiceSpec.Provider.SelfManagement = true
	w.create(mcs, one)
	w.wants(mcs, "Ready=True", "Progressing=False", "Blocked=False")
	w.wantClusters(mcs, "0/0", "one 0/0")
	w.wants(one, "Ready=True")
}
