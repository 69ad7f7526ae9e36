package native

import (
	"encoding/json"
	"fmt"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// identify fills in what stands for what a service has on a cluster, and for how it gets there: the same for the same chart or files, values
// and options, in whichever set of whichever management cluster. files is the digest of those that were read beforehand.
func identify(service *carrier.Service, files string) error {
	// JSON sorts the keys of maps.
	merged, err := json.Marshal(service.Values)
	if err != nil {
		return fmt.Errorf("values of service %s are nothing that JSON can say: %w", service.Key, err)
	}
	fingerprint, err := statemanager.Fingerprint(sourceOf(service.Template), json.RawMessage(merged), files, contentOptions(service.Entry))
	if err != nil {
		return fmt.Errorf("fingerprint of service %s: %w", service.Key, err)
	}
	attempt, err := statemanager.Fingerprint(service.Entry.HelmOptions)
	if err != nil {
		return fmt.Errorf("fingerprint of the options of service %s: %w", service.Key, err)
	}
	service.Fingerprint, service.Attempt = fingerprint, attempt
	return nil
}

// sourceOf is what a template says of what is put onto clusters: not what it is called, nor how it is fetched.
func sourceOf(template *v1alpha1.ServiceTemplate) v1alpha1.ServiceTemplateSpec {
	spec := template.Spec.DeepCopy()
	spec.Version = ""
	if spec.Helm != nil {
		spec.Helm.SecretName, spec.Helm.Verify = "", nil
	}
	for _, files := range []*v1alpha1.FileSource{spec.Kustomize, spec.Resources} {
		if files == nil {
			continue
		}
		files.LocalSource = nil
		if files.Artifact != nil {
			files.Artifact.SecretName, files.Artifact.Verify = "", nil
		}
	}
	return *spec
}

// contentOptions are the options, and the patches, that change anything on a cluster.
func contentOptions(entry *v1alpha1.ServiceWithValues) any {
	options := v1alpha1.ServiceHelmOptions{}
	if entry.HelmOptions != nil {
		options = *entry.HelmOptions
	}
	skipCRDs := options.SkipCRDs != nil && *options.SkipCRDs
	return struct {
		Labels   map[string]string `json:"labels,omitempty"`
		SkipCRDs bool              `json:"skipCRDs,omitempty"`
		Patches  []v1alpha1.Patch  `json:"patches,omitempty"`
	}{options.Labels, skipCRDs, entry.Patches}
}

// entryContent is 16 digits for what an entry says of what is put onto clusters, which is known without reading anything. Nothing of it is
// secret: it is in the set.
func entryContent(entry *v1alpha1.ServiceWithValues) (string, error) {
	own, err := readValues(entry.Values)
	if err != nil {
		own = map[string]any{"invalid": entry.Values}
	}
	parts := []any{own, entry.ValuesFrom, contentOptions(entry)}
	if entry.ValuesTemplate != nil {
		parts = append(parts, entry.ValuesTemplate)
	}
	said, err := statemanager.Fingerprint(parts...)
	if err != nil {
		return "", fmt.Errorf("fingerprint of service %s: %w", entry.Key(), err)
	}
	return said[:entryDigits], nil
}

// deployedAs is the fingerprint for the state of a service that is Deployed: 16 digits for its entry, and as many for all that it is made of.
func deployedAs(entry *v1alpha1.ServiceWithValues, found *carrier.Found) (string, error) {
	said, err := entryContent(entry)
	if err != nil {
		return "", err
	}
	named := carrier.Unsalted(found.Seal)
	return said + named[:min(entryDigits, len(named))], nil
}

// saysWhatWasDeployed tells whether an entry says what it said when the service was Deployed last, whatever what it names says now.
func saysWhatWasDeployed(entry *v1alpha1.ServiceWithValues, last *v1alpha1.LastDeployed) bool {
	if last == nil || len(last.Fingerprint) < entryDigits || last.Template != entry.Template || last.Version != entry.Version {
		return false
	}
	said, err := entryContent(entry)
	return err == nil && last.Fingerprint[:entryDigits] == said
}
