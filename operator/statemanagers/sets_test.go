package statemanagers_test

import (
	"testing"

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
