package manifest_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

func ignoring(all ...v1alpha1.IgnoredDifference) option {
	return func(s *carrier.Service) { s.Entry.IgnoreDifferences = all }
}

// settings is a ConfigMap with three entries.
func settings(size, note, text string) files {
	return files{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {size: \"" + size + "\", note: " + note + ", text: " + text + "}\n"}
}

func (k *kit) patchAs(manager, patch string) {
	k.t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "settings"}}
	if err := k.user.Patch(k.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) shows(size, note, text string) {
	k.t.Helper()
	if data := k.configMap("settings").Data; data["size"] != size || data["note"] != note || data["text"] != text {
		k.t.Errorf("it is %v; want %s, %s and %s", data, size, note, text)
	}
}

func textOf(changes []plan.Change) string {
	var b strings.Builder
	_ = plan.WriteChangesText(&b, changes, plan.TextOptions{MaxValue: -1, MaxLines: -1})
	return b.String()
}

func TestWhatIsIgnoredIsNoDriftAndIsNotTakenBack(t *testing.T) {
	k := newKit(t)
	ignore := ignoring(
		v1alpha1.IgnoredDifference{Kind: "ConfigMap", JSONPointers: []string{"/data/size"}},
		v1alpha1.IgnoredDifference{Kind: "ConfigMap", Name: "settings", Managers: []string{"annotator"}},
	)
	steady := mode(v1alpha1.SyncModeContinuousWithDriftDetection)
	k.settle(k.service(settings("2", "ours", "a"), ignore, steady))
	k.shows("2", "ours", "a")
	// What nobody else has stays as it is, and does not go.
	service := k.service(settings("3", "ours", "b"), ignore, steady)
	k.settle(service)
	k.shows("2", "ours", "b")

	k.patchAs("scaler", `{"data":{"size":"5"}}`)
	k.patchAs("annotator", `{"data":{"note":"theirs"}}`)
	if result := k.compute(service); len(result.Drift) > 0 || len(result.Changes) > 0 {
		t.Errorf("there is drift:\n%s", textOf(result.Drift))
	}
	k.patchAs("kubectl-edit", `{"data":{"text":"theirs"}}`)
	result := k.compute(service)
	if said := textOf(result.Drift); len(result.Drift) != 1 || !strings.Contains(said, "data.text") || strings.Contains(said, "size") || strings.Contains(said, "note") {
		t.Errorf("the drift is:\n%s", said)
	}
	k.settle(service)
	k.shows("5", "theirs", "b")

	next := k.service(settings("4", "ours", "c"), ignore, steady)
	result = k.compute(next)
	if said := textOf(result.Changes); !strings.Contains(said, "data.text") || strings.Contains(said, "data.size") || strings.Contains(said, "data.note") {
		t.Errorf("the plan is:\n%s", said)
	}
	k.settle(next)
	k.shows("5", "theirs", "c")

	// What the inventory has is what is desired: without the exceptions it is put right.
	all := k.service(settings("4", "ours", "c"), steady)
	if said := textOf(k.compute(all).Drift); !strings.Contains(said, "data.size") || !strings.Contains(said, "data.note") {
		t.Errorf("the drift is:\n%s", said)
	}
	k.settle(all)
	k.shows("4", "ours", "c")
}

func TestWhatIsIgnoredIsNoConflict(t *testing.T) {
	k := newKit(t)
	k.settle(k.service(settings("2", "ours", "a"), stopOnConflict))
	k.patchAs("scaler", `{"data":{"size":"5"}}`)
	next := settings("3", "ours", "b")
	_ = k.refused(k.service(next, stopOnConflict))
	k.settle(k.service(next, stopOnConflict, ignoring(v1alpha1.IgnoredDifference{Kind: "ConfigMap", Managers: []string{"scaler"}})))
	k.shows("5", "ours", "b")
}
