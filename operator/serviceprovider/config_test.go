package serviceprovider_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
)

func TestConfigThatIsAbsentIsWaitedForWithoutRetries(t *testing.T) {
	w := newWorld(t)
	r, request := w.build(), w.order("db", 3)
	if result := settle(t, r, request); result != (ctrl.Result{}) {
		t.Errorf("the result is %v, want none", result)
	}
	w.tells("db", "Progressing/False/ProviderConfigAbsent", "waits for the ProviderConfig")
	if len(w.author.all()) != 0 || len(w.get("db").Finalizers) != 0 {
		t.Error("something was begun without a config")
	}
	w.configure(ProviderConfigSpec{})
	settle(t, r, request)
	w.tells("db", "Ready/True/Ready")
}

func TestConfigThatIsBeingDeletedIsNotWorkedWith(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	held := w.config(ProviderConfigSpec{})
	w.patch(platform, held, `{"metadata":{"finalizers":["services.example.com/held"]}}`)
	if err := planes[platform].user.Delete(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	settle(t, w.build(), w.order("db", 3))
	w.tells("db", "Progressing/False/ProviderConfigDeleted")
	w.patch(platform, held, `{"metadata":{"finalizers":null}}`)
	if len(w.author.all()) != 0 {
		t.Errorf("the author was called: %q", w.author.all())
	}
}

func TestConfigThatCantBeReadIsAnErrorAndNoAbsentOne(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	rule := w.faults[platform].On(func(r operatortest.Request) bool { return r.Resource == "providerconfigs" }, operatortest.InternalError())
	r, request := w.build(), w.order("db", 3)
	if _, err := r.Reconcile(t.Context(), request); err == nil {
		t.Error("there is no error")
	}
	w.tells("db", "Progressing/False/ReconcileFailed", "read the ProviderConfig: the API server answered InternalError")
	rule.Remove()
	settle(t, r, request)
	w.tells("db", "Ready/True/Ready")
}

// version waits until an object was carried out with a version of the config.
func (w *world) version(name, version string) {
	w.t.Helper()
	operatortest.Eventually(w.t, name+" has version "+version, func() bool { return w.data(mcp, name)["version"] == version })
}

// TestConfigChangesReachObjects holds for a provider that watches its config itself, and for one with a ConfigReconciler.
func TestConfigChangesReachObjects(t *testing.T) {
	for name, separate := range map[string]bool{"by a watch": false, "by a ConfigReconciler": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.build()
			if separate {
				// Nobody receives from the channel while the controller is busy: nothing may be lost for that.
				updates := make(chan event.GenericEvent)
				configs := serviceprovider.NewConfigReconcilerBuilder[*ProviderConfig]().PlatformCluster(w.cluster(platform)).
					EmptyObjectProvider(func() *ProviderConfig { return &ProviderConfig{} }).ProviderName(w.namespace).UpdateChannel(updates).MustBuild()
				w.runWith(r, configs, updates)
			} else {
				w.run(r)
			}
			w.order("db", 3)
			w.eventuallyTells("db", "Progressing/False/ProviderConfigAbsent")
			w.configure(ProviderConfigSpec{Version: "15"})
			w.version("db", "15")
			w.patch(platform, w.config(ProviderConfigSpec{}), `{"spec":{"version":"16"}}`)
			w.version("db", "16")
			if err := planes[platform].user.Delete(t.Context(), w.config(ProviderConfigSpec{})); err != nil {
				t.Fatal(err)
			}
			w.eventuallyTells("db", "Progressing/False/ProviderConfigAbsent")
			if !w.isThere(mcp, "db") {
				t.Error("what was there is gone with the config")
			}
		})
	}
}

func TestConfigReconcilerNeverWaitsForAReceiver(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "16"})
	updates := make(chan event.GenericEvent, 1)
	r := serviceprovider.NewConfigReconcilerBuilder[*ProviderConfig]().PlatformCluster(w.cluster(platform)).
		EmptyObjectProvider(func() *ProviderConfig { return &ProviderConfig{} }).ProviderName(w.namespace).UpdateChannel(updates).MustBuild()
	request := ctrl.Request{}
	request.Name = w.namespace
	reconcile := func() ctrl.Result {
		t.Helper()
		result, err := r.Reconcile(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	if result := reconcile(); result != (ctrl.Result{}) {
		t.Errorf("the result is %v", result)
	}
	if result := reconcile(); result.RequeueAfter == 0 {
		t.Error("the channel is full, and it does not ask to be called again")
	}
	if got := (<-updates).Object.(*ProviderConfig); got.Spec.Version != "16" {
		t.Errorf("the channel has %+v", got)
	}
	if err := planes[platform].user.Delete(t.Context(), w.config(ProviderConfigSpec{})); err != nil {
		t.Fatal(err)
	}
	reconcile()
	if got := (<-updates).Object.(*ProviderConfig); got.Name != w.namespace || got.UID != "" {
		t.Errorf("for a config that is gone the channel has %+v, want an empty one with the name", got)
	}
	request.Name = "of-another-provider"
	reconcile()
	if len(updates) != 0 {
		t.Error("the config of another provider was sent")
	}
}

func TestBuildListsEverythingThatIsMissing(t *testing.T) {
	_, err := serviceprovider.NewAPIReconcilerBuilder[*Postgres, *ProviderConfig]().Workers(0).ChangesPerSecond(-1).Build()
	want := "invalid config: APIReconcilerBuilder: PlatformCluster must be set; OnboardingCluster must be set; ClusterAccessReconciler must be set; " +
		"Reconciler must be set; EmptyObjectProvider must be set; ProviderConfig must be set; Workers must be positive, not 0; " +
		"ChangesPerSecond must be positive, not -1"
	if err == nil || cmp.Diff(want, err.Error()) != "" {
		t.Errorf("error (-want +got):\n%s", cmp.Diff(want, err.Error()))
	}
	_, err = serviceprovider.NewConfigReconcilerBuilder[*ProviderConfig]().Build()
	want = "invalid config: ConfigReconcilerBuilder: PlatformCluster must be set; EmptyObjectProvider must be set; ProviderName must be set; UpdateChannel must be set"
	if err == nil || cmp.Diff(want, err.Error()) != "" {
		t.Errorf("error (-want +got):\n%s", cmp.Diff(want, err.Error()))
	}
	defer func() {
		if recover() == nil {
			t.Error("MustBuild did not panic")
		}
	}()
	serviceprovider.NewAPIReconcilerBuilder[*Postgres, *ProviderConfig]().MustBuild()
}

func TestDeletionGoesOnWithoutAConfig(t *testing.T) {
	for name, test := range map[string]struct {
		restart bool
		want    string
	}{
		"with the last one that was there":         {false, "16"},
		"after a restart with that of the builder": {true, "built-in"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configure(ProviderConfigSpec{Version: "16"})
			r, request := w.build(), w.order("db", 3)
			settle(t, r, request)
			if err := planes[platform].user.Delete(t.Context(), w.config(ProviderConfigSpec{})); err != nil {
				t.Fatal(err)
			}
			if test.restart {
				r = w.build()
			}
			var got string
			w.author.del = func(ctx context.Context, obj *Postgres, config *ProviderConfig, clusters clusterCtx) (ctrl.Result, error) {
				got = config.Spec.Version
				return undeploy(ctx, obj, config, clusters)
			}
			w.delete("db")
			settle(t, r, request)
			if got != test.want || w.isThere(mcp, "db") || w.has(onboarding, w.named("db")) {
				t.Errorf("Delete got version %q, want %q; in the MCP: %t", got, test.want, w.isThere(mcp, "db"))
			}
		})
	}
}
