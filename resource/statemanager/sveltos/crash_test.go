package sveltos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

func TestServicesAreAsTheyShouldBeWhateverWriteTheOperatorCrashesAt(t *testing.T) {
	operatortest.Survives(t, lifeOfASet)
}

// lifeOfASet is the life of a set, from its first service to its end.
func lifeOfASet(t *testing.T) operatortest.Scenario {
	t.Helper()
	w := onOwn(t)
	provider := &v1alpha1.StateManagementProvider{ObjectMeta: metav1.ObjectMeta{Name: "sveltos"}}
	provider.Spec.Selector.MatchLabels = map[string]string{statemanagers.ProviderLabel: "sveltos"}
	if err := w.client.Create(t.Context(), provider); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.client.Delete(context.Background(), provider) })
	return operatortest.Scenario{
		Name: "a life of a set with Sveltos", Scheme: w.scheme, Config: w.kube.RESTConfig(), Parallel: 4, Timeout: 3 * time.Minute,
		// All runs have one provider, which the operators of the same name have had since the first one.
		Start: w.operate("platform"), Neighbour: w.operate("second"), NeighbourAfter: isHeld, Normalize: normalize,
		Objects: []client.Object{&v1alpha1.ServiceSet{}, &v1beta1.Profile{}, &v1beta1.SveltosCluster{}, &v1beta1.ClusterSummary{}},
		Phases:  phasesOfASet(),
	}
}

// phasesOfASet are what users do with a set, of the provider "sveltos".
func phasesOfASet() []operatortest.Phase {
	return []operatortest.Phase{
		{Name: "install", Do: begin, Until: runs("base base-1.0.0", "files files", "web web-1.0.0")},
		{
			Name:  "upgrade",
			Do:    patchSet(`[{"op": "replace", "path": "/spec/services/1/template", "value": "web-2.0.0"}]`),
			Until: runs("base base-1.0.0", "files files", "web web-2.0.0"),
		},
		{
			Name: "remove two",
			Do: patchSet(`[{"op": "remove", "path": "/spec/services/1"}, {"op": "remove", "path": "/spec/services/1"},
					{"op": "add", "path": "/spec/removing", "value": [{"name": "files", "namespace": "apps"},
						{"name": "web", "namespace": "apps", "dependsOn": [{"name": "base", "namespace": "apps"}]}]}]`),
			Until: runs("base base-1.0.0"),
		},
		{Name: "delete the set", Do: operatortest.Delete(&v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}), Until: gone},
	}
}

// operate runs the operator of state managers, with Sveltos only.
func (w *world) operate(name string) func(ctx context.Context, config *rest.Config, namespace string) error {
	return func(ctx context.Context, config *rest.Config, namespace string) error {
		logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
		if err != nil {
			return err
		}
		deps, err := operator.NewDependencies(operator.DependenciesConfig{
			Name: name, RESTConfig: config, Scheme: w.scheme, Logger: logger, Namespaces: []string{namespace},
		})
		if err != nil {
			return err
		}
		defer deps.Close()
		operatortest.CountReconciliations(ctx, deps.Registry)
		manager, err := sveltos.New(sveltos.Config{Client: deps.Client, Namespaces: deps.Namespaces, Logger: logger})
		if err != nil {
			return err
		}
		frameworks, err := statemanagers.New(deps, statemanagers.Config{
			SystemNamespace: namespace, LeaveProviders: true,
			Managers: []statemanagers.Manager{{Provider: "sveltos", StateManager: manager, Watches: manager.Watches()}},
		})
		if err != nil {
			return err
		}
		// The provider is shared by all runs: its status is none of one run's business.
		o, err := operator.New(operator.Config{Name: deps.Name, Logger: logger, RESTConfig: config, Frameworks: frameworks[1:]})
		if err != nil {
			return err
		}
		return o.Run(ctx)
	}
}

// begin creates a cluster with a set of three services.
func begin(ctx context.Context, user client.Client, namespace string) error {
	chart := func(name, version string) *v1alpha1.ServiceTemplate {
		return &v1alpha1.ServiceTemplate{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + version}, Spec: v1alpha1.ServiceTemplateSpec{
			Helm: &v1alpha1.HelmChart{Repository: "https://charts.example.com", Chart: name, Version: version},
		}}
	}
	set := &v1alpha1.ServiceSet{
		ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: map[string]string{statemanagers.ProviderLabel: "sveltos"}},
		Spec: v1alpha1.ServiceSetSpec{Cluster: "prod", Provider: v1alpha1.StateManagementProviderConfig{Name: "sveltos"}, Services: []v1alpha1.ServiceWithValues{
			{Namespace: "apps", Name: "base", Template: "base-1.0.0"},
			{Namespace: "apps", Name: "web", Template: "web-1.0.0", DependsOn: []v1alpha1.ServiceDependsOn{{Namespace: "apps", Name: "base"}}},
			{Namespace: "apps", Name: "files", Template: "files"},
		}},
	}
	for _, o := range []client.Object{
		chart("base", "1.0.0"), chart("web", "1.0.0"), chart("web", "2.0.0"),
		&v1alpha1.ServiceTemplate{ObjectMeta: metav1.ObjectMeta{Name: "files"}, Spec: v1alpha1.ServiceTemplateSpec{
			Resources: &v1alpha1.FileSource{LocalSource: &v1alpha1.LocalSource{Kind: "ConfigMap", Name: "files"}},
		}},
		&v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}, set,
	} {
		o.SetNamespace(namespace)
		if err := user.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// isHeld is a condition: an operator has begun with the set, and so has the provider.
func isHeld(ctx context.Context, user client.Client, namespace string) error {
	set := &v1alpha1.ServiceSet{}
	err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "prod"}, set)
	if err == nil && len(set.Finalizers) == 0 {
		err = errors.New("nobody has the set")
	}
	return err
}

func patchSet(document string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		set := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prod"}}
		return user.Patch(ctx, set, client.RawPatch(types.JSONPatchType, []byte(document)))
	}
}

// runs is a condition: the set is ready, its status is about what it lists now, and these services are Deployed, as "name template".
// Sveltos works meanwhile.
func runs(want ...string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		if err := plays(ctx, user, namespace); err != nil {
			return err
		}
		set := &v1alpha1.ServiceSet{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "prod"}, set); err != nil {
			return err
		}
		var got []string
		for _, s := range set.Status.Services {
			if s.State == v1alpha1.ServiceStateDeployed {
				got = append(got, s.Name+" "+s.Template)
			}
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") || len(set.Status.Services) != len(want) || set.Status.ObservedGeneration != set.Generation ||
			!meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("the status of generation %d of %d is %+v", set.Status.ObservedGeneration, set.Generation, set.Status)
		}
		return nil
	}
}

// gone is a condition: neither the set nor its profile is there.
func gone(ctx context.Context, user client.Client, namespace string) error {
	if err := plays(ctx, user, namespace); err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: namespace, Name: "prod"}
	for _, o := range []client.Object{&v1alpha1.ServiceSet{}, &v1beta1.Profile{}, &v1beta1.ClusterSummary{}} {
		if _, summary := o.(*v1beta1.ClusterSummary); summary {
			key.Name = "p--prod"
		}
		if err := user.Get(ctx, key, o); !apierrors.IsNotFound(err) {
			return errors.Join(fmt.Errorf("%T %s is still there", o, key), err)
		}
	}
	return nil
}

// made are texts that are made from the UID of a set.
var made = regexp.MustCompile(`\b[0-9a-f]{32}\b|\b[0-9a-f]{24}\b`)

// normalize hides what is made from the UID of a set or from the name of a namespace, and what there was before the last step: while a list lacks a
// template, a set is installed in two.
func normalize(u *unstructured.Unstructured) {
	text, err := json.Marshal(u.Object)
	if err != nil {
		return
	}
	_ = json.Unmarshal([]byte(made.ReplaceAllString(strings.ReplaceAll(string(text), u.GetNamespace(), "NAMESPACE"), "HASH")), &u.Object)
	if annotations := u.GetAnnotations(); annotations[sveltos.HashesAnnotation] != "" {
		annotations[sveltos.HashesAnnotation] = "differs"
		u.SetAnnotations(annotations)
	}
}
