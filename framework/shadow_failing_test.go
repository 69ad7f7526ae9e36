package framework_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

func TestWhatGoesWrongInAShadowIsTheShadowsOwn(t *testing.T) {
	for name, tt := range map[string]struct {
		shadow framework.ResourceSetConfig
		want   string
	}{
		"error": {framework.ResourceSetConfig{Resources: []framework.Resource{
			pagesOf(func(context.Context, *corev1.ConfigMap) (any, error) { return nil, errBoom }),
		}}, `resource "pages": plan: boom`},
		"panic": {framework.ResourceSetConfig{Resources: []framework.Resource{
			pagesOf(func(context.Context, *corev1.ConfigMap) (any, error) { panic("boom") }),
		}}, `resource "pages": plan: panic: value of type string in github.com/operatorkit/operatorkit/`},
		"slow": {framework.ResourceSetConfig{Resources: []framework.Resource{
			pagesOf(func(ctx context.Context, _ *corev1.ConfigMap) (any, error) { <-ctx.Done(); return nil, ctx.Err() }),
		}}, "planning took longer than 1m0s"},
		"slow, and says nothing": {framework.ResourceSetConfig{Resources: []framework.Resource{
			pagesOf(func(ctx context.Context, _ *corev1.ConfigMap) (any, error) { <-ctx.Done(); return "late", nil }),
		}}, "planning took longer than 1m0s"},
		"context": {framework.ResourceSetConfig{Resources: []framework.Resource{settled()},
			InitCtx: func(context.Context, any) (context.Context, error) { return nil, errBoom },
		}, "initialise context: boom"},
		"panic in Handles": {framework.ResourceSetConfig{Resources: []framework.Resource{settled()},
			Handles: func(any) bool { panic("boom") },
		}, "ask the shadow whether it handles the object: panic: value of type string in github.com/operatorkit/operatorkit/"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, registry := informer.NewPush("objects"), prometheus.NewRegistry()
				log := &strings.Builder{}
				runs := &journal{}
				active := settled()
				active.created = func(_ context.Context, obj any) error { runs.add(obj.(*corev1.ConfigMap).Name); return nil }
				tt.shadow.Name, tt.shadow.Shadow = "v2", true
				f := newFramework(t, framework.Config{
					Name: "websites", Source: source, Registerer: registry, Logger: logTo(t, log), ShadowTimeout: time.Minute,
					ResourceRouter: routerOf(t,
						framework.ResourceSetConfig{Name: "v1", Resources: []framework.Resource{active}}, tt.shadow,
						framework.ResourceSetConfig{Name: "v3", Shadow: true, Resources: []framework.Resource{changing()}}),
				})
				stop := running(t, f)
				put(t, source, configMap("a", "v2", "new"))
				time.Sleep(time.Hour)
				put(t, source, configMap("a", "v2", "new"))
				time.Sleep(time.Hour)

				wantSentences(t, f, "v2 would change 0 of 1 object, 1 can't be compared", "v3 would change 1 of 1 object")
				of := f.ShadowsOf(keyOf("a"))
				if len(of) != 2 || of[0].Verdict() != plan.NotComparable || !strings.Contains(of[0].Error, tt.want) {
					t.Errorf("got %+v, want the error %q", of, tt.want)
				}
				if diff := cmp.Diff([]string{"a", "a"}, runs.all()); diff != "" {
					t.Errorf("reconciliations (-want +got):\n%s", diff)
				}
				if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP operatorkit_framework_errors_total Reconciliations that failed, conflicts not counted.
# TYPE operatorkit_framework_errors_total counter
operatorkit_framework_errors_total{framework="websites"} 0
# HELP operatorkit_framework_panics_total Panics that were turned into errors.
# TYPE operatorkit_framework_panics_total counter
operatorkit_framework_panics_total{framework="websites"} 0
# HELP operatorkit_framework_shadow_comparisons_total Objects compared with a shadow resource set after a reconciliation, by result.
# TYPE operatorkit_framework_shadow_comparisons_total counter
operatorkit_framework_shadow_comparisons_total{framework="websites",result="differs",shadow="v3"} 2
operatorkit_framework_shadow_comparisons_total{framework="websites",result="failed",shadow="v2"} 2
# HELP operatorkit_framework_shadow_objects Objects by the result of their last comparison with a shadow resource set.
# TYPE operatorkit_framework_shadow_objects gauge
operatorkit_framework_shadow_objects{framework="websites",result="agrees",shadow="v2"} 0
operatorkit_framework_shadow_objects{framework="websites",result="differs",shadow="v2"} 0
operatorkit_framework_shadow_objects{framework="websites",result="failed",shadow="v2"} 1
operatorkit_framework_shadow_objects{framework="websites",result="agrees",shadow="v3"} 0
operatorkit_framework_shadow_objects{framework="websites",result="differs",shadow="v3"} 1
operatorkit_framework_shadow_objects{framework="websites",result="failed",shadow="v3"} 0
`), "operatorkit_framework_errors_total", "operatorkit_framework_panics_total",
					"operatorkit_framework_shadow_comparisons_total", "operatorkit_framework_shadow_objects"); err != nil {
					t.Error(err)
				}
				stop()
				if n := strings.Count(log.String(), "shadow can't be compared"); n != 1 {
					t.Errorf("the same failure is logged %d times, want once:\n%s", n, log)
				}
			})
		})
	}
}
