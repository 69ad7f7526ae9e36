package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/database/v1alpha1"
	"github.com/operatorkit/operatorkit/examples/internal/zone"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/resource/keyedresource"
	"github.com/operatorkit/operatorkit/resource/objectresource"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// newFramework makes the framework of Databases, with a resource set for each version of the logic.
func newFramework(d *operator.Dependencies, records *zone.Client) (*framework.Framework, error) {
	databases, err := d.NewSource(&v1alpha1.Database{})
	if err != nil {
		return nil, err
	}
	owned, err := d.Own(&v1alpha1.Database{}, &appsv1.StatefulSet{}, &corev1.Service{}, &batchv1.CronJob{})
	if err != nil {
		return nil, err
	}
	v1, err := newResources("v1", d, owned.Stores, records)
	if err != nil {
		return nil, err
	}
	v2, err := newResources("v2", d, owned.Stores, records)
	if err != nil {
		return nil, err
	}
	return d.NewFramework(framework.Config{Source: databases, Watches: owned.Watches, ResourceSets: []framework.ResourceSetConfig{
		{Name: "v1", HandlesRest: true, Resources: v1, DeleteBackwards: true},
		{Name: "v2", Handles: framework.HandlesLabel(v1alpha1.VersionLabel, "v2"), Resources: v2, DeleteBackwards: true},
	}})
}

// newResources makes the resources of a version: the objects, the records that lead to them, and the status.
func newResources(version string, d *operator.Dependencies, stores []objectresource.Store, records *zone.Client) ([]framework.Resource, error) {
	inCluster, err := objectresource.New(objectresource.Config[*v1alpha1.Database]{
		Name: "objects", Client: d.Client, Logger: d.Logger, Stores: stores, Replace: []client.Object{&appsv1.StatefulSet{}},
		Desired: func(_ context.Context, db *v1alpha1.Database) ([]client.Object, error) {
			return objects(version, db), nil
		},
	})
	if err != nil {
		return nil, err
	}
	inZone, err := keyedresource.New(keyedresource.Config[*v1alpha1.Database, zone.Record]{
		Name: "records", Logger: d.Logger, Journal: d.Client, Poll: time.Minute,
		Desired: func(ctx context.Context, db *v1alpha1.Database) (desired []zone.Record, err error) {
			for _, name := range names(version, db) {
				service := &corev1.Service{}
				if err := d.Client.Get(ctx, client.ObjectKey{Namespace: db.Namespace, Name: name}, service); err != nil {
					return nil, err
				}
				desired = append(desired, zone.Record{Host: host(db, name), Address: service.Spec.ClusterIP})
			}
			return desired, nil
		},
		Key: func(r zone.Record) string { return r.Host }, System: records,
	})
	if err != nil {
		return nil, err
	}
	status, err := statusresource.New(statusresource.Config[*v1alpha1.Database]{Client: d.Client, Logger: d.Logger,
		Set: func(ctx context.Context, db *v1alpha1.Database, report *statusresource.Report) error {
			set := &appsv1.StatefulSet{}
			if err := d.Client.Get(ctx, client.ObjectKeyFromObject(db), set); client.IgnoreNotFound(err) != nil {
				return err
			}
			db.Status.Hosts, db.Status.ReadyReplicas = nil, set.Status.ReadyReplicas
			for _, name := range names(version, db) {
				db.Status.Hosts = append(db.Status.Hosts, host(db, name))
			}
			if set.Status.ObservedGeneration < max(set.Generation, 1) || set.Status.ReadyReplicas < db.Spec.Replicas {
				report.Reconciling("Starting", fmt.Sprintf("%d of %d replicas are ready", set.Status.ReadyReplicas, db.Spec.Replicas))
			}
			return nil
		},
	})
	return []framework.Resource{inCluster, inZone, status}, err
}

// host is the name in the zone of a service of a Database.
func host(db *v1alpha1.Database, name string) string { return name + "." + db.Namespace }
