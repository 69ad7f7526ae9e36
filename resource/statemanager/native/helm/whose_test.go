package helm_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

func keeper(operator, origin string) carrier.Keeper {
	return carrier.Keeper{Mark: identity.Mark{Operator: operator, Framework: "statemanager-native", Resource: "native"}, Origin: origin}
}

// keptBy is a change of a service: it is the keeper's, whose former ones are others.
func keptBy(k carrier.Keeper, former ...carrier.Keeper) func(*carrier.Service) {
	return func(s *carrier.Service) { s.Owner.Keeper, s.Former = k, former }
}

// touch changes an object as somebody else would.
func (k *kit) touch(obj client.Object, patch string) {
	k.t.Helper()
	if err := k.user.Patch(k.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl-edit")); err != nil {
		k.t.Fatal(err)
	}
}

// hookedChart has a hook that leaves something behind.
func hookedChart(version string) files {
	return pageChart(version).with("templates/hook.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web-hook\n  annotations: {helm.sh/hook: \"pre-install,pre-upgrade\"}\n")
}

func TestR16AnotherKeepersReleaseIsRefusedByName(t *testing.T) {
	k := newKit(t, helm.Config{})
	first := k.service(pageChart("1.0.0"), keptBy(keeper("one", "here")))
	k.settle(first)
	before := k.faults.Count()
	for _, other := range []carrier.Keeper{keeper("two", "here"), keeper("one", "elsewhere")} {
		second := k.service(pageChart("1.1.0"), keptBy(other), options(v1alpha1.ServiceHelmOptions{Replace: pointer(true)}))
		err := k.failure(second, `framework "statemanager-native" of operator "one"`, `management cluster "here"`)
		if !carrier.IsConflict(err) {
			t.Errorf("it is no conflict: %v", err)
		}
		removal := k.compute(k.service(nil, gone, keptBy(other)))
		if removal.Found != nil || len(removal.Changes) > 0 || len(removal.Notes) != 1 || !strings.Contains(removal.Notes[0], `operator "one"`) {
			t.Errorf("it would be taken away: %+v", removal)
		}
		if found, err := k.carrier.List(t.Context(), k.cluster, second.Owner); err != nil || len(found) > 0 {
			t.Errorf("listed: %v, %v", found, err)
		}
	}
	equal(t, "the writes", k.faults.Count()-before, 0)
	if result := k.compute(first); len(result.Changes) > 0 {
		t.Errorf("there is something to do: %s", text(result.Changes))
	}
	// What keeps the marks of a release that is gone stays whose it is, although Helm would have it.
	k.touch(k.configMap("web-page"), `{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`)
	k.eventually(k.service(nil, gone, keptBy(keeper("one", "here"))), "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
	k.fails(k.service(pageChart("1.1.0"), keptBy(keeper("two", "here"))), "ConfigMap "+k.namespace+"/web-page is there already", `operator "one"`)
}

func TestR16AReleaseWithAMarkOfAnUnknownFormIsForeign(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(pageChart("1.0.0"), keptBy(keeper("one", "here")))
	k.settle(service)
	k.touch(k.revision("1"), `{"metadata":{"labels":{"services.operatorkit.io/owner":"v9-abc"}}}`)
	k.fails(service, "unknown form", "v9-abc")
}

func TestR16AReleaseOfAFormerNameIsTakenOverAsItIs(t *testing.T) {
	k := newKit(t, helm.Config{})
	before, now := keeper("one", "here"), keeper("two", "here")
	k.settle(k.service(hookedChart("1.0.0"), keptBy(before)))
	page, hook := k.configMap("web-page").UID, k.configMap("web-hook").UID
	mark := k.faults.Count()
	renamed := k.service(hookedChart("1.0.0"), keptBy(now, before))
	result := k.compute(renamed)
	equal(t, "the plan", summary(result.Changes), []string{"update HelmRelease web", "update ConfigMap web-page", "update ConfigMap web-hook"})
	for _, change := range result.Changes {
		if !strings.Contains(change.Description, "taken over from") || !strings.Contains(change.Description, `operator "one"`) {
			t.Errorf("the plan says %q of %s", change.Description, change.Object)
		}
	}
	k.settle(renamed)
	equal(t, "helm list", k.listed(), []string{"web 1 deployed page-1.0.0"})
	for name, uid := range map[string]types.UID{"web-page": page, "web-hook": hook} {
		if is := k.configMap(name); is.UID != uid || is.Labels[carrier.OwnerLabel] != renamed.Owner.ID() {
			t.Errorf("%s is another one, or not taken over: %v", name, is.ObjectMeta)
		}
	}
	for _, w := range k.faults.Writes()[mark:] {
		if w.Verb == "delete" || w.Verb == "create" {
			t.Errorf("it was made anew: %s", w)
		}
	}
	// From here on the former name is not needed any more.
	alone := k.service(hookedChart("1.1.0"), keptBy(now))
	k.settle(alone)
	equal(t, "helm list", k.listed(), []string{"web 2 deployed page-1.1.0"})
	k.fails(k.service(hookedChart("1.0.0"), keptBy(before)), `operator "two"`)
	k.eventually(k.service(nil, gone, keptBy(now)), "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
}

func TestR16TakingAReleaseOverEndsWellAfterACrashAtEveryWrite(t *testing.T) {
	before, now := keeper("one", "here"), keeper("two", "here")
	for n := 1; ; n++ {
		k := newKit(t, helm.Config{})
		k.settle(k.service(hookedChart("1.0.0"), keptBy(before)))
		k.settle(k.service(hookedChart("1.1.0"), keptBy(before)))
		uid := k.configMap("web-page").UID
		rule := k.faults.At(k.faults.Count()+n, operatortest.InternalError())
		renamed := k.service(hookedChart("1.1.0"), keptBy(now, before))
		_ = k.carrier.CarryOut(t.Context(), k.cluster, renamed, k.compute(renamed))
		k.settle(renamed)
		equal(t, fmt.Sprintf("helm list after write %d", n), k.listed(), []string{"web 2 deployed page-1.1.0"})
		if is := k.configMap("web-page"); is.UID != uid || k.revision("1").Labels[carrier.OwnerLabel] != renamed.Owner.ID() {
			t.Errorf("after write %d: %v", n, is.ObjectMeta)
		}
		if rule.Hits() == 0 {
			return
		}
	}
}

func TestR17WhatSomebodyHasChangedSinceThePlanOfAReleaseIsNotTouched(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(pageChart("1.0.0"))
	k.settle(service)
	heir := k.service(pageChart("1.0.0"), owner("office"))
	adoption := k.compute(heir)
	k.touch(k.revision("1"), `{"metadata":{"annotations":{"example.com/seen-by":"me"}}}`)
	if err := k.carrier.CarryOut(t.Context(), k.cluster, heir, adoption); !apierrors.IsConflict(err) {
		t.Errorf("the adoption says %v", err)
	}
	if k.revision("1").Labels[carrier.OwnerLabel] != service.Owner.ID() {
		t.Error("the revision was taken over")
	}
	removal := k.service(nil, gone)
	k.carryOut(removal, k.compute(removal))
	purge := k.compute(removal)
	k.touch(k.revision("1"), `{"metadata":{"annotations":{"example.com/seen-by":"you"}}}`)
	if err := k.carrier.CarryOut(t.Context(), k.cluster, removal, purge); !apierrors.IsConflict(err) {
		t.Errorf("the purge says %v", err)
	}
	k.revision("1")
}

func TestR16WhatSomebodyHasMadeSinceThePlanOfAReleaseIsNotReplaced(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(pageChart("1.0.0"))
	result := k.compute(service)
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "web-page"}, Data: map[string]string{"version": "mine"}}
	if err := k.user.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	err := k.carrier.CarryOut(t.Context(), k.cluster, service, result)
	says(t, err, "ConfigMap "+k.namespace+"/web-page is there already and not from this release")
	if !carrier.IsConflict(err) {
		t.Errorf("it is no conflict: %v", err)
	}
	if said := k.configMap("web-page").Data["version"]; said != "mine" {
		t.Errorf("it says %q", said)
	}
}

// TestR17WritesOfAReleaseAreOfWhatWasSeen has somebody else write an object between the look at it and the write.
func TestR17WritesOfAReleaseAreOfWhatWasSeen(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0"), keptBy(keeper("one", "here"))))
	upgrade := k.service(pageChart("1.1.0"), keptBy(keeper("one", "here")))
	result := k.compute(upgrade)
	taken := false
	k.faults.On(func(r operatortest.Request) bool {
		if r.Verb == "patch" && r.Name == "web-page" && !r.DryRun && !taken {
			taken = true
			page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "web-page"}}
			k.touch(page, fmt.Sprintf(`{"metadata":{"labels":{"services.operatorkit.io/owner":%q}}}`,
				carrier.Owner{Keeper: keeper("two", "here"), Namespace: "a", Name: "b"}.ID()))
		}
		return false
	}, operatortest.InternalError())
	err := k.carrier.CarryOut(t.Context(), k.cluster, upgrade, result)
	says(t, err, "web-page is there already, and belongs to")
	if got := k.configMap("web-page"); got.Data["version"] == "1.1.0" {
		t.Errorf("it was written: %v", got.Data)
	}
}
