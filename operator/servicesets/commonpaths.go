package servicesets

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// start is where a service stands on some clusters: its template, in the namespace that this one is read from.
type start struct {
	namespace string
	service   client.ObjectKey
	template  string
}

// commonPaths returns where all clusters of a MultiClusterService can go with each service. A cluster that does not have a
// service yet is not looked at: it goes to whatever is desired at once.
func (s *services) commonPaths(ctx context.Context, mcs *v1alpha1.MultiClusterService, state *serviceState) ([]v1alpha1.ServiceUpgradePaths, error) {
	sets, err := s.setsThat(ctx, func(set *v1alpha1.ServiceSet) bool {
		return set.Spec.MultiClusterService == mcs.Name && s.desires(ctx, mcs, state, set)
	})
	if err != nil {
		return nil, err
	}
	seen := map[start]bool{}
	variants := map[client.ObjectKey][]v1alpha1.ServiceUpgradePaths{}
	for _, set := range sets {
		fresh := slices.DeleteFunc(serviceset.ServicesWithDesiredChains(mcs.Spec.ServiceSpec.Services, set.Spec.Services), func(service v1alpha1.Service) bool {
			at := start{set.Namespace, service.Key(), service.Template}
			known := seen[at]
			seen[at] = true
			return known
		})
		paths, err := s.pathsOf(ctx, fresh, set.Namespace)
		if err != nil {
			return nil, err
		}
		found := make(map[client.ObjectKey]v1alpha1.ServiceUpgradePaths, len(fresh))
		for i := range fresh { // of those without paths too, because they can go nowhere
			found[fresh[i].Key()] = v1alpha1.ServiceUpgradePaths{Name: fresh[i].Name, Namespace: fresh[i].Namespace, Template: fresh[i].Template}
		}
		for _, p := range paths {
			found[p.Key()] = p
		}
		for key, p := range found {
			variants[key] = append(variants[key], p)
		}
	}
	var result []v1alpha1.ServiceUpgradePaths
	for _, all := range variants {
		if paths := common(all); len(paths.AvailableUpgrades) > 0 {
			result = append(result, paths)
		}
	}
	slices.SortFunc(result, func(a, b v1alpha1.ServiceUpgradePaths) int {
		return v1alpha1.CompareKeys(a.Key(), b.Key())
	})
	return boundedPaths(result), nil
}

// desires tells whether the cluster of a ServiceSet should have the services.
func (s *services) desires(ctx context.Context, mcs *v1alpha1.MultiClusterService, state *serviceState, set *v1alpha1.ServiceSet) bool {
	if set.Spec.Cluster == "" {
		return selfManaged(mcs)
	}
	cd, err := s.cluster(ctx, client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.Cluster})
	return err == nil && cd.DeletionTimestamp == nil && state.selector.Matches(labels.Set(cd.Labels))
}

// common returns the paths that all variants of a service have.
func common(variants []v1alpha1.ServiceUpgradePaths) v1alpha1.ServiceUpgradePaths {
	result := *variants[0].DeepCopy()
	same := true
	for _, v := range variants[1:] {
		if v.Template != result.Template {
			result.Template = ""
		}
		same = same && equality.Semantic.DeepEqual(v, variants[0])
	}
	if same {
		return result
	}
	goals := goalsOf(&variants[0])
	for i := range variants[1:] {
		others := goalsOf(&variants[1+i])
		maps.DeleteFunc(goals, func(name string, _ v1alpha1.AvailableUpgrade) bool {
			_, ok := others[name]
			return !ok
		})
	}
	result.AvailableUpgrades = nil
	for _, goal := range slices.SortedFunc(maps.Values(goals), func(a, b v1alpha1.AvailableUpgrade) int { return strings.Compare(a.Name, b.Name) }) {
		if goal.Name != result.Template {
			result.AvailableUpgrades = append(result.AvailableUpgrades, v1alpha1.UpgradePath{Versions: []v1alpha1.AvailableUpgrade{goal}})
		}
	}
	return result
}

// goalsOf returns the templates that paths lead to, by name, and the one that they begin at.
func goalsOf(paths *v1alpha1.ServiceUpgradePaths) map[string]v1alpha1.AvailableUpgrade {
	goals := map[string]v1alpha1.AvailableUpgrade{paths.Template: {Name: paths.Template}}
	for _, path := range paths.AvailableUpgrades {
		for _, step := range path.Versions {
			goals[step.Name] = step
		}
	}
	return goals
}
