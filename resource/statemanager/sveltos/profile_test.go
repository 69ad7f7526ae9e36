package sveltos_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

func TestTierCoversTheWholeRangeOfPriorities(t *testing.T) {
	for priority, want := range map[int32]int32{1: math.MaxInt32 - 1, 100: math.MaxInt32 - 100, math.MaxInt32 - 1: 1} {
		if tier, err := sveltos.Tier(priority); err != nil || tier != want {
			t.Errorf("the tier of priority %d is %d, %v; want %d", priority, tier, err, want)
		}
	}
	for _, priority := range []int32{math.MinInt32, -1, 0, math.MaxInt32} {
		if tier, err := sveltos.Tier(priority); !framework.IsPermanent(err) {
			t.Errorf("the tier of priority %d is %d, %v; want a permanent error", priority, tier, err)
		}
	}
	priorities := rapid.Int32Range(1, math.MaxInt32-1)
	rapid.Check(t, func(rt *rapid.T) {
		for range 50 {
			a, b := priorities.Draw(rt, "a"), priorities.Draw(rt, "b")
			tierA, errA := sveltos.Tier(a)
			tierB, errB := sveltos.Tier(b)
			if errA != nil || errB != nil || tierA < 1 || tierB < 1 || (a > b) != (tierA < tierB) {
				rt.Fatalf("priorities %d and %d have the tiers %d, %v and %d, %v", a, b, tierA, errA, tierB, errB)
			}
		}
	})
}

// TestSveltosTakesTheTierOfEveryPriority asks the API server about the ends of the range, and changes the priority of what is there.
func TestSveltosTakesTheTierOfEveryPriority(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		chart(w.set, "web", "1.0.0")
		for _, priority := range []int32{1, v1alpha1.DefaultPriority, math.MaxInt32 - 1, 1} {
			w.set.Config.Priority = priority
			w.settle(w.set)
			if tier := w.profile(w.set).Spec.Tier; tier != math.MaxInt32-priority {
				t.Errorf("the tier of priority %d is %d", priority, tier)
			}
		}
		before := w.profile(w.set)
		for _, priority := range []int32{0, math.MaxInt32} {
			w.set.Config.Priority = priority
			if _, err := w.manager.Compute(t.Context(), w.set); !framework.IsPermanent(err) || !strings.Contains(err.Error(), "is not between 1 and 2147483646") {
				t.Errorf("priority %d: the error is %v", priority, err)
			}
		}
		if after := w.profile(w.set); after.ResourceVersion != before.ResourceVersion {
			t.Errorf("the profile was written: %+v", after)
		}
	})
}

func TestASetBecomesAProfile(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		yes := true
		w.set.Config = statemanager.Config{
			Priority: 7, SyncMode: v1alpha1.SyncModeContinuousWithDriftDetection, StopOnConflict: true, ContinueOnError: true, Reload: true,
		}
		web := chart(w.set, "web", "1.2.3", "base")
		web.Values = "replicas: 3\n"
		web.ValuesFrom = []v1alpha1.ValuesFrom{{Kind: "Secret", Name: "web-values"}}
		web.HelmOptions = &v1alpha1.ServiceHelmOptions{Atomic: &yes, CreateNamespace: &yes, Timeout: &metav1.Duration{Duration: 60e9}}
		w.set.Templates["web-1.2.3"].Spec.Helm.SecretName = "login"
		files(w.set, "base")
		w.set.Templates["overlay"] = &v1alpha1.ServiceTemplate{Spec: v1alpha1.ServiceTemplateSpec{Kustomize: &v1alpha1.FileSource{
			Artifact: &v1alpha1.Artifact{URL: "oci://registry.example.com/overlay:1"}, Path: "prod",
		}}}
		service(w.set, "overlay", "overlay", "").Values = "size: 2\nname: x\n"

		w.settle(w.set)

		p := w.profile(w.set)
		if p == nil {
			t.Fatal("there is no profile")
		}
		spec := p.Spec
		ref := corev1.ObjectReference{APIVersion: "lib.projectsveltos.io/v1beta1", Kind: "SveltosCluster", Namespace: w.namespace, Name: "prod"}
		if !slices.Equal(spec.ClusterRefs, []corev1.ObjectReference{ref}) {
			t.Errorf("the clusters are %v", spec.ClusterRefs)
		}
		if spec.Tier != math.MaxInt32-7 || spec.SyncMode != "ContinuousWithDriftDetection" || spec.ContinueOnConflict || !spec.ContinueOnError || !spec.Reloader {
			t.Errorf("the configuration is %+v", spec)
		}
		if len(spec.HelmCharts) != 1 || len(spec.PolicyRefs) != 1 || len(spec.KustomizationRefs) != 1 {
			t.Fatalf("the profile has %d charts, %d policies and %d kustomizations", len(spec.HelmCharts), len(spec.PolicyRefs), len(spec.KustomizationRefs))
		}
		c := spec.HelmCharts[0]
		if c.ChartName != "web-1.2.3/web" || c.ChartVersion != "1.2.3" || c.ReleaseName != "web" || c.ReleaseNamespace != "apps" ||
			c.Values != "replicas: 3\n" || c.ValuesFrom[0].Name != "web-values" || c.ValuesFrom[0].Namespace != w.namespace ||
			!*c.Options.Atomic || c.RegistryCredentialsConfig.Credentials.Name != "login" {
			t.Errorf("the chart is %+v", c)
		}
		if k := spec.KustomizationRefs[0]; k.RemoteURL.URL != "oci://registry.example.com/overlay:1" || k.Path != "prod" ||
			k.TargetNamespace != "apps" || k.Values["size"] != "2" || k.Values["name"] != "x" {
			t.Errorf("the kustomization is %+v", k)
		}
		if r := spec.PolicyRefs[0]; r.Kind != "ConfigMap" || r.Name != "base" || r.Namespace != w.namespace {
			t.Errorf("the policy is %+v", r)
		}
		cluster := &v1beta1.SveltosCluster{}
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "prod"}, cluster); err != nil {
			t.Fatal(err)
		}
		if cluster.Spec.KubeconfigName != "prod-kubeconfig" || cluster.Spec.KubeconfigKeyName != "value" {
			t.Errorf("the cluster is reached by %+v", cluster.Spec)
		}
	})
}

func TestAnotherKubeconfigReachesSveltos(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		chart(w.set, "web", "1.0.0")
		w.settle(w.set)
		names := func(secret, key string) *v1beta1.SveltosCluster {
			t.Helper()
			cluster := &v1beta1.SveltosCluster{}
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(w.cluster), cluster); err != nil {
				t.Fatal(err)
			}
			if cluster.Spec.KubeconfigName != secret || cluster.Spec.KubeconfigKeyName != key {
				t.Errorf("the cluster is reached by %+v, want %s %s", cluster.Spec, secret, key)
			}
			return cluster
		}
		names("prod-kubeconfig", "value")
		w.cluster.Spec.Kubeconfig.SecretName = "moved"
		work := w.reconcile(w.set)
		if changes(work) != 1 {
			t.Fatalf("what is planned is %+v", work)
		}
		fields := work.Operations[0].Changes[0].Fields
		if len(fields) != 1 || fields[0].Path != "spec.kubeconfigName" || fields[0].Old != "prod-kubeconfig" || fields[0].New != "moved" {
			t.Errorf("what is planned is %+v", fields)
		}
		w.settle(w.set)
		cluster := names("moved", "value")

		// Without the label it is nobody's of ours.
		cluster.Labels = nil
		if err := w.client.Update(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		w.cluster.Spec.Kubeconfig.Key = "config"
		w.settle(w.set)
		names("moved", "value")
	})
}

func TestASetOfTheManagementClusterBecomesAClusterProfile(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		set := w.newSet("m", "")
		chart(set, "web", "1.0.0")
		w.settle(set)
		p := &v1beta1.ClusterProfile{}
		if err := w.client.Get(t.Context(), client.ObjectKey{Name: w.namespace + ".m"}, p); err != nil {
			t.Fatal(err)
		}
		if ref := p.Spec.ClusterRefs[0]; ref.Namespace != "mgmt" || ref.Name != "mgmt" {
			t.Errorf("the cluster is %v", ref)
		}
		set.ServiceSet.DeletionTimestamp = &metav1.Time{}
		if work := w.settle(set); work.Left {
			t.Errorf("something is left: %+v", work)
		}
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("the profile is still there: %v", err)
		}
	})
}

func TestAClusterOfClusterAPIIsNamedByTheConfiguration(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		chart(w.set, "web", "1.0.0")
		w.set.ServiceSet.Spec.Provider.Config = &apiextensionsv1.JSON{
			Raw: []byte(`{"clusterRef":{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","name":"prod"}}`),
		}
		w.settle(w.set)
		if ref := w.profile(w.set).Spec.ClusterRefs[0]; ref.Kind != "Cluster" || ref.Namespace != w.namespace {
			t.Errorf("the cluster is %v", ref)
		}
		err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "prod"}, &v1beta1.SveltosCluster{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("a SveltosCluster was made: %v", err)
		}
		w.set.ServiceSet.Spec.Provider.Config.Raw = []byte(`{"clusterRef":{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","name":"prod","namespace":"other"}}`)
		if _, err := w.manager.Compute(t.Context(), w.set); !framework.IsPermanent(err) || !strings.Contains(err.Error(), "has to be in the namespace") {
			t.Errorf("a cluster of another namespace: %v", err)
		}
	})
}

func TestWhatSveltosCanNotDoIsSaidAndKeepsTheOthersGoing(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		chart(w.set, "web", "1.0.0")
		w.settle(w.set)
		web := chart(w.set, "web", "1.1.0")
		w.set.Templates["web-1.1.0"].Spec.Helm.Digest = "sha256:0"
		chart(w.set, "other", "1.0.0")
		chart(w.set, "keyed", "1.0.0").ValuesFrom = []v1alpha1.ValuesFrom{{Kind: "ConfigMap", Name: "v", Key: "x"}}
		service(w.set, "missing", "no-such-template", "")
		chart(w.set, "git", "1.0.0")
		w.set.Templates["git-1.0.0"].Spec.Helm.Ref = "refs/heads/main"
		verify := &v1alpha1.Verification{CosignKeys: []string{"key"}}
		w.set.Templates["signed"] = &v1alpha1.ServiceTemplate{ObjectMeta: metav1.ObjectMeta{Name: "signed"}, Spec: v1alpha1.ServiceTemplateSpec{
			Resources: &v1alpha1.FileSource{Artifact: &v1alpha1.Artifact{URL: "oci://r/a:1", Verify: verify}},
		}}
		service(w.set, "signed", "signed", "")
		files(w.set, "plain").Values = "a: b"
		work := w.settle(w.set)
		want := map[string]string{"web": "pins a digest", "keyed": "valuesFrom[0]", "missing": `no ServiceTemplate "no-such-template"`, "plain": "no values in Sveltos",
			"git": "a repository of Git", "signed": "signatures to verify"}
		for _, o := range work.Operations {
			text, bad := want[o.Service.Name]
			if bad != (o.Err != nil) || bad && !strings.Contains(o.Err.Error(), text) {
				t.Errorf("the error of %q is %v, want %q", o.Service.Name, o.Err, text)
			}
			delete(want, o.Service.Name)
		}
		if len(want) > 0 {
			t.Errorf("nothing was said of %v", want)
		}
		spec := w.profile(w.set).Spec
		if len(spec.HelmCharts) != 2 || spec.HelmCharts[1].ReleaseName != "web" || spec.HelmCharts[1].ChartVersion != "1.0.0" {
			t.Errorf("the charts of %s are %+v", web.Name, spec.HelmCharts)
		}
	})
}

func TestAProfileOfSomebodyElseIsNotTouched(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		theirs := &v1beta1.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "prod"}, Spec: v1beta1.Spec{Tier: 5}}
		if err := w.client.Create(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		chart(w.set, "web", "1.0.0")
		if _, err := w.manager.Compute(t.Context(), w.set); err == nil || !strings.Contains(err.Error(), "belongs to somebody else") {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestWhatWasChangedSinceIsAConflict(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		chart(w.set, "web", "1.0.0")
		w.settle(w.set)
		chart(w.set, "web", "1.1.0")
		work, err := w.manager.Compute(t.Context(), w.set)
		if err != nil {
			t.Fatal(err)
		}
		p := w.profile(w.set)
		p.Annotations["example.com/by"] = "somebody"
		if err := w.client.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := w.manager.CarryOut(t.Context(), w.set, &work.Operations[0]); !isConflict(err) {
			t.Errorf("the error is %v, want a conflict", err)
		}
		w.settle(w.set)
		if p := w.profile(w.set); p.Spec.HelmCharts[0].ChartVersion != "1.1.0" || p.Annotations["example.com/by"] != "somebody" {
			t.Errorf("afterwards the profile is %+v", p)
		}
	})
}
