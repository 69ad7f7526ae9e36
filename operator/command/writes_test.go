package command_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// counted is a way to an API server on which every write is counted, leases and events too.
type counted struct {
	*operatortest.Faults
	kubeconfig string
}

// newCounted stands in front of the API server until the test ends.
func newCounted(t *testing.T, instance *operatortest.Instance) *counted {
	t.Helper()
	faults := operatortest.NewFaults(operatortest.Uncounted())
	return &counted{faults, faults.Kubeconfig(t, instance.RESTConfig())}
}

// writeKubeconfig writes one for a server without authentication.
func writeKubeconfig(t *testing.T, file, server string) {
	t.Helper()
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "clusters": [{"name": "c", "cluster": {"server": %q}}]}`, server)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// but returns the writes that are not of the given resources.
func (c *counted) but(resources ...string) []string {
	var writes []string
	for _, w := range c.Writes() {
		if !slices.Contains(resources, w.Resource) {
			writes = append(writes, w.String())
		}
	}
	return writes
}

// startedNursery is an API server with the definitions of the nursery, and a namespace of it.
func startedNursery(t *testing.T) (*operatortest.Instance, client.Client, string) {
	t.Helper()
	instance := operatortest.Start(t)
	crds, err := operator.ReadCRDs(nursery().CRDFiles)
	if err != nil {
		t.Fatal(err)
	}
	instance.InstallCRDs(t, crds...)
	user := operatortest.NewClient(t, instance.RESTConfig(), nil)
	return instance, user, instance.Namespace(t)
}

func plot(namespace, name string, size int64) *unstructured.Unstructured {
	obj := kindOf("Plot")
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.Object["spec"] = map[string]any{"size": size}
	return obj
}

func TestR9PlanSendsNoRequestThatWrites(t *testing.T) {
	instance, user, namespace := startedNursery(t)
	for _, name := range []string{"one", "two"} {
		if err := user.Create(t.Context(), plot(namespace, name, 1)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "plot.yaml")
	if err := os.WriteFile(file, []byte("{apiVersion: command.test.operatorkit.io/v1, kind: Plot, metadata: {name: three}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"objects": {"plan", "plots", "-n", namespace, "--out", filepath.Join(t.TempDir(), "plan")},
		"a file":  {"plan", "-n", namespace, "-f", file},
	} {
		t.Run(name, func(t *testing.T) {
			way := newCounted(t, instance)
			var stdout, stderr bytes.Buffer
			code := command.Execute(t.Context(), nursery(), append(args, "--kubeconfig", way.kubeconfig), &stdout, &stderr)
			if code != command.ExitOK || !strings.Contains(stdout.String(), "to create, 0 to update") {
				t.Fatalf("exit code %d\n%s%s", code, &stdout, &stderr)
			}
			if writes := way.but(); len(writes) > 0 {
				t.Errorf("it wrote %v", writes)
			}
		})
	}
}

// run runs the nursery until the returned function is called.
func run(t *testing.T, args ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		args = append([]string{"run", "--listen-address", "", "--inspector-address", ""}, args...)
		ended <- command.Execute(ctx, nursery(), args, io.Discard, &stderr)
	}()
	return func() {
		t.Helper()
		cancel()
		if code := <-ended; code != command.ExitOK {
			t.Errorf("exit code %d\n%s", code, &stderr)
		}
	}
}

// planned returns the messages of the events that tell what is planned for an object.
func planned(t *testing.T, user client.Client, namespace, name string) []string {
	t.Helper()
	var events corev1.EventList
	if err := user.List(t.Context(), &events, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var messages []string
	for _, e := range events.Items {
		if e.Reason == framework.ReasonPlanned && e.InvolvedObject.Name == name {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

func TestRunWithPlanWritesEventsAndNothingElse(t *testing.T) {
	instance, user, namespace := startedNursery(t)
	way := newCounted(t, instance)
	defer run(t, "--plan", "--kubeconfig", way.kubeconfig, "--namespace", namespace)()
	ctx := t.Context()
	tells := func(n int, last string) {
		t.Helper()
		operatortest.Eventually(t, fmt.Sprintf("%d events tell what is planned, one of them %q", n, last), func() error {
			messages := planned(t, user, namespace, "one")
			if len(messages) == n && strings.Contains(strings.Join(messages, "\n"), last) {
				return nil
			}
			return fmt.Errorf("they tell %q", messages)
		})
	}
	one := plot(namespace, "one", 1)
	if err := user.Create(ctx, one); err != nil {
		t.Fatal(err)
	}
	tells(1, "1 to create, 0 to update, 0 to delete: create ConfigMap "+namespace+"/one-sign")

	// Changes of the object and of what it owns are planned for, too.
	sign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one-sign"}}
	if err := user.Create(ctx, sign); err != nil {
		t.Fatal(err)
	}
	one.SetFinalizers([]string{"example.com/somebody", "operatorkit.io/v1_nursery_signs"})
	if err := user.Update(ctx, one); err != nil {
		t.Fatal(err)
	}
	if err := user.Delete(ctx, one); err != nil {
		t.Fatal(err)
	}
	tells(2, "0 to create, 0 to update, 0 to delete")

	if err := user.Get(ctx, client.ObjectKeyFromObject(one), one); err != nil || len(one.GetFinalizers()) != 2 {
		t.Errorf("the object has the finalizers %v (%v)", one.GetFinalizers(), err)
	}
	if writes := way.but("events"); len(writes) > 0 {
		t.Errorf("it wrote %v", writes)
	}
	one.SetFinalizers(nil)
	if err := user.Update(ctx, one); err != nil {
		t.Fatal(err)
	}
}

func TestObjectWithThePlanAnnotationIsLeftAloneAndAnAppliedPlanIsAllThatIsDone(t *testing.T) {
	instance, user, namespace := startedNursery(t)
	way := newCounted(t, instance)
	defer run(t, "--kubeconfig", way.kubeconfig, "--namespace", namespace)()
	ctx := t.Context()
	one := plot(namespace, "one", 7)
	one.SetAnnotations(map[string]string{framework.PlanAnnotation: "true"})
	if err := user.Create(ctx, one); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "an event tells what is planned", func() bool { return len(planned(t, user, namespace, "one")) == 1 })
	if writes := way.but("events", "customresourcedefinitions"); len(writes) > 0 {
		t.Errorf("it wrote %v", writes)
	}

	file := filepath.Join(t.TempDir(), "one.plan")
	for _, args := range [][]string{{"plan", "plot", "one", "-n", namespace, "--out", file}, {"apply", file}} {
		var stdout, stderr bytes.Buffer
		if code := command.Execute(ctx, nursery(), append(args, "--kubeconfig", instance.Kubeconfig()), &stdout, &stderr); code != command.ExitOK {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, &stdout, &stderr)
		}
	}
	sign := &corev1.ConfigMap{}
	if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "one-sign"}, sign); err != nil || sign.Data["text"] != "7 of grass" {
		t.Errorf("the sign says %q (%v)", sign.Data["text"], err)
	}
	if err := user.Get(ctx, client.ObjectKeyFromObject(one), one); err != nil || len(one.GetFinalizers()) != 1 {
		t.Errorf("the object has the finalizers %v (%v), want that of the framework", one.GetFinalizers(), err)
	}

	// Without the annotation the operator goes on from there.
	one.SetAnnotations(nil)
	one.Object["spec"] = map[string]any{"size": int64(8)}
	if err := user.Update(ctx, one); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the sign is changed", func() error {
		if err := user.Get(ctx, client.ObjectKeyFromObject(sign), sign); err != nil || sign.Data["text"] == "8 of grass" {
			return err
		}
		return fmt.Errorf("it says %q", sign.Data["text"])
	})
	if err := user.Delete(ctx, one); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "it is gone", func() bool { return apierrors.IsNotFound(user.Get(ctx, client.ObjectKeyFromObject(one), one)) })
}

func TestRunWithPlanRefusesAFrameworkThatWouldNotOnlyPlan(t *testing.T) {
	instance := operatortest.Start(t)
	config := command.Config{Name: "careless", KeepGlobalLoggers: true, New: func(_ context.Context, deps *operator.Dependencies) ([]*framework.Framework, error) {
		f, err := framework.New(framework.Config{Name: "own", Logger: deps.Logger, Resources: []framework.Resource{&greeter{deps, "hello"}}})
		return []*framework.Framework{f}, err
	}}
	var stderr bytes.Buffer
	code := command.Execute(t.Context(), config, []string{"run", "--plan", "--kubeconfig", instance.Kubeconfig(), "--listen-address", "", "--inspector-address", ""}, io.Discard, &stderr)
	want := `careless: --plan: framework "own" would not only plan: make it with Dependencies.NewFramework, or set PlanOnly of its configuration to that of the Dependencies` + "\n"
	if code != command.ExitFailure || stderr.String() != want {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
}
