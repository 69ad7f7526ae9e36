// Package servicesets_test holds stories about an operator of service sets, which are tests on a real API server and documentation. Read
// them in testdata, in this order; each begins with what it is about and ends with its YAML:
//
//	clusters     three clusters, twelve services in four layers: layers come up in order, clusters by themselves
//	upgrade      an upgrade of three steps along a chain, and what waits for it; the plan of it
//	failure      a service fails in the middle: what depends on it stays, the rest goes on, new values repair it
//	removal      services go after what depends on them; an error while something that is desired still does
//	cycle        services that depend on each other: nothing is written until somebody mends it
//	owners       a cluster and a MultiClusterService want the same service: who gets it, and how it changes hands
//	order        MultiClusterServices that depend on each other: one comes up after the other, and leaves before it
//	missing      a template, a chain and a provider that come later than who names them
//	disabled     a service that somebody keeps as it is
//	noway        a chain that does not lead to what is desired, until it does
//	deletion     of a cluster, and of a MultiClusterService
//	management   services of the management cluster itself
//	planmode     an operator that only plans, and plans that are saved and applied
//
// Scripts have the commands of testscript, and these. SET is the ServiceSet of CLUSTER itself, that of a MultiClusterService on it as
// CLUSTER/NAME, or on the management cluster as management/NAME.
//
//	kubectl ARGUMENTS               run kubectl in the namespace of the script
//	operator run [--plan]           start the operator, until the end of the script or "operator stop"
//	operator COMMAND ARGUMENTS      run another command of the operator
//	exits CODE operator ARGUMENTS   the same, with this exit code
//	templates CHART VERSION...      create ServiceTemplates, called CHART-VERSION
//	gets SET SERVICE@VERSION...     wait until the ServiceSet has exactly these services; -SERVICE is one that is being removed
//	deploys SET SERVICE[@VERSION]...
//	                                do what a state manager does: wait until the ServiceSet has the service, and report that it runs
//	fails SET SERVICE[@VERSION] MESSAGE
//	                                the same, and report that it does not
//	gone SET SERVICE...             wait until the service is being removed, and report that it is gone
//	manager                         start a state manager with which everything succeeds at once
//	shows FILE ARGUMENTS            wait until "kubectl get ARGUMENTS" shows what the file says, column AGE and blanks apart
//	says PATTERN ARGUMENTS          wait until "kubectl get ARGUMENTS" shows something that fits the regular expression
//	remember                        note how the ServiceSets are
//	kept CLUSTER SERVICE...         at no moment since then were the services in no ServiceSet of the cluster
//	lasting stdout|stderr           write it to stdout.txt or stderr.txt, without what is different in each run
//
// After "-o", $SERVICES, $CLUSTERS, $PROGRESSING, $BLOCKED, $PLANNED and $EVENTS stand for what their names say. With the flag
// -update the expected files are written anew; read what has changed then.
package servicesets_test

import (
	"context"
	"flag"
	"path"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

var updateScenarios = flag.Bool("update", false, "write the expected plans in testdata anew")

// scenarioLabel is the label of a MultiClusterService that says which script it belongs to: scripts run side by side.
const scenarioLabel = "scenario"

// outputs are variables of the scripts with what "kubectl get -o" may show.
var outputs = map[string]string{
	"SERVICES":    `jsonpath={range .status.services[*]}{.name} {.version} {.state}{"\n"}{end}`,
	"CLUSTERS":    `jsonpath={range .status.clusters[*]}{.namespace}/{.name} {.deployed} of {.desired}{"\n"}{end}`,
	"PROGRESSING": `jsonpath={.status.conditions[?(@.type=="Progressing")].message}`,
	"BLOCKED":     `jsonpath={.status.conditions[?(@.type=="Blocked")].reason}`,
	"PLANNED":     `jsonpath={.status.conditions[?(@.type=="Planned")].message}`,
	"EVENTS":      `custom-columns=REASON:.reason,TYPE:.type,MESSAGE:.message`,
}

// TestScenarios runs the scripts in testdata side by side, each with a namespace and an operator of its own. What has no namespace
// is told apart by its name, and MultiClusterServices by the label scenarioLabel, whose value is the name of the script.
func TestScenarios(t *testing.T) {
	kube := operatortest.Start(t)
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	kube.InstallCRDs(t, crds...)
	kubectl, err := operatortest.Binary(t.Context(), operatortest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	user := newUser(t, kube.RESTConfig())
	if err := ensureNativeProvider(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		RequireUniqueNames: true,
		UpdateScripts:      *updateScenarios,
		Cmds:               scenarioCommands,
		Setup: func(env *testscript.Env) error {
			t := env.T().(testing.TB)
			s := &scenario{
				t: t, ctx: t.Context(), kubectl: kubectl, workDir: env.WorkDir, kubeconfig: filepath.Join(env.WorkDir, "kubeconfig"),
				client: user, namespace: kube.Namespace(t), label: path.Base(t.Name()),
				updates: map[string]string{},
			}
			env.Values[scenarioKey{}] = s
			env.Setenv("NAMESPACE", s.namespace)
			for name, output := range outputs {
				env.Setenv(name, output)
			}
			env.Defer(s.cleanUp)
			return writeKubeconfig(kube.Kubeconfig(), s.kubeconfig, s.namespace)
		},
	})
}

// newUser returns a client for whoever uses the operator.
func newUser(t testing.TB, config *rest.Config) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return operatortest.NewClient(t, config, scheme)
}

// ensureNativeProvider creates the state manager of services that name none, as the operator of state managers does. All tests
// share it, those of other packages included.
func ensureNativeProvider(ctx context.Context, user client.Client) error {
	err := user.Create(ctx, &v1alpha1.StateManagementProvider{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultStateManagementProvider},
		Spec: v1alpha1.StateManagementProviderSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"services.operatorkit.io/provider": v1alpha1.DefaultStateManagementProvider}},
		},
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// writeKubeconfig copies a kubeconfig, with another namespace in its context.
func writeKubeconfig(from, to, namespace string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	return clientcmd.WriteToFile(*config, to)
}
