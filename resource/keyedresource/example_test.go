package keyedresource_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/keyedresource"
)

// Bucket is a thing of a cloud, in which Tag is for its users.
type Bucket struct {
	Name, Region, Tag string
}

// The buckets of a Namespace: its plan, and what is there when it was carried out.
func Example() {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		panic(err)
	}
	cloud := []Bucket{{"home-logs", "north", "v1/cloud/namespaces/buckets/home"}, {"theirs", "west", ""}}
	without := func(name string) []Bucket {
		return slices.DeleteFunc(slices.Clone(cloud), func(b Bucket) bool { return b.Name == name })
	}
	buckets, err := keyedresource.New(keyedresource.Config[*corev1.Namespace, Bucket]{
		Name: "buckets", Logger: logger,
		Current: func(context.Context, *corev1.Namespace) ([]Bucket, error) { return cloud, nil },
		Desired: func(ctx context.Context, ns *corev1.Namespace) ([]Bucket, error) {
			return []Bucket{{ns.Name + "-data", "north", keyedresource.Mark(ctx)}, {ns.Name + "-logs", "south", keyedresource.Mark(ctx)}}, nil
		},
		Key:  func(b Bucket) string { return b.Name },
		Mark: func(b Bucket) string { return b.Tag },
		Put: func(_ context.Context, _ *corev1.Namespace, b Bucket) error {
			cloud = append(without(b.Name), b)
			return nil
		},
		Delete: func(_ context.Context, _ *corev1.Namespace, b Bucket) error {
			cloud = without(b.Name)
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	ctx := identity.NewContext(context.Background(), &identity.Scope{Identity: identity.Identity{Operator: "cloud", Framework: "namespaces"}})
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "home"}}
	p, err := framework.PlanUpdate(ctx, home, []framework.Resource{buckets})
	if err != nil {
		panic(err)
	}
	if err := plan.WriteText(os.Stdout, []*plan.Plan{p}, plan.TextOptions{}); err != nil {
		panic(err)
	}
	if err := framework.ProcessUpdate(ctx, home, []framework.Resource{buckets}); err != nil {
		panic(err)
	}
	for _, b := range cloud {
		fmt.Println(b.Name, b.Region)
	}
	// Output:
	// Namespace home (update)
	//   buckets
	//     + Bucket home-data
	//         + Name: "home-data"
	//         + Region: "north"
	//         + Tag: "v1/cloud/namespaces/buckets/home"
	//     ~ Bucket home-logs
	//         ~ Region: "north" -> "south"
	//
	// 1 to create, 1 to update, 0 to delete
	// theirs west
	// home-data north
	// home-logs south
}
