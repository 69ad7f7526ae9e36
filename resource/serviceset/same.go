package serviceset

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// sameSet tells whether writing one ServiceSet over another would change nothing that counts: the order of lists that are
// maps, spaces and the order of keys in JSON, and empty or absent namespaces and lists do not.
func sameSet(a, b *v1alpha1.ServiceSet) bool {
	return maps.Equal(a.Labels, b.Labels) &&
		maps.Equal(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences) &&
		sameSpec(&a.Spec, &b.Spec)
}

func sameSpec(a, b *v1alpha1.ServiceSetSpec) bool {
	return a.Cluster == b.Cluster &&
		a.MultiClusterService == b.MultiClusterService &&
		a.Provider.Name == b.Provider.Name &&
		a.Provider.SelfManagement == b.Provider.SelfManagement &&
		sameJSON(a.Provider.Config, b.Provider.Config) &&
		slices.Equal(a.ChangeWindows, b.ChangeWindows) &&
		sameByKey(a.Services, b.Services, (*v1alpha1.ServiceWithValues).Key, sameEntry) &&
		sameByKey(a.Removing, b.Removing, (*v1alpha1.ServiceRemoval).Key, sameRemoval)
}

// sameEntry looks at all but the generation, which follows from the rest.
func sameEntry(a, b *v1alpha1.ServiceWithValues) bool {
	return a.Template == b.Template &&
		a.Version == b.Version &&
		equality.Semantic.DeepEqual(a.UpgradingTo, b.UpgradingTo) &&
		sameValues(a, b) &&
		sameByKey(a.DependsOn, b.DependsOn, (*v1alpha1.ServiceDependsOn).Key, sameDependency)
}

// sameValues tells whether two entries are rolled out alike in one version.
func sameValues(a, b *v1alpha1.ServiceWithValues) bool {
	return a.Values == b.Values &&
		equality.Semantic.DeepEqual(a.ValuesTemplate, b.ValuesTemplate) &&
		slices.Equal(a.ValuesFrom, b.ValuesFrom) &&
		a.HelmAction == b.HelmAction &&
		a.Adopt == b.Adopt &&
		a.MaxAttempts == b.MaxAttempts &&
		a.ServiceAccountName == b.ServiceAccountName &&
		equality.Semantic.DeepEqual(a.HelmOptions, b.HelmOptions) &&
		equality.Semantic.DeepEqual(a.Patches, b.Patches) &&
		slices.Equal(a.HealthCheckExprs, b.HealthCheckExprs) &&
		equality.Semantic.DeepEqual(a.IgnoreDifferences, b.IgnoreDifferences)
}

func sameRemoval(a, b *v1alpha1.ServiceRemoval) bool {
	return a.ServiceAccountName == b.ServiceAccountName &&
		sameByKey(a.DependsOn, b.DependsOn, (*v1alpha1.ServiceDependsOn).Key, sameDependency)
}

// sameDependency needs no look: the key is all.
func sameDependency(_, _ *v1alpha1.ServiceDependsOn) bool { return true }

// sameByKey compares two lists whose elements have keys.
func sameByKey[T any](a, b []T, key func(*T) client.ObjectKey, same func(a, b *T) bool) bool {
	if len(a) != len(b) {
		return false
	}
	if slices.EqualFunc(a, b, func(x, y T) bool { return key(&x) == key(&y) && same(&x, &y) }) {
		return true
	}
	found := make(map[client.ObjectKey]*T, len(a))
	for i := range a {
		found[key(&a[i])] = &a[i]
	}
	for i := range b {
		k := key(&b[i])
		other := found[k]
		if other == nil || !same(other, &b[i]) {
			return false
		}
		delete(found, k)
	}
	return true
}

// sameJSON compares two JSON values. What is no JSON is equal only to itself.
func sameJSON(a, b *apiextensionsv1.JSON) bool {
	if a == nil || b == nil {
		return a == b
	}
	if slices.Equal(a.Raw, b.Raw) {
		return true
	}
	var x, y any
	if utiljson.Unmarshal(a.Raw, &x) != nil || utiljson.Unmarshal(b.Raw, &y) != nil {
		return false
	}
	return plan.SameValue(x, y)
}
