package quickstart

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/examples/quickstart/v1alpha1"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
)

// Shadowed is the operator with a shadow: what v2 would do with the Websites of v1.
func Shadowed(name string) command.Config {
	config := Config
	config.Name = name
	config.New = func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
		websites, err := d.NewSource(&v1alpha1.Website{})
		owned, ownErr := d.Own(&v1alpha1.Website{}, &corev1.ConfigMap{}, &corev1.Service{})
		if err = errors.Join(err, ownErr); err != nil {
			return nil, err
		}
		sets, err := newResourceSets(d, owned.Stores, children, "")
		if err != nil {
			return nil, err
		}
		sets = append(sets, framework.ResourceSetConfig{Name: "next", Shadow: true, Handles: sets[0].Handles, Resources: sets[1].Resources})
		f, err := d.NewFramework(framework.Config{Source: websites, Watches: owned.Watches, ResourceSets: sets})
		return []*framework.Framework{f}, err
	}
	return config
}
