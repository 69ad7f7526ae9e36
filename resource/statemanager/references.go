package statemanager

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// The kinds of References to values, files and credentials.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
)

// Reference names an object of the management cluster that a set is made from: a ConfigMap or a Secret with values, files or credentials,
// or what a values template is filled with.
type Reference struct {
	// APIVersion is that of the kind. It is empty for v1.
	APIVersion string
	// Kind is the kind of the object.
	Kind string
	// ObjectKey is in the namespace of the ServiceSet.
	client.ObjectKey
}

// GroupVersionKind returns the kind of the object.
func (r Reference) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(cmp.Or(r.APIVersion, "v1"), r.Kind)
}

// ReferenceTo returns the reference to what a values template of a set is filled with. Its name is empty for one without a name in
// a set of the management cluster.
func ReferenceTo(set *v1alpha1.ServiceSet, object v1alpha1.ValuesObject) Reference {
	ref := Reference{
		Kind: object.Kind, ObjectKey: client.ObjectKey{Namespace: set.Namespace, Name: cmp.Or(object.Name, set.Spec.Cluster)},
	}
	if object.APIVersion != "v1" {
		ref.APIVersion = object.APIVersion
	}
	return ref
}

// References returns the objects that a set is made from, each once, by kind and name: those of ValuesFrom and of ValuesTemplate, and
// those that its templates name. A change of one of them is a change of what is desired. Templates that are not known are
// left out.
func References(set *v1alpha1.ServiceSet, templates map[string]*v1alpha1.ServiceTemplate) []Reference {
	var all []Reference
	add := func(kind, name string) {
		if name != "" {
			all = append(all, Reference{Kind: kind, ObjectKey: client.ObjectKey{Namespace: set.Namespace, Name: name}})
		}
	}
	for i := range set.Spec.Services {
		entry := &set.Spec.Services[i]
		for _, from := range entry.ValuesFrom {
			add(from.Kind, from.Name)
		}
		if entry.ValuesTemplate != nil {
			for _, object := range entry.ValuesTemplate.Objects {
				all = append(all, ReferenceTo(set, object))
			}
		}
		template := templates[entry.Template]
		if template == nil {
			continue
		}
		if helm := template.Spec.Helm; helm != nil {
			add(KindSecret, helm.SecretName)
		}
		for _, files := range []*v1alpha1.FileSource{template.Spec.Kustomize, template.Spec.Resources} {
			switch {
			case files == nil:
			case files.LocalSource != nil:
				add(files.LocalSource.Kind, files.LocalSource.Name)
			case files.Artifact != nil:
				add(KindSecret, files.Artifact.SecretName)
			}
		}
	}
	slices.SortFunc(all, func(a, b Reference) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(all)
}
