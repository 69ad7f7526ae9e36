// Package story shows the quickstart on a control plane of its own: three Websites are created, one is changed, one is
// moved to the next version of the operator's logic, and one is deleted. A guard denies a change, and an upgrade of the operator halts and is reverted. What the operator is going to do is shown before.
package story

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	"github.com/operatorkit/operatorkit/examples/quickstart"
	"github.com/operatorkit/operatorkit/examples/quickstart/v1alpha1"
)

// New returns the story.
func New() demo.Story {
	return demo.Story{
		Name:     "quickstart",
		Operator: quickstart.Limited(firstBuild),
		Shared:   shared,
		Tell:     tell,
		Told:     []string{"is invalid: spec.ports[0].port", "upgrade Halted", "denies: update ConfigMap"},
		Look:     "bin/controlplane kubectl -n quickstart get websites,configmaps,services",
		Kinds:    []client.ObjectList{&v1alpha1.WebsiteList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{}},
		Try: []string{
			"bin/controlplane kubectl -n quickstart delete configmap home-page   # it comes back",
			"bin/controlplane kubectl -n quickstart patch website blog --type=merge -p '{\"spec\":{\"text\":\"Edited.\"}}'",
			"bin/controlplane kubectl -n quickstart delete website home",
		},
	}
}
