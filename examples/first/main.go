// Command first is a whole operator: it gives every namespace with the label size a ResourceQuota of that size.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

func main() {
	os.Exit(command.Execute(context.Background(), command.Config{Name: "first", New: newFrameworks}, os.Args[1:], os.Stdout, os.Stderr))
}

var pods = map[string]string{"small": "10", "large": "100"}

func newFrameworks(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
	namespaces, err := d.NewSource(&corev1.Namespace{})
	if err != nil {
		return nil, err
	}
	owned, err := d.Own(&corev1.Namespace{}, &corev1.ResourceQuota{})
	if err != nil {
		return nil, err
	}
	quota, err := objectresource.New(objectresource.Config[*corev1.Namespace]{
		Name: "quota", Client: d.Client, Logger: d.Logger, Stores: owned.Stores,
		Namespaces: func(ns *corev1.Namespace) []string { return []string{ns.Name} },
		Desired: func(_ context.Context, ns *corev1.Namespace) ([]client.Object, error) {
			limit, ok := pods[ns.Labels["size"]]
			if !ok {
				return nil, nil
			}
			return []client.Object{&corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "size"},
				Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(limit)}},
			}}, nil
		},
	})
	if err != nil {
		return nil, err
	}
	f, err := d.NewFramework(framework.Config{
		Source: namespaces, Resources: []framework.Resource{quota}, DisableFinalizer: true, // a quota goes with its namespace
		Watches: owned.Watches,
	})
	return []*framework.Framework{f}, err
}
