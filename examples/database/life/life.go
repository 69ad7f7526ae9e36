// Package life is what happens to a Database of the example, and what has to come of it: the same story for the operator that is made with
// operatorkit and for its twin. The user is also who starts the replicas, as the controller of StatefulSets would.
package life

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/database/v1alpha1"
	"github.com/operatorkit/operatorkit/examples/internal/zone"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// Zone is where the records are.
type Zone struct{ server zone.Server }

// ServeHTTP implements http.Handler.
func (z *Zone) ServeHTTP(w http.ResponseWriter, r *http.Request) { z.server.ServeHTTP(w, r) }

// Objects are the kinds that a Database becomes.
func Objects() []client.Object {
	return []client.Object{&v1alpha1.Database{}, &appsv1.StatefulSet{}, &corev1.Service{}, &batchv1.CronJob{}}
}

// Phases are the story.
func Phases(z *Zone) []operatortest.Phase {
	db := &v1alpha1.Database{ObjectMeta: metav1.ObjectMeta{Name: "home"}, Spec: v1alpha1.DatabaseSpec{
		Version: "17", Replicas: 1, Storage: resource.MustParse("1Gi"), Password: "home-password", Backup: "0 3 * * *",
	}}
	starting := says(metav1.ConditionFalse, "Starting")
	ready := says(metav1.ConditionTrue, "")
	backup := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "home-backup"}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "home"}}
	return []operatortest.Phase{
		{Name: "create", Do: operatortest.Create(db), Until: operatortest.All(starting, has("postgres:17", 1, "1Gi"), there(backup), z.has("home"))},
		{Name: "start", Do: start, Until: ready},
		{Name: "upgrade", Do: operatortest.Patch(db, `{"spec":{"version":"18","backup":null}}`),
			Until: operatortest.All(starting, has("postgres:18", 1, "1Gi"), operatortest.Gone(backup))},
		{Name: "restart", Do: start, Until: ready},
		// What a StatefulSet claims can't be changed: it is another one then.
		{Name: "grow", Do: operatortest.Patch(db, `{"spec":{"replicas":2,"storage":"2Gi"}}`), Until: operatortest.All(starting, has("postgres:18", 2, "2Gi"))},
		{Name: "start the second", Do: start, Until: ready},
		{Name: "next version", Do: operatortest.Patch(db, `{"metadata":{"labels":{"`+v1alpha1.VersionLabel+`":"v2"}}}`),
			Until: operatortest.All(ready, z.has("home", "home-read"))},
		{Name: "first version", Do: operatortest.Patch(db, `{"metadata":{"labels":null}}`), Until: operatortest.All(ready, z.has("home"),
			operatortest.Gone(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "home-read"}}))},
		{Name: "delete", Do: operatortest.Delete(db), Until: operatortest.All(operatortest.Gone(db, set), z.has())},
	}
}

// has is a condition: the zone has records of these services of the namespace, and no others.
func (z *Zone) has(services ...string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		var want []string
		for _, name := range services {
			service := &corev1.Service{}
			if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service); err != nil {
				return err
			}
			want = append(want, name+"."+namespace+"="+service.Spec.ClusterIP)
		}
		slices.Sort(want)
		var got []string
		for _, r := range z.server.Records() {
			if strings.HasSuffix(r.Host, "."+namespace) {
				got = append(got, r.Host+"="+r.Address)
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("the records are %q, not %q", got, want)
		}
		return nil
	}
}

// says is a condition: the status is of the newest generation, and says how far the Database is.
func says(ready metav1.ConditionStatus, reason string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		db := &v1alpha1.Database{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "home"}, db); err != nil {
			return err
		}
		for _, c := range db.Status.Conditions {
			if c.Type == "Ready" && c.Status == ready && (reason == "" || c.Reason == reason) && db.Status.ObservedGeneration == db.Generation {
				return nil
			}
		}
		return fmt.Errorf("the status at generation %d is %+v", db.Generation, db.Status)
	}
}

// has is a condition: this is what the StatefulSet is like.
func has(image string, replicas int32, storage string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		set, err := theSet(ctx, user, namespace)
		if err != nil {
			return err
		}
		claim := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String()
		if got := set.Spec.Template.Spec.Containers[0].Image; got != image || *set.Spec.Replicas != replicas || claim != storage {
			return fmt.Errorf("there are %d replicas of %s with %s", *set.Spec.Replicas, got, claim)
		}
		return nil
	}
}

// start says in the status of the StatefulSet that all replicas answer.
func start(ctx context.Context, user client.Client, namespace string) error {
	set, err := theSet(ctx, user, namespace)
	if err != nil {
		return err
	}
	n := *set.Spec.Replicas
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n}
	return user.Status().Update(ctx, set)
}

// theSet returns the StatefulSet, unless it is being deleted.
func theSet(ctx context.Context, user client.Client, namespace string) (*appsv1.StatefulSet, error) {
	set := &appsv1.StatefulSet{}
	err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "home"}, set)
	if err == nil && set.DeletionTimestamp != nil {
		err = errors.New("the StatefulSet is being deleted")
	}
	return set, err
}

// there is a condition: the objects exist.
func there(objects ...client.Object) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		var errs []error
		for _, o := range objects {
			errs = append(errs, user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: o.GetName()}, o.DeepCopyObject().(client.Object)))
		}
		return errors.Join(errs...)
	}
}
