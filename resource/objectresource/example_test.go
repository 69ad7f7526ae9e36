package objectresource_test

import (
	"context"
	"fmt"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// A resource that gives every namespace a config map and a Secret. In an operator it goes into a resource set.
func ExampleNew() {
	newDefaults := func(cfg *rest.Config, logger micrologger.Logger) (framework.Resource, error) {
		c, err := client.New(cfg, client.Options{Scheme: scheme.Scheme})
		if err != nil {
			return nil, err
		}
		return objectresource.New(objectresource.Config[*corev1.Namespace]{
			Name:   "defaults",
			Client: c,
			Logger: logger,
			Kinds:  []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
			Desired: func(_ context.Context, ns *corev1.Namespace) ([]client.Object, error) {
				meta := metav1.ObjectMeta{Namespace: ns.Name, Name: "defaults"}
				return []client.Object{
					&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"region": ns.Labels["region"]}},
					&corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"token": "made elsewhere"}},
				}, nil
			},
		})
	}

	_, err := newDefaults(&rest.Config{Host: "https://127.0.0.1:6443"}, nil)
	fmt.Println(err)
	// Output: invalid config: objectresource.Config: Logger must not be nil
}

// The primary of an object that a resource applied is read from its annotation.
func ExampleOwnerMap() {
	websites := objectresource.OwnerMap(schema.GroupKind{Group: "example.com", Kind: "Website"})
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{objectresource.OwnerAnnotation: "Website.example.com/shop/home"},
	}}
	fmt.Println(websites(context.Background(), child))
	// Output: [shop/home]
}
