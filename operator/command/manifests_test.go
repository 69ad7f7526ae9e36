package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	chartutil "helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// manifestsOf returns the manifests of the gardener.
func manifestsOf(t *testing.T, args ...string) []client.Object {
	t.Helper()
	objects, err := commandtest.Manifests(t.Context(), gardener(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestCommandsAboutTheStateLeaveTheTimesOfTheLeaseAlone(t *testing.T) {
	for _, config := range []command.Config{gardener(), nursery()} {
		objects, err := commandtest.Manifests(t.Context(), config, "--sharding", "--into", "plots", "--namespace", "plots")
		if err != nil {
			t.Fatal(err)
		}
		grace := time.Duration(*the[*appsv1.Deployment](t, objects).Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
		without, err := commandtest.Manifests(t.Context(), config, "--into", "plots", "--namespace", "plots")
		if err != nil {
			t.Fatal(err)
		}
		elected := time.Duration(*the[*appsv1.Deployment](t, without).Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
		if grace-elected != operator.DefaultLeaseDuration {
			t.Errorf("%s: Pods may take %s to end with sharding, and %s without", config.Name, grace, elected)
		}
	}
}

func TestManifestsHaveTheFileOfGuardsAndTheRightsThatItTakes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	text := "guards:\n- name: few\n  match: change.action == 'delete' && namespaceObject.metadata.name == 'a'\n  limit: {max: 2, per: 10m}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := commandtest.Manifests(t.Context(), nursery(), "--guards", file, "--namespace", "plots", "--into", "plots")
	if err != nil {
		t.Fatal(err)
	}
	pod := the[*appsv1.Deployment](t, objects).Spec.Template
	container := pod.Spec.Containers[0]
	if !slices.Contains(container.Args, "--guards=/etc/operatorkit-guards/guards.yaml") || len(container.VolumeMounts) != 1 || container.VolumeMounts[0].MountPath != "/etc/operatorkit-guards" {
		t.Errorf("arguments %q, mounts %v", container.Args, container.VolumeMounts)
	}
	config := the[*corev1.ConfigMap](t, objects)
	if got := pod.Spec.Volumes[0].ConfigMap.Name; got != config.Name || config.Data["guards.yaml"] != text {
		t.Errorf("the ConfigMap %q is mounted, and %s has %q", got, config.Name, config.Data)
	}
	if pod.Annotations["operatorkit.io/guards"] == "" {
		t.Error("Pods are not replaced when the file changes")
	}
	var rules []string
	for _, o := range objects {
		switch role := o.(type) {
		case *rbacv1.ClusterRole:
			for _, r := range role.Rules {
				rules = append(rules, fmt.Sprint("everywhere", r.Resources, r.ResourceNames, r.Verbs))
			}
		case *rbacv1.Role:
			for _, r := range role.Rules {
				rules = append(rules, fmt.Sprint(role.Name, r.Resources, r.ResourceNames, r.Verbs))
			}
		}
	}
	for _, want := range []string{"everywhere[namespaces] [] [get]", "nursery-lease[configmaps] [] [create]", "nursery-lease[configmaps] [nursery-state] [get update]"} {
		if !slices.Contains(rules, want) {
			t.Errorf("the rules lack %s: %q", want, rules)
		}
	}
}

// the returns the only object of a type.
func the[T client.Object](t *testing.T, objects []client.Object) T {
	t.Helper()
	var found []T
	for _, o := range objects {
		if o, ok := o.(T); ok {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d objects of the type %T, want 1", len(found), *new(T))
	}
	return found[0]
}

func TestManifestsAreAcceptedUnderPodSecurityRestricted(t *testing.T) {
	kube := operatortest.Start(t)
	user := operatortest.NewClient(t, kube.RESTConfig(), nil)
	for name, args := range map[string][]string{
		"as it is":         nil,
		"with the page":    {"--inspector-address=:8443", "--inspector-cert-file=/tls/tls.crt", "--inspector-key-file=/tls/tls.key", "--metrics-authorization"},
		"without election": {"--leader-elect=false"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := kube.Namespace(t)
			strict := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
			label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`))
			if err := user.Patch(t.Context(), strict, label); err != nil {
				t.Fatal(err)
			}
			objects := manifestsOf(t, append(args, "--into", namespace)...)
			for _, o := range objects {
				var options []client.CreateOption
				if o.GetNamespace() == "" {
					options = append(options, client.DryRunAll)
				}
				if err := user.Create(t.Context(), o, options...); err != nil {
					t.Errorf("%T %s: %v", o, o.GetName(), err)
				}
			}
			template := the[*appsv1.Deployment](t, objects).Spec.Template
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one", Labels: template.Labels}, Spec: template.Spec}
			if err := user.Create(t.Context(), pod); err != nil {
				t.Errorf("a Pod is refused: %v", err)
			}
			lax := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lax"}, Spec: *template.Spec.DeepCopy()}
			lax.Spec.SecurityContext.SeccompProfile = nil
			if err := user.Create(t.Context(), lax); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
				t.Errorf("a Pod that is less strict: got %v, want that Pod Security refuses it", err)
			}
		})
	}
}

func TestProbesOfManifestsAreAnsweredByWhatTheirPodsRun(t *testing.T) {
	kube := operatortest.Start(t)
	namespace := kube.Namespace(t)
	container := the[*appsv1.Deployment](t, manifestsOf(t, "--into", namespace, "--namespace", namespace)).Spec.Template.Spec.Containers[0]
	found := make(chan string, 1)
	stderr := &awaited{patterns: []*regexp.Regexp{regexp.MustCompile(`serving health and metrics .*address=(\S+)`)}, found: found}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	config := gardener()
	config.KeepGlobalLoggers = true
	go func() {
		ended <- command.Execute(ctx, config, append(container.Args, "--kubeconfig", kube.Kubeconfig(), "--leader-election-namespace", namespace,
			"--listen-address", "127.0.0.1:0", "--inspector-address", "", "--log-format", "text"), io.Discard, stderr)
	}()
	address := <-found
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
		operatortest.Eventually(t, probe.HTTPGet.Path+" answers", func() error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+probe.HTTPGet.Path, http.NoBody)
			if err != nil {
				return err
			}
			answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
			if err != nil {
				return err
			}
			if answer.StatusCode != http.StatusOK {
				return errors.Join(fmt.Errorf("%s answers %s", probe.HTTPGet.Path, answer.Status), answer.Body.Close())
			}
			return answer.Body.Close()
		})
	}
	cancel()
	if code := <-ended; code != command.ExitOK {
		t.Errorf("it ended with %d", code)
	}
}

func TestManifestsInSomeNamespacesHaveRightsInTheseOnly(t *testing.T) {
	objects := manifestsOf(t, "--namespace", "north,south", "--into", "hut", "--greeting", "good {{ day }}")
	var namespaces []string
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *corev1.Namespace:
			t.Errorf("there is a %T", o)
		case *rbacv1.Role:
			namespaces = append(namespaces, o.Namespace+"/"+o.Name)
		}
	}
	if diff := cmp.Diff([]string{"north/gardener", "south/gardener", "hut/gardener-lease"}, namespaces); diff != "" {
		t.Error(diff)
	}
	want := []string{"run", "--crds=off", "--greeting=good {{ day }}", "--leader-elect=true", "--listen-address=:8080", "--namespace=north,south"}
	if diff := cmp.Diff(want, the[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0].Args); diff != "" {
		t.Error(diff)
	}
}

func TestPodsThatShareTheWorkHaveTimeToHandItOver(t *testing.T) {
	period := func(args ...string) int64 {
		objects := manifestsOf(t, append(args, "--leader-election-lease-duration=40s")...)
		return *the[*appsv1.Deployment](t, objects).Spec.Template.Spec.TerminationGracePeriodSeconds
	}
	if alone, sharing := period(), period("--sharding"); sharing != alone+40 {
		t.Errorf("a Pod has %d s to end, and one that shares the work %d s: want 40 s more, the duration of a lease", alone, sharing)
	}
}

func TestManifestsOfWhatOnlyPlansCallKindsAsTheirDefinitionsDo(t *testing.T) {
	config := gardener()
	irregular := strings.NewReplacer("gardens", "gardenia", "Garden", "Gardenium").Replace(gardenCRD)
	config.CRDFiles = fstest.MapFS{"irregular.yaml": {Data: []byte(irregular)}}
	newFrameworks := config.New
	config.New = func(ctx context.Context, deps *operator.Dependencies) ([]*framework.Framework, error) {
		_, err := deps.NewSource(&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{
			APIVersion: "command.test.operatorkit.io/v1", Kind: "Gardenium",
		}})
		if err != nil {
			return nil, err
		}
		return newFrameworks(ctx, deps)
	}
	rightsOf := func(args ...string) map[string][]string {
		objects, err := commandtest.Manifests(t.Context(), config, args...)
		if err != nil {
			t.Fatal(err)
		}
		rights := map[string][]string{}
		for _, rule := range the[*rbacv1.ClusterRole](t, objects).Rules {
			for _, resource := range rule.Resources {
				rights[resource] = append(rights[resource], rule.Verbs...)
			}
		}
		return rights
	}
	rights := rightsOf("--plan")
	if diff := cmp.Diff([]string{"list", "watch"}, rights["gardenia"]); diff != "" {
		t.Errorf("rights on the kind (-want +got), among all %v:\n%s", rights, diff)
	}
	if verbs := rights["customresourcedefinitions"]; len(verbs) > 0 {
		t.Errorf("it may %v its definitions, at which it does not look", verbs)
	}
}

// planner is a way to the API server with the rights that the manifests of a nursery give that only plans.
func planner(t *testing.T, instance *operatortest.Instance, namespace string) *rest.Config {
	t.Helper()
	objects, err := commandtest.Manifests(t.Context(), nursery(), "--plan", "--namespace", namespace, "--into", namespace)
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	for _, o := range objects {
		if role, ok := o.(*rbacv1.Role); ok {
			rules = append(rules, role.Rules...)
		}
	}
	user := "planner-" + namespace
	instance.Permit(t, user, rules...)
	config := rest.CopyConfig(instance.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return config
}

func TestR19WhatOnlyPlansHasTheRightsToPlanUpdates(t *testing.T) {
	instance, user, _ := startedNursery(t)
	for name, variable := range map[string]string{"an update": "", "a replacement": "immutable"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NURSERY", variable)
			namespace := instance.Namespace(t)
			one := plot(namespace, "one", 1)
			if err := user.Create(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			stop := run(t, "--kubeconfig", instance.Kubeconfig(), "--namespace", namespace)
			sign := client.ObjectKey{Namespace: namespace, Name: "one-sign"}
			operatortest.Eventually(t, "there is a sign", func() error { return user.Get(t.Context(), sign, &corev1.ConfigMap{}) })
			stop()
			if err := user.Patch(t.Context(), one, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":2}}`))); err != nil {
				t.Fatal(err)
			}

			way := planner(t, instance, namespace)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- commandtest.Start(nursery(), "--plan")(ctx, way, namespace) }()
			operatortest.Eventually(t, "an event tells of the update", func() error {
				messages := planned(t, user, namespace, "one")
				if strings.Contains(strings.Join(messages, "\n"), "0 to create, 1 to update, 0 to delete") {
					return nil
				}
				return fmt.Errorf("they tell %q", messages)
			})
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// documents are those of YAML streams, by kind, namespace and name, without fields that have no content.
func documents(t *testing.T, streams ...string) map[string]any {
	t.Helper()
	found := map[string]any{}
	for _, stream := range streams {
		for document := range strings.SplitSeq(stream, "\n---\n") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(strings.TrimPrefix(document, "---\n")), &object); err != nil {
				t.Fatalf("%v in:\n%s", err, document)
			}
			if object == nil {
				continue
			}
			metadata := object["metadata"].(map[string]any)
			namespace, _ := metadata["namespace"].(string)
			if object["kind"] == "Deployment" {
				pod := object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
				for _, name := range []string{"affinity", "imagePullSecrets", "nodeSelector", "tolerations"} {
					delete(pod, name)
				}
			}
			found[object["kind"].(string)+" "+namespace+"/"+metadata["name"].(string)] = object
		}
	}
	return found
}

func TestTheKustomizationAndTheChartSayWhatIsPrinted(t *testing.T) {
	execute := func(args ...string) string {
		var stdout, stderr bytes.Buffer
		args = append(args, "--monitoring", "--greeting", "good {{ day }}", "--replicas", "3", "--image", "registry.example.com/gardener:v1")
		if code := command.Execute(t.Context(), gardener(), append([]string{"manifests"}, args...), &stdout, &stderr); code != command.ExitOK {
			t.Fatal(stderr.String())
		}
		return stdout.String()
	}
	printed := documents(t, execute())
	if len(printed) != 13 {
		t.Errorf("%d objects are printed", len(printed))
	}
	for name, object := range printed {
		if !strings.HasPrefix(name, "Deployment ") {
			continue
		}
		if replicas := object.(map[string]any)["spec"].(map[string]any)["replicas"]; fmt.Sprint(replicas) != "3" {
			t.Errorf("%s has %v replicas", name, replicas)
		}
	}
	folder := t.TempDir()
	execute("--out", folder)
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(printed, documents(t, string(text))); diff != "" {
		t.Errorf("the kustomization (+) differs: %s", diff)
	}

	folder = t.TempDir()
	execute("--out", folder, "--helm")
	delete(printed, "Namespace /gardener") // Helm makes it.
	if diff := cmp.Diff(printed, documents(t, rendered(t, folder)...)); diff != "" {
		t.Errorf("the chart (+) differs: %s", diff)
	}
}

// rendered is what Helm makes of a chart in the namespace "gardener", with its definitions.
func rendered(t *testing.T, folder string) []string {
	t.Helper()
	chart, err := loader.LoadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	values, err := commonutil.ToRenderValues(chart, nil, chartutil.ReleaseOptions{Name: "g", Namespace: "gardener"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	templates, err := engine.Render(chart, values)
	if err != nil {
		t.Fatal(err)
	}
	var streams []string
	for _, text := range templates {
		streams = append(streams, text)
	}
	for _, crd := range chart.CRDObjects() {
		streams = append(streams, string(crd.File.Data))
	}
	return streams
}

func TestTheOperatorInItsPodsHasTheFlagsThatWereGiven(t *testing.T) {
	type values struct {
		Headers, Hosts []string
		Tags           map[string]string
		Shares         map[string]int
		Ports          []int
		Token          string
	}
	define := func(v *values) func(*pflag.FlagSet) {
		return func(flags *pflag.FlagSet) {
			flags.StringArrayVar(&v.Headers, "header", nil, "")
			flags.StringSliceVar(&v.Hosts, "host", nil, "")
			flags.StringToStringVar(&v.Tags, "tag", nil, "")
			flags.StringToIntVar(&v.Shares, "share", nil, "")
			flags.IntSliceVar(&v.Ports, "port", nil, "")
			flags.StringVar(&v.Token, "token", "", "")
		}
	}
	t.Setenv("GARDENER_TOKEN", "from here")
	config := gardener()
	config.EnvPrefix, config.KeepGlobalLoggers, config.Flags = "GARDENER", true, define(&values{})
	var stdout, stderr bytes.Buffer
	args := []string{
		"manifests", "--header=a,b", "--header=c", `--host="d,e",f`, "--tag=g=h", "--tag=i=[j]", "--share=k=1", "--port=80,81",
	}
	if code := command.Execute(t.Context(), config, args, &stdout, &stderr); code != command.ExitOK {
		t.Fatal(stderr.String())
	}
	if !strings.Contains(stderr.String(), "the value of $GARDENER_TOKEN becomes an argument of the operator") {
		t.Errorf("it is not said that the environment is in what is printed: %s", stderr.String())
	}
	var deployed appsv1.Deployment
	for name, object := range documents(t, stdout.String()) {
		if strings.HasPrefix(name, "Deployment ") {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.(map[string]any), &deployed); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got values
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	define(&got)(flags)
	if err := flags.Parse(deployed.Spec.Template.Spec.Containers[0].Args); err != nil {
		t.Fatal(err)
	}
	want := values{
		[]string{"a,b", "c"}, []string{"d,e", "f"}, map[string]string{"g": "h", "i": "[j]"}, map[string]int{"k": 1}, []int{80, 81}, "from here",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatManifestsCannotBeMadeOfIsSaid(t *testing.T) {
	impatient := gardener()
	impatient.New = func(ctx context.Context, deps *operator.Dependencies) ([]*framework.Framework, error) {
		return nil, deps.Client.List(ctx, &corev1.ConfigMapList{})
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		config command.Config
		args   []string
		code   int
		want   string
	}{
		{gardener(), []string{"--helm"}, command.ExitUsage, "--helm writes a folder: give --out too"},
		{gardener(), []string{"--replicas", "0"}, command.ExitUsage, "--replicas must be 1 at least"},
		{gardener(), []string{"--leader-elect=false", "--replicas", "2"}, command.ExitUsage, "--replicas beyond 1 takes --leader-elect"},
		{gardener(), []string{"--into", "My_Garden"}, command.ExitUsage, `--into "My_Garden" can't be a namespace`},
		{gardener(), []string{"--kubeconfig", "x"}, command.ExitUsage, "--kubeconfig and --context have no meaning in a Pod"},
		{gardener(), []string{"--workers", "0"}, command.ExitUsage, "--workers must be 1 at least"},
		{gardener(), []string{"--listen-address", "127.0.0.1:8080"}, command.ExitUsage, "can't be reached in a Pod"},
		{gardener(), []string{"--inspector-address", ":8443"}, command.ExitUsage, "takes a certificate"},
		{gardener(), []string{"--out", file}, command.ExitFailure, "write manifests: "},
		{impatient, nil, command.ExitFailure, "makes the frameworks without a connection"},
	}
	for _, tt := range tests {
		var stdout, stderr bytes.Buffer
		tt.config.KeepGlobalLoggers = true
		code := command.Execute(t.Context(), tt.config, slices.Concat([]string{"manifests"}, tt.args), &stdout, &stderr)
		if code != tt.code || !strings.Contains(stderr.String(), tt.want) || stdout.Len() > 0 {
			t.Errorf("%q: exit code %d, want %d and %q in: %s", tt.args, code, tt.code, tt.want, stderr.String())
		}
	}
}
