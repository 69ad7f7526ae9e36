package helm_test

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// numbered are the ConfigMaps that numberedTemplate has made.
func (k *kit) numbered() []string {
	k.t.Helper()
	list := &corev1.ConfigMapList{}
	if err := k.user.List(k.t.Context(), list, client.InNamespace(k.namespace), client.MatchingLabels{"numbered": "yes"}); err != nil {
		k.t.Fatal(err)
	}
	var names []string
	for _, c := range list.Items {
		names = append(names, c.Name)
	}
	return names
}

const numberedTemplate = `apiVersion: v1
kind: ConfigMap
metadata:
  name: migrate-{{ .Release.Revision }}
  labels: {numbered: "yes"}
`

func TestWhatFailedRevisionsHaveLeftGoesAlthoughTheHistoryIsShort(t *testing.T) {
	k := newKit(t, helm.Config{History: 3})
	k.settle(k.service(serverChart("1.0.0").with("templates/extra.yaml", extraTemplate)))
	chart := serverChart("1.1.0").with("templates/migrate.yaml", numberedTemplate)
	first, service := k.service(chart.with("templates/extra.yaml", extraTemplate)), k.service(chart)
	k.answers(http.MethodPatch, "server", 5)
	for _, failing := range []*carrier.Service{first, first, service, service, service} {
		k.badly(failing)
	}
	equal(t, "the revisions", k.statuses("web"), []string{"1 deployed", "5 failed", "6 failed"})
	if k.configMap("web-extra") == nil {
		t.Error("what the revision that stands has is gone before another one stands")
	}
	k.settle(service)
	equal(t, "what is there", k.numbered(), []string{"migrate-7"})
	if k.configMap("web-extra") != nil {
		t.Error("what the chart does not have any more is there still")
	}
	k.eventually(k.service(nil, gone), "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
	equal(t, "what is left", k.numbered(), nil)
}

func TestARevisionIsKeptAsLongAsWhatItHasLeftCanNotBeDeleted(t *testing.T) {
	k := newKit(t, helm.Config{History: 2})
	service := k.service(serverChart("1.0.0").with("templates/migrate.yaml", numberedTemplate))
	k.answers(http.MethodPatch, "server", 2)
	k.badly(service)
	k.badly(service)
	k.answers(http.MethodDelete, "migrate-1", 1)
	k.badly(service)
	equal(t, "the revisions", k.statuses("web"), []string{"1 failed", "2 failed"})
	k.settle(service)
	equal(t, "what is there", k.numbered(), []string{"migrate-3"})
}
