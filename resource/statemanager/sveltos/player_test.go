package sveltos_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

// The functions below write what Sveltos writes into ClusterSummaries.

// profile reads the profile of a set; nil if there is none.
func (w *world) profile(set *statemanager.Set) *v1beta1.Profile {
	w.t.Helper()
	p := &v1beta1.Profile{}
	err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(set.ServiceSet), p)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// takesNote makes the ClusterSummary of a set's profile, or brings its copy of the profile up to date.
func (w *world) takesNote(set *statemanager.Set) {
	w.t.Helper()
	profile := &unstructured.Unstructured{}
	profile.SetGroupVersionKind(v1beta1.ConfigGroupVersion.WithKind(v1beta1.ProfileKind))
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(set.ServiceSet), profile); err != nil {
		w.t.Fatal(err)
	}
	if err := note(w.t.Context(), w.client, profile, w.namespace, set.ServiceSet.Spec.Cluster); err != nil {
		w.t.Fatal(err)
	}
}

// note makes the ClusterSummary of a profile on a cluster, or brings its copy of the profile up to date.
func note(ctx context.Context, user client.Client, profile *unstructured.Unstructured, namespace, cluster string) error {
	summary := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"clusterNamespace": namespace, "clusterName": cluster, "clusterType": "Sveltos", "clusterProfileSpec": profile.Object["spec"],
	}}}
	summary.SetGroupVersionKind(v1beta1.ConfigGroupVersion.WithKind(v1beta1.ClusterSummaryKind))
	summary.SetNamespace(namespace)
	summary.SetName("p--" + profile.GetName())
	label := v1beta1.ProfileLabel
	if profile.GetKind() == v1beta1.ClusterProfileKind {
		label = v1beta1.ClusterProfileLabel
	}
	// Sveltos tells its summaries which of them are paused.
	summary.SetAnnotations(map[string]string{v1beta1.PausedAnnotation: "false"})
	summary.SetLabels(map[string]string{label: profile.GetName(), v1beta1.ClusterNameLabel: cluster, v1beta1.ClusterTypeLabel: "Sveltos"})
	return user.Apply(ctx, client.ApplyConfigurationFromUnstructured(summary), client.FieldOwner("sveltos"), client.ForceOwnership)
}

// says is one thing that Sveltos reports.
type says func(status map[string]any)

// feature reports how far a feature is.
func feature(id v1beta1.FeatureID, status v1beta1.FeatureStatus, hash, message string) says {
	return func(s map[string]any) {
		f := map[string]any{"featureID": string(id), "status": string(status), "hash": base64.StdEncoding.EncodeToString([]byte(hash))}
		if message != "" {
			f["failureMessage"] = message
		}
		all, _ := s["featureSummaries"].([]any)
		s["featureSummaries"] = append(all, f)
	}
}

// release reports how a release is.
func release(name string, status v1beta1.ReleaseStatus, message string) says {
	return func(s map[string]any) {
		r := map[string]any{"releaseName": name, "releaseNamespace": "apps", "status": string(status)}
		switch {
		case status == v1beta1.ReleaseConflict:
			r["conflictMessage"] = message
		case message != "":
			r["failureMessage"] = message
		}
		all, _ := s["helmReleaseSummaries"].([]any)
		s["helmReleaseSummaries"] = append(all, r)
	}
}

// reports replaces the status of a set's ClusterSummary.
func (w *world) reports(set *statemanager.Set, what ...says) {
	w.t.Helper()
	if err := tell(w.t.Context(), w.client, client.ObjectKey{Namespace: w.namespace, Name: "p--" + set.ServiceSet.Name}, what...); err != nil {
		w.t.Fatal(err)
	}
}

// tell replaces the status of a ClusterSummary.
func tell(ctx context.Context, user client.Client, key client.ObjectKey, what ...says) error {
	summary := &unstructured.Unstructured{}
	summary.SetGroupVersionKind(v1beta1.ConfigGroupVersion.WithKind(v1beta1.ClusterSummaryKind))
	if err := user.Get(ctx, key, summary); err != nil {
		return err
	}
	status := map[string]any{}
	for _, say := range what {
		say(status)
	}
	summary.Object["status"] = status
	return user.Status().Update(ctx, summary)
}

// plays is what Sveltos does for the profiles of a namespace, and of sets there, at once and without fail: it takes note of them, deploys
// what they have, and forgets those that are gone. Those that are paused it leaves alone, also when they are gone. The management cluster is "mgmt" in that namespace.
func plays(ctx context.Context, user client.Client, namespace string) error {
	var profiles []unstructured.Unstructured
	for _, kind := range []string{v1beta1.ProfileKind, v1beta1.ClusterProfileKind} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1beta1.ConfigGroupVersion.WithKind(kind + "List"))
		if err := user.List(ctx, list, client.InNamespace(namespace)); err != nil { // ClusterProfiles have none
			return err
		}
		profiles = append(profiles, slices.DeleteFunc(list.Items, func(p unstructured.Unstructured) bool {
			return p.GetNamespace() != namespace && !strings.HasPrefix(p.GetAnnotations()[sveltos.SetAnnotation], namespace+"/")
		})...)
	}
	summaries := &v1beta1.ClusterSummaryList{}
	if err := user.List(ctx, summaries, client.InNamespace(namespace)); err != nil {
		return err
	}
	alive := map[string]bool{}
	for i := range profiles {
		profile, cluster := &profiles[i], profiles[i].GetName()
		if profile.GetKind() == v1beta1.ClusterProfileKind {
			cluster = sveltos.DefaultManagementName
		}
		alive["p--"+profile.GetName()] = true
		if profile.GetAnnotations()[v1beta1.PausedAnnotation] == "true" {
			paused := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1beta1.PausedAnnotation+`":"true"}}}`))
			summary := &v1beta1.ClusterSummary{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p--" + profile.GetName()}}
			if err := user.Patch(ctx, summary, paused); client.IgnoreNotFound(err) != nil {
				return err
			}
			continue
		}
		if err := note(ctx, user, profile, namespace, cluster); err != nil {
			return err
		}
		spec, _ := profile.Object["spec"].(map[string]any)
		what := []says{
			feature(v1beta1.FeatureHelm, v1beta1.FeatureProvisioned, digest(namespace, spec["helmCharts"]), ""),
			feature(v1beta1.FeatureKustomize, v1beta1.FeatureProvisioned, digest(namespace, spec["kustomizationRefs"]), ""),
			feature(v1beta1.FeatureResources, v1beta1.FeatureProvisioned, digest(namespace, spec["policyRefs"]), ""),
		}
		charts, _ := spec["helmCharts"].([]any)
		for _, c := range charts {
			what = append(what, release(c.(map[string]any)["releaseName"].(string), v1beta1.ReleaseManaging, ""))
		}
		if err := tell(ctx, user, client.ObjectKey{Namespace: namespace, Name: "p--" + profile.GetName()}, what...); err != nil {
			return err
		}
	}
	for i := range summaries.Items {
		if s := &summaries.Items[i]; !alive[s.Name] && s.Annotations[v1beta1.PausedAnnotation] != "true" {
			if err := user.Delete(ctx, s); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

// digest is the hash of a feature, which is the same in every namespace.
func digest(namespace string, of any) string {
	raw, err := json.Marshal(of)
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(bytes.ReplaceAll(raw, []byte(namespace), nil))
	return hex.EncodeToString(sum[:8])
}

// withdraws removes the ClusterSummary of a set, as Sveltos does when everything is gone.
func (w *world) withdraws(set *statemanager.Set) {
	w.t.Helper()
	summary := &v1beta1.ClusterSummary{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "p--" + set.ServiceSet.Name}}
	if err := w.client.Delete(w.t.Context(), summary); err != nil {
		w.t.Fatal(err)
	}
}
