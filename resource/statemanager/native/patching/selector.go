package patching

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// selector selects objects as a target does.
type selector struct {
	given               v1alpha1.PatchTarget
	names               *types.SelectorRegex
	labels, annotations labels.Selector
}

func selectorOf(target *v1alpha1.PatchTarget) (s *selector, err error) {
	if *target == (v1alpha1.PatchTarget{}) {
		return nil, fmt.Errorf("target is empty: say which objects are changed")
	}
	s = &selector{given: *target}
	s.names, err = types.NewSelectorRegex(&types.Selector{ResId: resid.ResId{
		Gvk:  resid.Gvk{Group: target.Group, Version: target.Version, Kind: target.Kind},
		Name: target.Name, Namespace: target.Namespace,
	}})
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	if s.labels, err = labels.Parse(target.LabelSelector); err != nil {
		return nil, fmt.Errorf("target.labelSelector: %w", err)
	}
	if s.annotations, err = labels.Parse(target.AnnotationSelector); err != nil {
		return nil, fmt.Errorf("target.annotationSelector: %w", err)
	}
	return s, nil
}

func (s *selector) selects(u *unstructured.Unstructured) bool {
	kind := u.GroupVersionKind()
	return s.names.MatchGvk(resid.Gvk{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}) &&
		s.names.MatchName(u.GetName()) && s.names.MatchNamespace(u.GetNamespace()) &&
		s.labels.Matches(labels.Set(u.GetLabels())) && s.annotations.Matches(labels.Set(u.GetAnnotations()))
}

// String says what the objects have that are selected.
func (s *selector) String() string {
	var has []string
	for _, part := range []struct{ name, value string }{
		{"group", s.given.Group}, {"version", s.given.Version}, {"kind", s.given.Kind}, {"namespace", s.given.Namespace},
		{"name", s.given.Name}, {"labels", s.given.LabelSelector}, {"annotations", s.given.AnnotationSelector},
	} {
		if part.value != "" {
			has = append(has, fmt.Sprintf("%s %q", part.name, part.value))
		}
	}
	return strings.Join(has, ", ")
}
