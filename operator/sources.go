package operator

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
)

// SourceOption narrows what a source of NewSource holds.
type SourceOption func(*informer.KubernetesConfig)

// InNamespaces limits a source to these namespaces, in place of those of the operator; none are all, which a kind without
// namespaces needs in an operator that is limited to some.
func InNamespaces(namespaces ...string) SourceOption {
	return func(c *informer.KubernetesConfig) {
		c.Namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	}
}

// WithLabels limits a source to the objects that the selector matches.
func WithLabels(selector labels.Selector) SourceOption {
	return func(c *informer.KubernetesConfig) { c.LabelSelector = selector }
}

// WithFields limits a source to the objects that the selector matches; the API server supports few fields.
func WithFields(selector fields.Selector) SourceOption {
	return func(c *informer.KubernetesConfig) { c.FieldSelector = selector }
}

// NewSource returns a source of the objects of the kind of object, in the namespaces of the operator: whole ones of a Go type, or
// as unstructured.Unstructured or metav1.PartialObjectMetadata if object is one. Asked for the same again, it returns the same
// source, which several frameworks may use. For indexes, a Transform or a Resync use informer.NewKubernetes.
func (d *Dependencies) NewSource(object client.Object, options ...SourceOption) (*informer.Kubernetes, error) {
	gvk, err := d.Client.GroupVersionKindFor(object)
	if err != nil {
		return nil, fmt.Errorf("make a source of %T: %w: is it in the scheme?", object, err)
	}
	config := informer.KubernetesConfig{Client: d.Client, Object: object, Namespaces: d.Namespaces, Logger: d.Logger}
	for _, option := range options {
		option(&config)
	}
	asked := question{gvk: gvk, form: formOf(object), namespaces: strings.Join(slices.Sorted(slices.Values(config.Namespaces)), ",")}
	if config.LabelSelector != nil {
		asked.labels = config.LabelSelector.String()
	}
	if config.FieldSelector != nil {
		asked.fields = config.FieldSelector.String()
	}
	return d.sources.of(asked, func() (*informer.Kubernetes, error) {
		source, err := informer.NewKubernetes(config)
		if err != nil {
			return nil, err
		}
		narrowed := len(options) > 0
		if !narrowed && !d.sources.has(source.Name()) {
			return source, nil
		}
		config.Name = asked.nameAfter(source.Name(), narrowed)
		return informer.NewKubernetes(config)
	})
}

// sources are those that were made for the frameworks of an operator, by what was asked for.
type sources struct {
	mu   sync.Mutex
	made map[question]*informer.Kubernetes
}

// question is what a source was asked for.
type question struct {
	gvk                        schema.GroupVersionKind
	form                       string
	namespaces, labels, fields string
	// owned is for what resources of the operator have made.
	owned bool
}

// nameAfter names a source after the kind, its form, and what it was narrowed to.
func (q question) nameAfter(kind string, narrowed bool) string {
	parts := []struct{ what, value string }{{"", q.form}}
	if narrowed {
		parts = append(parts, []struct{ what, value string }{{"in ", q.namespaces}, {"with ", q.labels}, {"with ", q.fields}}...)
	}
	for _, part := range parts {
		if part.value != "" {
			kind += " " + part.what + part.value
		}
	}
	return kind
}

// has tells whether a source has that name. It is called while one is made.
func (s *sources) has(name string) bool {
	for _, source := range s.made {
		if source.Name() == name {
			return true
		}
	}
	return false
}

// of returns the source that was made for the question, or makes it.
func (s *sources) of(q question, build func() (*informer.Kubernetes, error)) (*informer.Kubernetes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if source, ok := s.made[q]; ok {
		return source, nil
	}
	source, err := build()
	if err != nil {
		return nil, err
	}
	if s.made == nil {
		s.made = map[question]*informer.Kubernetes{}
	}
	s.made[q] = source
	return source, nil
}

// formOf returns the form in which a source holds objects.
func formOf(object client.Object) string {
	switch object.(type) {
	case *unstructured.Unstructured:
		return "unstructured"
	case *metav1.PartialObjectMetadata:
		return "metadata"
	}
	return "typed"
}
