package statemanagers_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// releases returns all revisions of a release, and what became of them, in order.
func (w *world) releases(name string) ([]string, error) {
	list := &corev1.SecretList{}
	if err := w.user.List(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{"owner": "helm", "name": name}); err != nil {
		return nil, err
	}
	var revisions []string
	for i := range list.Items {
		revisions = append(revisions, fmt.Sprintf("%s %s", list.Items[i].Labels["version"], list.Items[i].Labels["status"]))
	}
	slices.Sort(revisions)
	return revisions, nil
}

func TestAnUpgradeWalksAlongItsChain(t *testing.T) {
	w := newWorld(t)
	chain := &v1alpha1.ServiceTemplateChain{ObjectMeta: metav1.ObjectMeta{Name: "page"}, Spec: v1alpha1.ServiceTemplateChainSpec{
		SupportedTemplates: []v1alpha1.SupportedTemplate{
			{Name: "page-1.0.0", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "page-2.0.0"}}},
			{Name: "page-2.0.0", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "page-3.0.0"}}},
			{Name: "page-3.0.0"},
		},
	}}
	for _, version := range chartVersions {
		w.create(pageTemplate(w.charts, version))
	}
	w.create(chain)
	w.reach("one")
	w.start()
	shop := w.service("shop=page-1.0.0")
	shop.TemplateChain = chain.Name
	one := cluster("one", shop)
	w.create(one)
	w.wantReady(one)
	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Spec.ServiceSpec.Services[0].Template = "page-3.0.0" })
	w.wantText("shop", "version", "3.0.0")
	w.wantReady(one)
	got, err := w.releases("shop")
	if want := []string{"1 superseded", "2 superseded", "3 deployed"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("revisions: %v, want %v (%v)", got, want, err)
	}
}

func TestAFailureHoldsBackOnlyWhatDependsOnIt(t *testing.T) {
	w := newWorld(t)
	w.files("rules", map[string]string{"rules.yaml": mapManifest})
	w.create(filesTemplate("broken"), filesTemplate("rules"), pageTemplate(w.charts, "1.0.0"))
	w.reach("one")
	w.start()
	one := cluster("one", w.service("broken=broken"), w.service("rules=rules", "broken"), w.service("shop=page-1.0.0"))
	w.create(one)
	w.wantText("shop", "version", "1.0.0")
	w.wantService("one", "shop", "Deployed page-1.0.0")
	w.wantSet("one", fmt.Sprintf("Blocked=True Failed: %[1]s/broken failed: read the files: ConfigMap %[1]s/broken-files does not exist: create it", w.namespace))
	w.wantText("rules", "allow", "")

	w.files("broken", map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mended}\ndata: {is: mended}\n"})
	w.wantText("mended", "is", "mended")
	w.wantText("rules", "allow", "some")
	w.wantReady(one)
}

func TestAClusterThatIsGoneIsLetGoOf(t *testing.T) {
	w, one := newWorldWithRules(t)

	w.east.Cut()
	if err := w.user.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	w.wantSet("one", "Reachable=False Unreachable")
	operatortest.Eventually(t, "the set waits for its services", func() error {
		set, err := w.set("one")
		if err == nil && (set.DeletionTimestamp == nil || len(set.Status.Services) != 1) {
			err = fmt.Errorf("its services are %v", set.Status.Services)
		}
		return err
	})
	change(w, one, func(cd *v1alpha1.ClusterDeployment) {
		cd.Annotations = map[string]string{"services.operatorkit.io/let-go": "true"}
	})
	w.wantGone(one)
	w.wantGone(&v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "one"}})
	w.wantText("rules", "allow", "some")
}

func TestAServiceThatAnotherSetUninstallsIsGone(t *testing.T) {
	w := newWorld(t)
	provider := w.ownProvider()
	if err := w.user.Create(t.Context(), provider.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.files("rules", map[string]string{"rules.yaml": mapManifest})
	w.create(filesTemplate("rules"), cluster("one"))
	w.reach("one")
	w.start()
	labels := map[string]string{"team": "shop"}
	own := w.ownSet(provider.Name, labels, "rules=rules")
	w.create(own)
	w.wantSet("own", "Ready=True Deployed")
	off := w.ownSet(provider.Name, labels, "rules=rules")
	off.Name, off.Spec.Services[0].HelmAction = "off", v1alpha1.HelmActionUninstall
	w.create(off)
	w.wantService("off", "rules", "Deleted")
	w.wantText("rules", "allow", "some")

	change(w, own, func(s *v1alpha1.ServiceSet) { s.Spec.Services = nil })
	w.wantText("rules", "allow", "")
	w.wantEvent(own, statemanagers.EventRemoved)
	if err := w.user.Delete(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	w.wantGone(own)
}
