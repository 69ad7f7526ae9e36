package manifest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

func keeper(operator, origin string) carrier.Keeper {
	return carrier.Keeper{Mark: identity.Mark{Operator: operator, Framework: "statemanager-native", Resource: "native"}, Origin: origin}
}

// keptBy is an option: the service is the keeper's, whose former ones are others.
func keptBy(k carrier.Keeper, former ...carrier.Keeper) option {
	return func(s *carrier.Service) { s.Owner.Keeper, s.Former = k, former }
}

func TestR16AnotherKeepersServiceOfTheSameNameIsRefusedByName(t *testing.T) {
	for _, other := range []carrier.Keeper{
		keeper("two", "here"), keeper("one", "elsewhere"),
		{Mark: identity.Mark{Operator: "one", Framework: "statemanager-other", Resource: "native"}, Origin: "here"},
	} {
		k := newKit(t)
		first := k.service(files{"a.yaml": configMap("a", "1")}, keptBy(keeper("one", "here")))
		k.settle(first)
		second := k.service(files{"a.yaml": configMap("a", "2"), "b.yaml": configMap("b", "2")}, keptBy(other))
		err := k.refused(second)
		if !carrier.IsConflict(err) || !strings.Contains(err.Error(), `framework "statemanager-native" of operator "one"`) ||
			!strings.Contains(err.Error(), `management cluster "here"`) {
			t.Errorf("to %s it says: %v", other, err)
		}
		result := k.compute(gone(second))
		k.wants(result.Changes)
		if result.Found != nil || len(result.Notes) != 1 || !strings.Contains(result.Notes[0], `operator "one"`) {
			t.Errorf("to be taken away, it is %v, with the notes %q", result.Found, result.Notes)
		}
		if found, err := k.carrier.List(t.Context(), k.cluster, second.Owner); err != nil || len(found) > 0 {
			t.Errorf("listed: %v, %v", found, err)
		}
		k.wants(k.compute(first).Changes)
	}
}

func TestR16AnotherKeepersObjectIsRefusedAndNeverPruned(t *testing.T) {
	k := newKit(t)
	first, second := keptBy(keeper("one", "here")), keptBy(keeper("two", "here"))
	both := files{"a.yaml": configMap("a", "1"), "b.yaml": configMap("b", "1")}
	k.settle(k.service(both, first))
	// The objects stay without their inventory, and those of another keeper's service of the same name come beside them.
	if err := k.user.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: manifest.InventoryPrefix + "web"}}); err != nil {
		t.Fatal(err)
	}
	var refused *manifest.RefusedError
	if err := k.refused(k.service(both, second)); !errors.As(err, &refused) || !strings.Contains(err.Error(), `operator "one"`) {
		t.Errorf("it is refused with %v", err)
	}
	own := files{"c.yaml": configMap("c", "1"), "d.yaml": configMap("d", "1")}
	k.settle(k.service(own, second))
	label := `{"metadata":{"labels":{"services.operatorkit.io/owner":"` + k.configMap("a").Labels[carrier.OwnerLabel] + `"}}}`
	k.patch(k.configMap("d"), label)
	result := k.compute(k.service(files{"c.yaml": configMap("c", "1")}, second))
	k.wants(result.Changes, "update Secret operatorkit-inventory-web")
	if len(result.Notes) != 1 || !strings.Contains(result.Notes[0], "ConfigMap "+k.namespace+"/d stays") {
		t.Errorf("the notes are %q", result.Notes)
	}
	k.patch(k.configMap("d"), `{"data":{"text":"theirs"}}`)
	repaired := k.service(own, second, mode("ContinuousWithDriftDetection"))
	if err := k.refused(repaired); !errors.As(err, &refused) {
		t.Errorf("drift is refused with %v", err)
	}
}

func TestR16AMarkOfAnUnknownFormIsForeign(t *testing.T) {
	k := newKit(t)
	s := k.service(files{"a.yaml": configMap("a", "1")}, keptBy(keeper("one", "here")))
	k.settle(s)
	k.patch(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: manifest.InventoryPrefix + "web"}},
		`{"metadata":{"labels":{"services.operatorkit.io/owner":"v9-abc"}}}`)
	if err := k.refused(s); !strings.Contains(err.Error(), `unknown form`) || !strings.Contains(err.Error(), "v9-abc") {
		t.Errorf("it is refused with %v", err)
	}
}

func TestR16AFormerNameIsTakenOverAsItIs(t *testing.T) {
	k := newKit(t)
	before, now := keeper("one", "here"), keeper("two", "here")
	content := files{"a.yaml": configMap("a", "1") + "  more: here\n", "b.yaml": configMap("b", "1")}
	k.settle(k.service(content, keptBy(before)))
	was := k.configMap("a")
	mark, writes := len(k.faults.Writes()), 0
	renamed := k.service(files{"a.yaml": configMap("a", "2"), "b.yaml": configMap("b", "1")}, keptBy(now, before), stopOnConflict)
	result := k.compute(renamed)
	k.wants(result.Changes, "update ConfigMap a", "update ConfigMap b")
	for _, change := range result.Changes {
		for _, field := range change.Fields {
			if !strings.Contains(field.Path, carrier.OwnerLabel) && !strings.Contains(field.Path, carrier.OwnerAnnotation) {
				t.Errorf("the plan changes %s of %s too", field.Path, change.Object)
			}
		}
		if !strings.Contains(change.Description, `taken over from`) || !strings.Contains(change.Description, `operator "one"`) {
			t.Errorf("the plan says %q of %s", change.Description, change.Object)
		}
	}
	if !slices.ContainsFunc(result.Notes, func(n string) bool { return strings.Contains(n, "taken over from") }) {
		t.Errorf("the notes are %q", result.Notes)
	}
	k.carryOut(renamed, result)
	if is := k.configMap("a"); is.UID != was.UID || is.Data["text"] != "1" {
		t.Errorf("it is not as it was: %v", is)
	}
	for _, w := range k.faults.Writes()[mark:] {
		if writes++; w.Verb == "delete" || w.Verb == "create" && w.Resource != "secrets" {
			t.Errorf("it was made anew: %s", w)
		}
	}
	// What the former name has applied can be taken away under the new one.
	k.settle(renamed)
	is := k.configMap("a")
	if _, more := is.Data["more"]; is.UID != was.UID || is.Data["text"] != "2" || more {
		t.Errorf("it is %v", is.Data)
	}
	for _, entry := range is.ManagedFields {
		if entry.Manager == before.FieldManager() {
			t.Errorf("%s manages fields still", entry.Manager)
		}
	}
	if result := k.compute(gone(k.service(content, keptBy(before)))); len(result.Changes) > 0 || result.Found != nil {
		t.Errorf("it is still the former name's: %v", result)
	}
	for k.compute(gone(renamed)).Found != nil {
		k.carryOut(gone(renamed), k.compute(gone(renamed)))
	}
	if k.exists("a", &corev1.ConfigMap{}) || k.exists("b", &corev1.ConfigMap{}) {
		t.Error("not all of it was taken away")
	}
}

func TestR16TakingOverEndsWellAfterACrashAtEveryWrite(t *testing.T) {
	before, now := keeper("one", "here"), keeper("two", "here")
	content := files{"a.yaml": configMap("a", "1"), "b.yaml": configMap("b", "1")}
	for n := 1; ; n++ {
		k := newKit(t)
		k.settle(k.service(content, keptBy(before)))
		a, b := k.configMap("a").UID, k.configMap("b").UID
		rule := k.faults.At(k.faults.Count()+n, operatortest.InternalError())
		renamed := k.service(content, keptBy(now, before))
		_ = k.carrier.CarryOut(t.Context(), k.cluster, renamed, k.compute(renamed))
		k.settle(renamed)
		if k.configMap("a").UID != a || k.configMap("b").UID != b || k.configMap("b").Labels[carrier.OwnerLabel] != renamed.Owner.ID() {
			t.Errorf("after write %d: %v", n, k.configMap("b").ObjectMeta)
		}
		if rule.Hits() == 0 {
			return
		}
	}
}

func TestR17WhatSomebodyHasChangedSinceThePlanIsNotTouched(t *testing.T) {
	k := newKit(t)
	kept := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {services.operatorkit.io/prune: disabled}}\n"
	k.settle(k.service(files{"a.yaml": configMap("a", "1"), "b.yaml": configMap("b", "1"), "c.yaml": kept}))
	for name, next := range map[string]files{
		"a":    {"a.yaml": configMap("a", "2"), "b.yaml": configMap("b", "1"), "c.yaml": kept},
		"b":    {"a.yaml": configMap("a", "1"), "c.yaml": kept},
		"kept": {"a.yaml": configMap("a", "1"), "b.yaml": configMap("b", "1")},
	} {
		s := k.service(next)
		result := k.compute(s)
		k.patch(k.configMap(name), fmt.Sprintf(`{"metadata":{"annotations":{"example.com/seen-by":%q}}}`, name))
		version := k.configMap(name).ResourceVersion
		err := k.carrier.CarryOut(t.Context(), k.cluster, s, result)
		if !apierrors.IsConflict(err) || carrier.IsConflict(err) {
			t.Errorf("of %s it says: %v", name, err)
		}
		if got := k.configMap(name); got.ResourceVersion != version || got.DeletionTimestamp != nil {
			t.Errorf("%s was written: %v", name, got.ObjectMeta)
		}
		k.settle(k.service(files{"a.yaml": configMap("a", "1"), "b.yaml": configMap("b", "1"), "c.yaml": kept}))
	}
	s := k.service(files{"a.yaml": configMap("a", "1")})
	stale := k.compute(gone(s))
	k.patch(k.configMap("a"), `{"metadata":{"annotations":{"example.com/seen-by":"me"}}}`)
	if err := k.carrier.CarryOut(t.Context(), k.cluster, gone(s), stale); !apierrors.IsConflict(err) {
		t.Errorf("of the removal it says: %v", err)
	}
	if !k.exists("a", &corev1.ConfigMap{}) {
		t.Error("it was taken away")
	}
}
