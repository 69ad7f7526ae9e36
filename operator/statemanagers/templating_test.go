package statemanagers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// TestAChangedLabelOrObjectRollsAServiceOutAnew holds that each of what values are made of is watched: the labels and annotations of the
// cluster, and the objects that the template names, of whatever kind.
func TestAChangedLabelOrObjectRollsAServiceOutAnew(t *testing.T) {
	w := newWorld(t)
	w.config.ValueKinds = []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ServiceAccount")}
	w.create(pageTemplate(w.charts, "1.0.0"))
	network := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "network"}, Data: map[string]string{"subnet": "a"}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "one", Annotations: map[string]string{"role": "reader"}}}
	w.create(network, account)
	w.reach("one")
	w.start()
	shop := w.service("shop=page-1.0.0")
	shop.Values = "text: {{ .Cluster.metadata.labels.tier }} {{ .Cluster.metadata.annotations.by }} {{ .Objects.net.data.subnet }} {{ .Objects.account.metadata.annotations.role }}\n"
	shop.ValuesTemplate = &v1alpha1.ValuesTemplate{Objects: []v1alpha1.ValuesObject{
		{As: "net", APIVersion: "v1", Kind: "ConfigMap", Name: "network"}, {As: "account", Kind: "ServiceAccount"},
	}}
	one := cluster("one", shop)
	one.Annotations = map[string]string{"by": "ann"}
	w.create(one)
	w.wantReady(one)
	w.wantText("shop", "text", "prod ann a reader")

	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Labels["tier"] = "test" })
	w.wantText("shop", "text", "test ann a reader")
	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Annotations["by"] = "bob" })
	w.wantText("shop", "text", "test bob a reader")
	change(w, network, func(cm *corev1.ConfigMap) { cm.Data["subnet"] = "b" })
	w.wantText("shop", "text", "test bob b reader")
	change(w, account, func(a *corev1.ServiceAccount) { a.Annotations["role"] = "writer" })
	w.wantText("shop", "text", "test bob b writer")
	w.wantReady(one)

	change(w, one, func(cd *v1alpha1.ClusterDeployment) { delete(cd.Labels, "tier") })
	w.wantService("one", "shop", "Failed page-1.0.0: the values template of service "+w.namespace+"/shop: ")
	w.wantText("shop", "text", "test bob b writer")
	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Labels = map[string]string{"tier": "prod"} })
	w.wantReady(one)
	w.wantText("shop", "text", "prod bob b writer")
}

func TestOptionalValuesAreRolledOutWhenTheyCome(t *testing.T) {
	w := newWorld(t)
	w.create(pageTemplate(w.charts, "1.0.0"))
	w.reach("one")
	w.start()
	shop := w.service("shop=page-1.0.0")
	shop.ValuesFrom = []v1alpha1.ValuesFrom{{Kind: "ConfigMap", Name: "more", Key: "text", TargetPath: "text", Optional: true}}
	one := cluster("one", shop)
	w.create(one)
	w.wantReady(one)
	w.wantText("shop", "text", "hello")
	more := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Data: map[string]string{"text": "more"}}
	w.create(more)
	w.wantText("shop", "text", "more")
	if err := w.user.Delete(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	w.wantText("shop", "text", "hello")
	w.wantReady(one)
}
