package sveltos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

// Annotations of profiles.
const (
	// SetAnnotation has the namespace and the name of the ServiceSet.
	SetAnnotation = "services.operatorkit.io/service-set"
	// HashesAnnotation has, as JSON, the hashes that the features had in the ClusterSummary when the profile was written, and which
	// entries each is the hash of. What Sveltos reports with one of them is about an earlier profile.
	HashesAnnotation = "services.operatorkit.io/hashes-before"
)

// maxName is how long the name of a profile may be, in bytes: Sveltos makes a label of it.
const maxName = validation.LabelValueMaxLength

// Tier returns the tier of a profile for the priority of its owner: the higher the priority, the lower the tier, and the lower
// tier wins. The whole range of priorities, 1 to 2147483646, is a range of tiers.
func Tier(priority int32) (int32, error) {
	if priority < 1 || priority == math.MaxInt32 {
		return 0, framework.Permanent(fmt.Errorf("the priority %d is not between 1 and %d", priority, math.MaxInt32-1))
	}
	return math.MaxInt32 - priority, nil
}

// profileKey names the profile of a set. A name that is too long for a label is shortened, with a hash of all of it.
func profileKey(set *v1alpha1.ServiceSet) client.ObjectKey {
	key := client.ObjectKey{Namespace: set.Namespace, Name: set.Name}
	if set.Spec.Cluster == "" {
		key = client.ObjectKey{Name: set.Namespace + "." + set.Name}
	}
	if len(key.Name) > maxName {
		sum := sha256.Sum256([]byte(key.Name))
		hash := hex.EncodeToString(sum[:8])
		key.Name = key.Name[:maxName-len(hash)-1] + "-" + hash
	}
	return key
}

// newProfile returns an empty profile of the kind that a set needs.
func newProfile(set *v1alpha1.ServiceSet) client.Object {
	if set.Spec.Cluster == "" {
		return &v1beta1.ClusterProfile{}
	}
	return &v1beta1.Profile{}
}

// specOf returns the spec of a profile of either kind.
func specOf(profile client.Object) *v1beta1.Spec {
	switch p := profile.(type) {
	case *v1beta1.Profile:
		return &p.Spec
	case *v1beta1.ClusterProfile:
		return &p.Spec
	}
	return nil
}

// keepers returns who makes profiles, by the framework that the context belongs to, and who it was under former names.
func (m *Manager) keepers(ctx context.Context) (now carrier.Keeper, former []carrier.Keeper) {
	return carrier.Keepers(ctx, m.Name(), m.config.FormerNames, "")
}

// ownerOf is the owner of what a keeper makes for a set.
func ownerOf(keeper carrier.Keeper, set *v1alpha1.ServiceSet) carrier.Owner {
	return carrier.Owner{Keeper: keeper, Namespace: set.Namespace, Name: set.Name, UID: set.UID}
}

// isOurs tells whether a profile is a set's by this state manager, be it under a former name.
func (m *Manager) isOurs(ctx context.Context, profile client.Object, set *v1alpha1.ServiceSet) bool {
	keeper, former := m.keepers(ctx)
	return slices.Contains(ownerOf(keeper, set).IDs(former), profile.GetLabels()[carrier.OwnerLabel])
}

// providerConfig is what a set may say to this state manager beyond statemanager.Config.
type providerConfig struct {
	// ClusterRef names the cluster as Sveltos should see it. Its namespace is that of the set.
	ClusterRef *corev1.ObjectReference `json:"clusterRef,omitempty"`
}

// clusterRef names the cluster of a set. It tells whether that is a SveltosCluster which is made when it is missing.
func (m *Manager) clusterRef(set *v1alpha1.ServiceSet) (ref corev1.ObjectReference, ours bool, err error) {
	ref = corev1.ObjectReference{
		APIVersion: v1beta1.LibGroupVersion.String(), Kind: v1beta1.SveltosClusterKind, Namespace: set.Namespace, Name: set.Spec.Cluster,
	}
	if set.Spec.Cluster == "" {
		ref.Namespace, ref.Name = m.config.Management.Namespace, m.config.Management.Name
		return ref, false, nil
	}
	given := providerConfig{}
	if raw := set.Spec.Provider.Config; raw != nil {
		if err := json.Unmarshal(raw.Raw, &given); err != nil {
			return ref, false, framework.Permanent(fmt.Errorf("spec.provider.config.clusterRef can't be read: %w", err))
		}
	}
	if given.ClusterRef == nil {
		return ref, true, nil
	}
	if given.ClusterRef.APIVersion == "" || given.ClusterRef.Kind == "" || given.ClusterRef.Name == "" {
		return ref, false, framework.Permanent(fmt.Errorf("spec.provider.config.clusterRef needs apiVersion, kind and name"))
	}
	if n := given.ClusterRef.Namespace; n != "" && n != set.Namespace {
		return ref, false, framework.Permanent(fmt.Errorf(
			"spec.provider.config.clusterRef is in the namespace %q: a cluster has to be in the namespace of its ServiceSet, %q", n, set.Namespace))
	}
	ref.APIVersion, ref.Kind, ref.Name = given.ClusterRef.APIVersion, given.ClusterRef.Kind, given.ClusterRef.Name
	return ref, false, nil
}

// frame returns the spec of a profile without its services.
func (m *Manager) frame(set *statemanager.Set) (v1beta1.Spec, error) {
	ref, _, err := m.clusterRef(set.ServiceSet)
	if err != nil {
		return v1beta1.Spec{}, err
	}
	tier, err := Tier(set.Config.Priority)
	if err != nil {
		return v1beta1.Spec{}, err
	}
	return v1beta1.Spec{
		ClusterRefs: []corev1.ObjectReference{ref}, SyncMode: string(set.Config.SyncMode), Tier: tier,
		ContinueOnConflict: !set.Config.StopOnConflict, ContinueOnError: set.Config.ContinueOnError, Reloader: set.Config.Reload,
		StopMatchingBehavior: "WithdrawPolicies",
	}, nil
}

// cluster returns the SveltosCluster for the ClusterDeployment of a set, and nil when it is not ours to make.
func (m *Manager) cluster(set *statemanager.Set) (*v1beta1.SveltosCluster, error) {
	_, ours, err := m.clusterRef(set.ServiceSet)
	if err != nil || !ours || set.Cluster == nil {
		return nil, err
	}
	cd := set.Cluster
	cluster := &v1beta1.SveltosCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: cd.Namespace, Name: cd.Name, Labels: map[string]string{v1alpha1.ClusterLabel: cd.Name},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ClusterDeploymentKind, Name: cd.Name, UID: cd.UID,
		}},
	}}
	cluster.Spec = v1beta1.SveltosClusterSpec{KubeconfigName: cd.Spec.Kubeconfig.SecretName, KubeconfigKeyName: cd.Spec.Kubeconfig.Key}
	if cluster.Spec.KubeconfigName == "" {
		cluster.Spec.KubeconfigName = cd.Name + "-kubeconfig"
	}
	if cluster.Spec.KubeconfigKeyName == "" {
		cluster.Spec.KubeconfigKeyName = "value"
	}
	return cluster, nil
}
