package serviceprovider_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
)

func TestStatusFunctions(t *testing.T) {
	for name, test := range map[string]struct {
		tell func(*Postgres)
		want string
	}{
		"ready":                     {func(p *Postgres) { serviceprovider.StatusReady(p) }, "Ready/True/Ready"},
		"progressing":               {func(p *Postgres) { serviceprovider.StatusProgressing(p, "Waiting", "for disks") }, "Progressing/False/Waiting"},
		"progressing, no reason":    {func(p *Postgres) { serviceprovider.StatusProgressing(p, "", "for disks") }, "Progressing/False/Progressing"},
		"terminating":               {func(p *Postgres) { serviceprovider.StatusTerminating(p) }, "Terminating/False/Terminating"},
		"terminating with a reason": {func(p *Postgres) { serviceprovider.StatusTerminatingWithReason(p, "InUse", "by apps") }, "Terminating/False/InUse"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPostgres("db", 3)
			p.Generation = 7
			test.tell(p)
			if got := told(p); got != test.want {
				t.Errorf("the status says %s, want %s", got, test.want)
			}
			c := meta.FindStatusCondition(p.Conditions, serviceprovider.ServiceProviderConditionReady)
			if p.ObservedGeneration != 7 || c.ObservedGeneration != 7 || c.LastTransitionTime.IsZero() {
				t.Errorf("the status is about generation %d, the condition is %+v", p.ObservedGeneration, c)
			}
		})
	}
	p := newPostgres("db", 3)
	serviceprovider.StatusProgressing(p, "", strings.Repeat("ä", 5000))
	if m := messageOf(p); len(m) > 4096 || !utf8.ValidString(m) || !strings.HasSuffix(m, "…") {
		t.Errorf("a long message has %d bytes and ends with %q", len(m), m[len(m)-5:])
	}
}

// statusWrites are the requests that wrote a status.
func (w *world) statusWrites() []operatortest.Write {
	var found []operatortest.Write
	for _, write := range w.faults[onboarding].Writes() {
		if write.Subresource == "status" {
			found = append(found, write)
		}
	}
	return found
}

func TestStatusIsWrittenOnceAndOnlyWhenItChanges(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	r, request := w.build(), w.order("db", 3)
	settle(t, r, request)
	if n := len(w.statusWrites()); n != 1 {
		t.Errorf("the status was written %d times for one reconciliation", n)
	}
	version := w.get("db").ResourceVersion
	settle(t, r, request)
	// An author who makes all conditions anew every time changes nothing either.
	w.author.createOrUpdate = func(ctx context.Context, obj *Postgres, config *ProviderConfig, clusters clusterCtx) (ctrl.Result, error) {
		obj.Conditions = nil
		result, err := deploy(ctx, obj, config, clusters)
		meta.FindStatusCondition(obj.Conditions, "Ready").LastTransitionTime = metav1.NewTime(time.Now().Add(time.Hour))
		return result, err
	}
	settle(t, r, request)
	if after := w.get("db").ResourceVersion; after != version {
		t.Errorf("a reconciliation that changed nothing has written (version %s, then %s): %v", version, after, w.faults[onboarding].Writes())
	}
}

func TestStatusLeavesToOthersWhatIsTheirs(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	r, request := w.build(), w.order("db", 3)
	w.patch(onboarding, w.named("db"), `{"spec":{"region":"eu"}}`)
	settle(t, r, request)
	// Others write conditions and fields while the author works: after the runtime has read the object.
	w.author.createOrUpdate = func(_ context.Context, obj *Postgres, _ *ProviderConfig, _ clusterCtx) (ctrl.Result, error) {
		w.othersWrite("db")
		obj.Endpoint = "elsewhere"
		serviceprovider.StatusProgressing(obj, "Moving", "to elsewhere")
		return ctrl.Result{}, nil
	}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatalf("a conflict is an error: %v", err)
	}
	w.tells("db", "Progressing/False/Moving")
	u := w.raw("db")
	billing, _, _ := unstructured.NestedString(u.Object, "status", "billing")
	region, _, _ := unstructured.NestedString(u.Object, "spec", "region")
	endpoint, _, _ := unstructured.NestedString(u.Object, "status", "endpoint")
	if billing != "paid" || region != "eu" || endpoint != "elsewhere" {
		t.Errorf("billing %q, region %q, endpoint %q", billing, region, endpoint)
	}
	backedUp := conditionIn(u, "BackedUp")
	if diff := cmp.Diff(map[string]any{
		"type": "BackedUp", "status": "True", "reason": "Nightly", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z", "severity": "none",
	}, backedUp); diff != "" {
		t.Errorf("the condition of somebody else (-want +got):\n%s", diff)
	}

	// And they survive a write without a conflict, by an author whose Go type has lost them.
	w.author.createOrUpdate = func(_ context.Context, obj *Postgres, _ *ProviderConfig, _ clusterCtx) (ctrl.Result, error) {
		obj.Endpoint = ""
		serviceprovider.StatusReady(obj)
		return ctrl.Result{}, nil
	}
	settle(t, r, request)
	u = w.raw("db")
	billing, _, _ = unstructured.NestedString(u.Object, "status", "billing")
	_, hasEndpoint, _ := unstructured.NestedString(u.Object, "status", "endpoint")
	if billing != "paid" || hasEndpoint || conditionIn(u, "BackedUp")["severity"] != "none" {
		t.Errorf("the status became %v", u.Object["status"])
	}
}

func (w *world) othersWrite(name string) {
	w.t.Helper()
	u := w.raw(name)
	status := u.Object["status"].(map[string]any)
	status["billing"] = "paid"
	status["conditions"] = append(status["conditions"].([]any), map[string]any{
		"type": "BackedUp", "status": "True", "reason": "Nightly", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z", "severity": "none",
	})
	if err := planes[onboarding].user.Status().Update(w.t.Context(), u); err != nil {
		w.t.Fatal(err)
	}
}

func conditionIn(u *unstructured.Unstructured, conditionType string) map[string]any {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, e := range list {
		if c := e.(map[string]any); c["type"] == conditionType {
			return c
		}
	}
	return nil
}

func TestStatusThatConflictsAgainAndAgainIsLookedAtAnewWithoutAnError(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.faults[onboarding].On(func(r operatortest.Request) bool { return r.Subresource == "status" }, operatortest.Conflict()).Times(20)
	r, request := w.build(), w.order("db", 3)
	result, err := r.Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter == 0 || result.RequeueAfter > time.Second {
		t.Fatalf("result %v, error %v; want to be called again soon", result, err)
	}
	settle(t, r, request)
	w.tells("db", "Ready/True/Ready")
}

func TestFinalizersOfOthersStay(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	r, request := w.build(), w.order("db", 3)
	w.patch(onboarding, w.named("db"), `{"metadata":{"finalizers":["services.example.com/first"]}}`)
	settle(t, r, request)
	w.delete("db")
	// Somebody adds one (before the deletion) or removes theirs while Delete is at work.
	w.author.del = func(ctx context.Context, obj *Postgres, config *ProviderConfig, clusters clusterCtx) (ctrl.Result, error) {
		w.annotate("db", `"changed":"meanwhile"`)
		return undeploy(ctx, obj, config, clusters)
	}
	settle(t, r, request)
	p := w.get("db")
	if diff := cmp.Diff([]string{"services.example.com/first"}, p.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	w.patch(onboarding, p, `{"metadata":{"finalizers":null}}`)
}

func TestObjectThatChangesBeforeItIsHeldIsLookedAtAnew(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.faults[onboarding].On(func(r operatortest.Request) bool { return r.Verb == "patch" && r.Subresource == "" }, operatortest.Conflict()).Times(1)
	r, request := w.build(), w.order("db", 3)
	result, err := r.Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter == 0 || len(w.author.all()) != 0 {
		t.Errorf("result %v, error %v, calls %q; want to be called again", result, err, w.author.all())
	}
	settle(t, r, request)
	w.tells("db", "Ready/True/Ready")
}

func TestSecretsOfErrorsOfTheRuntimeAreNotTold(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.author.createOrUpdate = func(context.Context, *Postgres, *ProviderConfig, clusterCtx) (ctrl.Result, error) {
		panic(map[string]string{"password": "hunter2"})
	}
	_, err := w.build().Reconcile(t.Context(), w.order("db", 3))
	if err == nil || strings.Contains(fmt.Sprint(err, messageOf(w.get("db")), w.events.all), "hunter2") {
		t.Errorf("a value that was given to panic is told: %v, %s", err, messageOf(w.get("db")))
	}
	if errors.Unwrap(err) == nil {
		t.Error("the error wraps nothing")
	}
}

// R14: what a provider reads as secret is not in what it says, in its conditions and in events.
func TestR14WhatAProviderSaysIsToldWithoutSecretValues(t *testing.T) {
	const value = "hunter2-and-more"
	condition := func(message string) func(*Postgres) error {
		return func(p *Postgres) error {
			serviceprovider.StatusProgressing(p, "Login", message)
			return nil
		}
	}
	for name, say := range map[string]func(p *Postgres) error{
		"a condition": condition("use " + value),
		"another condition": func(p *Postgres) error {
			meta.SetStatusCondition(p.GetConditions(), metav1.Condition{Type: "Login", Status: metav1.ConditionFalse, Reason: "Refused", Message: "use " + value})
			return nil
		},
		"an error": func(*Postgres) error { return errors.New("use " + value) },
		"a condition, and something fails": func(p *Postgres) error {
			return errors.Join(condition("use "+value)(p), errors.New("it failed"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configure(ProviderConfigSpec{})
			w.author.createOrUpdate = func(ctx context.Context, p *Postgres, _ *ProviderConfig, _ clusterCtx) (ctrl.Result, error) {
				secretscontext.Add(ctx, value)
				return ctrl.Result{}, say(p)
			}
			_, _ = w.build().Reconcile(t.Context(), w.order("db", 3)) // the error is looked at elsewhere
			if told := fmt.Sprint(w.get("db").Conditions, w.events.all); strings.Contains(told, value[:8]) || !strings.Contains(told, "(sensitive)") {
				t.Errorf("it tells %s", told)
			}
		})
	}
}
