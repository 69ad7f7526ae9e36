package informer_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/informer"
)

func TestOwnerMapFindsOwnersOfItsKind(t *testing.T) {
	website := schema.GroupKind{Group: "example.com", Kind: "Website"}
	child := configMap("a", "x", "u", "1")
	child.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "example.com/v1alpha1", Kind: "Website", Name: "old"},
		{APIVersion: "example.com/v1", Kind: "Website", Name: "new", Controller: new(true)},
		{APIVersion: "example.org/v1", Kind: "Website", Name: "other-group"},
		{APIVersion: "example.com/v1", Kind: "Shop", Name: "other-kind"},
		{APIVersion: "v1", Kind: "ConfigMap", Name: "core"},
	}
	for name, test := range map[string]struct {
		mapFunc informer.MapFunc
		obj     any
		want    []informer.Key
	}{
		"any version": {
			informer.OwnerMap(website), child,
			[]informer.Key{{Namespace: "a", Name: "old"}, {Namespace: "a", Name: "new"}},
		},
		"controller only": {
			informer.OwnerMap(website, informer.ControllerOnly), child,
			[]informer.Key{{Namespace: "a", Name: "new"}},
		},
		"cluster-scoped controller": {
			informer.OwnerMap(website, informer.OwnerWithoutNamespace, informer.ControllerOnly), child,
			[]informer.Key{{Name: "new"}},
		},
		"core group": {
			informer.OwnerMap(schema.GroupKind{Kind: "ConfigMap"}), child,
			[]informer.Key{{Namespace: "a", Name: "core"}},
		},
		"no owner":               {informer.OwnerMap(website), configMap("a", "y", "u", "1"), nil},
		"not an object":          {informer.OwnerMap(website), "text", nil},
		"group is not a version": {informer.OwnerMap(schema.GroupKind{Group: "v1", Kind: "ConfigMap"}), child, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.mapFunc(t.Context(), test.obj)); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLabelMapReadsTheOwnerFromLabelsAndAnnotations(t *testing.T) {
	names := informer.OwnerNames{Key: "example.com/owner", Kind: "example.com/kind"}
	type pairs = map[string]string
	for name, test := range map[string]struct {
		names               informer.OwnerNames
		labels, annotations pairs
		want                []informer.Key
	}{
		"annotations": {
			names, nil, pairs{names.Key: "a/x", names.Kind: "website"},
			[]informer.Key{{Namespace: "a", Name: "x"}},
		},
		"labels": {
			names, pairs{names.Key: "x", names.Kind: "website"}, nil,
			[]informer.Key{{Name: "x"}},
		},
		"the annotation wins": {
			names, pairs{names.Key: "x", names.Kind: "website"}, pairs{names.Key: "a/x"},
			[]informer.Key{{Namespace: "a", Name: "x"}},
		},
		"another kind":   {names, nil, pairs{names.Key: "a/x", names.Kind: "shop"}, nil},
		"no kind":        {names, nil, pairs{names.Key: "a/x"}, nil},
		"no key":         {names, nil, pairs{names.Kind: "website"}, nil},
		"key of nothing": {names, nil, pairs{names.Key: "a/", names.Kind: "website"}, nil},
		"no key at all":  {names, nil, pairs{names.Key: "a/b/c", names.Kind: "website"}, nil},
		"kinds are not looked at": {
			informer.OwnerNames{Key: names.Key}, nil, pairs{names.Key: "a/x"},
			[]informer.Key{{Namespace: "a", Name: "x"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := configMap("b", "child", "u", "1")
			obj.Labels, obj.Annotations = test.labels, test.annotations
			if diff := cmp.Diff(test.want, informer.LabelMap(test.names, "website")(t.Context(), obj)); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
	if got := informer.LabelMap(names, "website")(t.Context(), "text"); got != nil {
		t.Errorf("keys of a text: %v", got)
	}
}
