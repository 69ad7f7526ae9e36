package serviceprovider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// vanish has a Postgres deleted by a user who has taken its finalizers off.
func (w *world) vanish(name string) {
	w.t.Helper()
	w.patch(onboarding, w.named(name), `{"metadata":{"finalizers":null}}`)
	w.delete(name)
}

// wantNothingOf fails if there is anything of a Postgres.
func (w *world) wantNothingOf(request ctrl.Request) {
	w.t.Helper()
	for _, role := range []string{mcp, workload} {
		if w.isThere(role, request.Name) {
			w.t.Errorf("what the provider made in the %s cluster is left", role)
		}
		if w.accessOf(request, role) != nil {
			w.t.Errorf("access to the %s cluster is left", role)
		}
	}
}

func TestAnObjectThatLostItsFinalizersGetsThemBackAtOnce(t *testing.T) {
	for name, configured := range map[string]bool{"with a config": true, "without a config": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configure(ProviderConfigSpec{})
			r := w.build(w.withWorkload)
			w.order("db", 3)
			w.run(r)
			w.eventuallyTells("db", "Ready/True/Ready")
			if !configured {
				if err := planes[platform].user.Delete(t.Context(), w.config(ProviderConfigSpec{})); err != nil {
					t.Fatal(err)
				}
				w.eventuallyTells("db", "Progressing/False/ProviderConfigAbsent")
			}
			w.patch(onboarding, w.named("db"), `{"metadata":{"finalizers":null}}`)
			operatortest.Eventually(t, "it has its finalizers again", func() error {
				if has := w.get("db").Finalizers; len(has) != 2 {
					return fmt.Errorf("it has %q", has)
				}
				return nil
			})
		})
	}
}

func TestAVanishedObjectIsCleanedUp(t *testing.T) {
	for name, test := range map[string]struct {
		// change makes of the provider the one that finds that it has vanished.
		change func(w *world, r *reconciler) *reconciler
		// finalizer is one of somebody else, which holds the object.
		finalizer string
		size      int
	}{
		"by the process that knows it": {func(_ *world, r *reconciler) *reconciler { return r }, "", 3},
		"after a restart":              {func(w *world, _ *reconciler) *reconciler { return w.build(w.withWorkload) }, "", 0},
		"held by somebody else":        {func(_ *world, r *reconciler) *reconciler { return r }, "example.com/keep", 3},
	} {
		t.Run(name, func(t *testing.T) {
			w, r, request := ready(t)
			var size int
			w.author.del = func(ctx context.Context, obj *Postgres, config *ProviderConfig, clusters clusterCtx) (ctrl.Result, error) {
				size = obj.Spec.Size
				if obj.DeletionTimestamp == nil || obj.Namespace != w.namespace {
					t.Errorf("it is given %s/%s, deleted at %v", obj.Namespace, obj.Name, obj.DeletionTimestamp)
				}
				return undeploy(ctx, obj, config, clusters)
			}
			w.vanishHeldBy("db", test.finalizer)
			settle(t, test.change(w, r), request)
			if diff := cmp.Diff([]string{"CreateOrUpdate", "Delete"}, w.author.all()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if size != test.size {
				t.Errorf("the size that it is cleaned up with is %d, want %d", size, test.size)
			}
			w.wantNothingOf(request)
			if test.finalizer != "" {
				w.patch(onboarding, w.named("db"), `{"metadata":{"finalizers":null}}`)
			}
		})
	}
}

func (w *world) vanishHeldBy(name, finalizer string) {
	w.t.Helper()
	if finalizer != "" {
		w.patch(onboarding, w.named(name), fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, finalizer))
		w.delete(name)
		return
	}
	w.vanish(name)
}

func TestADeletionThatFailsIsTriedAgainForAVanishedObject(t *testing.T) {
	w, r, request := ready(t)
	broken := true
	w.author.del = func(ctx context.Context, obj *Postgres, config *ProviderConfig, clusters clusterCtx) (ctrl.Result, error) {
		if broken {
			return ctrl.Result{}, errors.New("disks are stuck")
		}
		return undeploy(ctx, obj, config, clusters)
	}
	w.vanish("db")
	if _, err := r.Reconcile(t.Context(), request); err == nil || w.accessOf(request, mcp) == nil || w.accessOf(request, workload) == nil {
		t.Fatalf("got error %v; want the author's, and access to be there", err)
	}
	broken = false
	settle(t, r, request)
	w.wantNothingOf(request)
}

func TestTheAuthorIsNotCalledForAVanishedObjectThatNeverHadAccess(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.ungranted = true
	r, request := w.build(), w.order("db", 3)
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	w.vanish("db")
	settle(t, r, request)
	if w.accessOf(request, mcp) != nil || len(w.author.all()) != 0 {
		t.Errorf("access is left, or the author was called: %q", w.author.all())
	}
}

// TestThePlatformEndsTheWaitForACluster: nobody can annotate an object that has vanished.
func TestThePlatformEndsTheWaitForTheClusterOfAVanishedObject(t *testing.T) {
	w, r, request := ready(t)
	w.author.del = func(context.Context, *Postgres, *ProviderConfig, clusterCtx) (ctrl.Result, error) {
		return ctrl.Result{}, errors.New("it does not answer")
	}
	w.vanish("db")
	if _, err := r.Reconcile(t.Context(), request); err == nil {
		t.Fatal("that the cluster does not answer is no error")
	}
	w.patch(platform, w.accessOf(request, mcp), `{"metadata":{"annotations":{"`+clustersv1alpha1.AbandonAnnotation+`":"true"}}}`)
	settle(t, r, request)
	if w.accessOf(request, mcp) != nil || w.accessOf(request, workload) != nil {
		t.Error("access is left")
	}
}

func TestAFalse404TakesNothingAway(t *testing.T) {
	postgreses := servicesGroup.WithResource("postgreses").GroupResource()
	for name, answer := range map[string]*apierrors.StatusError{
		"of the very object": apierrors.NewNotFound(postgreses, "db"),
		"of anything":        apierrors.NewGenericServerResponse(404, "get", postgreses, "db", "404 page not found", 0, true),
	} {
		t.Run(name, func(t *testing.T) {
			w, r, request := ready(t)
			w.faults[onboarding].On(func(r operatortest.Request) bool { return r.Verb == "get" && r.Resource == "postgreses" }, operatortest.Answer(answer)).Times(1)
			if _, err := r.Reconcile(t.Context(), request); err == nil {
				t.Error("the answer is no error")
			}
			settle(t, r, request)
			if diff := cmp.Diff([]string{"CreateOrUpdate", "CreateOrUpdate"}, w.author.all()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if w.accessOf(request, mcp) == nil || w.accessOf(request, workload) == nil || !w.isThere(mcp, "db") || !w.isThere(workload, "db") {
				t.Error("something was taken away")
			}
		})
	}
}

func TestAVersionThatIsNotServedAnyMoreTakesNothingAway(t *testing.T) {
	w, r, request := ready(t)
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.Name = "postgreses." + servicesGroup.Group
	serve := func(served bool) {
		t.Helper()
		patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/0/served","value":%t}]`, served)
		if err := planes[onboarding].user.Patch(context.WithoutCancel(t.Context()), crd.DeepCopy(), client.RawPatch("application/json-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
		operatortest.Eventually(t, fmt.Sprintf("that it is served is %t", served), func() error {
			if err := planes[onboarding].user.Get(context.WithoutCancel(t.Context()), request.NamespacedName, &Postgres{}); (err == nil) != served {
				return fmt.Errorf("reading it: %w", err)
			}
			return nil
		})
	}
	defer serve(true)
	serve(false)
	for _, r := range []*reconciler{r, w.build(w.withWorkload)} {
		for range 2 {
			if _, err := r.Reconcile(t.Context(), request); err == nil {
				t.Error("that it is not served is no error")
			}
		}
	}
	if w.accessOf(request, mcp) == nil || w.accessOf(request, workload) == nil || !w.isThere(mcp, "db") || !w.isThere(workload, "db") {
		t.Error("something was taken away")
	}
}

func TestMoreThanAFewVanishedObjectsKeepTheirAccessUntilSomebodySaysSo(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	r := w.build(w.withWorkload)
	var all []ctrl.Request
	for i := range 8 {
		request := w.order(fmt.Sprintf("db%d", i), i)
		settle(t, r, request)
		all = append(all, request)
	}
	var kept []ctrl.Request
	for _, request := range all {
		w.vanish(request.Name)
		var err error
		for range 3 {
			if _, err = r.Reconcile(t.Context(), request); err != nil {
				break
			}
		}
		switch {
		case err == nil:
			w.wantNothingOf(request)
		case errors.Is(err, serviceprovider.ErrWithdrawalsStopped):
			kept = append(kept, request)
		default:
			t.Fatal(err)
		}
	}
	if len(kept) != 3 {
		t.Errorf("%d of 8 objects that vanished keep their access, want 3", len(kept))
	}
	for _, request := range kept {
		if w.accessOf(request, mcp) == nil || !w.isThere(workload, request.Name) {
			t.Errorf("%s has lost something", request.Name)
		}
	}

	w.order(kept[0].Name, 1) // it is back
	settle(t, r, kept[0])
	w.tells(kept[0].Name, "Ready/True/Ready")

	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	w.patch(platform, w.config(ProviderConfigSpec{}), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, serviceprovider.WithdrawUntilAnnotation, until))
	for _, request := range kept[1:] {
		settle(t, r, request)
		w.wantNothingOf(request)
	}
}

// TestResourcesCleanUpAfterAVanishedObject: what is planned only is planned by somebody who is there.
func TestResourcesCleanUpAfterAVanishedObject(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "16"})
	r, request := w.withResources(version1(t)), w.order("db", 3)
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Framework(framework.Config{Logger: logger}); err != nil {
		t.Fatal(err)
	}
	settle(t, r, request)
	w.tells("db", "Ready/True/Ready")
	w.annotate("db", `"`+framework.PlanAnnotation+`":"true"`)
	settle(t, r, request)
	w.vanish("db")
	settle(t, r, request)
	w.wantNothingOf(request)
}
