package serviceset

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// ResolveServiceVersions fills in the versions of services that have none: a template's version, or else that of its chart,
// or else its name. Services that say their template by a chain and a version get the template, the first by name where
// several have the version. Templates and chains are read from namespace.
//
// services is a []v1alpha1.Service or a []v1alpha1.ServiceWithValues, whose elements are changed. The error is a
// *MissingError that names every service which can't be resolved; the others are filled in.
func ResolveServiceVersions(ctx context.Context, c client.Reader, namespace string, services any) error {
	switch services.(type) {
	case []v1alpha1.Service, []v1alpha1.ServiceWithValues:
	default:
		return fmt.Errorf("services are a %T: give a []v1alpha1.Service or a []v1alpha1.ServiceWithValues", services)
	}
	known, objects, err := readTemplates(ctx, c, namespace)
	if err != nil {
		return err
	}
	missing := &MissingError{Namespace: namespace}
	switch list := services.(type) {
	case []v1alpha1.Service:
		fillServices(list, newChains(objects, known), missing)
	case []v1alpha1.ServiceWithValues:
		fillEntries(list, known, missing)
	}
	if len(missing.Missing) > 0 {
		return missing
	}
	return nil
}

func fillServices(services []v1alpha1.Service, chains *chains, missing *MissingError) {
	for i := range services {
		s := &services[i]
		if s.Template != "" && s.Version != "" {
			continue
		}
		version, why := chains.resolve(s, "")
		s.Template, s.Version = version.Template, version.Version
		if why != nil {
			object := MissingObject{Kind: v1alpha1.ServiceTemplateKind, Name: s.Template, Service: s.Key()}
			if s.Template == "" && why.reason == v1alpha1.ReasonTemplateMissing {
				object.Reason = why.message
			} else if why.reason != v1alpha1.ReasonTemplateMissing {
				object.Kind, object.Name, object.Reason = v1alpha1.ServiceTemplateChainKind, s.TemplateChain, "can't be used: "+why.message
			}
			missing.Missing = append(missing.Missing, object)
		}
	}
}

func fillEntries(services []v1alpha1.ServiceWithValues, known templates, missing *MissingError) {
	for i := range services {
		s := &services[i]
		if s.Version != "" {
			continue
		}
		t := known[s.Template]
		if t == nil {
			object := MissingObject{Kind: v1alpha1.ServiceTemplateKind, Name: s.Template, Service: s.Key()}
			if s.Template == "" {
				object.Reason = "set template"
			}
			missing.Missing = append(missing.Missing, object)
			continue
		}
		s.Version = templateVersion(t)
	}
}
