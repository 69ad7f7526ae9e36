package helm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	release "helm.sh/helm/v4/pkg/release/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// revision is the Secret of a revision of the release.
func (k *kit) revision(number string) *corev1.Secret {
	k.t.Helper()
	secret := &corev1.Secret{}
	if err := k.user.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "sh.helm.release.v1.web.v" + number}, secret); err != nil {
		k.t.Fatal(err)
	}
	return secret
}

func TestTheTimeoutBeginsAnewWithEachUpgrade(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := newKit(t, helm.Config{Clock: clock, Timeout: time.Hour})
	k.settle(k.service(serverChart("1.0.0")))
	made := k.server().GetCreationTimestamp()
	next := k.service(serverChart("1.1.0"))
	k.settle(next)
	clock.SetTime(made.Add(time.Hour))
	if result := k.compute(next); result.Health.Phase != v1alpha1.ServiceStateProvisioning {
		t.Errorf("an hour after the installation, but not after the upgrade, it is %+v", result.Health)
	}
}

func TestAReleaseOfAnotherServiceSetIsTakenOverByAnUpgradeToo(t *testing.T) {
	k := newKit(t, helm.Config{})
	first := k.service(pageChart("1.0.0"))
	k.settle(first)
	heir := k.service(pageChart("1.1.0"), owner("office"))
	k.settle(heir)
	equal(t, "the revisions", k.statuses("web"), []string{"1 superseded", "2 deployed"})
	for _, number := range []string{"1", "2"} {
		if got := k.revision(number).Labels[carrier.OwnerLabel]; got != heir.Owner.ID() {
			t.Errorf("revision %s is %s's", number, got)
		}
	}
	if result := k.compute(k.service(nil, gone)); result.Found != nil || len(result.Changes) > 0 {
		t.Error("the old owner would take it away")
	}
}

func TestAReleaseThatSomebodyReplacedByHandIsNotListedAnyMore(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(pageChart("1.0.0"))
	k.settle(service)
	k.followByHand(func(r *release.Release) { r.Labels = nil })
	if found, err := k.carrier.List(t.Context(), k.cluster, service.Owner); err != nil || len(found) > 0 {
		t.Errorf("its owner has %v, %v", found, err)
	}
}

func TestARevisionThatFailedIsNotGoneBackTo(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := newKit(t, helm.Config{Clock: clock})
	bad := k.service(jobChart(`{"helm.sh/hook": post-install}`))
	k.begins(bad)
	k.ends(batchv1.JobFailed, "the pod gave up")
	says(t, k.goesOn(bad), "post-install")
	equal(t, "the revisions", k.statuses("web"), []string{"1 failed"})

	// When another one follows, Helm says that the failed one is superseded.
	slow := k.service(serverChart("2.0.0"), takenBack(time.Hour))
	k.settle(slow)
	equal(t, "the revisions", k.statuses("web"), []string{"1 superseded", "2 deployed"})
	clock.SetTime(time.Now().Add(2 * time.Hour))
	equal(t, "the plan", summary(k.compute(slow).Changes), []string{"update HelmRelease web", "delete Deployment server"})
	k.settle(slow)
	equal(t, "the revisions", k.statuses("web"), []string{"1 superseded", "2 uninstalled"})
}

func TestWhatAnUninstallationNeedsOfTheOptionsIsRemembered(t *testing.T) {
	t.Run("that hooks are disabled", func(t *testing.T) {
		k := newKit(t, helm.Config{})
		k.settle(k.service(jobChart(`{"helm.sh/hook": pre-delete}`), options(v1alpha1.ServiceHelmOptions{DisableHooks: pointer(true)})))
		removal := k.service(nil, gone)
		if result := k.compute(removal); len(result.Notes) > 0 {
			t.Errorf("the plan says %q", result.Notes)
		}
		k.eventually(removal, "everything is gone", func(r *carrier.Result) bool { return r.Found == nil })
		jobs := &batchv1.JobList{}
		if err := k.user.List(t.Context(), jobs, client.InNamespace(k.namespace)); err != nil || len(jobs.Items) > 0 {
			t.Errorf("hooks were run: %v, %v", jobs.Items, err)
		}
	})
	t.Run("the time-out", func(t *testing.T) {
		clock := clocktesting.NewFakePassiveClock(time.Now())
		k := newKit(t, helm.Config{Timeout: time.Hour, Clock: clock})
		k.settle(k.service(jobChart(`{"helm.sh/hook": pre-delete}`), options(v1alpha1.ServiceHelmOptions{Timeout: &metav1.Duration{Duration: time.Minute}})))
		removal := k.service(nil, gone)
		k.begins(removal)
		clock.SetTime(clock.Now().Add(time.Minute))
		says(t, k.goesOn(removal), "hook Job "+k.namespace+"/migrate did not end within 1m")
	})
}

func TestLabelsThatAreNotAskedForAnyMoreGo(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0"), options(v1alpha1.ServiceHelmOptions{Labels: map[string]string{"team": "shop", "tier": "web"}})))
	k.settle(k.service(pageChart("1.1.0"), options(v1alpha1.ServiceHelmOptions{Labels: map[string]string{"tier": "backend"}})))
	labels := k.revision("2").Labels
	if team, has := labels["team"]; has || labels["tier"] != "backend" {
		t.Errorf("team is %q and tier %q", team, labels["tier"])
	}
}

func TestANamespaceThatGoesTakesNothingBack(t *testing.T) {
	k := newKit(t, helm.Config{})
	name := k.namespace + "-other"
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/wait"}}}
	if err := k.user.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.letGo(namespace) })
	elsewhere := strings.Replace(extraTemplate, "metadata:\n", "metadata:\n  namespace: "+name+"\n", 1)
	service := k.service(pageChart("1.0.0").with("templates/extra.yaml", elsewhere), options(v1alpha1.ServiceHelmOptions{Atomic: pointer(true)}))
	result := k.compute(service)
	if err := k.user.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	err := k.carrier.CarryOut(t.Context(), k.cluster, service, result)
	says(t, err, name, "being terminated")
	if framework.IsPermanent(err) {
		t.Errorf("it is not tried again: %v", err)
	}
	equal(t, "the revisions", k.statuses("web"), []string{"1 failed"})
}

// letGo removes the finalizers of a namespace that is being deleted.
func (k *kit) letGo(namespace *corev1.Namespace) {
	k.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := k.user.Patch(context.WithoutCancel(k.t.Context()), namespace, patch); client.IgnoreNotFound(err) != nil {
		k.t.Error(err)
	}
}
