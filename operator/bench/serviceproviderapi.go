package main

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// order is the API of the service provider.
type order struct {
	metav1.TypeMeta              `json:",inline"`
	metav1.ObjectMeta            `json:"metadata,omitempty"`
	Spec                         orderSpec `json:"spec,omitempty"`
	serviceprovider.CommonStatus `json:"status,omitempty"`
}

type orderSpec struct {
	Settings map[string]string `json:"settings,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (o *order) DeepCopyObject() runtime.Object {
	c := *o
	c.ObjectMeta = *o.ObjectMeta.DeepCopy()
	c.CommonStatus = *o.CommonStatus.DeepCopy()
	c.Spec.Settings = maps.Clone(o.Spec.Settings)
	return &c
}

type orderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []order `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *orderList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*order))
	}
	return &c
}

// providerConfig is a ConfigMap that has nothing to say.
type providerConfig struct {
	corev1.ConfigMap `json:",inline"`
}

func newProviderConfig(namespace string) *providerConfig {
	return &providerConfig{corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "provider"}}}
}

// PollInterval implements serviceprovider.Config.
func (*providerConfig) PollInterval() time.Duration { return 0 }

// DeepCopyObject implements runtime.Object.
func (c *providerConfig) DeepCopyObject() runtime.Object {
	return &providerConfig{*c.DeepCopy()}
}

type providerConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []providerConfig `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *providerConfigList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, providerConfig{*l.Items[i].DeepCopy()})
	}
	return &c
}

// orderKind is that of the orders of one run, whose group nobody else has.
func orderKind(namespace string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: namespace + ".example.com", Version: "v1", Kind: "Order"}
}

func orderScheme(namespace string) *runtime.Scheme {
	s := runtime.NewScheme()
	orders := orderKind(namespace).GroupVersion()
	s.AddKnownTypeWithName(orders.WithKind("Order"), &order{})
	s.AddKnownTypeWithName(orders.WithKind("OrderList"), &orderList{})
	metav1.AddToGroupVersion(s, orders)
	s.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("ConfigMap"), &providerConfig{})
	s.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("ConfigMapList"), &providerConfigList{})
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Event{}, &corev1.EventList{})
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	return s
}

// orderDefinition is the custom resource definition.
func orderDefinition(namespace string) *unstructured.Unstructured {
	group := orderKind(namespace).Group
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "orders." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"kind": "Order", "listKind": "OrderList", "plural": "orders", "singular": "order"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": open, "status": open},
				}},
			}},
		},
	}}
}

// orderCounter is an author who has nothing to do.
type orderCounter struct{ done *countdown }

// CreateOrUpdate implements serviceprovider.Reconciler.
func (c orderCounter) CreateOrUpdate(context.Context, *order, *providerConfig, serviceprovider.ClusterContext) (reconcile.Result, error) {
	c.done.one()
	return reconcile.Result{}, nil
}

// Delete implements serviceprovider.Reconciler.
func (orderCounter) Delete(context.Context, *order, *providerConfig, serviceprovider.ClusterContext) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

// accessAtHand is access to a cluster that everybody has: what is measured is the runtime.
type accessAtHand struct{ cluster *clusters.Cluster }

// MCPCluster implements serviceprovider.ClusterAccessProvider.
func (a accessAtHand) MCPCluster(context.Context, reconcile.Request) (*clusters.Cluster, error) {
	return a.cluster, nil
}

// MCPAccessRequest implements serviceprovider.ClusterAccessProvider.
func (accessAtHand) MCPAccessRequest(context.Context, reconcile.Request) (*v1alpha1.AccessRequest, error) {
	return &v1alpha1.AccessRequest{Status: v1alpha1.AccessRequestStatus{
		Phase: v1alpha1.PhaseGranted, SecretRef: &v1alpha1.LocalObjectReference{Name: "at-hand"},
	}}, nil
}

// WorkloadCluster implements serviceprovider.ClusterAccessProvider.
func (a accessAtHand) WorkloadCluster(ctx context.Context, request reconcile.Request) (*clusters.Cluster, error) {
	return a.MCPCluster(ctx, request)
}

// WorkloadAccessRequest implements serviceprovider.ClusterAccessProvider.
func (a accessAtHand) WorkloadAccessRequest(ctx context.Context, request reconcile.Request) (*v1alpha1.AccessRequest, error) {
	return a.MCPAccessRequest(ctx, request)
}

// Reconcile implements serviceprovider.ClusterAccessProvider.
func (accessAtHand) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

// ReconcileDelete implements serviceprovider.ClusterAccessProvider.
func (accessAtHand) ReconcileDelete(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}
