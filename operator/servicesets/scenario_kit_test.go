package servicesets_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

type scenarioKey struct{}

// scenario is what belongs to one script.
type scenario struct {
	t          testing.TB
	ctx        context.Context
	kubectl    string // the program
	workDir    string
	kubeconfig string // with the namespace of the script
	client     client.WithWatch
	namespace  string
	label      string // of its MultiClusterServices

	stopOperator func() error // nil while it does not run
	remembered   *v1alpha1.ServiceSetList
	updates      map[string]string // of files of the script, with the flag -update
}

func scenarioOf(ts *testscript.TestScript) *scenario { return ts.Value(scenarioKey{}).(*scenario) }

// operatorConfig is an operator as its author writes it, which sees the MultiClusterServices with one label.
func operatorConfig(scenarioName, systemNamespace string) command.Config {
	return command.Config{
		Name:              "operator",
		CRDFiles:          v1alpha1.CRDs,
		AddToScheme:       []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
		KeepGlobalLoggers: true,
		New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
			return servicesets.New(d, servicesets.Config{
				SystemNamespace:      systemNamespace,
				MultiClusterServices: labels.SelectorFromSet(labels.Set{scenarioLabel: scenarioName}),
			})
		},
	}
}

// execute runs a command of the operator and returns its exit code.
func (s *scenario) execute(ts *testscript.TestScript, args []string) int {
	args = append(args, "--kubeconfig", s.kubeconfig, "--namespace", s.namespace)
	return command.Execute(s.ctx, operatorConfig(s.label, s.namespace), args, ts.Stdout(), ts.Stderr())
}

// start runs the operator beside the script.
func (s *scenario) start(ts *testscript.TestScript, args []string) {
	if s.stopOperator != nil {
		ts.Fatalf("the operator runs already")
	}
	ctx, cancel := context.WithCancel(s.ctx)
	args = append([]string{"run", "--kubeconfig", s.kubeconfig, "--namespace", s.namespace, "--log-format", "text",
		"--listen-address", "", "--inspector-address", ""}, args...)
	ended := make(chan error, 1)
	go func() {
		var log bytes.Buffer
		code := command.Execute(ctx, operatorConfig(s.label, s.namespace), args, &log, &log)
		s.t.Logf("the operator's log:\n%s", &log)
		if code != command.ExitOK {
			ended <- fmt.Errorf("the operator ended with exit code %d", code)
		}
		close(ended)
	}()
	s.stopOperator = func() error {
		cancel()
		s.stopOperator = nil
		return <-ended
	}
}

// stop ends the operator, if it runs.
func (s *scenario) stop() error {
	if s.stopOperator == nil {
		return nil
	}
	return s.stopOperator()
}

// cleanUp stops the operator and removes what the namespace does not take with it.
func (s *scenario) cleanUp() {
	if err := s.stop(); err != nil {
		s.t.Error(err)
	}
	if err := dropAll(s.ctx, s.client, s.namespace, s.label); err != nil {
		s.t.Errorf("clean up: %v", err)
	}
	if err := s.update(); err != nil {
		s.t.Errorf("update the script: %v", err)
	}
}

// update writes the script anew, with the files that have changed.
func (s *scenario) update() error {
	if len(s.updates) == 0 {
		return nil
	}
	path := filepath.Join("testdata", s.label+".txtar")
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return err
	}
	for i, file := range archive.Files {
		if text, ok := s.updates[file.Name]; ok {
			archive.Files[i].Data = []byte(text)
		}
	}
	return os.WriteFile(path, txtar.Format(archive), 0o600)
}

// dropAll deletes the MultiClusterServices of a scenario, and takes all finalizers away that nobody minds any more.
func dropAll(ctx context.Context, c client.Client, namespace, scenario string) error {
	services := &v1alpha1.MultiClusterServiceList{}
	if err := c.List(ctx, services, client.MatchingLabels{scenarioLabel: scenario}); err != nil {
		return err
	}
	clusters, sets := &v1alpha1.ClusterDeploymentList{}, &v1alpha1.ServiceSetList{}
	for _, list := range []client.ObjectList{clusters, sets} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	var objects []client.Object
	for i := range services.Items {
		objects = append(objects, &services.Items[i])
	}
	for i := range clusters.Items {
		objects = append(objects, &clusters.Items[i])
	}
	for i := range sets.Items {
		objects = append(objects, &sets.Items[i])
	}
	var errs []error
	for _, o := range objects {
		errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, o)))
		noFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		errs = append(errs, client.IgnoreNotFound(c.Patch(ctx, o, noFinalizers)))
	}
	return errors.Join(errs...)
}
