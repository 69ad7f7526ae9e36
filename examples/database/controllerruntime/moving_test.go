package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/examples/database/v1alpha1"
	"github.com/operatorkit/operatorkit/examples/internal/zone"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/keyedresource"
	"github.com/operatorkit/operatorkit/resource/objectresource"
	"github.com/operatorkit/operatorkit/resource/reconcilerresource"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// What docs/from-kubebuilder.md shows happens here to one Database, which lives on from step to step.
func TestTheTwinMovesStepByStepAndNothingIsMadeAnew(t *testing.T) {
	w := newWorld(t)
	m := &move{world: w, namespace: w.kube.Namespace(t)}
	var err error
	if m.user, err = client.New(w.kube.RESTConfig(), client.Options{Scheme: w.scheme}); err != nil {
		t.Fatal(err)
	}
	beside := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: "beside"}}
	if err := m.user.Create(t.Context(), beside); err != nil {
		t.Fatal(err)
	}

	m.step(t, "as it was", setUp, "create", "start")
	children := m.children(t)
	m.step(t, "as a resource", m.moved(asItIs), "upgrade")
	m.step(t, "the way back", setUp, "restart")
	m.step(t, "objects moved", m.moved(objectsMoved), "next version")
	if now := m.children(t); now["Service/home-read"] == "" {
		t.Errorf("there is no service for reading among %v", now)
	}
	m.phases = append(m.phases, operatortest.Phase{Name: "taken over", Until: takenOver})
	m.step(t, "all moved", m.moved(allMoved), "taken over", "first version")
	now := m.children(t)
	delete(children, "CronJob/home-backup") // the upgrade does without
	if !maps.Equal(now, children) {
		t.Errorf("the children were %v, and are %v", children, now)
	}
	m.step(t, "all moved", m.moved(allMoved), "delete")
}

// takenOver is a condition: the Database has the finalizer of the framework alone, and a journal that knows both records.
func takenOver(ctx context.Context, user client.Client, namespace string) error {
	db := &v1alpha1.Database{}
	if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "home"}, db); err != nil {
		return err
	}
	journal := fmt.Sprint(db.Annotations)
	if len(db.Finalizers) != 1 || db.Finalizers[0] == finalizer || !strings.Contains(journal, "home-read.") || !strings.Contains(journal, "home.") {
		return fmt.Errorf("the finalizers are %q, the annotations %q", db.Finalizers, db.Annotations)
	}
	return nil
}

// newDependencies makes what the frameworks share that a manager runs.
func newDependencies(mgr ctrl.Manager, namespaces ...string) (*operator.Dependencies, error) {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		return nil, err
	}
	return operator.NewDependencies(operator.DependenciesConfig{
		Name: "database", RESTConfig: mgr.GetConfig(), Scheme: mgr.GetScheme(), Logger: logger, Namespaces: namespaces,
	})
}

// asItIs makes a framework whose only resource is the reconciler.
func asItIs(d *operator.Dependencies, r *reconciler) (*framework.Framework, error) {
	databases, err := d.NewSource(&v1alpha1.Database{})
	if err != nil {
		return nil, err
	}
	sets, err := d.NewSource(&appsv1.StatefulSet{})
	if err != nil {
		return nil, err
	}
	logic, err := reconcilerresource.New(reconcilerresource.Config{Name: "reconciler", Reconciler: r})
	if err != nil {
		return nil, err
	}
	owner := informer.OwnerMap(v1alpha1.GroupVersion.WithKind("Database").GroupKind(), informer.ControllerOnly)
	return d.NewFramework(framework.Config{
		Source: databases, Resources: []framework.Resource{logic}, Watches: []framework.Watch{{Source: sets, Map: owner}},
	})
}

// objectsMoved makes a framework that makes the objects, and leaves records and status to what is left of the reconciler.
func objectsMoved(d *operator.Dependencies, r *reconciler) (*framework.Framework, error) {
	logic, err := reconcilerresource.New(reconcilerresource.Config{Name: "reconciler", Reconciler: remains{r}})
	if err != nil {
		return nil, err
	}
	return withObjects(d, framework.Config{Resources: []framework.Resource{logic}})
}

// withObjects makes a framework of Databases that makes the objects before it does what the configuration says.
func withObjects(d *operator.Dependencies, config framework.Config) (*framework.Framework, error) {
	databases, err := d.NewSource(&v1alpha1.Database{})
	if err != nil {
		return nil, err
	}
	owned, err := d.Own(&v1alpha1.Database{}, &appsv1.StatefulSet{}, &corev1.Service{}, &batchv1.CronJob{})
	if err != nil {
		return nil, err
	}
	inCluster, err := newInCluster(d, owned.Stores)
	if err != nil {
		return nil, err
	}
	config.Source, config.Watches = databases, owned.Watches
	config.Resources = append([]framework.Resource{inCluster}, config.Resources...)
	return d.NewFramework(config)
}

// newInCluster makes the resource of the objects. It takes over those that the reconciler has made, under the name by which that applied them.
func newInCluster(d *operator.Dependencies, stores []objectresource.Store) (framework.Resource, error) {
	return objectresource.New(objectresource.Config[*v1alpha1.Database]{
		Name: "objects", Client: d.Client, Logger: d.Logger, Stores: stores, Replace: []client.Object{&appsv1.StatefulSet{}},
		Adopt: true, FieldManager: string(fieldManager),
		Desired: func(_ context.Context, db *v1alpha1.Database) ([]client.Object, error) {
			return objects(db.Labels[v1alpha1.VersionLabel], db), nil
		},
	})
}

// remains is what is left of the reconciler when the objects have moved.
type remains struct{ *reconciler }

// Reconcile implements reconcile.Reconciler.
func (r remains) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	db := &v1alpha1.Database{}
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
	err := r.writeRecords(ctx, db, before)
	if statusErr := r.writeStatus(ctx, db, before, err); statusErr != nil {
		return ctrl.Result{}, statusErr
	}
	return ctrl.Result{RequeueAfter: poll}, err
}

// allMoved makes a framework without anything of the reconciler, whose finalizer it takes over.
func allMoved(d *operator.Dependencies, r *reconciler) (*framework.Framework, error) {
	inZone, err := newInZone(d, r.records)
	if err != nil {
		return nil, err
	}
	status, err := newStatus(d)
	if err != nil {
		return nil, err
	}
	return withObjects(d, framework.Config{FormerFinalizers: []string{finalizer}, Resources: []framework.Resource{inZone, status}})
}

// newInZone makes the resource of the records. It takes over those that are there.
func newInZone(d *operator.Dependencies, records *zone.Client) (framework.Resource, error) {
	return keyedresource.New(keyedresource.Config[*v1alpha1.Database, zone.Record]{
		Name: "records", Logger: d.Logger, Journal: d.Client, Poll: time.Minute, Adopt: true,
		Desired: func(ctx context.Context, db *v1alpha1.Database) (desired []zone.Record, err error) {
			for _, name := range names(db.Labels[v1alpha1.VersionLabel], db) {
				service := &corev1.Service{}
				if err := d.Client.Get(ctx, client.ObjectKey{Namespace: db.Namespace, Name: name}, service); err != nil {
					return nil, err
				}
				desired = append(desired, zone.Record{Host: name + "." + db.Namespace, Address: service.Spec.ClusterIP})
			}
			return desired, nil
		},
		Key: func(r zone.Record) string { return r.Host }, System: records,
	})
}

// newStatus makes the resource of the status, which has the conditions from the framework.
func newStatus(d *operator.Dependencies) (framework.Resource, error) {
	return statusresource.New(statusresource.Config[*v1alpha1.Database]{
		Client: d.Client, Logger: d.Logger,
		Set: func(ctx context.Context, db *v1alpha1.Database, report *statusresource.Report) error {
			set := &appsv1.StatefulSet{}
			if err := d.Client.Get(ctx, client.ObjectKeyFromObject(db), set); client.IgnoreNotFound(err) != nil {
				return err
			}
			db.Status.Hosts, db.Status.ReadyReplicas = nil, set.Status.ReadyReplicas
			for _, name := range names(db.Labels[v1alpha1.VersionLabel], db) {
				db.Status.Hosts = append(db.Status.Hosts, name+"."+db.Namespace)
			}
			if set.Status.ObservedGeneration < max(set.Generation, 1) || set.Status.ReadyReplicas < db.Spec.Replicas {
				report.Reconciling("Starting", fmt.Sprintf("%d of %d replicas are ready", set.Status.ReadyReplicas, db.Spec.Replicas))
			}
			return nil
		},
	})
}

// move is one Database and those that look after it, one after the other.
type move struct {
	*world
	namespace string
	user      client.Client
}

// moved returns a function that adds a framework to a manager.
func (m *move) moved(
	newFramework func(*operator.Dependencies, *reconciler) (*framework.Framework, error),
) func(mgr ctrl.Manager, records *zone.Client) error {
	return func(mgr ctrl.Manager, records *zone.Client) error {
		d, err := newDependencies(mgr, m.namespace)
		if err != nil {
			return err
		}
		f, err := newFramework(d, &reconciler{mgr.GetClient(), mgr.GetAPIReader(), records})
		if err != nil {
			return err
		}
		return mgr.Add(f)
	}
}

// step runs a manager with what looks after the Database, and beside it with a controller of controller-runtime, while the phases of its life
// come to pass.
func (m *move) step(t *testing.T, name string, setUp func(ctrl.Manager, *zone.Client) error, phases ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	mgr, err := ctrl.NewManager(m.kube.RESTConfig(), m.options(m.namespace))
	if err != nil {
		t.Fatal(err)
	}
	if err := setUp(mgr, m.records(nil)); err != nil {
		t.Fatal(err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("beside").For(&corev1.ConfigMap{}).Complete(reconcile.Func(
		func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			if req.Name != "beside" {
				return ctrl.Result{}, nil
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"step":"`+name+`"}}`))
			return ctrl.Result{}, mgr.GetClient().Patch(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}, patch)
		}))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}()
	operatortest.Eventually(t, name+": the controller beside it works", func() error {
		cm := &corev1.ConfigMap{}
		if err := m.user.Get(ctx, client.ObjectKey{Namespace: m.namespace, Name: "beside"}, cm); err != nil {
			return err
		}
		if cm.Data["step"] != name {
			return fmt.Errorf("its step is %q", cm.Data["step"])
		}
		return nil
	})
	for _, phase := range phases {
		i := slices.IndexFunc(m.phases, func(p operatortest.Phase) bool { return p.Name == phase })
		if do := m.phases[i].Do; do != nil {
			if err := do(ctx, m.user, m.namespace); err != nil {
				t.Fatalf("%s: %s: %v", name, phase, err)
			}
		}
		operatortest.Eventually(t, name+": "+phase, func() error { return m.phases[i].Until(ctx, m.user, m.namespace) })
	}
}

// children returns the UIDs of what the Database has become.
func (m *move) children(t *testing.T) map[string]types.UID {
	t.Helper()
	children := map[string]types.UID{}
	var sets appsv1.StatefulSetList
	var services corev1.ServiceList
	var backups batchv1.CronJobList
	for _, list := range []client.ObjectList{&sets, &services, &backups} {
		if err := m.user.List(t.Context(), list, client.InNamespace(m.namespace)); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range sets.Items {
		children["StatefulSet/"+o.Name] = o.UID
	}
	for _, o := range services.Items {
		children["Service/"+o.Name] = o.UID
	}
	for _, o := range backups.Items {
		children["CronJob/"+o.Name] = o.UID
	}
	return children
}
