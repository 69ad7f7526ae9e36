package native

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// defaultValuesKey is the entry of a ConfigMap or Secret with values, unless valuesFrom names another one.
const defaultValuesKey = "values.yaml"

// resolved is a service with all that it is made of.
type resolved struct {
	*carrier.Service
	confidential *confidential
}

// keyOf returns the namespace and the name of an entry on the cluster.
func keyOf(entry *v1alpha1.ServiceWithValues) client.ObjectKey {
	return serviceset.ServiceKey(entry.Namespace, entry.Name)
}

// typeOf returns what a template makes of a service.
func typeOf(template *v1alpha1.ServiceTemplate) v1alpha1.ServiceType {
	switch {
	case template.Spec.Helm != nil:
		return v1alpha1.ServiceTypeHelm
	case template.Spec.Kustomize != nil:
		return v1alpha1.ServiceTypeKustomize
	}
	return v1alpha1.ServiceTypeResource
}

// resolve reads what an entry names. Whose the service is, is not known here. The error may be a missingError. What it can't be resolved with is hidden in the error.
func (o *objects) resolve(ctx context.Context, set *statemanager.Set, entry *v1alpha1.ServiceWithValues) (*resolved, error) {
	template := set.Templates[entry.Template]
	if template == nil {
		return nil, &missingError{
			what: fmt.Sprintf("ServiceTemplate %s/%s", set.ServiceSet.Namespace, entry.Template), mend: "create it, or choose another template",
		}
	}
	all, err := o.readValues(ctx, set.ServiceSet.Namespace, entry)
	if err != nil {
		return nil, err
	}
	hidden := &confidential{texts: all.secretTexts()}
	local, err := o.readLocal(ctx, template)
	if err != nil {
		return nil, err
	}
	var digest string
	if local != nil {
		digest = local.Digest
		hidden.everything = filesOf(template).LocalSource.Kind == statemanager.KindSecret
	}
	fingerprint, err := fingerprintOf(set, entry, template, all, digest)
	if err != nil {
		return nil, framework.Permanent(err)
	}
	return &resolved{confidential: hidden, Service: &carrier.Service{
		Key: keyOf(entry), Entry: entry, Template: template, Config: set.Config,
		Source: &source{fetcher: o.config.Fetcher, objects: o, template: template, local: local},
		Values: all.merged, Secret: all.secret, Fingerprint: fingerprint,
	}}, nil
}

// readValues merges the values of an entry: those of valuesFrom in their order, and its own last.
func (o *objects) readValues(ctx context.Context, namespace string, entry *v1alpha1.ServiceWithValues) (*values, error) {
	all := &values{}
	for _, from := range entry.ValuesFrom {
		ref := statemanager.Reference{Kind: from.Kind, ObjectKey: client.ObjectKey{Namespace: namespace, Name: from.Name}}
		key := from.Key
		if key == "" {
			key = defaultValuesKey
		}
		obj, err := o.read(ctx, ref)
		if err != nil {
			return nil, fmt.Errorf("read the values: %w", err)
		}
		text, ok := textOf(obj, key)
		if !ok {
			return nil, &missingError{what: fmt.Sprintf("entry %q of %s %s, with values,", key, ref.Kind, ref.ObjectKey), mend: "add it, or name another key in valuesFrom"}
		}
		more, err := readValues(text)
		switch {
		case err != nil && ref.Kind == statemanager.KindSecret:
			// The error may quote the text.
			return nil, framework.Permanent(fmt.Errorf("entry %q of Secret %s is no YAML map with values", key, ref.ObjectKey))
		case err != nil:
			return nil, framework.Permanent(fmt.Errorf("entry %q of %s %s is no YAML map with values: %w", key, ref.Kind, ref.ObjectKey, err))
		}
		all.add(more, ref.Kind == statemanager.KindSecret)
	}
	own, err := readValues(entry.Values)
	if err != nil {
		return nil, framework.Permanent(fmt.Errorf("values of service %s are no YAML map: %w", keyOf(entry), err))
	}
	all.add(own, false)
	return all, nil
}

// textOf returns an entry of a ConfigMap or Secret.
func textOf(obj client.Object, key string) (text string, ok bool) {
	switch obj := obj.(type) {
	case *corev1.Secret:
		data, ok := obj.Data[key]
		return string(data), ok
	case *corev1.ConfigMap:
		if text, ok := obj.Data[key]; ok {
			return text, true
		}
		data, ok := obj.BinaryData[key]
		return string(data), ok
	}
	return "", false
}

// fingerprintOf returns what stands for a service as it should be: 16 digits for what its entry says, which is known without
// reading anything, and 16 for what the entry names. The UID of the set is in both, so that nobody can try values out.
func fingerprintOf(set *statemanager.Set, entry *v1alpha1.ServiceWithValues, template *v1alpha1.ServiceTemplate, all *values, files string) (string, error) {
	said, err := entryFingerprint(set, entry)
	if err != nil {
		return "", err
	}
	// JSON sorts the keys of maps.
	merged, err := json.Marshal(all.merged)
	if err != nil {
		return "", fmt.Errorf("values of service %s are nothing that JSON can say: %w", keyOf(entry), err)
	}
	named, err := statemanager.Fingerprint(set.ServiceSet.UID, template.Spec, json.RawMessage(merged), files)
	if err != nil {
		return "", err
	}
	return said + named[:entryDigits], nil
}

// entryDigits is how long the part of a fingerprint is that stands for the entry.
const entryDigits = 16

func entryFingerprint(set *statemanager.Set, entry *v1alpha1.ServiceWithValues) (string, error) {
	own, err := readValues(entry.Values)
	if err != nil {
		own = map[string]any{"invalid": entry.Values}
	}
	said, err := statemanager.Fingerprint(set.ServiceSet.UID, entry.Template, entry.Version, own, entry.ValuesFrom, entry.HelmOptions, set.Config.Reload)
	if err != nil {
		return "", fmt.Errorf("fingerprint of service %s: %w", keyOf(entry), err)
	}
	return said[:entryDigits], nil
}
