package statemanager

import (
	"cmp"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// The kinds of a Reference.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
)

// Reference names a ConfigMap or a Secret of the management cluster that a set is made from: values, files or credentials.
type Reference struct {
	// Kind is KindConfigMap or KindSecret.
	Kind string
	// ObjectKey is in the namespace of the ServiceSet.
	client.ObjectKey
}

// References returns the ConfigMaps and Secrets that a set is made from, each once, by kind and name: those of ValuesFrom, and
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
	slices.SortFunc(all, func(a, b Reference) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(all)
}
