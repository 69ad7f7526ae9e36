package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/record"
	"github.com/operatorkit/operatorkit/operator/internal/upgrade"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// noEvil is a guard that denies pages with an evil text.
var noEvil = framework.Guard{
	Name: "no-evil", Action: framework.GuardDeny,
	Match: func(_ context.Context, in framework.GuardInput) (bool, error) {
		for _, f := range in.Change.Fields {
			if in.Change.Action == plan.Update && f.New == "evil" {
				return true, nil
			}
		}
		return false, nil
	},
}

// deployed runs the build of a fleet that the ConfigMap "deployment" names, and another one when the
// name changes.
func (f *fleet) deployed(ctx context.Context, config *rest.Config, namespace string) error {
	name := func() (text string, err error) {
		deployment := configMap(namespace, "deployment")
		err = f.client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)
		return deployment.Data["build"], client.IgnoreNotFound(err)
	}
	for ctx.Err() == nil {
		now, err := name()
		if err != nil {
			return err
		}
		if now == "" {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		o, closeAll, err := f.build(build{
			name: now, text: now, config: config, namespaces: []string{namespace}, guards: []framework.Guard{noEvil},
			upgrade: operator.UpgradeConfig{Budget: "1", ProgressDeadline: 2 * time.Second},
		})
		if err != nil {
			return err
		}
		running, cancel := context.WithCancel(ctx)
		go func() {
			defer cancel()
			for running.Err() == nil {
				if text, err := name(); err == nil && text != now {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
		err = o.Run(running)
		cancel()
		closeAll()
		if err != nil {
			return err
		}
	}
	return nil
}

func TestABudgetAndAGuardHoldWhateverWriteTheOperatorCrashesAt(t *testing.T) {
	t.Parallel()
	instance := operatortest.Start(t)
	crds, err := operator.ReadCRDs(fstest.MapFS{"sites.yaml": {Data: []byte(siteCRD)}})
	if err != nil {
		t.Fatal(err)
	}
	instance.InstallCRDs(t, crds...)
	f := &fleet{t: t, instance: instance, client: operatortest.NewClient(t, instance.RESTConfig(), nil)}
	deploy := func(name string) operatortest.Step {
		return func(ctx context.Context, user client.Client, namespace string) error {
			deployment := configMap(namespace, "deployment")
			deployment.Data = map[string]string{"build": name}
			if err := user.Create(ctx, deployment.DeepCopy()); err == nil {
				return nil
			}
			return user.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, []byte(`{"data":{"build":"`+name+`"}}`)))
		}
	}
	until := func(build string, phase upgrade.Phase, pages string) operatortest.Step {
		return func(ctx context.Context, user client.Client, namespace string) error {
			stored := record.Record[upgrade.State]{Client: user, Namespace: namespace, Name: operator.StateName("fleet", ""), Key: "upgrade"}
			s, err := stored.Read(ctx)
			if err != nil || s.To.ID != build || s.Phase != phase || len(s.Places) > 1 {
				return fmt.Errorf("the upgrade to %s is %s, with %d places, error %w", s.To, s.Phase, len(s.Places), err)
			}
			list := &corev1.ConfigMapList{}
			if err := user.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return err
			}
			n := 0
			for _, item := range list.Items {
				if strings.HasSuffix(item.Name, "-page") && item.Data["text"] == pages {
					n++
				}
			}
			if n != 3 {
				return fmt.Errorf("%d pages are %s", n, pages)
			}
			return nil
		}
	}
	operatortest.BreakAtEveryWrite(t, operatortest.Scenario{
		Name: "upgrades", Parallel: 4, Start: f.deployed,
		Phases: []operatortest.Phase{
			{Name: "create", Do: func(ctx context.Context, user client.Client, namespace string) error {
				var errs []error
				for i := range 3 {
					errs = append(errs, user.Create(ctx, site(namespace, fmt.Sprint("site-", i))))
				}
				return errors.Join(append(errs, deploy("first")(ctx, user, namespace))...)
			}, Until: until("first", upgrade.Finished, "first")},
			{Name: "upgrade", Do: deploy("second"), Until: until("second", upgrade.Finished, "second")},
			{Name: "denied", Do: deploy("evil"), Until: until("evil", upgrade.Halted, "second")},
			{Name: "go back", Do: deploy("second"), Until: until("second", upgrade.Finished, "second")},
		},
		Objects: []client.Object{&corev1.ConfigMap{}, site("", "")}, Timeout: 3 * time.Minute, Settle: time.Second,
		Normalize: func(u *unstructured.Unstructured) {
			objectresource.Normalize(u)
			if u.GetKind() == "ConfigMap" && strings.HasSuffix(u.GetName(), "-state") {
				u.Object["data"] = map[string]any{}
			}
			// Which site gets the place depends on the name of the namespace.
			unstructured.RemoveNestedField(u.Object, "status", "conditions")
			unstructured.RemoveNestedField(u.Object, "status", "build")
		},
	})
}
