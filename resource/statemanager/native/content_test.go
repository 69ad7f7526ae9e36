package native_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// revisions are the Secrets of the revisions of a release.
func (w *world) revisions(release string) []corev1.Secret {
	w.t.Helper()
	list := &corev1.SecretList{}
	if err := w.east.List(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{"owner": "helm", "name": release}); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// jobs are the UIDs of the jobs of hooks.
func (w *world) jobs() []types.UID {
	w.t.Helper()
	list := &batchv1.JobList{}
	if err := w.east.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	var uids []types.UID
	for _, job := range list.Items {
		uids = append(uids, job.UID)
	}
	return uids
}

// elsewhere is one reconciliation of a set of the same namespace and name, with another UID and no status, by a state manager that
// remembers nothing but what it was asked before: what a management cluster does that was restored from a backup, or that has the same Origin.
func (w *world) elsewhere(manager *native.Manager, name string, uid types.UID) (*statemanager.Work, error) {
	w.t.Helper()
	set := w.input(name)
	set.ServiceSet.UID, set.ServiceSet.Status = uid, v1alpha1.ServiceSetStatus{}
	work, err := manager.Compute(w.ctx(), set)
	if err != nil {
		return nil, err
	}
	var faults []error
	for i := range work.Operations {
		o := &work.Operations[i]
		faults = append(faults, o.Err)
		if o.Err == nil && len(o.Changes) > 0 {
			faults = append(faults, manager.CarryOut(w.ctx(), set, o))
		}
	}
	return work, errors.Join(faults...)
}

// another is a state manager like that of the world.
func (w *world) another() *native.Manager {
	w.t.Helper()
	manager, err := native.New(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { manager.Release(client.ObjectKey{Namespace: w.namespace, Name: "a"}) })
	return manager
}

// withJob is a world with a release whose hook has run, and a service of manifests.
func withJob(t *testing.T) *world {
	t.Helper()
	w := newPlatform(t)
	w.useEast()
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", files{"templates/hook.yaml": hookText})})
	w.manifests("page", configMapText("page", "hello"))
	w.set("a", "east", w.service("app", "app-1.0.0"), w.service("page", "page"))
	stop := w.end(batchv1.JobComplete)
	w.settle("a", "app Deployed, page Deployed")
	stop()
	return w
}

func TestARestoredManagementClusterUpgradesNothingAndRunsNoHook(t *testing.T) {
	w := withJob(t)
	restored, jobs := w.another(), w.jobs()
	for range 3 {
		if _, err := w.elsewhere(restored, "a", "uid-after-the-restore"); err != nil {
			t.Fatal(err)
		}
	}
	work, err := w.elsewhere(restored, "a", "uid-after-the-restore")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range work.Operations {
		if len(o.Changes) > 0 {
			t.Errorf("%s has something to do still: %v", o.Service, o.Changes)
		}
	}
	for _, s := range work.Services {
		if s.State != v1alpha1.ServiceStateDeployed {
			t.Errorf("%s is %s", s.Name, s.State)
		}
	}
	revisions := w.revisions("app")
	if len(revisions) != 1 || fmt.Sprint(w.jobs()) != fmt.Sprint(jobs) {
		t.Errorf("there are %d revisions, and the jobs are %v and were %v", len(revisions), w.jobs(), jobs)
	}
	if uid := revisions[0].Annotations["services.operatorkit.io/owner-uid"]; uid != "uid-after-the-restore" {
		t.Errorf("it is that of %q", uid)
	}
}

func TestAnotherLivingOwnerOfTheSameNameIsAConflictThatNamesIt(t *testing.T) {
	w := withJob(t)
	w.mustStep("a")
	other := w.another()
	for range 2 {
		if _, err := w.elsewhere(other, "a", "uid-of-the-other"); err != nil {
			t.Fatal(err)
		}
	}
	work, err := w.step("a")
	if !carrier.IsConflict(err) {
		t.Fatalf("it is no conflict: %v", err)
	}
	says(t, err.Error(), "service "+w.namespace+"/app was taken by another ServiceSet "+w.namespace+"/a", "with UID uid-of-the-other", "Origin",
		"service "+w.namespace+"/page was taken")
	for _, o := range work.Operations {
		if len(o.Changes) > 0 {
			t.Errorf("it is taken back: %v", o.Changes)
		}
	}
	if c := w.condition("a", "app", native.ConditionResolved); c.Status != metav1.ConditionFalse || c.Reason != native.ReasonConflict {
		t.Errorf("the condition is %+v", c)
	}
	if len(w.revisions("app")) != 1 {
		t.Error("they upgrade against each other")
	}
}

func TestOptionsThatChangeNothingOnTheClusterUpgradeNothing(t *testing.T) {
	w := withJob(t)
	jobs := w.jobs()
	yes := true
	w.change("a", func(set *v1alpha1.ServiceSet) {
		set.Spec.Services[0].HelmOptions = &v1alpha1.ServiceHelmOptions{
			Timeout: &metav1.Duration{Duration: time.Hour}, Wait: &yes, WaitForJobs: &yes, DisableHooks: &yes, SkipSchemaValidation: &yes, Description: "new",
		}
	})
	w.settle("a", "app Deployed, page Deployed")
	w.quiet("a")
	revisions := w.revisions("app")
	if len(revisions) != 1 || fmt.Sprint(w.jobs()) != fmt.Sprint(jobs) {
		t.Errorf("there are %d revisions, and the jobs are %v and were %v", len(revisions), w.jobs(), jobs)
	}
	// A removal knows nothing of the entry any more.
	if a := revisions[0].Annotations; a["services.operatorkit.io/timeout"] != "1h0m0s" || a["services.operatorkit.io/hooks"] != "disabled" {
		t.Errorf("what a removal needs of the options is %v", a)
	}
	w.change("a", func(set *v1alpha1.ServiceSet) {
		set.Spec.Services[0].HelmOptions.Labels = map[string]string{"team": "shop"}
	})
	w.settle("a", "app Deployed, page Deployed")
	if n := len(w.revisions("app")); n != 2 {
		t.Errorf("labels are on the release, which has %d revisions", n)
	}
}

func TestAFingerprintInAStatusHasNoSalt(t *testing.T) {
	w := withJob(t)
	seal := w.revisions("app")[0].Annotations["services.operatorkit.io/fingerprint"]
	salt, sum, ok := strings.Cut(seal, ".")
	shown := w.stateOf("a", "app").LastDeployed.Fingerprint
	if !ok || len(salt) != 32 || !strings.HasSuffix(shown, sum[:16]) || strings.Contains(shown, salt[:8]) {
		t.Errorf("the release has %q, and the status %q", seal, shown)
	}
	if a, b := carrier.Seal("x"), carrier.Seal("x"); a == b || !carrier.IsSealOf(a, "x") || !carrier.IsSealOf(b, "x") || carrier.IsSealOf(a, "y") {
		t.Errorf("two seals of one fingerprint are %q and %q", a, b)
	}
}

// TestAMissingKindFailsAfterATimeoutAndIsLookedForWithoutFetchingAnything holds for charts and manifests.
func TestAMissingKindFailsAfterATimeoutAndIsLookedForWithoutFetchingAnything(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	kind := strings.ReplaceAll(w.namespace, "-", "")
	object := fmt.Sprintf("apiVersion: late.operatorkit.io/v1\nkind: Kind%s\nmetadata: {name: %%s}\n", kind)
	w.manifests("object", fmt.Sprintf(object, "of-manifests"))
	fetched := w.countedCharts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", files{"templates/object.yaml": fmt.Sprintf(object, "of-a-chart")})})
	w.set("a", "east", w.service("chart", "app-1.0.0"), w.service("object", "object"))
	w.settle("a", "chart Provisioning, object Provisioning")
	work, err := w.compute("a")
	if err != nil || work.Requeue <= 0 || work.Requeue > 5*time.Minute {
		t.Errorf("it is not looked at again at the end of the time: %+v, %v", work, err)
	}
	before := fetched.Load()
	for range 3 {
		w.mustStep("a")
	}
	if n := fetched.Load() - before; n > 0 {
		t.Errorf("%d requests for the chart while the kind is missing", n)
	}
	w.config.KindTimeout = time.Nanosecond
	w.restart()
	w.settle("a", "chart Failed, object Failed")
	for _, service := range []string{"chart", "object"} {
		says(t, w.stateOf("a", service).FailureMessage, "the cluster has no kind Kind"+kind+" of late.operatorkit.io/v1", "is a service missing that it depends on")
	}
	w.manifests("definition", fmt.Sprintf(definitionText, kind))
	w.set("b", "east", w.service("definition", "definition"))
	w.settle("b", "definition Deployed")
	w.settle("a", "chart Deployed, object Deployed")
	for _, name := range []string{"a", "b"} {
		if err := w.client.Delete(t.Context(), w.get(name)); err != nil {
			t.Fatal(err)
		}
		w.settle(name, "")
	}
}
