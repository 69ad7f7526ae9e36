package statemanagers_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/guards"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestAGuardKeepsReleasesInNamespacesThatAreLabelledProd(t *testing.T) {
	w := newWorld(t)
	var err error
	w.guards, err = guards.Read([]byte(`
guards:
- name: keep-releases-in-prod
  match: change.action == 'delete' && change.kind == 'HelmRelease' && namespaceObject.metadata.labels[?'env'].orValue('') == 'prod'
  action: deny
  message: Ask the owners of prod first.
`), w.user)
	if err != nil {
		t.Fatal(err)
	}
	label := func(value string) {
		namespace := &corev1.Namespace{}
		namespace.Name = w.namespace
		patch := fmt.Sprintf(`{"metadata":{"labels":{"env":%s}}}`, value)
		if err := w.user.Patch(t.Context(), namespace, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	label(`"prod"`)
	w.create(pageTemplate(w.charts, "1.0.0"))
	w.reach("one")
	w.start()
	one := cluster("one", w.service("page=page-1.0.0"))
	w.create(one)
	w.wantReady(one)

	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Spec.ServiceSpec.Services = nil })
	operatortest.Eventually(t, "an event says who has denied it", func() error {
		var events corev1.EventList
		if err := w.user.List(t.Context(), &events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		return deniedIn(events, "keep-releases-in-prod", "Ask the owners of prod first.")
	})
	if names, err := w.releases("page"); err != nil || len(names) == 0 {
		t.Fatalf("the revisions are %q, error %v: the release went", names, err)
	}

	label("null")
	operatortest.Eventually(t, "the release is gone", func() error {
		if names, err := w.releases("page"); err != nil || len(names) > 0 {
			return fmt.Errorf("the revisions are %q, error %w", names, err)
		}
		return nil
	})
}

// deniedIn looks for an event with all of the texts.
func deniedIn(events corev1.EventList, texts ...string) error {
	for _, e := range events.Items {
		found := true
		for _, text := range texts {
			found = found && strings.Contains(e.Message, text)
		}
		if found {
			return nil
		}
	}
	return fmt.Errorf("none of %d events has %q", len(events.Items), texts)
}
