package keyedresource_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/keyedresource"
)

// zones has a zone for each run of a scenario, by the namespace of the run.
type zones struct {
	mu   sync.Mutex
	made map[string]*zone
}

func (zs *zones) of(namespace string) *zone {
	zs.mu.Lock()
	defer zs.mu.Unlock()
	if zs.made[namespace] == nil {
		zs.made[namespace] = newZone()
	}
	return zs.made[namespace]
}

// run runs an operator that keeps the records of the config maps of a namespace, and nothing else than a zone's address of them.
func (zs *zones) run(ctx context.Context, cfg *rest.Config, namespace string, change func(*config, client.Client, *zone)) error {
	logger, err := micrologger.New(micrologger.Config{IOWriter: &bytes.Buffer{}})
	if err != nil {
		return err
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return err
	}
	z := zs.of(namespace)
	server := httptest.NewServer(z)
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	system := remote{server.URL, &http.Client{Transport: operatortest.TransportOf(ctx, transport)}}
	config := config{
		Name: "records", Logger: logger, Desired: wanted,
		Key: func(r record) string { return r.Host },
		Put: func(ctx context.Context, _ primary, r record) error {
			_, err := system.call(ctx, http.MethodPut, r.Host, r, nil)
			return err
		},
		Delete: func(ctx context.Context, _ primary, r record) error {
			_, err := system.call(ctx, http.MethodDelete, r.Host, nil, nil)
			return err
		},
		Get: func(ctx context.Context, _ primary, host string) (r record, found bool, err error) {
			found, err = system.call(ctx, http.MethodGet, host, nil, &r)
			return r, found, err
		},
		Keep: func(current, desired record) record {
			desired.Version = current.Version
			return desired
		},
		Poll: 50 * time.Millisecond,
	}
	change(&config, c, z)
	r, err := keyedresource.New(config)
	if err != nil {
		return err
	}
	source, err := informer.NewKubernetes(informer.KubernetesConfig{
		Name: "primaries", Client: c, Object: &corev1.ConfigMap{}, Logger: logger,
		Namespaces: []string{namespace}, LabelSelector: labels.SelectorFromSet(labels.Set{"example.com/primary": "true"}),
	})
	if err != nil {
		return err
	}
	set, err := framework.NewResourceSet(framework.ResourceSetConfig{Logger: logger, Handles: func(any) bool { return true }, Resources: []framework.Resource{r}})
	if err != nil {
		return err
	}
	router, err := framework.NewResourceRouter(framework.ResourceRouterConfig{Logger: logger, ResourceSets: []*framework.ResourceSet{set}})
	if err != nil {
		return err
	}
	f, err := framework.New(framework.Config{
		Operator: "o", Name: "f", Source: source, Logger: logger, ResourceRouter: router, ShutdownTimeout: time.Second,
	})
	if err != nil {
		return err
	}
	return f.Run(ctx)
}

func TestThingsSurviveACrashAtEveryWrite(t *testing.T) {
	server := operatortest.Start(t)
	for name, change := range map[string]func(*config, client.Client, *zone){
		"with marks": func(c *config, _ client.Client, z *zone) {
			c.Mark = func(r record) string { return r.Owner }
			c.Current = func(context.Context, primary) ([]record, error) { return z.list(), nil }
		},
		"with a journal": func(c *config, kube client.Client, _ *zone) {
			c.Journal = kube
			c.Desired = func(_ context.Context, p primary) ([]record, error) { return wanted(context.Background(), p) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			zs := &zones{made: map[string]*zone{}}
			home := newPrimary("home", "a", "1", "b", "2")
			home.Namespace, home.Labels = "", map[string]string{"example.com/primary": "true"}
			is := func(want string) operatortest.Step {
				return func(_ context.Context, _ client.Client, namespace string) error {
					if got := zs.of(namespace).hosts(); got != want {
						return fmt.Errorf("there is %q, not %q", got, want)
					}
					return nil
				}
			}
			patch := func(document string) operatortest.Step {
				return func(ctx context.Context, user client.Client, namespace string) error {
					cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "home"}}
					return user.Patch(ctx, cm, client.RawPatch("application/merge-patch+json", []byte(document)))
				}
			}
			operatortest.BreakAtEveryWrite(t, operatortest.Scenario{
				Name: "things " + name, Config: server.RESTConfig(),
				Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
					return zs.run(ctx, cfg, namespace, change)
				},
				Phases: []operatortest.Phase{
					{Name: "create", Do: operatortest.Create(home), Until: is("a=1 b=2")},
					{Name: "change", Do: patch(`{"data":{"a":null,"b":"3","c":"4"}}`), Until: is("b=3 c=4")},
					{Name: "drift", Until: is("b=3 c=4"), Do: func(_ context.Context, _ client.Client, namespace string) error {
						z := zs.of(namespace)
						r, _ := z.get("b")
						r.Address = "drifted"
						return z.put(r)
					}},
					{Name: "delete", Do: operatortest.Delete(home), Until: operatortest.All(is(""), operatortest.Gone(home))},
				},
				Objects:  []client.Object{&corev1.ConfigMap{}},
				Parallel: 2,
			})
		})
	}
}
