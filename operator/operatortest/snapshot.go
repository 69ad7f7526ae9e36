package operatortest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// snapshots takes the states of a scenario's objects, in a form in which those of
// two runs can be compared.
type snapshots struct {
	scenario Scenario
	user     client.Client
	kinds    []schema.GroupVersionKind
	secret   []byte // the key of the digests of what must not be shown
}

// snapshot is the state of a run's objects, by kind and name, without what differs
// by nature.
type snapshot struct {
	objects map[string]any
	text    string // equal for equal states
	passing error  // what shows that this state is about to pass, or nil
}

// diff shows the objects that are not alike, as YAML.
func (s snapshot) diff(other snapshot) string {
	mine, others := map[string]string{}, map[string]string{}
	for title, object := range s.objects {
		if !cmp.Equal(object, other.objects[title]) {
			mine[title] = asYAML(object)
		}
	}
	for title, object := range other.objects {
		if !cmp.Equal(object, s.objects[title]) {
			others[title] = asYAML(object)
		}
	}
	return cmp.Diff(mine, others)
}

func asYAML(object any) string {
	text, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Sprint(object) // take has encoded it once already
	}
	return string(text)
}

func newSnapshots(scenario Scenario, user client.Client) (*snapshots, error) {
	s := &snapshots{scenario: scenario, user: user, secret: make([]byte, 32)}
	_, _ = rand.Read(s.secret) // never fails
	for _, object := range scenario.Objects {
		kind, err := user.GroupVersionKindFor(object)
		if err != nil {
			return nil, fmt.Errorf("kind of %T in objects: %w", object, err)
		}
		mapping, err := user.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("look up %s of objects in the API server: %w", kind.Kind, err)
		}
		if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			return nil, fmt.Errorf("%s in objects is cluster-scoped, which runs share: let list select those of a run", kind.Kind)
		}
		s.kinds = append(s.kinds, kind)
	}
	return s, nil
}

func (s *snapshots) take(ctx context.Context, namespace string) (snapshot, error) {
	objects, err := s.list(ctx, namespace)
	if err != nil {
		return snapshot{}, err
	}
	passing, err := s.passing(ctx, objects)
	if err != nil {
		return snapshot{}, err
	}
	normalized, err := normalize(objects, namespace, s.secret, s.scenario.Normalize)
	if err != nil {
		return snapshot{}, err
	}
	text, err := json.Marshal(normalized)
	if err != nil {
		return snapshot{}, fmt.Errorf("encode the state of the objects: %w", err)
	}
	return snapshot{objects: normalized, text: string(text), passing: passing}, nil
}

func (s *snapshots) list(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	objects, err := s.listKinds(ctx, namespace)
	if err != nil || s.scenario.List == nil {
		return objects, err
	}
	more, err := s.scenario.List(ctx, s.user, namespace)
	if err != nil {
		return nil, fmt.Errorf("list the objects of the scenario: %w", err)
	}
	for _, object := range more {
		kind, err := s.user.GroupVersionKindFor(object)
		if err != nil {
			return nil, fmt.Errorf("kind of %T from list: %w", object, err)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("convert %s %s from list: %w", kind.Kind, object.GetName(), err)
		}
		converted := (&unstructured.Unstructured{Object: content}).DeepCopy()
		converted.SetGroupVersionKind(kind)
		objects = append(objects, converted)
	}
	return objects, nil
}

func (s *snapshots) listKinds(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, kind := range s.kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := s.user.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if !isOfNamespace(object) {
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}

// isOfNamespace is whether an object comes with each namespace, some time after it.
func isOfNamespace(object *unstructured.Unstructured) bool {
	switch object.GroupVersionKind() {
	case corev1.SchemeGroupVersion.WithKind("ConfigMap"):
		return object.GetName() == "kube-root-ca.crt"
	case corev1.SchemeGroupVersion.WithKind("ServiceAccount"):
		return object.GetName() == "default"
	}
	return false
}

// dropFinalizers lets all objects of the scenario's kinds go with their namespace.
func (s *snapshots) dropFinalizers(ctx context.Context, namespace string) error {
	objects, err := s.listKinds(ctx, namespace)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if len(object.GetFinalizers()) == 0 {
			continue
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := client.IgnoreNotFound(s.user.Patch(ctx, object, patch)); err != nil {
			return fmt.Errorf("drop the finalizers of %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
