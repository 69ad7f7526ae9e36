package serviceprovider_test

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// accessPause is how often objects look whether they have access, in tests.
const accessPause = 100 * time.Millisecond

// simpleAccess keeps AccessRequests in a namespace of the platform cluster, and grants them itself: the credentials are those
// of the administrator. Package clusteraccess has the real one.
type simpleAccess struct {
	platform  client.Client
	namespace string
	ids       []string
	// ungranted has requests wait until somebody grants them.
	ungranted bool
	// fail is what Reconcile returns in place of doing anything.
	fail func() error
	// keeps has requests stay when they are deleted, until somebody removes their finalizer.
	keeps bool
	// place is the role of the cluster of an object, if that is not the id.
	place func(name, id string) string
	// through adjusts the configuration of the clients, by cluster.
	through func(id string, c *clusters.Cluster) (*clusters.Cluster, error)
}

// leavingFinalizer stands for a granter that has something to clean up.
const leavingFinalizer = "services.example.com/granter"

func (a *simpleAccess) key(request ctrl.Request, id string) client.ObjectKey {
	return client.ObjectKey{Namespace: a.namespace, Name: request.Name + "-" + id}
}

func (a *simpleAccess) request(ctx context.Context, request ctrl.Request, id string) (*clustersv1alpha1.AccessRequest, error) {
	ar := &clustersv1alpha1.AccessRequest{}
	return ar, a.platform.Get(ctx, a.key(request, id), ar)
}

func (a *simpleAccess) cluster(ctx context.Context, request ctrl.Request, id string) (*clusters.Cluster, error) {
	ar, err := a.request(ctx, request, id)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	if err := a.platform.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: ar.Status.SecretRef.Name}, secret); err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[clustersv1alpha1.KubeconfigKey])
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	c, err := clusters.New(id, config, scheme)
	if err != nil || a.through == nil {
		return c, err
	}
	return a.through(id, c)
}

func (a *simpleAccess) MCPCluster(ctx context.Context, request ctrl.Request) (*clusters.Cluster, error) {
	return a.cluster(ctx, request, mcp)
}

func (a *simpleAccess) MCPAccessRequest(ctx context.Context, request ctrl.Request) (*clustersv1alpha1.AccessRequest, error) {
	return a.request(ctx, request, mcp)
}

func (a *simpleAccess) WorkloadCluster(ctx context.Context, request ctrl.Request) (*clusters.Cluster, error) {
	return a.cluster(ctx, request, workload)
}

func (a *simpleAccess) WorkloadAccessRequest(ctx context.Context, request ctrl.Request) (*clustersv1alpha1.AccessRequest, error) {
	return a.request(ctx, request, workload)
}

func (a *simpleAccess) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if a.fail != nil {
		if err := a.fail(); err != nil {
			return ctrl.Result{}, err
		}
	}
	for _, id := range a.ids {
		ar := &clustersv1alpha1.AccessRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.key(request, id).Name},
			Spec:       clustersv1alpha1.AccessRequestSpec{ClusterRef: &clustersv1alpha1.LocalObjectReference{Name: id}},
		}
		if a.keeps {
			ar.Finalizers = []string{leavingFinalizer}
		}
		if err := a.platform.Create(ctx, ar); err != nil && !apierrors.IsAlreadyExists(err) {
			return ctrl.Result{}, err
		}
		if err := a.platform.Get(ctx, client.ObjectKeyFromObject(ar), ar); err != nil {
			return ctrl.Result{}, err
		}
		if ar.Status.Phase == clustersv1alpha1.PhaseGranted && ar.DeletionTimestamp == nil {
			continue
		}
		if a.ungranted || ar.DeletionTimestamp != nil {
			return ctrl.Result{RequeueAfter: accessPause}, nil
		}
		role := id
		if a.place != nil {
			role = a.place(request.Name, id)
		}
		if err := grant(ctx, a.platform, ar, role); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

func (a *simpleAccess) ReconcileDelete(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	left := false
	for _, id := range a.ids {
		ar, err := a.request(ctx, request, id)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return ctrl.Result{}, err
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: ar.Name}}
		if err := client.IgnoreNotFound(a.platform.Delete(ctx, secret)); err != nil {
			return ctrl.Result{}, err
		}
		if err := client.IgnoreNotFound(a.platform.Delete(ctx, ar)); err != nil {
			return ctrl.Result{}, err
		}
		left = true
	}
	if left {
		return ctrl.Result{RequeueAfter: accessPause}, nil
	}
	return ctrl.Result{}, nil
}

// grant writes the Secret and the status of an AccessRequest.
func grant(ctx context.Context, c client.Client, ar *clustersv1alpha1.AccessRequest, id string) error {
	kubeconfig, err := os.ReadFile(planes[id].kube.Kubeconfig())
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ar.Namespace, Name: ar.Name},
		Data:       map[string][]byte{clustersv1alpha1.KubeconfigKey: kubeconfig},
	}
	if err := c.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	before := ar.DeepCopy()
	ar.Status.ObservedGeneration = ar.Generation
	ar.Status.Phase, ar.Status.SecretRef = clustersv1alpha1.PhaseGranted, &clustersv1alpha1.LocalObjectReference{Name: secret.Name}
	return c.Status().Patch(ctx, ar, client.MergeFrom(before))
}

// say sets the phase of an AccessRequest and what it says.
func say(ctx context.Context, c client.Client, key client.ObjectKey, phase clustersv1alpha1.Phase, message string) error {
	ar := &clustersv1alpha1.AccessRequest{}
	if err := c.Get(ctx, key, ar); err != nil {
		return fmt.Errorf("access request %s: %w", key, err)
	}
	before := ar.DeepCopy()
	ar.Status.Phase, ar.Status.ObservedGeneration = phase, ar.Generation
	meta.SetStatusCondition(&ar.Status.Conditions, metav1.Condition{
		Type: clustersv1alpha1.ConditionGranted, Status: metav1.ConditionFalse, Reason: "Policy", Message: message,
	})
	return c.Status().Patch(ctx, ar, client.MergeFrom(before))
}

// throughFaults has the clients to a cluster go through its faults.
func (w *world) throughFaults(id string, c *clusters.Cluster) (*clusters.Cluster, error) {
	return clusters.New(id, w.faults[id].Wrap(c.RESTConfig()), scheme)
}
