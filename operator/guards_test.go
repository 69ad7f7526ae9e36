package operator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// deletions is a guard that lets through so many deletions in an hour.
func deletions(most int, per time.Duration) framework.Guard {
	return framework.Guard{
		Name: "few", Limit: &framework.GuardLimit{Max: most, Per: per},
		Match: func(_ context.Context, in framework.GuardInput) (bool, error) {
			return in.Change.Action == plan.Delete, nil
		},
	}
}

// limited runs an operator that makes for each ConfigMap with the label a copy, unless its data say "none", with a guard.
func limited(ctx context.Context, config *rest.Config, d operator.DependenciesConfig, namespace, label string, guard framework.Guard) error {
	d.Name, d.RESTConfig, d.Scheme, d.Namespaces, d.Guards = "limited", config, clientgoscheme.Scheme, []string{namespace}, []framework.Guard{guard}
	deps, err := operator.NewDependencies(d)
	if err != nil {
		return err
	}
	defer deps.Close()
	source, err := deps.NewSource(&corev1.ConfigMap{}, operator.WithLabels(labels.SelectorFromSet(labels.Set{"of": label})))
	if err != nil {
		return err
	}
	copies, err := objectresource.New(objectresource.Config[*corev1.ConfigMap]{
		Name: "copy", Client: deps.Client, Logger: deps.Logger, Kinds: []client.Object{&corev1.ConfigMap{}},
		Desired: func(_ context.Context, cm *corev1.ConfigMap) ([]client.Object, error) {
			if cm.Data["copy"] == "none" {
				return nil, nil
			}
			return []client.Object{configMap(namespace, cm.Name+"-copy")}, nil
		},
	})
	if err != nil {
		return err
	}
	f, err := deps.NewFramework(framework.Config{Source: source, Resources: []framework.Resource{copies}})
	if err != nil {
		return err
	}
	o, err := operator.New(operator.Config{
		Name: "limited", RESTConfig: deps.RESTConfig, Logger: deps.Logger, Frameworks: []*framework.Framework{f}, StateNamespace: namespace,
	})
	if err != nil {
		return err
	}
	return o.Run(ctx)
}

// copiesOf returns the names of the copies.
func copiesOf(ctx context.Context, c client.Client, namespace string) (names []string, err error) {
	var list corev1.ConfigMapList
	err = c.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{objectresource.OwnerLabel})
	for _, cm := range list.Items {
		names = append(names, cm.Name)
	}
	return names, err
}

func TestReplicasShareWhatALimitHasLetThrough(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	user := operatortest.NewClient(t, instance.RESTConfig(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for _, label := range []string{"a", "b"} {
		go func() {
			ended <- limited(ctx, instance.RESTConfig(), operator.DependenciesConfig{Logger: quiet(t)}, namespace, label, deletions(3, time.Hour))
		}()
	}
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	var primaries []*corev1.ConfigMap
	for i := range 8 {
		cm := labelled(namespace, fmt.Sprint("n", i), string("ab"[i%2]))
		primaries = append(primaries, cm)
		if err := user.Create(ctx, cm); err != nil {
			t.Fatal(err)
		}
	}
	left := func(want int) {
		t.Helper()
		operatortest.Eventually(t, "the copies", func() error {
			if names, err := copiesOf(ctx, user, namespace); err != nil || len(names) != want {
				return fmt.Errorf("copies %q, want %d, error %w", names, want, err)
			}
			return nil
		})
	}
	left(8)
	for _, cm := range primaries {
		if err := user.Patch(ctx, configMap(namespace, cm.Name), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"copy":"none"}}`))); err != nil {
			t.Fatal(err)
		}
	}
	left(5)
	// What is held is reported.
	operatortest.Eventually(t, "events about what is held", func() error {
		var events corev1.EventList
		if err := user.List(ctx, &events, client.InNamespace(namespace)); err != nil {
			return err
		}
		held := 0
		for _, e := range events.Items {
			if e.Reason == framework.ReasonBeyondLimit && strings.Contains(e.Message, `guard "few" lets 3 through in 1h0m0s`) {
				held++
			}
		}
		if held != 5 {
			return fmt.Errorf("%d events, want 5", held)
		}
		return nil
	})
	left(5)

	// Who resumes the guard forgives the three, and three more go on.
	config := operator.Config{Name: "limited", RESTConfig: instance.RESTConfig(), StateNamespace: namespace}
	if resumed, err := operator.ResumeGuards(ctx, config, "few"); err != nil || len(resumed) != 1 {
		t.Fatalf("resumed %q, %v", resumed, err)
	}
	for _, cm := range primaries { // they would go on within a minute
		if err := user.Patch(ctx, configMap(namespace, cm.Name), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"now":"1"}}`))); err != nil {
			t.Fatal(err)
		}
	}
	left(2)
}

// normalizeLimits leaves of what is charged how much it is: two, for two deletions.
func normalizeLimits(u *unstructured.Unstructured) {
	objectresource.Normalize(u)
	if text, found, _ := unstructured.NestedString(u.Object, "data", "guards"); found {
		charges := strconv.Itoa(len(regexp.MustCompile(`"[0-9a-f]{24}":`).FindAllString(text, -1)))
		u.Object["data"] = map[string]any{"guards": charges + " charges"}
	}
}

// limits is the life of an object whose copy is deleted by a guarded operator.
func limits() operatortest.Scenario {
	home := labelled("", "home", "limits")
	copies := func(want int) operatortest.Step {
		return func(ctx context.Context, user client.Client, namespace string) error {
			if names, err := copiesOf(ctx, user, namespace); err != nil || len(names) != want {
				return fmt.Errorf("copies %q, want %d, error %w", names, want, err)
			}
			return nil
		}
	}
	set := func(value string) operatortest.Step {
		return func(ctx context.Context, user client.Client, namespace string) error {
			return user.Patch(ctx, configMap(namespace, "home"), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"copy":"`+value+`"}}`)))
		}
	}
	return operatortest.Scenario{
		Name: "limits", Parallel: 4,
		Start: func(ctx context.Context, config *rest.Config, namespace string) error {
			logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
			if err != nil {
				return err
			}
			return limited(ctx, config, operator.DependenciesConfig{Logger: logger}, namespace, "limits", deletions(2, time.Hour))
		},
		Phases: []operatortest.Phase{
			{Name: "create", Do: operatortest.Create(home), Until: copies(1)},
			{Name: "without a copy", Do: set("none"), Until: copies(0)},
			{Name: "with one again", Do: set("one"), Until: copies(1)},
			{Name: "delete", Do: operatortest.Delete(home), Until: func(ctx context.Context, user client.Client, namespace string) error {
				return errors.Join(copies(0)(ctx, user, namespace), operatortest.Gone(home)(ctx, user, namespace))
			}},
		},
		Objects: []client.Object{&corev1.ConfigMap{}}, Normalize: normalizeLimits, Timeout: 3 * time.Minute,
	}
}

func TestALimitCountsWhateverWriteTheOperatorCrashesAt(t *testing.T) {
	t.Parallel()
	operatortest.BreakAtEveryWrite(t, limits())
}

func TestALimitNeedsANamespaceForWhatReplicasShare(t *testing.T) {
	source := informer.NewPush("objects")
	f, err := framework.New(framework.Config{Source: source, Logger: quiet(t), ResourceRouter: routerOf(t, &resource{}), Guards: []framework.Guard{deletions(1, time.Hour)}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = operator.New(operator.Config{Name: "x", Logger: quiet(t), Frameworks: []*framework.Framework{f}})
	if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), "StateNamespace must not be empty when a guard has a limit") || !strings.Contains(err.Error(), "RESTConfig must not be nil when a guard has a limit") {
		t.Errorf("got %v", err)
	}
}
