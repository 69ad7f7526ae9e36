package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/informer"
)

// A Push source can be fed by an existing informer: its methods fit into
// cache.ResourceEventHandlerFuncs.
func ExamplePush() {
	source := informer.NewPush("configmaps")
	source.Subscribe(func(e informer.Event) { fmt.Println(e.Type, e.Key) })

	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "home", ResourceVersion: "1"}}
	fmt.Println(source.Update(obj))
	fmt.Println(source.Delete(obj))
	// Output:
	// added default/home
	// <nil>
	// deleted default/home
	// <nil>
}

// A source of one's own embeds a Hub and feeds it.
func ExampleNewHub() {
	hub, feed := informer.NewHub(informer.HubConfig{
		Name:     "planets",
		Indexers: map[string]informer.IndexFunc{"initial": func(obj any) []string { return []string{obj.(string)[:1]} }},
	})
	hub.Subscribe(func(e informer.Event) { fmt.Println(e.Type, e.Object) })

	item := func(name, version string) informer.Item {
		return informer.Item{Key: informer.Key{Name: name}, Object: name, Version: version}
	}
	feed.Replace("", []informer.Item{item("Mars", "1"), item("Pluto", "1")})
	feed.Replace("", []informer.Item{item("Mars", "1")})

	found, err := hub.ByIndex("initial", "M")
	fmt.Println(found, err)
	// Unordered output:
	// added Mars
	// added Pluto
	// deleted Pluto
	// [Mars] <nil>
}

// A change of a child concerns its owner.
func ExampleOwnerMap() {
	owners := informer.OwnerMap(schema.GroupKind{Group: "example.com", Kind: "Website"})
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace:       "default",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Website", Name: "home"}},
	}}
	fmt.Println(owners(context.Background(), child))
	// Output: [default/home]
}
