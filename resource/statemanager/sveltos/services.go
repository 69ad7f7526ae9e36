package sveltos

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/internal/exact"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

// entry is what a profile has of one service: exactly one of the three.
type entry struct {
	chart         *v1beta1.HelmChart
	kustomization *v1beta1.KustomizationRef
	policy        *v1beta1.PolicyRef
}

// feature is the part of a profile that an entry is in.
func (e entry) feature() v1beta1.FeatureID {
	switch {
	case e.chart != nil:
		return v1beta1.FeatureHelm
	case e.kustomization != nil:
		return v1beta1.FeatureKustomize
	}
	return v1beta1.FeatureResources
}

// uninstalls tells whether the entry has Sveltos take a release away.
func (e entry) uninstalls() bool {
	return e.chart != nil && e.chart.HelmChartAction == string(v1alpha1.HelmActionUninstall)
}

// serviceType is what a service with the entry is made of.
func (e entry) serviceType() v1alpha1.ServiceType {
	switch e.feature() {
	case v1beta1.FeatureHelm:
		return v1alpha1.ServiceTypeHelm
	case v1beta1.FeatureKustomize:
		return v1alpha1.ServiceTypeKustomize
	}
	return v1alpha1.ServiceTypeResource
}

// addTo puts an entry into the spec of a profile.
func (e entry) addTo(spec *v1beta1.Spec) {
	switch e.feature() {
	case v1beta1.FeatureHelm:
		spec.HelmCharts = append(spec.HelmCharts, *e.chart)
	case v1beta1.FeatureKustomize:
		spec.KustomizationRefs = append(spec.KustomizationRefs, *e.kustomization)
	default:
		spec.PolicyRefs = append(spec.PolicyRefs, *e.policy)
	}
}

// expressed returns what a profile says of a service. The error says what Sveltos can't do, or what is missing.
func expressed(set *statemanager.Set, service *v1alpha1.ServiceWithValues) (entry, error) {
	template := set.Templates[service.Template]
	if template == nil {
		return entry{}, fmt.Errorf("there is no ServiceTemplate %q in the namespace %q", service.Template, set.ServiceSet.Namespace)
	}
	if service.Adopt {
		return entry{}, framework.Permanent(errors.New(
			"adopt can't be said to Sveltos, which takes releases over by rules of its own: leave it out, or use the provider native"))
	}
	if service.MaxAttempts > 0 {
		return entry{}, framework.Permanent(errors.New(
			"maxAttempts can't be said to Sveltos for one service: leave it out, or use the provider native"))
	}
	if service.ServiceAccountName != "" || set.Config.ServiceAccountName != "" {
		return entry{}, framework.Permanent(errors.New(
			"serviceAccountName can't be said to Sveltos, which knows tenants by its own means: leave it out, or use the provider native"))
	}
	if len(set.ServiceSet.Spec.ChangeWindows) > 0 {
		return entry{}, framework.Permanent(errors.New(
			"changeWindows can't be said to Sveltos: leave them out, or use the provider native"))
	}
	if len(service.Patches) > 0 {
		return entry{}, framework.Permanent(errors.New(
			"patches can't be said to Sveltos for one service: leave them out, or use the provider native"))
	}
	if len(service.HealthCheckExprs) > 0 {
		return entry{}, framework.Permanent(errors.New(
			"healthCheckExprs can't be said to Sveltos for one service: leave them out, or use the provider native"))
	}
	if len(service.IgnoreDifferences) > 0 {
		return entry{}, framework.Permanent(errors.New(
			"ignoreDifferences can't be said to Sveltos for one service: leave it out, or use the provider native"))
	}
	if service.HelmAction == v1alpha1.HelmActionUninstall && template.Spec.Helm == nil {
		return entry{}, framework.Permanent(errors.New(
			"helmAction Uninstall can be said to Sveltos for charts only: take the service out of the list, or use the provider native"))
	}
	for i, from := range service.ValuesFrom {
		if from.Key != "" {
			return entry{}, framework.Permanent(fmt.Errorf(
				"valuesFrom[%d] asks for the key %q of a %s, but Sveltos takes all its entries: leave the key out, and have an object for these values only",
				i, from.Key, from.Kind))
		}
		if from.TargetPath != "" {
			return entry{}, framework.Permanent(fmt.Errorf(
				"valuesFrom[%d] has a targetPath, which Sveltos does not know: have the entries of the %s be YAML with all of the path, or use the provider native",
				i, from.Kind))
		}
	}
	switch spec := &template.Spec; {
	case spec.Helm != nil:
		chart, err := chartOf(set.ServiceSet, service, spec.Helm)
		return entry{chart: chart}, err
	case spec.Kustomize != nil:
		kustomization, err := kustomizationOf(set.ServiceSet, service, spec.Kustomize)
		return entry{kustomization: kustomization}, err
	case spec.Resources != nil:
		policy, err := policyOf(set.ServiceSet, service, spec.Resources)
		return entry{policy: policy}, err
	}
	return entry{}, framework.Permanent(fmt.Errorf("the ServiceTemplate %q has neither helm nor kustomize nor resources", template.Name))
}

var errDigest = framework.Permanent(errors.New(
	"the template pins a digest, which Sveltos does not verify: leave the digest out, or use the provider native"))

// errNative is for sources that Sveltos does not know.
var errNative = framework.Permanent(errors.New(
	"the template has a repository of Git, or signatures to verify, which Sveltos does by Flux' sources only: use the provider native"))

func chartOf(set *v1alpha1.ServiceSet, service *v1alpha1.ServiceWithValues, from *v1alpha1.HelmChart) (*v1beta1.HelmChart, error) {
	if from.Digest != "" {
		return nil, errDigest
	}
	if from.Ref != "" || from.Verify != nil {
		return nil, errNative
	}
	key := service.Key()
	chart := &v1beta1.HelmChart{
		RepositoryURL: from.Repository, RepositoryName: service.Template, ChartName: from.Chart, ChartVersion: from.Version,
		ReleaseName: key.Name, ReleaseNamespace: key.Namespace, HelmChartAction: string(v1alpha1.HelmActionInstall),
		Values: service.Values, ValuesFrom: valuesFrom(set, service), Options: optionsOf(service.HelmOptions),
	}
	// Where a repository is an index, Sveltos looks the chart up by the names of both, as Helm does.
	if !strings.HasPrefix(from.Repository, "oci://") {
		chart.ChartName = chart.RepositoryName + "/" + from.Chart
	}
	if service.HelmAction != "" {
		chart.HelmChartAction = string(service.HelmAction)
	}
	if from.SecretName != "" {
		chart.RegistryCredentialsConfig = &v1beta1.RegistryCredentialsConfig{Credentials: &corev1.SecretReference{
			Name: from.SecretName, Namespace: set.Namespace,
		}}
	}
	return chart, nil
}

func optionsOf(o *v1alpha1.ServiceHelmOptions) *v1beta1.HelmOptions {
	if o == nil {
		return nil
	}
	options := &v1beta1.HelmOptions{
		Wait: o.Wait, WaitForJobs: o.WaitForJobs, Timeout: o.Timeout, Atomic: o.Atomic, SkipCRDs: o.SkipCRDs,
		DisableHooks: o.DisableHooks, DisableOpenAPIValidation: o.DisableOpenAPIValidation, SkipSchemaValidation: o.SkipSchemaValidation,
		DependencyUpdate: o.DependencyUpdate, Labels: o.Labels, Description: o.Description,
	}
	if o.CreateNamespace != nil || o.Replace != nil {
		options.InstallOptions = &v1beta1.HelmInstallOptions{CreateNamespace: o.CreateNamespace, Replace: o.Replace, DisableHooks: o.DisableHooks}
	}
	return options
}

func valuesFrom(set *v1alpha1.ServiceSet, service *v1alpha1.ServiceWithValues) []v1beta1.ValueFrom {
	var from []v1beta1.ValueFrom
	for _, v := range service.ValuesFrom {
		from = append(from, v1beta1.ValueFrom{Kind: v.Kind, Name: v.Name, Namespace: set.Namespace, Optional: v.Optional})
	}
	return from
}

func kustomizationOf(set *v1alpha1.ServiceSet, service *v1alpha1.ServiceWithValues, from *v1alpha1.FileSource) (*v1beta1.KustomizationRef, error) {
	source, err := sourceOf(set, from)
	if err != nil {
		return nil, err
	}
	values, err := substitutions(service.Values)
	if err != nil {
		return nil, err
	}
	return &v1beta1.KustomizationRef{
		Kind: source.kind, Name: source.name, Namespace: source.namespace, RemoteURL: source.remote, Path: from.Path,
		TargetNamespace: service.Key().Namespace, Values: values, ValuesFrom: valuesFrom(set, service), DeploymentType: "Remote",
	}, nil
}

func policyOf(set *v1alpha1.ServiceSet, service *v1alpha1.ServiceWithValues, from *v1alpha1.FileSource) (*v1beta1.PolicyRef, error) {
	if service.Values != "" || len(service.ValuesFrom) > 0 {
		return nil, framework.Permanent(errors.New("plain manifests have no values in Sveltos: leave values and valuesFrom out, or use the provider native"))
	}
	source, err := sourceOf(set, from)
	if err != nil {
		return nil, err
	}
	return &v1beta1.PolicyRef{
		Kind: source.kind, Name: source.name, Namespace: source.namespace, RemoteURL: source.remote, Path: from.Path, DeploymentType: "Remote",
	}, nil
}

// source is where Sveltos gets files.
type source struct {
	kind, name, namespace string
	remote                *v1beta1.RemoteURL
}

func sourceOf(set *v1alpha1.ServiceSet, from *v1alpha1.FileSource) (source, error) {
	if local := from.LocalSource; local != nil {
		return source{kind: local.Kind, name: local.Name, namespace: set.Namespace}, nil
	}
	if from.Artifact == nil {
		return source{}, framework.Permanent(errors.New("the template has neither localSource nor artifact"))
	}
	if from.Artifact.Digest != "" {
		return source{}, errDigest
	}
	if from.Artifact.Ref != "" || from.Artifact.Verify != nil {
		return source{}, errNative
	}
	remote := &v1beta1.RemoteURL{URL: from.Artifact.URL}
	if name := from.Artifact.SecretName; name != "" {
		remote.SecretRef = &corev1.SecretReference{Name: name, Namespace: set.Namespace}
	}
	return source{remote: remote}, nil
}

// substitutions reads the values of a kustomization, which are texts by name.
func substitutions(values string) (map[string]string, error) {
	all, err := exact.Map([]byte(values))
	if err != nil {
		return nil, framework.Permanent(errors.New("the values are no YAML mapping"))
	}
	texts := make(map[string]string, len(all))
	for name, value := range all {
		switch v := value.(type) {
		case string:
			texts[name] = v
		case map[string]any, []any, nil:
			return nil, framework.Permanent(fmt.Errorf("the value %q is no text, number or truth value, which is all that Sveltos substitutes in a kustomization", name))
		default:
			raw, err := json.Marshal(v)
			if err != nil {
				return nil, framework.Permanent(fmt.Errorf("the value %q can't be written as text: %w", name, err))
			}
			texts[name] = string(raw)
		}
	}
	if len(texts) == 0 {
		return nil, nil
	}
	return texts, nil
}
