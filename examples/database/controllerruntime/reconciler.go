package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/operatorkit/operatorkit/examples/database/v1alpha1"
	"github.com/operatorkit/operatorkit/examples/internal/zone"
)

const (
	finalizer    = "databases.operatorkit.io/records"
	fieldManager = client.FieldOwner("database")
	poll         = time.Minute
)

// reconciler looks after Databases. Hosts in a status are its journal: they are written before records are made.
type reconciler struct {
	client.Client

	live    client.Reader
	records *zone.Client
}

func setUp(mgr ctrl.Manager, records *zone.Client) error {
	r := &reconciler{mgr.GetClient(), mgr.GetAPIReader(), records}
	return ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.Database{}).
		Owns(&appsv1.StatefulSet{}).Owns(&corev1.Service{}).Owns(&batchv1.CronJob{}).Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	db := &v1alpha1.Database{}
	// The cache may lag behind what this reconciler has written itself, its journal above all.
	if err := r.live.Get(ctx, req.NamespacedName, db); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !db.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.delete(ctx, db)
	}
	if controllerutil.AddFinalizer(db, finalizer) {
		if err := r.Update(ctx, db); err != nil {
			return ctrl.Result{}, err
		}
	}
	before := db.Status.DeepCopy()
	err := r.reconcile(ctx, db, before)
	if statusErr := r.writeStatus(ctx, db, before, err); statusErr != nil {
		return ctrl.Result{}, statusErr
	}
	return ctrl.Result{RequeueAfter: poll}, err
}

func (r *reconciler) reconcile(ctx context.Context, db *v1alpha1.Database, written *v1alpha1.DatabaseStatus) error {
	desired := objects(db.Labels[v1alpha1.VersionLabel], db)
	for _, o := range desired {
		if err := r.apply(ctx, db, o); err != nil {
			return fmt.Errorf("apply %T %s: %w", o, o.GetName(), err)
		}
	}
	for _, list := range []client.ObjectList{&corev1.ServiceList{}, &batchv1.CronJobList{}} {
		if err := r.prune(ctx, db, list, desired); err != nil {
			return err
		}
	}
	return r.writeRecords(ctx, db, written)
}

// apply creates or updates an object, or replaces one whose update is refused.
func (r *reconciler) apply(ctx context.Context, db *v1alpha1.Database, o client.Object) error {
	o.SetNamespace(db.Namespace)
	if err := controllerutil.SetControllerReference(db, o, r.Scheme()); err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(content, "status")
	err = r.Apply(ctx, applied(content), fieldManager, client.ForceOwnership)
	if _, replaced := o.(*appsv1.StatefulSet); !replaced || !apierrors.IsInvalid(err) {
		return err
	}
	if err := r.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationOrphan)); client.IgnoreNotFound(err) != nil {
		return err
	}
	return r.Apply(ctx, applied(content), fieldManager, client.ForceOwnership)
}

// applied is a copy of an object, into which the answer is read.
func applied(content map[string]any) runtime.ApplyConfiguration {
	return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)})
}

// prune deletes the objects of a kind that a Database has, and is no longer to have.
func (r *reconciler) prune(ctx context.Context, db *v1alpha1.Database, list client.ObjectList, desired []client.Object) error {
	if err := r.live.List(ctx, list, client.InNamespace(db.Namespace)); err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		o := item.(client.Object)
		wanted := slices.ContainsFunc(desired, func(d client.Object) bool {
			return d.GetName() == o.GetName() && fmt.Sprintf("%T", d) == fmt.Sprintf("%T", o)
		})
		if wanted || !metav1.IsControlledBy(o, db) {
			return nil
		}
		return client.IgnoreNotFound(r.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	})
}

// writeRecords makes the records of a Database, and deletes those that it no longer has.
func (r *reconciler) writeRecords(ctx context.Context, db *v1alpha1.Database, written *v1alpha1.DatabaseStatus) error {
	var desired []zone.Record
	var hosts []string
	for _, name := range names(db.Labels[v1alpha1.VersionLabel], db) {
		service := &corev1.Service{}
		if err := r.live.Get(ctx, client.ObjectKey{Namespace: db.Namespace, Name: name}, service); err != nil {
			return err
		}
		host := name + "." + db.Namespace
		desired, hosts = append(desired, zone.Record{Host: host, Address: service.Spec.ClusterIP}), append(hosts, host)
	}
	var old []string
	for _, host := range db.Status.Hosts {
		if !slices.Contains(hosts, host) {
			old = append(old, host)
		}
	}
	if all := append(slices.Clone(hosts), old...); !slices.Equal(all, db.Status.Hosts) {
		db.Status.Hosts = all
		if err := r.Status().Update(ctx, db); err != nil {
			return err
		}
		db.Status.DeepCopyInto(written)
	}
	for _, want := range desired {
		is, found, err := r.records.Get(ctx, want.Host)
		if err != nil {
			return err
		}
		if !found || is != want {
			if err := r.records.Put(ctx, want); err != nil {
				return err
			}
		}
	}
	for _, host := range old {
		if err := r.records.Delete(ctx, host); err != nil {
			return err
		}
	}
	db.Status.Hosts = hosts
	return nil
}

// writeStatus says how it went.
func (r *reconciler) writeStatus(ctx context.Context, db *v1alpha1.Database, before *v1alpha1.DatabaseStatus, failure error) error {
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Reconciled", ObservedGeneration: db.Generation}
	set := &appsv1.StatefulSet{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(db), set)
	switch {
	case failure != nil:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "Failed", failure.Error()
	case err != nil:
		return err
	case set.Status.ObservedGeneration < set.Generation || set.Status.ReadyReplicas < db.Spec.Replicas:
		ready.Status, ready.Reason = metav1.ConditionFalse, "Starting"
		ready.Message = fmt.Sprintf("%d of %d replicas are ready", set.Status.ReadyReplicas, db.Spec.Replicas)
	}
	meta.SetStatusCondition(&db.Status.Conditions, ready)
	db.Status.ObservedGeneration, db.Status.ReadyReplicas = db.Generation, set.Status.ReadyReplicas
	if equality.Semantic.DeepEqual(before, &db.Status) {
		return nil
	}
	return r.Status().Update(ctx, db)
}

// delete takes away what is outside of the cluster. The objects go with the Database.
func (r *reconciler) delete(ctx context.Context, db *v1alpha1.Database) error {
	for _, host := range db.Status.Hosts {
		if err := r.records.Delete(ctx, host); err != nil {
			return err
		}
	}
	if !controllerutil.RemoveFinalizer(db, finalizer) {
		return nil
	}
	return r.Update(ctx, db)
}
