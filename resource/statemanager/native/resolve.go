package native

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/internal/exact"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/templating"
)

// defaultValuesKey is the entry of a ConfigMap or Secret with values, unless valuesFrom names another one.
const defaultValuesKey = "values.yaml"

// resolved is a service with all that it is made of.
type resolved struct {
	*carrier.Service
	hider *carrier.Hider
	// digest is that of the ConfigMap or Secret with its files, if they are in one.
	digest string
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
	all, err := o.readValues(ctx, set, entry)
	if err != nil {
		return nil, err
	}
	if typeOf(template) == v1alpha1.ServiceTypeHelm {
		exact.Round(all.merged) // as Helm reads them
	}
	hider := carrier.NewHider(all.merged, all.secret)
	local, err := o.readLocal(ctx, template)
	if err != nil {
		return nil, err
	}
	var digest string
	if local != nil {
		digest = local.Digest
		hider.Everything = filesOf(template).LocalSource.Kind == statemanager.KindSecret
	}
	service := &carrier.Service{
		Key: entry.Key(), Entry: entry, Template: template, Config: set.Config,
		Source: &source{fetcher: o.config.Fetcher, objects: o, template: template, local: local},
		Values: all.merged, Secret: all.secret,
	}
	if err := identify(service, digest); err != nil {
		return nil, framework.Permanent(err)
	}
	if service.HealthCheck, err = o.healthCheck(entry); err != nil {
		return nil, err
	}
	return &resolved{service, hider, digest}, nil
}

// healthCheck reads the expressions of an entry.
func (o *objects) healthCheck(entry *v1alpha1.ServiceWithValues) (carrier.HealthCheck, error) {
	switch {
	case len(entry.HealthCheckExprs) == 0:
		return nil, nil
	case o.config.HealthChecks == nil:
		return nil, framework.Permanent(errors.New("healthCheckExprs are not wired into this operator: leave them out, or set HealthChecks of its native state manager"))
	}
	return o.config.HealthChecks.Compile(entry.HealthCheckExprs)
}

// readValues merges the values of an entry: those of valuesFrom in their order, and its own last.
func (o *objects) readValues(ctx context.Context, set *statemanager.Set, entry *v1alpha1.ServiceWithValues) (*values, error) {
	all := &values{}
	for i := range entry.ValuesFrom {
		if err := o.addFrom(ctx, all, set.ServiceSet.Namespace, &entry.ValuesFrom[i]); err != nil {
			return nil, err
		}
	}
	text, err := templating.Values(ctx, set, entry, o.content)
	if err != nil {
		return nil, err
	}
	own, err := readValues(text)
	if err != nil {
		return nil, framework.Permanent(fmt.Errorf("values of service %s are no YAML map: %w", entry.Key(), err))
	}
	all.add(own, false)
	return all, nil
}

// addFrom adds what an entry of valuesFrom names.
func (o *objects) addFrom(ctx context.Context, all *values, namespace string, from *v1alpha1.ValuesFrom) error {
	ref := statemanager.Reference{Kind: from.Kind, ObjectKey: client.ObjectKey{Namespace: namespace, Name: from.Name}}
	key := cmp.Or(from.Key, defaultValuesKey)
	secret := ref.Kind == statemanager.KindSecret
	obj, err := o.read(ctx, ref)
	if missing := (*missingError)(nil); from.Optional && errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the values: %w", err)
	}
	text, ok := textOf(obj, key)
	if !ok {
		return &missingError{what: fmt.Sprintf("entry %q of %s %s, with values,", key, ref.Kind, ref.ObjectKey), mend: "add it, or name another key in valuesFrom"}
	}
	what := "is no YAML map with values"
	if from.TargetPath != "" {
		what = fmt.Sprintf("can't be put at the targetPath %q", from.TargetPath)
		err = all.put(from.TargetPath, text, secret)
	} else {
		var more map[string]any
		if more, err = readValues(text); err == nil {
			all.add(more, secret)
		}
	}
	switch {
	case err != nil && secret:
		// The error may quote the text.
		return framework.Permanent(fmt.Errorf("entry %q of Secret %s %s", key, ref.ObjectKey, what))
	case err != nil:
		return framework.Permanent(fmt.Errorf("entry %q of %s %s %s: %w", key, ref.Kind, ref.ObjectKey, what, err))
	}
	return nil
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

// fingerprintOf returns what stands for a service as a set says it should be: 16 digits for what its entry says, which is known without
// reading anything, and 16 for what the entry names. The UID of the set is in both, so that nobody can try values out.
func fingerprintOf(set *statemanager.Set, service *resolved) (string, error) {
	said, err := entryFingerprint(set, service.Entry)
	if err != nil {
		return "", err
	}
	// JSON sorts the keys of maps.
	merged, err := json.Marshal(service.Values)
	if err != nil {
		return "", fmt.Errorf("values of service %s are nothing that JSON can say: %w", service.Key, err)
	}
	named, err := statemanager.Fingerprint(set.ServiceSet.UID, service.Template.Spec, json.RawMessage(merged), service.digest)
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
	what := []any{set.ServiceSet.UID, entry.Template, entry.Version, own, entry.ValuesFrom, entry.HelmOptions, set.Config.Reload}
	if entry.ValuesTemplate != nil {
		what = append(what, entry.ValuesTemplate)
	}
	if len(entry.Patches) > 0 {
		what = append(what, entry.Patches)
	}
	said, err := statemanager.Fingerprint(what...)
	if err != nil {
		return "", fmt.Errorf("fingerprint of service %s: %w", entry.Key(), err)
	}
	return said[:entryDigits], nil
}
