package story

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	postgres "github.com/operatorkit/operatorkit/examples/serviceprovider"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/namespaces"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// The databases of the story.
var (
	orders  = newDatabase("team-blue", "orders")
	reports = newDatabase("team-green", "reports")
)

func newDatabase(namespace, name string) *v1alpha1.Postgres {
	return &v1alpha1.Postgres{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.PostgresSpec{Version: "17"}}
}

// The images of the story: the one that the provider's config begins with, and the next one.
const (
	firstImage  = "registry.example.com/postgres:17.5"
	secondImage = "registry.example.com/postgres:17.6"
)

// tell tells the story.
func (w *world) tell(ctx context.Context, _ *demo.Demo) error {
	for _, chapter := range []func(context.Context) error{w.order, w.room, w.configure, w.renew, w.revoke, w.pull, w.delete, w.drift, w.leastRights} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// order has alice order a database.
func (w *world) order(ctx context.Context) error {
	w.Step("alice orders the Postgres orders")
	if err := w.alice.Create(ctx, orders.DeepCopy()); err != nil {
		return err
	}
	if err := w.holds(ctx, "it is given the clusters mcp-blue and workload", func(ctx context.Context) error {
		return w.placed(ctx, orders, map[string]string{clusteraccess.MCP: "mcp-blue", clusteraccess.Workload: "workload"})
	}); err != nil {
		return err
	}
	if err := w.holds(ctx, "access to both is granted, for an hour", func(ctx context.Context) error { return w.granted(ctx, orders) }); err != nil {
		return err
	}
	if err := w.holds(ctx, "orders is ready: its StatefulSet runs in workload, and its Secret is in mcp", func(ctx context.Context) error {
		return w.ready(ctx, orders, firstImage)
	}); err != nil {
		return err
	}
	return w.holds(ctx, "with its credentials nothing else can be read: not what its neighbours have, nor all Secrets (403)", func(ctx context.Context) error {
		return w.leastPrivilege(ctx, orders)
	})
}

// room has bob order one that does not fit, until the platform team makes room.
func (w *world) room(ctx context.Context) error {
	w.Step("bob orders reports; the workload cluster has room for one")
	if err := w.bob.Create(ctx, reports.DeepCopy()); err != nil {
		return err
	}
	var waits *metav1.Condition
	if err := w.Wait(ctx, "reports waits for room", func(ctx context.Context) (bool, error) {
		if err := w.says(ctx, reports, serviceprovider.ReasonAccessPending); err != nil {
			return false, err
		}
		request, err := w.clusterRequest(ctx, reports, clusteraccess.Workload)
		if err != nil {
			return false, err
		}
		waits = meta.FindStatusCondition(request.Status.Conditions, clustersv1alpha1.ConditionGranted)
		return waits != nil && waits.Reason == clustersv1alpha1.ReasonNoRoom, nil
	}); err != nil {
		return err
	}
	w.Change("!", "clusterrequest of reports", waits.Message)
	cluster := &clustersv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespaces.DefaultClusters, Name: workload}}
	if err := merge(ctx, w.Client, cluster, `{"spec":{"capacity":2}}`); err != nil {
		return err
	}
	w.Change("~", "cluster/workload", "spec.capacity: 1 → 2, by the platform team")
	if err := w.holds(ctx, "reports is ready", func(ctx context.Context) error { return w.ready(ctx, reports, firstImage) }); err != nil {
		return err
	}
	return w.holds(ctx, "bob may not look at orders, which is alice's (403)", func(ctx context.Context) error {
		return forbidden(w.bob.Get(ctx, client.ObjectKeyFromObject(orders), &v1alpha1.Postgres{}))
	})
}

// configure changes the config of the provider.
func (w *world) configure(ctx context.Context) error {
	w.Step("the provider's config is changed: version 17 is image 17.6 now")
	config := &v1alpha1.PostgresConfig{ObjectMeta: metav1.ObjectMeta{Name: postgres.Name}}
	if err := merge(ctx, w.Client, config, fmt.Sprintf(`{"spec":{"images":[{"version":"17","image":%q}]}}`, secondImage)); err != nil {
		return err
	}
	for _, db := range []*v1alpha1.Postgres{orders, reports} {
		if err := w.holds(ctx, db.Name+" runs with it", func(ctx context.Context) error { return w.ready(ctx, db, secondImage) }); err != nil {
			return err
		}
	}
	return nil
}

// renew has credentials renewed before they run out.
func (w *world) renew(ctx context.Context) error {
	w.Step("the credentials of orders are due for renewal")
	since, err := w.readySince(ctx, orders)
	if err != nil {
		return err
	}
	before, err := w.credentials(ctx, orders)
	if err != nil {
		return err
	}
	for _, c := range before {
		due := fmt.Sprintf(`{"metadata":{"annotations":{"clusters.operatorkit.io/renewal-time":%q}}}`, time.Now().UTC().Format(time.RFC3339))
		if err := merge(ctx, w.Client, c.secret, due); err != nil {
			return err
		}
	}
	for _, id := range []string{clusteraccess.MCP, clusteraccess.Workload} {
		if err := w.holds(ctx, "there is another token for "+id, func(ctx context.Context) error {
			return w.replaced(ctx, orders, id, before[id])
		}); err != nil {
			return err
		}
	}
	return w.holds(ctx, "orders was ready all the time", func(ctx context.Context) error {
		still, err := w.readySince(ctx, orders)
		if err == nil && !still.Equal(&since) {
			err = fmt.Errorf("it is ready since %s, and was since %s", still, since)
		}
		return err
	})
}

// revoke has somebody take credentials away.
func (w *world) revoke(ctx context.Context) error {
	w.Step("somebody deletes the service account of orders in workload, which ends its token")
	before, err := w.credentials(ctx, orders)
	if err != nil {
		return err
	}
	taken := before[clusteraccess.Workload]
	if err := w.workload.Delete(ctx, taken.account); err != nil {
		return err
	}
	if err := w.holds(ctx, "there is another one", func(ctx context.Context) error {
		return w.replaced(ctx, orders, clusteraccess.Workload, taken)
	}); err != nil {
		return err
	}
	return w.holds(ctx, "the one before is refused (401)", func(ctx context.Context) error { return w.refused(ctx, taken.config) })
}

// pull changes the Secret that the config refers to.
func (w *world) pull(ctx context.Context) error {
	w.Step("the Secret that the config refers to is changed")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: postgres.Namespace, Name: "postgres-pull"}}
	changed := `{"stringData":{".dockerconfigjson":"{\"auths\":{\"registry.example.com\":{\"username\":\"puller\",\"password\":\"second\"}}}"}}`
	if err := merge(ctx, w.Client, secret, changed); err != nil {
		return err
	}
	for _, db := range []*v1alpha1.Postgres{orders, reports} {
		what := db.Name + " has it in workload"
		if db == orders {
			what += ", by the new token"
		}
		if err := w.holds(ctx, what, func(ctx context.Context) error { return w.pulls(ctx, db, "second") }); err != nil {
			return err
		}
	}
	return nil
}

// delete has alice delete her database.
func (w *world) delete(ctx context.Context) error {
	w.Step("alice deletes orders")
	before, err := w.credentials(ctx, orders)
	if err != nil {
		return err
	}
	if err := w.alice.Delete(ctx, orders.DeepCopy()); err != nil {
		return err
	}
	if err := w.holds(ctx, "orders is gone", func(ctx context.Context) error {
		return gone(w.alice.Get(ctx, client.ObjectKeyFromObject(orders), &v1alpha1.Postgres{}))
	}); err != nil {
		return err
	}
	for _, left := range []struct {
		what string
		fact func(context.Context) error
	}{
		{"nothing of it is left in workload and mcp, its disk included", func(ctx context.Context) error { return w.nothingLeft(ctx, orders) }},
		{"nothing of its access is left in any cluster", func(ctx context.Context) error { return w.noAccess(ctx, orders, before) }},
		{"its tokens are refused (401)", func(ctx context.Context) error {
			return errors.Join(w.refused(ctx, before[clusteraccess.MCP].config), w.refused(ctx, before[clusteraccess.Workload].config))
		}},
		{"reports goes on", func(ctx context.Context) error { return w.ready(ctx, reports, secondImage) }},
	} {
		if err := w.holds(ctx, left.what, left.fact); err != nil {
			return err
		}
	}
	return nil
}

// drift has somebody delete an object of a database. Nothing tells the provider of that: it looks from time to time.
func (w *world) drift(ctx context.Context) error {
	w.Step("somebody deletes the service of reports in workload")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: postgres.WorkloadNamespace(reports.Namespace), Name: reports.Name}}
	if err := w.workload.Delete(ctx, service); err != nil {
		return err
	}
	if err := w.planned(ctx, reports); err != nil {
		return err
	}
	config := &v1alpha1.PostgresConfig{ObjectMeta: metav1.ObjectMeta{Name: postgres.Name}}
	if err := merge(ctx, w.Client, config, `{"spec":{"poll":"3s"}}`); err != nil {
		return err
	}
	w.Change("~", "postgresconfig/postgres", "spec.poll: 1h → 3s, so that nobody has to wait for an hour")
	return w.holds(ctx, "it is there again", func(ctx context.Context) error {
		return w.workload.Get(ctx, client.ObjectKeyFromObject(service), &corev1.Service{})
	})
}

// planned shows what the provider would change for a database.
func (w *world) planned(ctx context.Context, db *v1alpha1.Postgres) error {
	provider, err := postgres.New(w.provider)
	if err != nil {
		return err
	}
	return w.Show("the provider plans:", func(to io.Writer, _ bool) error {
		return provider.Plan(ctx, client.ObjectKeyFromObject(db), to)
	})
}

// leastRights looks at what the provider has made use of.
func (w *world) leastRights(ctx context.Context) error {
	w.Step("the provider's rights were enough for all this; which of them were not needed?")
	return w.holds(ctx, "none but those for failures and for older API servers: "+strings.Join(reserved(), ", "), func(context.Context) error {
		return w.rights.check(map[string]string{platform: postgres.PlatformPermissions, onboarding: postgres.OnboardingPermissions})
	})
}
