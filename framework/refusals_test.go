package framework_test

import (
	"context"
	"strings"
	"testing"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestRefusalsOfAnAPIServerSayHowToMendThem(t *testing.T) {
	instance := operatortest.Start(t)
	c := newCluster(t, instance)
	user, err := instance.User("jane")
	if err != nil {
		t.Fatal(err)
	}
	jane := clusterOf(t, user, c.namespace)
	apply := func(ctx context.Context, manager, value string) error {
		return c.Apply(ctx, corev1ac.ConfigMap("applied", c.namespace).WithData(map[string]string{"a": value}), client.FieldOwner(manager))
	}
	if err := apply(t.Context(), "kubectl", "1"); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		do   func(ctx context.Context) error
		want []string
	}{
		"a request without the rights": {func(ctx context.Context) error { return jane.Create(ctx, jane.object("new")) }, []string{
			`is forbidden: User "jane" cannot create resource "configmaps" in API group ""`,
			`: bind a Role in namespace "` + c.namespace + `", or a ClusterRole, to "jane" with the rule {apiGroups: [""], resources: ["configmaps"], verbs: ["create"]}`,
		}},
		"a field of another manager": {func(ctx context.Context) error { return apply(ctx, "ours", "2") }, []string{
			`: data.a is held by "kubectl": leave the field to that manager, have it give it up, or take it over with client.ForceOwnership`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			source, recorder, observed, log := informer.NewPush("objects"), &events{}, &records{}, &strings.Builder{}
			f := newFramework(t, framework.Config{Source: source, Recorder: recorder, Observer: observed, Logger: logTo(t, log), BackOffFactory: everyMinute},
				&resource{name: "r", created: func(ctx context.Context, _ any) error { return tc.do(ctx) }})
			stop := running(t, f)
			put(t, source, configMap("a"))
			operatortest.Eventually(t, "an event and a record", func() bool {
				observed.mu.Lock()
				defer observed.mu.Unlock()
				return len(recorder.all()) > 0 && len(observed.all) > 0
			})
			stop()
			for where, told := range map[string]string{
				"log": strings.ReplaceAll(log.String(), `\"`, `"`), "event": recorder.all()[0], "record": observed.last(t).Error,
			} {
				for _, want := range tc.want {
					if !strings.Contains(told, want) {
						t.Errorf("the %s lacks %s:\n%s", where, want, told)
					}
				}
			}
		})
	}
}
