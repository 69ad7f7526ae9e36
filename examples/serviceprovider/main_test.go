package postgres_test

import (
	"context"
	"os"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	"github.com/operatorkit/operatorkit/examples/internal/demotest"
	postgres "github.com/operatorkit/operatorkit/examples/serviceprovider"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/story"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
)

func TestMain(m *testing.M) {
	demotest.Tell(twice)
	os.Exit(m.Run())
}

// twice is the story, the deletion of what was ordered, and the story again, which takes all rights of the provider that are not in reserve.
func twice() demo.Story {
	used := newRights()
	s := story.New(used.in)
	order := s.Tell
	s.Tell = func(ctx context.Context, d *demo.Demo) error {
		if err := order(ctx, d); err != nil {
			return err
		}
		user, err := d.Clusters[story.Onboarding].User("alice")
		if err != nil {
			return err
		}
		alice, err := client.New(user, client.Options{Scheme: d.Client.Scheme()})
		if err != nil {
			return err
		}
		orders := &v1alpha1.Postgres{ObjectMeta: metav1.ObjectMeta{Namespace: "team-blue", Name: "orders"}}
		if err := alice.Delete(ctx, orders); err != nil {
			return err
		}
		if err := d.Until(ctx, "orders is gone", func(ctx context.Context) (bool, error) {
			err := alice.Get(ctx, client.ObjectKeyFromObject(orders), orders)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}); err != nil {
			return err
		}
		if err := order(ctx, d); err != nil {
			return err
		}
		return used.check(map[string]string{story.Platform: postgres.PlatformPermissions, story.Onboarding: postgres.OnboardingPermissions})
	}
	return s
}
