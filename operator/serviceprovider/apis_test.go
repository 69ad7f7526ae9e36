package serviceprovider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// Backup is a second API of the provider. It looks as the first one does.
type Backup struct{ Postgres }

func (b *Backup) DeepCopyObject() runtime.Object {
	return &Backup{*b.Postgres.DeepCopyObject().(*Postgres)}
}

// installBackups has users order Backups.
func installBackups(t *testing.T) {
	t.Helper()
	crds, err := operator.ReadCRDs(os.DirFS("testdata/crds"))
	if err != nil {
		t.Fatal(err)
	}
	crd := crds[0].DeepCopy()
	crd.Name = "backups.services.example.com"
	crd.Spec.Names.Kind, crd.Spec.Names.ListKind, crd.Spec.Names.Plural, crd.Spec.Names.Singular = "Backup", "BackupList", "backups", "backup"
	planes[onboarding].kube.InstallCRDs(t, crd)
}

// backups is an author that has nothing to do.
type backups struct{}

func (backups) CreateOrUpdate(context.Context, *Backup, *ProviderConfig, clusterCtx) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

func (backups) Delete(context.Context, *Backup, *ProviderConfig, clusterCtx) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

// backupsOf is a builder for a second API.
func (w *world) backupsOf(access serviceprovider.ClusterAccessProvider) *serviceprovider.APIReconcilerBuilder[*Backup, *ProviderConfig] {
	w.t.Helper()
	return serviceprovider.NewAPIReconcilerBuilder[*Backup, *ProviderConfig]().
		PlatformCluster(w.cluster(platform)).OnboardingCluster(w.cluster(onboarding)).ClusterAccessReconciler(access).WorkloadCluster(true).
		EmptyObjectProvider(func() *Backup { return &Backup{} }).ProviderConfig(w.config(ProviderConfigSpec{})).
		Reconciler(backups{}).EventRecorder(w.events).Namespaces(w.namespace)
}

// manages runs access and what is set up with a manager until the test ends.
func (w *world) manages(access *clusteraccess.Provider, setUp func(ctrl.Manager) error) {
	w.t.Helper()
	skip, grace := true, 20*time.Second
	mgr, err := ctrl.NewManager(w.faults[platform].Wrap(adminOf(platform)), ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip}, GracefulShutdownTimeout: &grace,
	})
	if err == nil {
		err = errors.Join(mgr.Add(access), setUp(mgr))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
}

// TestTwoAPIsOfOneProviderLeaveEachOthersAccessAlone: they have the same names for the platform, and objects of the same names.
func TestTwoAPIsOfOneProviderLeaveEachOthersAccessAlone(t *testing.T) {
	w := newWorld(t)
	installBackups(t)
	s := stack{namespace: w.namespace, author: w.author, wrap: func(_ string, next http.RoundTripper) http.RoundTripper { return next }}
	if err := s.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.serve(s)
	for _, name := range []string{"db", "other"} {
		w.order(name, 3)
		w.eventuallyTells(name, "Ready/True/Ready")
	}
	requests := func() map[types.UID]string {
		t.Helper()
		found := map[types.UID]string{}
		for _, list := range []client.ObjectList{&clustersv1alpha1.AccessRequestList{}, &clustersv1alpha1.ClusterRequestList{}} {
			err := planes[platform].user.List(t.Context(), list, client.InNamespace(w.namespace))
			err = errors.Join(err, meta.EachListItem(list, func(item runtime.Object) error {
				found[item.(client.Object).GetUID()] = item.(client.Object).GetName()
				return nil
			}))
			if err != nil {
				t.Fatal(err)
			}
		}
		return found
	}
	before := requests()

	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	access, err := s.provider(w.cluster(platform), logger)
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.backupsOf(access).Build()
	if err != nil {
		t.Fatal(err)
	}
	w.manages(access, func(mgr ctrl.Manager) error { return r.SetupWithManager(mgr, "backups", nil) })
	order := func(name string) *Backup {
		t.Helper()
		backup := &Backup{Postgres{ObjectMeta: metav1.ObjectMeta{Name: name}}}
		w.create(onboarding, backup)
		operatortest.Eventually(t, "the Backup "+name+" is ready", func() error {
			err := planes[onboarding].user.Get(t.Context(), client.ObjectKeyFromObject(backup), backup)
			if got := told(&backup.Postgres); err == nil && got != "Ready/True/Ready" {
				err = fmt.Errorf("it says %s: %s", got, messageOf(&backup.Postgres))
			}
			return err
		})
		return backup
	}
	same := order("db")
	order("nightly")
	w.patch(onboarding, w.named("db"), `{"spec":{"size":5}}`)
	w.eventuallyTells("db", "Ready/True/Ready")
	if n := len(requests()); n != 2*len(before) {
		t.Errorf("there are %d requests for as many Backups as Postgreses, which have %d", n-len(before), len(before))
	}
	if err := planes[onboarding].user.Delete(t.Context(), same); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the Backup is gone", func() bool { return !w.has(onboarding, same) })
	after := requests()
	for uid, name := range before {
		if after[uid] != name {
			t.Errorf("the request %s of a Postgres was taken away", name)
		}
	}
	for _, name := range []string{"db", "other"} {
		w.eventuallyTells(name, "Ready/True/Ready")
	}
}

func TestTwoAPIsDontShareAnAccessProvider(t *testing.T) {
	w := newWorld(t)
	s := stack{namespace: w.namespace, wrap: func(_ string, next http.RoundTripper) http.RoundTripper { return next }}
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	access, err := s.provider(w.cluster(platform), logger)
	if err != nil {
		t.Fatal(err)
	}
	w.build(func(b *builder) { b.ClusterAccessReconciler(access) })
	w.build(func(b *builder) { b.ClusterAccessReconciler(access) }) // another one for the same objects
	_, err = w.backupsOf(access).Build()
	want := "ClusterAccessReconciler: invalid config: it asks for access for objects of kind Postgres.services.example.com: make another one for those of Backup.services.example.com"
	if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("err = %v, want %s", err, want)
	}
}
