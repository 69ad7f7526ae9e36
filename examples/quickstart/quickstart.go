// Package quickstart is a whole operator. A Website becomes a ConfigMap with its page and a Service that leads to it, and its status
// says whether that has come about. There are two versions of the logic; the label examples.operatorkit.io/version of a Website picks one.
//
//	$ make run EXAMPLE=quickstart                         # on a control plane of its own
//	$ make run EXAMPLE=quickstart REPLICAS=3              # the same, with replicas that share the work
//	$ go run ./examples/quickstart/cmd/operator run       # on the cluster of your kubeconfig
//	$ go run ./examples/quickstart/cmd/operator plan -A   # what it would change there
//
// While it runs, http://127.0.0.1:8082 shows what it does, and "operator explain home" tells it of one Website.
package quickstart

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/quickstart/v1alpha1"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/resource/objectresource"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// Config is what the command line of the operator is made of.
var Config = command.Config{
	Name:        "quickstart",
	Short:       "Serves Websites: each becomes a ConfigMap with its page and a Service",
	CRDFiles:    v1alpha1.CRDs,
	AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
	New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
		return newFrameworks(d, children, "")
	},
}

// newFrameworks makes the one framework of the operator: Websites, and watches of the objects they became. Its conditions have the prefix.
func newFrameworks(d *operator.Dependencies, desired desired, prefix string) ([]*framework.Framework, error) {
	websites, err := d.NewSource(&v1alpha1.Website{})
	if err != nil {
		return nil, err
	}
	owned, err := d.Own(&v1alpha1.Website{}, &corev1.ConfigMap{}, &corev1.Service{})
	if err != nil {
		return nil, err
	}
	sets, err := newResourceSets(d, owned.Stores, desired, prefix)
	if err != nil {
		return nil, err
	}
	f, err := d.NewFramework(framework.Config{Source: websites, Watches: owned.Watches, ResourceSets: sets})
	return []*framework.Framework{f}, err
}

// desired says what a Website is to become by a version of the logic.
type desired func(version string, site *v1alpha1.Website) ([]client.Object, error)

// newResourceSets makes a resource set for each version of the logic.
func newResourceSets(d *operator.Dependencies, stores []objectresource.Store, desired desired, prefix string) ([]framework.ResourceSetConfig, error) {
	status, err := statusresource.New(statusresource.Config[*v1alpha1.Website]{
		Client: d.Client, Logger: d.Logger, Prefix: prefix,
		Set: func(_ context.Context, site *v1alpha1.Website, _ *statusresource.Report) error {
			site.Status.Page = pageName(site)
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	var sets []framework.ResourceSetConfig
	for _, version := range []string{"v1", "v2"} {
		objects, err := objectresource.New(objectresource.Config[*v1alpha1.Website]{
			Name: "objects", Client: d.Client, Logger: d.Logger, Stores: stores,
			Desired: func(_ context.Context, site *v1alpha1.Website) ([]client.Object, error) {
				return desired(version, site)
			},
		})
		if err != nil {
			return nil, err
		}
		sets = append(sets, framework.ResourceSetConfig{
			Name: version, Handles: framework.HandlesLabel(v1alpha1.VersionLabel, version),
			Resources: []framework.Resource{objects, status},
		})
	}
	return sets, nil
}
