package clusteraccess_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

var _ serviceprovider.AdditionalAccessProvider = (*clusteraccess.TypedProvider[string])(nil)

// wish is what an object and its config come to, in a test.
type wish struct{ namespace, verb, tier string }

type wishKey struct{}

// wishing puts a wish where the Data of a Provider finds it, as an APIReconciler does it with the object and the config.
func wishing(ctx context.Context, w wish) context.Context {
	return context.WithValue(ctx, wishKey{}, w)
}

func TestDataOfAnObjectDecidesWhatIsAskedFor(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	w.start()
	p, err := clusteraccess.NewTypedProvider(clusteraccess.TypedProviderConfig[wish]{
		Config: w.config(),
		Data: func(ctx context.Context, _ reconcile.Request) (wish, error) {
			data, ok := ctx.Value(wishKey{}).(wish)
			if !ok {
				return data, errors.New("no wish")
			}
			return data, nil
		},
		MCP: func(_ reconcile.Request, data wish) (*clusteraccess.Ask, error) {
			return &clusteraccess.Ask{
				Permissions: []v1alpha1.Permission{inNamespace(data.namespace, data.verb)}, Labels: map[string]string{"example.com/tier": data.tier},
			}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.run(p)
	request := object("db")
	if _, err := p.Reconcile(t.Context(), request); err == nil || !strings.Contains(err.Error(), "no wish") {
		t.Errorf("without data, err = %v", err)
	}
	asks := func(data wish) *v1alpha1.AccessRequest {
		t.Helper()
		w.done("access is granted", func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			return p.Reconcile(wishing(ctx, data), request)
		}, request)
		var ar *v1alpha1.AccessRequest
		operatortest.Eventually(t, "the request is as the data say", func() error {
			known, err := p.MCPAccessRequest(t.Context(), request)
			if err != nil {
				return err
			}
			ar = known
			if diff := cmp.Diff([]v1alpha1.Permission{inNamespace(data.namespace, data.verb)}, ar.Spec.Permissions); diff != "" {
				return errors.New(diff)
			}
			if ar.Labels["example.com/tier"] != data.tier {
				return errors.New("the label is " + ar.Labels["example.com/tier"])
			}
			return nil
		})
		return ar
	}
	namespace := w.remoteNamespace()
	first := asks(wish{namespace, "get", "silver"})
	if again := asks(wish{namespace, "list", "gold"}); again.UID != first.UID {
		t.Error("the request was made anew")
	}
	w.done("access is taken away without any data", p.ReconcileDelete, request)
}

func TestOwnLabelsAreOnEverythingThatIsAskedFor(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	w.start()
	with := func(labels map[string]string) *clusteraccess.Provider {
		return w.newProvider(func(c *clusteraccess.ProviderConfig) {
			c.Workload, c.Labels = nil, labels
			c.MCP = func(reconcile.Request) (*clusteraccess.Ask, error) {
				return &clusteraccess.Ask{Labels: map[string]string{"own": "of-the-ask"}}, nil
			}
		})
	}
	request := object("db")
	_, secret := w.asked(with(map[string]string{"team": "blue", "own": "of-the-config"}), request)
	changed := with(map[string]string{"team": "green"})
	ar, after := w.asked(changed, request)
	if after.ResourceVersion != secret.ResourceVersion {
		t.Error("other labels have the credentials written anew")
	}
	operatortest.Eventually(t, "both requests have the labels", func() error {
		if _, err := changed.Reconcile(t.Context(), request); err != nil {
			return err
		}
		requests := &v1alpha1.ClusterRequestList{}
		if err := errors.Join(w.user.Get(t.Context(), client.ObjectKeyFromObject(ar), ar), w.user.List(t.Context(), requests, client.InNamespace(ar.Namespace))); err != nil {
			return err
		}
		for _, o := range []client.Object{ar, &requests.Items[0]} {
			for label, want := range map[string]string{"team": "green", "own": "of-the-ask", clusteraccess.AccessLabel: "mcp"} {
				if got := o.GetLabels()[label]; got != want {
					return errors.New(label + " of " + o.GetName() + " is " + got)
				}
			}
		}
		return nil
	})

	for labels, want := range map[[2]string]string{
		{"no label!", "x"}:                     "Labels: no label!=x: name part must consist of",
		{"team", "a b"}:                        "Labels: team=a b: a valid label must be",
		{clusteraccess.OwnerLabel, "somebody"}: "labels of clusters.operatorkit.io are those of this package",
	} {
		config := clusteraccess.ProviderConfig{Config: w.config(), MCP: clusteraccess.Permissions()}
		config.Labels = map[string]string{labels[0]: labels[1]}
		if _, err := clusteraccess.NewProvider(config); !errors.Is(err, framework.ErrInvalidConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: err = %v, want %q", labels, err, want)
		}
		p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
			c.Workload, c.MCP = nil, func(reconcile.Request) (*clusteraccess.Ask, error) {
				return &clusteraccess.Ask{Labels: map[string]string{labels[0]: labels[1]}}, nil
			}
		})
		if _, err := p.Reconcile(t.Context(), object("other")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v of an Ask: err = %v, want %q", labels, err, want)
		}
	}
}

func TestTheClusterObjectOfAnObjectCanBeRead(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	place := w.addCluster("backup", "backup")
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.Workload, c.ClusterNamespace = nil, place.Namespace
		c.Additional = []clusteraccess.Access[struct{}]{{ID: "backup", Ask: func(reconcile.Request, struct{}) (*clusteraccess.Ask, error) {
			return &clusteraccess.Ask{ClusterRef: "backup"}, nil
		}}}
	})
	request := object("db")
	if _, err := p.ClusterObject(t.Context(), request, clusteraccess.MCP); !apierrors.IsNotFound(err) {
		t.Errorf("before anything was asked for, err = %v, want not found", err)
	}
	if _, err := p.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "it is said that there is no cluster yet", func() error {
		if _, err := p.ClusterObject(t.Context(), request, clusteraccess.MCP); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "no cluster yet") {
			return errors.Join(err, errors.New("not that"))
		}
		return nil
	})
	w.start()
	w.done("access is granted", p.Reconcile, request)
	for id, want := range map[string]string{clusteraccess.MCP: "mcp-of-tenant", "backup": "backup"} {
		cluster, err := p.ClusterObject(t.Context(), request, id)
		if err != nil || cluster.Name != want || len(cluster.Spec.Purposes) != 1 {
			t.Errorf("the Cluster of %s is %v, %v, want %s", id, cluster, err, want)
		}
	}
	without := w.newProvider(func(c *clusteraccess.ProviderConfig) { c.Workload = nil })
	if _, err := without.ClusterObject(t.Context(), request, clusteraccess.MCP); !errors.Is(err, framework.ErrInvalidConfig) {
		t.Errorf("without the namespace, err = %v", err)
	}
}
