package helm_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	release "helm.sh/helm/v4/pkg/release/v1"

	"helm.sh/helm/v4/pkg/release/common"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// byHand is a release that somebody has installed with helm.
func (k *kit) byHand(name string, status common.Status) {
	k.t.Helper()
	chart, err := source{files: pageChart("0.1.0")}.Chart(context.Background())
	if err != nil {
		k.t.Fatal(err)
	}
	err = k.helmConfig().Releases.Create(&release.Release{
		Name: name, Namespace: k.namespace, Version: 1, Chart: chart.Chart, Info: &release.Info{Status: status},
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

func TestAReleaseThatSomebodyInstalledByHandIsNotTouched(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.byHand("web", common.StatusDeployed)
	err := k.failure(k.service(pageChart("1.0.0")), "not from a service set", "helm uninstall -n "+k.namespace+" web")
	if !carrier.IsConflict(err) {
		t.Errorf("it is no conflict: %v", err)
	}
	result := k.compute(k.service(nil, gone))
	if result.Found != nil || len(result.Changes) > 0 {
		t.Errorf("it would be taken away: %s", text(result.Changes))
	}
	equal(t, "helm list", k.listed(), []string{"web 1 deployed page-0.1.0"})
}

func TestReplaceTakesTheNameOfAnUninstalledRelease(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.byHand("web", common.StatusUninstalled)
	k.fails(k.service(pageChart("1.0.0")), "not from a service set")
	k.settle(k.service(pageChart("1.0.0"), options(v1alpha1.ServiceHelmOptions{Replace: pointer(true)})))
	equal(t, "helm list", k.listed(), []string{"web 2 deployed page-1.0.0"})
}

func TestAnObjectThatIsNotTheReleasesIsAConflict(t *testing.T) {
	k := newKit(t, helm.Config{})
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "web-page"}, Data: map[string]string{"text": "mine"}}
	if err := k.user.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	err := k.failure(k.service(pageChart("1.0.0")), "ConfigMap "+k.namespace+"/web-page is there already", "meta.helm.sh/release-name=web")
	if !carrier.IsConflict(err) {
		t.Errorf("it is no conflict: %v", err)
	}
	if k.configMap("web-page").Data["text"] != "mine" {
		t.Error("it was changed")
	}
}

func TestAReleaseOfAnotherServiceSetIsTakenOverWithoutBeingInstalledAgain(t *testing.T) {
	k := newKit(t, helm.Config{})
	first := k.service(pageChart("1.0.0"))
	k.settle(first)
	k.settle(k.service(pageChart("1.1.0")))
	heir := k.service(pageChart("1.1.0"), owner("office"))
	if heir.Fingerprint != k.service(pageChart("1.1.0")).Fingerprint {
		t.Fatal("the owner is in the fingerprint")
	}
	uid := k.configMap("web-page").UID
	result := k.compute(heir)
	equal(t, "the plan", summary(result.Changes), []string{"update HelmRelease web", "update ConfigMap web-page"})
	if result.Found.Owner != first.Owner {
		t.Errorf("the owner is %+v before", result.Found.Owner)
	}
	result = k.settle(heir)
	if result.Found.Owner != heir.Owner {
		t.Errorf("the owner is %+v after", result.Found.Owner)
	}
	equal(t, "helm list", k.listed(), []string{"web 2 deployed page-1.1.0"})
	page := k.configMap("web-page")
	if page.UID != uid || page.Labels[carrier.OwnerLabel] != heir.Owner.ID() {
		t.Errorf("the object is another one, or has the old owner: %v", page.Labels)
	}
	for owner, want := range map[carrier.Owner]int{first.Owner: 0, heir.Owner: 1} {
		if found, err := k.carrier.List(t.Context(), k.cluster, owner); err != nil || len(found) != want {
			t.Errorf("%s has %v, %v", owner.Name, found, err)
		}
	}
	removal := k.service(nil, gone)
	if result := k.compute(removal); result.Found != nil || len(result.Changes) > 0 {
		t.Error("the old owner would take it away")
	}
}

// followByHand makes revision 2 of the release, as somebody's own helm would, after change has changed it.
func (k *kit) followByHand(change func(*release.Release)) {
	k.t.Helper()
	config := k.helmConfig()
	last, err := config.Releases.Last("web")
	if err != nil {
		k.t.Fatal(err)
	}
	was := last.(*release.Release)
	byHand := *was
	byHand.Version, byHand.Info = 2, &release.Info{Status: common.StatusDeployed}
	change(&byHand)
	was.Info.Status = common.StatusSuperseded
	if err := config.Releases.Update(was); err != nil {
		k.t.Fatal(err)
	}
	if err := config.Releases.Create(&byHand); err != nil {
		k.t.Fatal(err)
	}
}

func TestWhatSomebodyUpgradedByHandIsPutRight(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(pageChart("1.0.0"))
	k.settle(service)
	k.followByHand(func(*release.Release) {})
	if result := k.compute(service); len(result.Changes) == 0 || result.Found.Fingerprint != "" {
		t.Errorf("nothing is to be done: %+v", result)
	}
	k.settle(service)
	equal(t, "the revisions", k.statuses("web"), []string{"1 superseded", "2 superseded", "3 deployed"})
}

func TestARevisionLeftInTheMiddleIsFollowedByAnotherOne(t *testing.T) {
	for _, status := range []common.Status{common.StatusPendingInstall, common.StatusPendingUpgrade, common.StatusPendingRollback, common.StatusUninstalling} {
		t.Run(string(status), func(t *testing.T) {
			k := newKit(t, helm.Config{})
			service := k.service(pageChart("1.0.0"))
			k.settle(service)
			k.leave(status)
			result := k.compute(service)
			if len(result.Notes) != 1 || !strings.Contains(result.Notes[0], "revision 1 was left "+string(status)) || result.Found.Fingerprint != "" {
				t.Errorf("it says %q of %+v", result.Notes, result.Found)
			}
			k.settle(service)
			equal(t, "the revisions", k.statuses("web"), []string{"1 superseded", "2 deployed"})
		})
	}
}

// leave leaves revision 1 in the middle, as a crash does.
func (k *kit) leave(status common.Status) {
	k.t.Helper()
	secret := &corev1.Secret{}
	if err := k.user.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "sh.helm.release.v1.web.v1"}, secret); err != nil {
		k.t.Fatal(err)
	}
	secret.Labels["status"] = string(status)
	if err := k.user.Update(k.t.Context(), secret); err != nil {
		k.t.Fatal(err)
	}
	found, err := k.helmConfig().Releases.Get("web", 1)
	if err != nil {
		k.t.Fatal(err)
	}
	r := found.(*release.Release)
	r.Info.Status = status
	annotations := secret.Annotations
	config := k.helmConfig()
	if err := config.Releases.Update(r); err != nil {
		k.t.Fatal(err)
	}
	if err := k.user.Get(k.t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		k.t.Fatal(err)
	}
	secret.Annotations = annotations
	if err := k.user.Update(k.t.Context(), secret); err != nil {
		k.t.Fatal(err)
	}
}

func TestSomebodyElsesHelmIsWaitedForUntilTheTimeout(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(pageChart("1.0.0"))
	k.settle(service)
	config := k.helmConfig()
	found, err := config.Releases.Get("web", 1)
	if err != nil {
		t.Fatal(err)
	}
	byHand := *found.(*release.Release)
	byHand.Version, byHand.Info = 2, &release.Info{Status: common.StatusPendingUpgrade}
	if err := config.Releases.Create(&byHand); err != nil {
		t.Fatal(err)
	}
	result := k.compute(service)
	if len(result.Changes) > 0 || result.Requeue <= 0 || result.Health.Phase != v1alpha1.ServiceStateProvisioning {
		t.Errorf("it is not waited for: %+v", result)
	}
	late := k.service(pageChart("1.0.0"), options(v1alpha1.ServiceHelmOptions{Timeout: &metav1.Duration{Duration: 1}}))
	if result := k.compute(late); len(result.Changes) == 0 {
		t.Errorf("it is waited for after the time-out: %+v", result)
	}
}
