package statemanagers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
)

// inMode is a cluster whose services are in a sync mode.
func inMode(name string, mode v1alpha1.SyncMode, services ...v1alpha1.Service) *v1alpha1.ClusterDeployment {
	cd := cluster(name, services...)
	cd.Spec.ServiceSpec.Provider.Config = &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"syncMode": %q}`, mode)}
	return cd
}

// wantServiceCondition waits until a condition of a service has a status, and a message with some text.
func (w *world) wantServiceCondition(set, service, condition string, status metav1.ConditionStatus, text string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("service %s has %s=%s", service, condition, status), func() error {
		s, err := w.set(set)
		if err != nil {
			return err
		}
		for i := range s.Status.Services {
			c := meta.FindStatusCondition(s.Status.Services[i].Conditions, condition)
			if s.Status.Services[i].Name == service && c != nil && c.Status == status && strings.Contains(c.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("the services are %v", s.Status.Services)
	})
}

func TestADryRunWritesThePlanIntoTheStatus(t *testing.T) {
	w := newWorld(t)
	w.files("rules", map[string]string{"rules.yaml": mapManifest})
	w.create(filesTemplate("rules"), pageTemplate(w.charts, "1.0.0"))
	w.reach("one")
	w.start()
	one := inMode("one", v1alpha1.SyncModeDryRun, w.service("rules=rules"), w.service("shop=page-1.0.0"))
	w.create(one)
	w.wantServiceCondition("one", "rules", native.ConditionPlanned, metav1.ConditionTrue, "ConfigMap "+w.namespace+"/rules")
	w.wantServiceCondition("one", "shop", native.ConditionPlanned, metav1.ConditionTrue, "ConfigMap "+w.namespace+"/shop")
	for _, write := range w.east.Writes() {
		t.Errorf("%s was sent to the cluster", write)
	}

	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Spec.ServiceSpec.Provider.Config = nil })
	w.wantReady(one)
	w.wantText("rules", "allow", "some")
	w.wantText("shop", "version", "1.0.0")
}

func TestDriftIsPutRightOrReported(t *testing.T) {
	w := newWorld(t)
	modes := map[string]v1alpha1.SyncMode{
		"once": v1alpha1.SyncModeOneTime, "told": v1alpha1.SyncModeContinuous, "steady": v1alpha1.SyncModeContinuousWithDriftDetection,
	}
	for name, mode := range modes {
		w.files(name, map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {is: ours}\n"})
		w.create(filesTemplate(name), inMode(name, mode, w.service(name+"="+name)))
		w.reach(name)
	}
	w.start()
	for name := range modes {
		w.wantReady(&v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}})
	}
	for _, name := range []string{"once", "told", "steady"} {
		changed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		change(w, changed, func(cm *corev1.ConfigMap) { cm.Data["is"] = "theirs" })
	}
	w.wantText("steady", "is", "ours")
	w.wantServiceCondition("told", "told", native.ConditionDrifted, metav1.ConditionTrue, "ConfigMap "+w.namespace+"/told")
	w.wantText("told", "is", "theirs")
	w.wantText("once", "is", "theirs")

	// What is new is put onto the cluster, whoever has changed what was there, but once only.
	for _, name := range []string{"once", "told"} {
		files := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name + "-files"}}
		change(w, files, func(cm *corev1.ConfigMap) { cm.Data["a.yaml"] = strings.ReplaceAll(cm.Data["a.yaml"], "ours", "newer") })
	}
	w.wantText("told", "is", "newer")
	operatortest.Eventually(t, "the set that is put there once has seen the change", func() error {
		set := &v1alpha1.ServiceSet{}
		if err := w.user.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "once"}, set); err != nil {
			return err
		}
		if len(set.Status.Services) != 1 || set.Status.Services[0].State != v1alpha1.ServiceStateDeployed {
			return errors.New("its service is not deployed")
		}
		return nil
	})
	w.wantText("once", "is", "theirs")
}

func TestAConfigThatCanNotBeReadIsToldAndDoesNotKeepASet(t *testing.T) {
	w, one := newWorldWithRules(t)
	change(w, one, func(cd *v1alpha1.ClusterDeployment) {
		cd.Spec.ServiceSpec.Provider.Config = &apiextensionsv1.JSON{Raw: []byte(`{"syncMode": "continuous"}`)}
	})
	const says = `Invalid: spec.provider.config.syncMode is "continuous": it is OneTime`
	w.wantSet("one", "Ready=False "+says)
	operatortest.Eventually(t, "the cluster says so", func() error {
		if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
			return err
		}
		return conditionIs(one.Status.Conditions, "Ready=False "+says)
	})
	w.wantText("rules", "allow", "some")
	if err := w.user.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	w.wantGone(one)
	w.wantText("rules", "allow", "")
}

func TestNothingIsTakenAwayWhileNobodyKnowsWithWhoseRights(t *testing.T) {
	w, one := newWorldWithRules(t)
	change(w, one, func(cd *v1alpha1.ClusterDeployment) {
		cd.Spec.ServiceSpec.Provider.Config = &apiextensionsv1.JSON{Raw: []byte(`{"serviceAccountName": 1}`)}
	})
	const says = "Ready=False Invalid: spec.provider.config.serviceAccountName can't be read"
	w.wantSet("one", says)
	if err := w.user.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "it is told while the set is being deleted", func() error {
		set, err := w.set("one")
		if err == nil && set.DeletionTimestamp == nil {
			err = errors.New("it is not being deleted")
		}
		if err != nil {
			return err
		}
		return conditionIs(set.Status.Conditions, says)
	})
	w.wantText("rules", "allow", "some")
	set, err := w.set("one")
	if err != nil {
		t.Fatal(err)
	}
	change(w, set, func(set *v1alpha1.ServiceSet) { set.Spec.Provider.Config = nil })
	w.wantGone(one)
	w.wantText("rules", "allow", "")
}
