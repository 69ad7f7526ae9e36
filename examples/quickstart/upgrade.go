package quickstart

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/quickstart/v1alpha1"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
)

// FrozenLabel freezes the page of a Website while it is "true".
const FrozenLabel = "examples.operatorkit.io/frozen"

// frozen is a guard that keeps pages of frozen Websites from changing.
var frozen = framework.Guard{
	Name: "frozen", Action: framework.GuardDeny, Message: "take the label " + FrozenLabel + " off the Website first",
	Match: func(_ context.Context, in framework.GuardInput) (bool, error) {
		site := in.Object.(*v1alpha1.Website)
		return site.Labels[FrozenLabel] == "true" && in.Change.Action == plan.Update && in.Change.Object.Kind == "ConfigMap", nil
	},
}

// Limited is the operator with a guard, and with a budget for upgrades: each new build changes one Website at a time. The name of the
// build stands for an executable.
func Limited(build string) command.Config {
	config := Config
	config.New = func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
		d.Guards = append(d.Guards, frozen)
		return newFrameworks(d, children, "")
	}
	config.Upgrade = operator.UpgradeConfig{Budget: "1", Build: build, MinReady: time.Second, ProgressDeadline: 5 * time.Second}
	return config
}

// Faulty is a next build of Limited with a fault: its services have a port that there is not.
func Faulty(build string) command.Config {
	config := Limited(build)
	config.New = func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
		return newFrameworks(d, faultyChildren, "")
	}
	return config
}

func faultyChildren(version string, site *v1alpha1.Website) ([]client.Object, error) {
	objects, err := children(version, site)
	for _, object := range objects {
		if service, ok := object.(*corev1.Service); ok {
			service.Spec.Ports[0].Port = 80_000
		}
	}
	return objects, err
}
