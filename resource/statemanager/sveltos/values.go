package sveltos

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/templating"
)

// templateMark is what Sveltos knows a template by.
const templateMark = "{{"

// filled returns a service whose values are what its values template comes to, and no template any more.
func (s *situation) filled(ctx context.Context, service *v1alpha1.ServiceWithValues) (*v1alpha1.ServiceWithValues, error) {
	if service.ValuesTemplate == nil {
		return service, nil
	}
	values, err := templating.Values(ctx, s.set, service, s.read)
	if err != nil {
		return nil, err
	}
	with := *service
	if with.Values, err = literal(values); err != nil {
		return nil, framework.Permanent(fmt.Errorf("the values of service %s are no YAML", service.Key()))
	}
	template := s.set.Templates[service.Template]
	if template != nil && template.Spec.Kustomize != nil && with.Values != values {
		return nil, framework.Permanent(errors.New(
			"a value of a kustomization has {{ in it, which Sveltos would take for a template: use another value, or the provider native"))
	}
	return &with, nil
}

// literal returns values in which Sveltos finds no template: as JSON, where there is something in them that it would take for one.
func literal(values string) (string, error) {
	if !strings.Contains(values, templateMark) {
		return values, nil
	}
	// Between texts, there are no two braces beside each other that open.
	text, err := yaml.YAMLToJSON([]byte(values))
	return strings.ReplaceAll(string(text), templateMark, `\u007b\u007b`), err
}

// content reads what a values template is filled with.
func (m *Manager) content(ctx context.Context, ref statemanager.Reference) (map[string]any, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(ref.GroupVersionKind())
	err := m.config.Client.Get(ctx, ref.ObjectKey, object)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s %s does not exist: create it", ref.Kind, ref.ObjectKey)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", ref.Kind, ref.ObjectKey, err)
	}
	return object.Object, nil
}
