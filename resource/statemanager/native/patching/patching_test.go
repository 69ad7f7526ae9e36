package patching_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/patching"
)

func objectOf(t testing.TB, text string) map[string]any {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := utiljson.Unmarshal(encoded, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {tier: front}}
spec:
  replicas: 1
  big: 9007199254740993
  template: {spec: {containers: [{name: web, image: "web:1", ports: [{containerPort: 80}]}, {name: log, image: "log:1"}]}}
`

func on(patch string, target v1alpha1.PatchTarget) v1alpha1.Patch {
	return v1alpha1.Patch{Patch: patch, Target: &target}
}

func TestPatchesDoWhatKustomizeDoes(t *testing.T) {
	front := v1alpha1.PatchTarget{Kind: "Deploy.*", LabelSelector: "tier=front"}
	for name, tt := range map[string]struct {
		patches []v1alpha1.Patch
		want    string
	}{
		"a merge by name, which merges containers by their names": {
			[]v1alpha1.Patch{{Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: home}\nspec: {template: {spec: {containers: [{name: log, image: \"log:2\"}]}}}"}},
			strings.Replace(deployment, `[{name: web, image: "web:1", ports: [{containerPort: 80}]}, {name: log, image: "log:1"}]`,
				`[{name: log, image: "log:2"}, {name: web, image: "web:1", ports: [{containerPort: 80}]}]`, 1),
		},
		"a merge by target, which need not name anything": {
			[]v1alpha1.Patch{on("spec: {replicas: 3}", front)},
			strings.Replace(deployment, "replicas: 1", "replicas: 3", 1),
		},
		"a merge by target leaves the object what it is": {
			[]v1alpha1.Patch{on("{apiVersion: v9, kind: Other, metadata: {name: other}, spec: {replicas: 3}}", front)},
			strings.Replace(deployment, "replicas: 1", "replicas: 3", 1),
		},
		"operations, and whole numbers stay what they are": {
			[]v1alpha1.Patch{on("- {op: test, path: /spec/replicas, value: 1}\n- {op: replace, path: /spec/replicas, value: 5}", front)},
			strings.Replace(deployment, "replicas: 1", "replicas: 5", 1),
		},
		"one after the other": {
			[]v1alpha1.Patch{
				on(`[{"op": "replace", "path": "/metadata/name", "value": "shop"}]`, v1alpha1.PatchTarget{Name: "web"}),
				on("spec: {replicas: 7}", v1alpha1.PatchTarget{Name: "shop", Group: "apps", Version: "v1"}),
			},
			strings.Replace(strings.Replace(deployment, "replicas: 1", "replicas: 7", 1), "metadata: {name: web", "metadata: {name: shop", 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			patches, err := patching.Of(tt.patches)
			if err != nil {
				t.Fatal(err)
			}
			before := objectOf(t, deployment)
			got, matched, err := patches.Apply(t.Context(), before, "home")
			if err != nil || !matched {
				t.Fatalf("matched %t, %v", matched, err)
			}
			if diff := cmp.Diff(objectOf(t, tt.want), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(objectOf(t, deployment), before); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
			if err := patches.Missed(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAMergeMayDeleteAnObject(t *testing.T) {
	patches, err := patching.Of([]v1alpha1.Patch{on("$patch: delete", v1alpha1.PatchTarget{Name: "w.*"}), on("[]", v1alpha1.PatchTarget{Kind: "Deployment"})})
	if err != nil {
		t.Fatal(err)
	}
	got, matched, err := patches.Apply(t.Context(), objectOf(t, deployment), "home")
	if got != nil || !matched || err != nil {
		t.Errorf("it is %v, %t, %v", got, matched, err)
	}
	if err := patches.Missed(); err == nil || !strings.Contains(err.Error(), "patches[1]") {
		t.Errorf("the error is %v", err)
	}
}

func TestAPatchThatFindsNothingIsAnErrorThatSaysWhich(t *testing.T) {
	patches, err := patching.Of([]v1alpha1.Patch{
		on("spec: {replicas: 3}", v1alpha1.PatchTarget{Kind: "Deployment"}),
		on("spec: {replicas: 3}", v1alpha1.PatchTarget{Kind: "Deploy"}),
		{Patch: "{apiVersion: v1, kind: Service, metadata: {name: web}}"},
		{Patch: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: away}}"},
		on("spec: {replicas: 3}", v1alpha1.PatchTarget{AnnotationSelector: "a=b"}),
		on("spec: {replicas: 3}", v1alpha1.PatchTarget{Namespace: "home"}),
		on("spec: {replicas: 3}", v1alpha1.PatchTarget{LabelSelector: "tier=back"}),
		on("spec: {replicas: 3}", v1alpha1.PatchTarget{LabelSelector: "tier=front"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := patches.Apply(t.Context(), objectOf(t, deployment), "home"); err != nil {
		t.Fatal(err)
	}
	err = patches.Missed()
	if !framework.IsPermanent(err) || strings.Contains(err.Error(), "patches[0]") || strings.Contains(err.Error(), "patches[7]") {
		t.Errorf("the error is %v", err)
	}
	for _, want := range []string{
		`patches[1]: no object has kind "Deploy"`, `patches[2]: there is no Service web of v1`, `patches[3]: there is no Deployment away/web of apps/v1`,
		`patches[4]: no object has annotations "a=b"`, `patches[5]: no object has namespace "home"`,
		`patches[6]: no object has labels "tier=back"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

func TestBadPatchesAreRefusedWithTheirPlace(t *testing.T) {
	any := v1alpha1.PatchTarget{Kind: ".*"}
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x]\n" +
		"b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n" +
		"c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: [*c, *c, *c, *c, *c, *c, *c, *c]"
	for want, bad := range map[string]v1alpha1.Patch{
		"it is no YAML": {Patch: "a: [", Target: &any},
		"it is empty":   {Patch: "# nothing", Target: &any},
		"neither a list of operations nor an object": {Patch: "text", Target: &any},
		"set target": {Patch: "[]"},
		"give it apiVersion, kind and metadata.name, or set target":   {Patch: "spec: {replicas: 1}"},
		"has 2 documents and a target":                                {Patch: "{a: 1}\n---\n{a: 2}", Target: &any},
		"operation 0 is copy":                                         {Patch: "[{op: copy, from: /a, path: /b}]", Target: &any},
		`operation 0 is "remuve"`:                                     {Patch: "[{op: remuve, path: /b}]", Target: &any},
		"operation 0 has no path":                                     {Patch: "[{op: remove}]", Target: &any},
		"target: error parsing regexp":                                {Patch: "a: 1", Target: &v1alpha1.PatchTarget{Name: "("}},
		"target.labelSelector":                                        {Patch: "a: 1", Target: &v1alpha1.PatchTarget{LabelSelector: "a in b"}},
		"target is empty":                                             {Patch: "a: 1", Target: &v1alpha1.PatchTarget{}},
		"patches[1]: it":                                              {Patch: bomb, Target: &any},
		`key "a" already set`:                                         {Patch: "a: 1\na: 2", Target: &any},
		"more than 262144 bytes, with aliases as what they stand for": {Patch: "a: &a " + strings.Repeat("x", 100<<10) + "\nb: [*a, *a]", Target: &any},
		"it has more than 262144 bytes":                               {Patch: strings.Repeat("---\n{apiVersion: v1, kind: A, metadata: {name: a}, spec: "+strings.Repeat("x", 100<<10)+"}\n", 3)},
	} {
		_, err := patching.Of([]v1alpha1.Patch{on("a: 1", any), bad})
		if !framework.IsPermanent(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "patches[1]") {
			t.Errorf("want %q, and the error is %v", want, err)
		}
	}
}

func TestOperationsThatDoNotFitNameThePatchAndTheObject(t *testing.T) {
	for _, operation := range []string{"{op: replace, path: /spec/a/b, value: 1}", "{op: test, path: /spec/replicas, value: 2}", "{op: remove, path: /a/b}",
		"{op: add, path: /spec/template/spec/containers/9999999, value: 1}"} {
		patches, err := patching.Of([]v1alpha1.Patch{on("["+operation+"]", v1alpha1.PatchTarget{Name: "web"})})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = patches.Apply(t.Context(), objectOf(t, deployment), "home")
		if !framework.IsPermanent(err) || !strings.Contains(err.Error(), "patches[0]: Deployment web of apps/v1: ") {
			t.Errorf("%s: the error is %v", operation, err)
		}
	}
}

func TestPatchesOfManyObjectsAreBounded(t *testing.T) {
	patches, err := patching.Of([]v1alpha1.Patch{on(fmt.Sprintf("[{op: add, path: /big, value: %s}]", strings.Repeat("x", 200<<10)), v1alpha1.PatchTarget{Kind: "Deployment"})})
	if err != nil {
		t.Fatal(err)
	}
	object := objectOf(t, deployment)
	for n := range 1000 {
		if _, _, err = patches.Apply(t.Context(), object, "home"); err != nil {
			if !framework.IsPermanent(err) || !strings.Contains(err.Error(), "select fewer") || n < 300 {
				t.Errorf("after %d: %v", n, err)
			}
			return
		}
	}
	t.Error("there is no bound")
}

// TestPatchesAreAppliedByManyAtOnce is for the race detector: kustomize has variables of the process.
func TestPatchesAreAppliedByManyAtOnce(t *testing.T) {
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			patches, err := patching.Of([]v1alpha1.Patch{on("spec: {template: {spec: {containers: [{name: log, image: \"log:2\"}]}}}", v1alpha1.PatchTarget{Name: "web"})})
			if err != nil {
				t.Error(err)
				return
			}
			if _, matched, err := patches.Apply(t.Context(), objectOf(t, deployment), "home"); !matched || err != nil {
				t.Errorf("%t, %v", matched, err)
			}
		})
	}
	group.Wait()
}

// TestNoPatchTakesAwayWhatAnObjectIs holds for both kinds of patches: what has no name could be neither applied nor found again.
func TestNoPatchTakesAwayWhatAnObjectIs(t *testing.T) {
	for patch, want := range map[string]string{
		"metadata: null":                              "leave metadata an object",
		"[{op: remove, path: /metadata}]":             "no apiVersion, kind or metadata.name",
		"[{op: remove, path: /kind}]":                 "no apiVersion, kind or metadata.name",
		`[{op: replace, path: "", value: {a: 1}}]`:    "no apiVersion, kind or metadata.name",
		"[{op: add, path: /metadata/name, value: 1}]": "no apiVersion, kind or metadata.name",
	} {
		patches, err := patching.Of([]v1alpha1.Patch{on(patch, v1alpha1.PatchTarget{Name: "web"})})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = patches.Apply(t.Context(), objectOf(t, deployment), "home")
		if !framework.IsPermanent(err) || !strings.Contains(err.Error(), "patches[0]: Deployment web of apps/v1: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("with %s the error is %v", patch, err)
		}
	}
}

func TestPatchesEndWithTheirContext(t *testing.T) {
	release, err := patching.Exclusive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	patches, err := patching.Of([]v1alpha1.Patch{on("a: 1", v1alpha1.PatchTarget{Name: "web"})})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := patches.Apply(ctx, objectOf(t, deployment), "home"); !errors.Is(err, context.Canceled) || framework.IsPermanent(err) {
		t.Errorf("the error is %v", err)
	}
}

// TestWhateverAPatchIsItIsAppliedOrRefused holds that no patch makes the process fail, and that an object keeps its name unless an operation
// changes it.
func TestWhateverAPatchIsItIsAppliedOrRefused(t *testing.T) {
	value := rapid.Deferred(func() *rapid.Generator[any] { return valueOf(3) })
	rapid.Check(t, func(rt *rapid.T) {
		content := rapid.MapOfN(names, value, 0, 4).Draw(rt, "patch")
		text, err := yaml.Marshal(content)
		if err != nil {
			rt.Skip()
		}
		patches, err := patching.Of([]v1alpha1.Patch{on(string(text), v1alpha1.PatchTarget{Kind: "Deployment"})})
		if err != nil {
			return
		}
		got, matched, err := patches.Apply(t.Context(), objectOf(t, deployment), "home")
		if err != nil {
			return
		}
		if metadata, _ := got["metadata"].(map[string]any); got != nil && (!matched || metadata["name"] != "web" || got["kind"] != "Deployment") {
			rt.Errorf("it is %v", got)
		}
	})
}

var names = rapid.SampledFrom([]string{"spec", "metadata", "name", "kind", "template", "containers", "image", "$patch", "labels", "replicas", "$setElementOrder/containers", "$deleteFromPrimitiveList/x"})

func valueOf(depth int) *rapid.Generator[any] {
	plain := rapid.SampledFrom([]any{nil, "web", "delete", "replace", "merge", 1, true, -3.5, ""})
	if depth == 0 {
		return plain
	}
	inner := valueOf(depth - 1)
	return rapid.OneOf(plain, rapid.Map(rapid.SliceOfN(inner, 0, 3), func(v []any) any { return v }),
		rapid.Map(rapid.MapOfN(names, inner, 0, 3), func(v map[string]any) any { return v }))
}
