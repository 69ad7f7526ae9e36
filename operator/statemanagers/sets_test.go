package statemanagers_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

const mapManifest = `apiVersion: v1
kind: ConfigMap
metadata: {name: rules}
data: {allow: "some"}
`

func TestServicesComeUpChangeAndGo(t *testing.T) {
	w := newWorld(t)
	w.files("rules", map[string]string{"rules.yaml": mapManifest})
	w.create(pageTemplate(w.charts, "1.0.0"), pageTemplate(w.charts, "2.0.0"), filesTemplate("rules"))
	w.reach("one")
	w.start()
	one := cluster("one", w.service("rules=rules"), w.service("shop=page-1.0.0", "rules"))
	w.create(one)

	w.wantReady(one)
	w.wantSet("one", "Ready=True Deployed: all 2 services are deployed")
	w.wantText("rules", "allow", "some")
	w.wantText("shop", "version", "1.0.0")

	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Spec.ServiceSpec.Services[1].Template = "page-2.0.0" })
	w.wantText("shop", "version", "2.0.0")
	w.wantReady(one)

	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Spec.ServiceSpec.Services = cd.Spec.ServiceSpec.Services[:1] })
	w.wantText("shop", "version", "")
	w.wantReady(one)

	if err := w.user.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	w.wantGone(one)
	w.wantText("rules", "allow", "")
}

func TestAServiceThatIsUninstalledIsReady(t *testing.T) {
	w := newWorld(t)
	w.create(pageTemplate(w.charts, "1.0.0"), pageTemplate(w.charts, "2.0.0"))
	w.reach("one")
	w.start()
	one := cluster("one", w.service("shop=page-1.0.0"), w.service("more=page-1.0.0", "shop"))
	w.create(one)
	w.wantReady(one)
	change(w, one, func(cd *v1alpha1.ClusterDeployment) {
		cd.Spec.ServiceSpec.Services[0].HelmAction = v1alpha1.HelmActionUninstall
		cd.Spec.ServiceSpec.Services[1].Template = "page-2.0.0"
	})
	w.wantText("shop", "version", "")
	w.wantText("more", "version", "2.0.0")
	w.wantReady(one)
	w.wantService("one", "shop", "Deleted page-1.0.0")
	w.wantSet("one", "Ready=True Deployed")

	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Spec.ServiceSpec.Services[0].Template = "page-2.0.0" })
	w.wantService("one", "shop", "Deleted page-2.0.0")
	w.wantReady(one)
	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Spec.ServiceSpec.Services[0].HelmAction = "" })
	w.wantText("shop", "version", "2.0.0")
	w.wantReady(one)
}

func TestAClusterThatCanNotBeReachedIsNotReady(t *testing.T) {
	w, one := newWorldWithRules(t)

	secret := kubeconfigSecret(t, "one", w.kube.RESTConfig(), "")
	secret.Namespace = w.namespace
	if err := w.user.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.wantSet("one", "Ready=False SecretMissing: the cluster can't be reached")
	saysSo := func(what string, holds func(set *v1alpha1.ServiceSet) bool) {
		t.Helper()
		operatortest.Eventually(t, what, func() error {
			set, err := w.set("one")
			if err != nil {
				return err
			}
			if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
				return err
			}
			if !holds(set) {
				return fmt.Errorf("generation %d, status of %d", set.Generation, set.Status.ObservedGeneration)
			}
			return conditionIs(one.Status.Conditions, "Ready=False SecretMissing: the cluster can't be reached")
		})
	}
	saysSo("the cluster is not ready", func(*v1alpha1.ServiceSet) bool { return true })
	change(w, one, func(cd *v1alpha1.ClusterDeployment) {
		cd.Spec.ServiceSpec.Services[0].HelmOptions = &v1alpha1.ServiceHelmOptions{Description: "new"}
	})
	saysSo("what was not rolled out is not observed", func(set *v1alpha1.ServiceSet) bool {
		return set.Generation > 1 && set.Status.ObservedGeneration < set.Generation
	})
	w.reach("one")
	w.wantReady(one)
}

func TestR18WhatWasNotRolledOutIsNotReadyBeforeTheClusterHasAnsweredOrNot(t *testing.T) {
	w := newWorld(t)
	w.files("rules", map[string]string{"rules.yaml": mapManifest})
	w.create(filesTemplate("rules"))
	w.reach("one")
	w.config.Native.Targets.ConnectTimeout = time.Hour
	r := w.start()
	one := cluster("one", w.service("rules=rules"))
	w.create(one)
	w.wantReady(one)
	r.stop()

	// When the operators start anew, the cluster swallows all requests.
	silence := w.east.On(func(operatortest.Request) bool { return true }, operatortest.TimeOut())
	w.start()
	w.wantSet("one", "Reachable=Unknown Connecting")
	if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
		t.Fatal(err)
	}
	if err := conditionIs(one.Status.Conditions, "Ready=True"); err != nil {
		t.Errorf("what was seen before the operators ended: %v", err)
	}
	change(w, one, func(cd *v1alpha1.ClusterDeployment) {
		cd.Spec.ServiceSpec.Services[0].HelmOptions = &v1alpha1.ServiceHelmOptions{Description: "new"}
	})
	w.wantSet("one", "Ready=False InFlight: waits until its cluster answers")
	set, err := w.set("one")
	if err != nil {
		t.Fatal(err)
	}
	if err := conditionIs(set.Status.Conditions, "Reachable=Unknown Connecting"); err != nil || set.Status.ObservedGeneration == set.Generation {
		t.Errorf("generation %d, status of %d: %v", set.Generation, set.Status.ObservedGeneration, err)
	}
	operatortest.Eventually(t, "the cluster is not ready", func() error {
		if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
			return err
		}
		return conditionIs(one.Status.Conditions, "Ready=False InFlight")
	})
	silence.Remove()
	w.east.Cut()
	w.wantSet("one", "Ready=False Unreachable: the cluster can't be reached")
	w.east.Restore()
	w.wantReady(one)
}

func TestAStatusThatSomebodyElseHasWrittenIsPutRight(t *testing.T) {
	w, _ := newWorldWithRules(t)
	w.wantService("one", "rules", "Deployed")
	set, err := w.set("one")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.user.Status().Patch(t.Context(), set, client.RawPatch(types.MergePatchType, []byte(`{"status": {"services": null}}`))); err != nil {
		t.Fatal(err)
	}
	w.wantService("one", "rules", "Deployed")
}
