package sveltos

import (
	"encoding/json"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

// ServicesAnnotation has, as JSON, which service each entry of a profile is: Sveltos names charts only.
const ServicesAnnotation = "services.operatorkit.io/services"

// record is what the annotation has of one service, in the order of the entries in each feature.
type record struct {
	Namespace   string                      `json:"namespace"`
	Name        string                      `json:"name"`
	Feature     v1beta1.FeatureID           `json:"feature"`
	Template    string                      `json:"template"`
	Version     string                      `json:"version,omitempty"`
	Fingerprint string                      `json:"fingerprint"`
	DependsOn   []v1alpha1.ServiceDependsOn `json:"dependsOn,omitempty"`
}

func (r record) key() client.ObjectKey { return client.ObjectKey{Namespace: r.Namespace, Name: r.Name} }

// placed is a service with its entry in a profile.
type placed struct {
	record
	entry entry
}

// placedIn returns the services of a profile, in the order of their records. What has no record is not ours, or was
// changed by hand, and is not among them.
func placedIn(profile client.Object) []placed {
	if profile == nil {
		return nil
	}
	var records []record
	if err := json.Unmarshal([]byte(profile.GetAnnotations()[ServicesAnnotation]), &records); err != nil {
		return nil
	}
	spec := specOf(profile)
	next := map[v1beta1.FeatureID]int{}
	var services []placed
	for _, r := range records {
		i := next[r.Feature]
		next[r.Feature]++
		var e entry
		switch {
		case r.Feature == v1beta1.FeatureHelm && i < len(spec.HelmCharts):
			e.chart = &spec.HelmCharts[i]
		case r.Feature == v1beta1.FeatureKustomize && i < len(spec.KustomizationRefs):
			e.kustomization = &spec.KustomizationRefs[i]
		case r.Feature == v1beta1.FeatureResources && i < len(spec.PolicyRefs):
			e.policy = &spec.PolicyRefs[i]
		default:
			continue
		}
		services = append(services, placed{r, e})
	}
	return services
}

// find returns the service with a key, or nil.
func find(services []placed, key client.ObjectKey) *placed {
	i := slices.IndexFunc(services, func(p placed) bool { return p.key() == key })
	if i < 0 {
		return nil
	}
	return &services[i]
}

// recordsOf is the annotation of a profile with these services.
func recordsOf(services []placed) (string, error) {
	records := make([]record, 0, len(services))
	for _, p := range services {
		records = append(records, p.record)
	}
	raw, err := json.Marshal(records)
	return string(raw), err
}
