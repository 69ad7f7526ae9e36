package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

func TestInvalidConfigNamesTheField(t *testing.T) {
	set := func(c framework.ResourceSetConfig) error {
		_, err := framework.NewResourceSet(c)
		return err
	}
	router := func(c framework.ResourceRouterConfig) error {
		_, err := framework.NewResourceRouter(c)
		return err
	}
	config := func(change func(*framework.Config)) error {
		c := framework.Config{Logger: quiet(t), ResourceRouter: routerOf(t, framework.ResourceSetConfig{Resources: []framework.Resource{&resource{name: "r"}}})}
		change(&c)
		_, err := framework.New(c)
		return err
	}
	_, noOps := framework.NewCRUDResource(framework.CRUDResourceConfig{})
	handles := framework.HandlesType[any]
	var nilResource *resource

	shadowNamed := func(name string) *framework.ResourceSet {
		shadow, err := framework.NewResourceSet(framework.ResourceSetConfig{Name: name, Shadow: true, Handles: handles, Resources: []framework.Resource{&resource{name: "r"}}})
		if err != nil {
			t.Fatal(err)
		}
		return shadow
	}

	for name, tt := range map[string]struct {
		err  error
		want []string
	}{
		"no logger":            {config(func(c *framework.Config) { c.Logger = nil }), []string{"Config: Logger"}},
		"no router":            {config(func(c *framework.Config) { c.ResourceRouter = nil }), []string{"Config: ResourceRouter"}},
		"several faults":       {config(func(c *framework.Config) { c.Logger, c.ResourceRouter = nil, nil }), []string{"Logger", "ResourceRouter"}},
		"router and resources": {config(func(c *framework.Config) { c.Resources = []framework.Resource{&resource{name: "r"}} }), []string{"ResourceRouter", "Resources"}},
		"bad resources":        {config(func(c *framework.Config) { c.ResourceRouter, c.Resources = nil, []framework.Resource{&resource{}} }), []string{"Resources[0].Name()"}},
		"router and sets":      {config(func(c *framework.Config) { c.ResourceSets = make([]framework.ResourceSetConfig, 1) }), []string{"ResourceRouter and ResourceSets"}},
		"sets and resources": {config(func(c *framework.Config) {
			c.ResourceRouter, c.ResourceSets, c.Resources = nil, make([]framework.ResourceSetConfig, 1), []framework.Resource{&resource{name: "r"}}
		}), []string{"ResourceSets and Resources"}},
		"bad set": {config(func(c *framework.Config) {
			c.ResourceRouter, c.ResourceSets = nil, []framework.ResourceSetConfig{{Handles: handles, Resources: []framework.Resource{&resource{name: "r"}}}, {Name: "v2"}}
		}), []string{"ResourceSets[1]", "Handles"}},
		"CRD client without CRD": {config(func(c *framework.Config) { c.CRDClient = bombs{} }), []string{"CRD must not be nil when CRDClient is set"}},
		"CRD without client":     {config(func(c *framework.Config) { c.CRD = &apiextensionsv1.CustomResourceDefinition{} }), []string{"CRDClient"}},
		"negative workers":       {config(func(c *framework.Config) { c.Workers = -1 }), []string{"Workers", "-1"}},
		"negative shadows":       {config(func(c *framework.Config) { c.ShadowWorkers, c.ShadowTimeout = -1, -2 }), []string{"ShadowWorkers", "-1", "ShadowTimeout", "-2ns"}},
		"unqualified finalizer":  {config(func(c *framework.Config) { c.Finalizer = "mine" }), []string{"Finalizer", `"mine"`, "example.com/name"}},
		"two primary sources":    {config(func(c *framework.Config) { c.Source, c.Informer = informer.NewPush("a"), &channels{} }), []string{"Source", "Informer"}},
		"watch without anything": {config(func(c *framework.Config) { c.Watches = make([]framework.Watch, 1) }), []string{"Watches[0].Source", "Watches[0].Map"}},
		"metric of another kind": {config(func(c *framework.Config) {
			reg := prometheus.NewRegistry()
			reg.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "operatorkit_framework_errors_total", Help: "Taken."}))
			c.Registerer = reg
		}), []string{"Registerer", "operatorkit_framework_errors_total"}},
		"no ops":                 {noOps, []string{"CRUDResourceConfig: Logger", "Ops"}},
		"no resources":           {set(framework.ResourceSetConfig{Handles: handles}), []string{"ResourceSetConfig: Resources"}},
		"no handles":             {set(framework.ResourceSetConfig{Resources: []framework.Resource{&resource{name: "r"}}}), []string{"Handles"}},
		"nil resource":           {set(framework.ResourceSetConfig{Handles: handles, Resources: []framework.Resource{nilResource}}), []string{"Resources[0]"}},
		"resource unnamed":       {set(framework.ResourceSetConfig{Handles: handles, Resources: []framework.Resource{&resource{}}}), []string{"Resources[0].Name()"}},
		"resource name taken":    {set(framework.ResourceSetConfig{Handles: handles, Resources: []framework.Resource{&resource{name: "r"}, &resource{name: "r"}}}), []string{"Resources[1]", `"r"`}},
		"router without sets":    {router(framework.ResourceRouterConfig{}), []string{"ResourceRouterConfig: Logger", "ResourceSets"}},
		"shadow without a name":  {set(framework.ResourceSetConfig{Shadow: true, Handles: handles, Resources: []framework.Resource{&resource{name: "r"}}}), []string{"Name", "shadow"}},
		"router of shadows only": {router(framework.ResourceRouterConfig{Logger: quiet(t), ResourceSets: []*framework.ResourceSet{shadowNamed("v2")}}), []string{"ResourceSets", "shadows only"}},
		"shadow name taken":      {router(framework.ResourceRouterConfig{Logger: quiet(t), ResourceSets: []*framework.ResourceSet{shadowNamed("v2"), shadowNamed("v2")}}), []string{"ResourceSets[1]", `"v2"`}},
		"router with nil set":    {router(framework.ResourceRouterConfig{Logger: quiet(t), ResourceSets: make([]*framework.ResourceSet, 1)}), []string{"ResourceSets[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			wrapped := fmt.Errorf("start: %w", tt.err)
			if tt.err == nil || !framework.IsInvalidConfig(wrapped) || !errors.Is(wrapped, framework.ErrInvalidConfig) {
				t.Fatalf("got %v, want an invalid config error, also when wrapped", tt.err)
			}
			for _, want := range tt.want {
				if !strings.Contains(tt.err.Error(), want) {
					t.Errorf("the error lacks %q: %v", want, tt.err)
				}
			}
		})
	}
}

func TestR6RouterPicksExactlyOneSet(t *testing.T) {
	named := func(key, value string) framework.ResourceSetConfig {
		return framework.ResourceSetConfig{Handles: framework.HandlesLabel(key, value), Resources: []framework.Resource{&resource{name: value}}}
	}
	router := routerOf(t, named("version", "v1"), named("version", "v2"), named("also", "v1"))
	labelled := func(labels map[string]string) any {
		cm := configMap("a")
		cm.Labels = labels
		return cm
	}

	set, err := router.ResourceSet(labelled(map[string]string{"version": "v2"}))
	if err != nil || set.Resources()[0].Name() != "v2" {
		t.Errorf("got %v and %v, want the set of v2", set, err)
	}
	_, err = router.ResourceSet(labelled(nil))
	if !framework.IsNoResourceSet(fmt.Errorf("wrapped: %w", err)) || framework.IsExecutionFailed(err) {
		t.Errorf("got %v, want a no resource set error", err)
	}
	_, err = router.ResourceSet(labelled(map[string]string{"version": "v1", "also": "v1"}))
	if !framework.IsExecutionFailed(fmt.Errorf("wrapped: %w", err)) || !strings.Contains(err.Error(), "resource sets 0 and 2") {
		t.Errorf("got %v, want an execution failed error that says which sets", err)
	}
}

func TestHandlesLabelIsFalseForObjectsWithoutLabels(t *testing.T) {
	if framework.HandlesLabel("a", "")("not an object with metadata") {
		t.Error("a string has no labels")
	}
}

func TestInitCtxMustReturnAContext(t *testing.T) {
	set, err := framework.NewResourceSet(framework.ResourceSetConfig{
		Handles:   framework.HandlesType[any],
		InitCtx:   func(context.Context, any) (context.Context, error) { return nil, nil },
		Resources: []framework.Resource{&resource{name: "r"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.InitCtx(t.Context(), nil); !framework.IsExecutionFailed(err) {
		t.Errorf("got %v, want an execution failed error", err)
	}
}

func TestDefaultResourceSetResourceFuncGivesTheSameResources(t *testing.T) {
	given := []framework.Resource{&resource{name: "a"}, &resource{name: "b"}}
	get := framework.DefaultResourceSetResourceFunc(given)
	given[0] = &resource{name: "changed"}

	for range 2 {
		got, err := get(t.Context(), nil)
		if err != nil || len(got) != 2 || got[0].Name() != "a" {
			t.Fatalf("got %v and %v", got, err)
		}
		got[0] = nil
	}
}

func TestDefaultBackOffGrowsToItsCapAndNeverStops(t *testing.T) {
	const maxRetryInterval = 5 * time.Minute
	b := framework.DefaultBackOffFactory()()
	var last time.Duration
	for range 200 {
		last = b.NextBackOff()
		if last == backoff.Stop {
			t.Fatal("the default backoff stops")
		}
	}
	if last < maxRetryInterval/2 || last > maxRetryInterval*3/2 {
		t.Errorf("after 200 failures the pause is %v, want about %v", last, maxRetryInterval)
	}
}
