package objectresource_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// entry is a primary that is not a Kubernetes object.
type entry struct{ name string }

func TestNewNamesEveryFaultyField(t *testing.T) {
	k := newKit(t)
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"nothing set": {
			err:  newError(objectresource.Config[primary]{}),
			want: "Name must not be empty; Logger must not be nil; Desired must not be nil; Client must not be nil",
		},
		"no kinds": {
			err: newError(objectresource.Config[primary]{
				Name: "x", Logger: k.logger(), Client: k.client,
				Desired: func(context.Context, primary) ([]client.Object, error) { return nil, nil },
			}),
			want: "Kinds must not be empty",
		},
		"a primary that is no object, and other nonsense": {
			err: newError(objectresource.Config[entry]{
				Name: "x", Logger: k.logger(), Client: k.client, Propagation: "Sideways", FieldManager: strings.Repeat("x", 129),
				Kinds:   []client.Object{nil, &framed{}},
				Desired: func(context.Context, entry) ([]client.Object, error) { return nil, nil },
			}),
			want: `FieldManager "` + strings.Repeat("x", 129) + `" is longer than 128 bytes; ` +
				`Propagation "Sideways" is none of Background, Foreground, Orphan; ` +
				"Owner must not be nil for a objectresource_test.entry, which is no client.Object; " +
				"Kinds[0] must not be nil; Kinds[1] has no kind: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !framework.IsInvalidConfig(tc.err) {
				t.Fatalf("got %v, want an invalid config", tc.err)
			}
			want := "invalid config: objectresource.Config: " + tc.want
			if got := tc.err.Error(); !strings.HasPrefix(got, want) {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
}

// framed is a type that no scheme knows.
type framed struct{ corev1.ConfigMap }

func newError[O any](c objectresource.Config[O]) error {
	_, err := objectresource.New(c)
	return err
}

func TestWhatCannotBeDesired(t *testing.T) {
	k := newKit(t)
	elsewhere := k.data("a", nil)
	elsewhere.Namespace = "kube-system"
	for name, tc := range map[string]struct {
		object client.Object
		want   string
	}{
		"no object":                       {nil, "desired object 0: is nil"},
		"a nil pointer":                   {(*corev1.ConfigMap)(nil), "desired object 0: is nil"},
		"a type the scheme does not know": {&framed{}, "register its type in the client's scheme"},
		"a number among labels": {
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"name": "a", "labels": map[string]any{"app": "a", "version": 1},
			}}}, "/a: metadata.labels is no map of texts: put quotes around the value of \"version\", the number 1",
		},
		"a boolean among annotations": {
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"name": "a", "annotations": map[string]any{"scrape": true},
			}}}, "metadata.annotations is no map of texts: put quotes around the value of \"scrape\", the boolean true",
		},
		"no name":                                {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}}, "a ConfigMap has no name: set metadata.name"},
		"a kind that Kinds does not name":        {&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, "which Kinds does not name: add it"},
		"a namespace that Namespaces leaves out": {elsewhere, "have Namespaces return its namespace"},
		"a namespace for a kind without any": {
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}},
			`ClusterRole.rbac.authorization.k8s.io a has the namespace "default", but its kind has none`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := k.resource(func() []client.Object { return []client.Object{tc.object} })
			_, err := k.tryPlan(r, k.meta("home"))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !framework.IsPermanent(err) {
				t.Errorf("got %v, want a permanent error with %q", err, tc.want)
			}
		})
	}
	t.Run("the same object twice", func(t *testing.T) {
		_, err := k.tryPlan(k.resource(just(k.data("a", nil), k.data("a", nil))), k.meta("home"))
		if err == nil || !strings.Contains(err.Error(), "desired object 1: ConfigMap "+k.namespace+"/a is there twice") {
			t.Errorf("got %v, want an error that names the object", err)
		}
	})
	t.Run("the same object in two versions", func(t *testing.T) {
		_, err := k.tryPlan(k.resource(just(k.scaler(autoscalingv1.SchemeGroupVersion), k.scaler(autoscalingv2.SchemeGroupVersion)),
			kinds(&autoscalingv1.HorizontalPodAutoscaler{}, &autoscalingv2.HorizontalPodAutoscaler{})), k.meta("home"))
		if err == nil || !strings.Contains(err.Error(), "desired object 1: HorizontalPodAutoscaler.autoscaling "+k.namespace+"/web is there twice") {
			t.Errorf("got %v, want an error that names the object", err)
		}
	})
}

func TestAPrimaryCanBeAnything(t *testing.T) {
	k := newKit(t)
	r, err := objectresource.New(objectresource.Config[entry]{
		Name: "children", Client: k.client, Logger: k.logger(), Kinds: []client.Object{&corev1.ConfigMap{}},
		Owner: func(e entry) (objectresource.Owner, error) {
			kind := schema.GroupVersionKind{Group: "buckets.example.com", Version: "v1", Kind: "Entry"}
			return objectresource.Owner{GVK: kind, Name: e.name}, nil
		},
		Desired: func(context.Context, entry) ([]client.Object, error) { return just(k.data("a", nil))(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	// A key of a bucket may have slashes.
	if err := framework.ProcessUpdate(t.Context(), entry{k.namespace + "/home"}, []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	a, _ := k.configMap("a")
	keys := objectresource.OwnerMap(schema.GroupKind{Group: "buckets.example.com", Kind: "Entry"})(t.Context(), a)
	if diff := cmp.Diff([]informer.Key{{Name: k.namespace + "/home"}}, keys); diff != "" {
		t.Error(diff)
	}
	if err := framework.ProcessDelete(t.Context(), entry{k.namespace + "/home"}, []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	if _, exists := k.configMap("a"); exists {
		t.Error("the object is still there")
	}
}

func TestOwnerMapIsSilentAboutWhatIsNotOurs(t *testing.T) {
	websites := schema.GroupKind{Group: "example.com", Kind: "Website"}
	for name, tc := range map[string]struct {
		annotation string
		want       []informer.Key
	}{
		"no annotation":       {},
		"nonsense":            {annotation: "home"},
		"another kind":        {annotation: "ConfigMap/default/home"},
		"with a namespace":    {annotation: "Website.example.com/default/home", want: []informer.Key{{Namespace: "default", Name: "home"}}},
		"without a namespace": {annotation: "Website.example.com//home", want: []informer.Key{{Name: "home"}}},
	} {
		t.Run(name, func(t *testing.T) {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{objectresource.OwnerAnnotation: tc.annotation}}}
			if diff := cmp.Diff(tc.want, objectresource.OwnerMap(websites)(t.Context(), cm)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
