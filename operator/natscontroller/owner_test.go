package natscontroller_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/cache"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
)

func TestOwnerThatWasSetIsRead(t *testing.T) {
	tests := []struct {
		name, key string
		plain     bool
	}{
		{"a name", "gateway-1", true},
		{"dots", "eu.gateway", true},
		{"a path", "eu/gateway", false},
		{"characters that labels lack", "eu=gateway", false},
		{"longer than a label", strings.Repeat("a", 64), false},
		{"what looks like a hash", "sha256.0123", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}, Annotations: map[string]string{"note": "b"}}}
			natscontroller.SetOwner(cm, self, kind, tt.key)
			if gotKind, gotKey := natscontroller.OwnerOf(cm); gotKind != kind || gotKey != tt.key {
				t.Errorf("OwnerOf = %q %q, want %q %q", gotKind, gotKey, kind, tt.key)
			}
			if cm.Labels["app"] != "a" || cm.Annotations["note"] != "b" {
				t.Error("labels or annotations of others were lost")
			}
			label := cm.Labels[natscontroller.OwnerKeyLabel]
			if faults := validation.IsValidLabelValue(label); len(faults) > 0 {
				t.Errorf("label %q: %v", label, faults)
			}
			if plain := label == tt.key; plain != tt.plain {
				t.Errorf("the label is %q, want the key itself: %v", label, tt.plain)
			}
			if diff := cmp.Diff(natscontroller.OwnerLabels(kind, tt.key)[natscontroller.OwnerKeyLabel], label); diff != "" {
				t.Errorf("OwnerLabels differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwnerIsReadFromAnnotationsBeforeLabelsAndFromEntities(t *testing.T) {
	object := func(labels, annotations map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}}
	}
	owner := func(kind, key string) map[string]string {
		return map[string]string{natscontroller.OwnerkindLabel: kind, natscontroller.OwnerKeyLabel: key}
	}
	tests := []struct {
		name      string
		obj       any
		kind, key string
	}{
		{"labels alone", object(owner(kind, "a"), nil), kind, "a"},
		{"annotations alone", object(nil, owner(kind, "a")), kind, "a"},
		{"both", object(owner("Other", "b"), owner(kind, "a")), kind, "a"},
		{"a hash without its annotation", object(natscontroller.OwnerLabels(kind, "eu/a"), nil), "", ""},
		{"a key without a kind", object(map[string]string{natscontroller.OwnerKeyLabel: "a"}, nil), "", ""},
		{"a kind without a key", object(map[string]string{natscontroller.OwnerkindLabel: kind}, nil), "", ""},
		{"nothing", object(nil, nil), "", ""},
		{"an entity", &Route{Meta: natsinformer.Meta{OwnerKind: kind, OwnerKey: "eu/a"}}, kind, "eu/a"},
		{"the labels of an entity", &Route{Meta: natsinformer.Meta{Labels: owner(kind, "a")}}, "", ""},
		{"something else", 7, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if kind, key := natscontroller.OwnerOf(tt.obj); kind != tt.kind || key != tt.key {
				t.Errorf("OwnerOf = %q %q, want %q %q", kind, key, tt.kind, tt.key)
			}
		})
	}
}

func TestR16DecomposeKubeSecondaryResourceNamesNoPrimaryOfAnotherOperator(t *testing.T) {
	w := newWorld(t)
	c := w.controller(w.config())
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned"}}
	natscontroller.SetOwner(owned, self, kind, "eu/a")
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	natscontroller.SetOwner(other, self, "Other", "eu/a")
	unmarked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "unmarked", Labels: natscontroller.OwnerLabels(kind, "a")}}
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	natscontroller.SetOwner(foreign, identity.Identity{Operator: "another", Framework: self.Framework}, kind, "eu/a")
	tests := []struct {
		name   string
		obj    any
		object string
		key    string
		fails  bool
	}{
		{"owned", owned, "owned", "eu/a", false},
		{"deleted meanwhile", cache.DeletedFinalStateUnknown{Obj: owned}, "owned", "eu/a", false},
		{"of another kind", other, "other", "", false},
		{"of another operator", foreign, "foreign", "", false},
		{"without a mark", unmarked, "unmarked", "a", false},
		{"no object", "text", "", "", true},
		{"nothing known", cache.DeletedFinalStateUnknown{}, "", "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			object, key, err := c.DecomposeKubeSecondaryResource(tt.obj)
			if (err != nil) != tt.fails || key != tt.key || object != nil && object.GetName() != tt.object {
				t.Errorf("got %v %q %v", object, key, err)
			}
		})
	}
}

func TestAnOwnerTakesNoLabelsOfTheAuthor(t *testing.T) {
	for _, value := range []any{1.1, int64(3), 3, true, nil} {
		given := map[string]any{"app": "a", "version": value}
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"labels": given, "annotations": given}}}
		natscontroller.SetOwner(u, self, kind, "eu/a")
		if gotKind, gotKey := natscontroller.OwnerOf(u); gotKind != kind || gotKey != "eu/a" {
			t.Errorf("%v: OwnerOf = %q %q", value, gotKind, gotKey)
		}
		if _, has := u.GetLabels()["version"]; !has || u.GetLabels()["app"] != "a" || u.GetAnnotations()["app"] != "a" {
			t.Errorf("%v: the labels are %v, the annotations %v", value, u.GetLabels(), u.GetAnnotations())
		}
	}
}
