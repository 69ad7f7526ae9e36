package helm_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// answers has the API server answer the next writes like this with an internal error.
func (k *kit) answers(method, name string, times int) {
	k.faults.On(func(r operatortest.Request) bool { return r.Method == method && r.Name == name && !r.DryRun },
		operatortest.InternalError()).Times(times)
}

// badly carries out what Compute says, and wants it to fail.
func (k *kit) badly(service *carrier.Service) {
	k.t.Helper()
	says(k.t, k.carrier.CarryOut(k.t.Context(), k.cluster, service, k.compute(service)), "injected fault")
}

// notHealthy has an upgrade from 1.0.0 to 2.0.0 that is not healthy in time.
func notHealthy(t *testing.T) (k *kit, bad *carrier.Service) {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k = newKit(t, helm.Config{Clock: clock})
	good := k.service(serverChart("1.0.0"), takenBack(time.Hour))
	k.settle(good)
	k.rolledOut()
	k.settle(good)
	bad = k.service(serverChart("2.0.0").with("templates/extra.yaml", extraTemplate), takenBack(time.Hour))
	k.settle(bad)
	clock.SetTime(time.Now().Add(2 * time.Hour))
	return k, bad
}

func TestARollbackThatFailsHalfWayIsGoneOnWith(t *testing.T) {
	for _, c := range []struct{ name, left string }{{"an object is not applied", "3 failed"}, {"the operator ends", "3 pending-rollback"}} {
		t.Run(c.name, func(t *testing.T) {
			k, bad := notHealthy(t)
			k.answers(http.MethodPatch, "server", 1)
			if c.left == "3 pending-rollback" {
				k.answers(http.MethodPut, "sh.helm.release.v1.web.v3", 1)
			}
			k.badly(bad)
			equal(t, "the revisions half-way", k.statuses("web"), []string{"1 superseded", "2 deployed", c.left})
			equal(t, "the plan", summary(k.compute(bad).Changes),
				[]string{"update HelmRelease web", "update Deployment server", "delete ConfigMap web-extra"})
			result := k.settle(bad)
			equal(t, "the image", k.image(), "server:1.0.0")
			equal(t, "the revisions", k.statuses("web"), []string{"1 superseded", "2 superseded", "3 deployed"})
			equal(t, "what helm history says", k.list()[0].Info.Description, "Rollback to 1")
			if failed := k.revision("3").Annotations["services.operatorkit.io/failed"]; failed != "" {
				t.Error("it would not be gone back to")
			}
			if result.Health.Phase != v1alpha1.ServiceStateFailed || !strings.Contains(result.Health.Message, "not healthy within 1h") {
				t.Errorf("it is %+v", result.Health)
			}
		})
	}
}

func TestAnUninstallationThatTakesBackAndFailsHalfWayIsGoneOnWith(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := newKit(t, helm.Config{Clock: clock})
	bad := k.service(serverChart("1.0.0").with("templates/extra.yaml", extraTemplate), takenBack(time.Hour))
	k.settle(bad)
	clock.SetTime(time.Now().Add(2 * time.Hour))
	k.answers(http.MethodDelete, "server", 1)
	k.badly(bad)
	equal(t, "the revisions half-way", k.statuses("web"), []string{"1 uninstalling"})
	equal(t, "the plan", summary(k.compute(bad).Changes), []string{"update HelmRelease web", "delete Deployment server"})
	result := k.settle(bad)
	if said := k.image(); !strings.Contains(said, "not found") {
		t.Errorf("it is there still: %s", said)
	}
	equal(t, "the revisions", k.statuses("web"), []string{"1 uninstalled"})
	if result.Health.Phase != v1alpha1.ServiceStateFailed || !strings.Contains(result.Health.Message, "not healthy within 1h") {
		t.Errorf("it is %+v", result.Health)
	}
}

func TestWhatWasUninstalledBecauseItWasRefusedIsNotGoneBackTo(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := newKit(t, helm.Config{Clock: clock})
	clock.SetTime(time.Now().Add(2 * time.Hour))
	k.settle(k.service(serverChart("1.0.0"), takenBack(time.Hour)))
	k.settle(k.service(serverChart("1.0.1"), takenBack(time.Hour)))
	equal(t, "the revisions", k.statuses("web"), []string{"1 superseded", "2 uninstalled"})
	if said := k.image(); !strings.Contains(said, "not found") {
		t.Errorf("there is %s", said)
	}
}

func TestWhatWasRefusedIsNotGoneBackToAlthoughItsRollbackFailed(t *testing.T) {
	k, bad := notHealthy(t)
	k.answers(http.MethodPatch, "server", 1)
	k.badly(bad)
	k.settle(k.service(serverChart("2.0.1"), takenBack(time.Hour)))
	equal(t, "the image", k.image(), "server:1.0.0")
	equal(t, "the revisions", k.statuses("web"), []string{"1 superseded", "2 superseded", "3 failed", "4 superseded", "5 deployed"})
}
