package helm_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

const scaledTemplate = `apiVersion: apps/v1
kind: Deployment
metadata: {name: server, annotations: {note: chart, build: {{ .Chart.Version | quote }}}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec: {containers: [{name: server, image: "server:{{ .Chart.Version }}"}]}
`

func ignoring(all ...v1alpha1.IgnoredDifference) func(*carrier.Service) {
	return func(s *carrier.Service) { s.Entry.IgnoreDifferences = all }
}

// scale sets replicas as an autoscaler does.
func (k *kit) scale(replicas int32) {
	k.t.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "server"}}
	scale := &autoscalingv1.Scale{}
	err := k.user.SubResource("scale").Get(k.t.Context(), deployment, scale)
	if err == nil {
		scale.Spec.Replicas = replicas
		err = k.user.SubResource("scale").Update(k.t.Context(), deployment, client.WithSubResourceBody(scale), client.FieldOwner("autoscaler"))
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// annotate changes the note of the Deployment, and its image.
func (k *kit) annotate(manager, patch string) {
	k.t.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "server"}}
	err := k.user.Patch(k.t.Context(), deployment, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner(manager))
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) deployment() *appsv1.Deployment {
	k.t.Helper()
	found := &appsv1.Deployment{}
	if err := k.user.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "server"}, found); err != nil {
		k.t.Fatal(err)
	}
	return found
}

func (k *kit) shows(replicas int32, note, image string) {
	k.t.Helper()
	d := k.deployment()
	if *d.Spec.Replicas != replicas || d.Annotations["note"] != note || d.Spec.Template.Spec.Containers[0].Image != image {
		k.t.Errorf("it has %d replicas, the note %q and the image %s; want %d, %q and %s",
			*d.Spec.Replicas, d.Annotations["note"], d.Spec.Template.Spec.Containers[0].Image, replicas, note, image)
	}
}

func TestWhatIsIgnoredIsNoDriftAndIsNotTakenBack(t *testing.T) {
	k := newKit(t, helm.Config{})
	chart := func(version, replicas string) files {
		return chartOf("server", version, files{"server.yaml": scaledTemplate, "values.yaml": "replicas: " + replicas + "\n"})
	}
	ignore := ignoring(
		v1alpha1.IgnoredDifference{Kind: "Deployment", JSONPointers: []string{"/spec/replicas"}},
		v1alpha1.IgnoredDifference{Kind: "Deployment.apps", Name: "server", Managers: []string{"annotator"}},
	)
	nowait := options(v1alpha1.ServiceHelmOptions{Wait: pointer(false)})
	steady := mode(v1alpha1.SyncModeContinuousWithDriftDetection)
	service := k.service(chart("1.0.0", "2"), nowait, ignore, steady)
	k.settle(service)
	k.shows(2, "chart", "server:1.0.0")

	// What nobody else has stays as it is, and does not fall back to a default.
	k.settle(k.service(chart("1.0.1", "3"), nowait, ignore, steady))
	k.shows(2, "chart", "server:1.0.1")

	service = k.service(chart("1.1.0", "3"), nowait, ignore, steady)
	k.settle(service)
	k.scale(5)
	k.annotate("annotator", `{"metadata":{"annotations":{"note":"theirs"}}}`)
	if result := k.compute(service); len(result.Drift) > 0 || len(result.Changes) > 0 {
		t.Errorf("there is drift:\n%s", text(result.Drift))
	}
	k.annotate("kubectl-edit", `{"spec":{"template":{"spec":{"containers":[{"name":"server","image":"other"}]}}}}`)
	result := k.compute(service)
	if said := text(result.Drift); len(result.Drift) != 1 || !strings.Contains(said, "image") || strings.Contains(said, "replicas") || strings.Contains(said, "note") {
		t.Errorf("the drift is:\n%s", said)
	}
	k.settle(service)
	k.shows(5, "theirs", "server:1.1.0")

	next := k.service(chart("2.0.0", "3"), nowait, ignore, steady)
	result = k.compute(next)
	if said := text(result.Changes); !strings.Contains(said, "server:2.0.0") || strings.Contains(said, "spec.replicas") || strings.Contains(said, `"theirs"`) {
		t.Errorf("the plan is:\n%s", said)
	}
	k.settle(next)
	k.shows(5, "theirs", "server:2.0.0")
	k.scale(7)
	if result := k.compute(next); len(result.Drift) > 0 {
		t.Errorf("there is drift:\n%s", text(result.Drift))
	}
	k.shows(7, "theirs", "server:2.0.0")

	// Without that, all is drift, and put right.
	all := k.service(chart("2.0.0", "3"), nowait, steady)
	all.Fingerprint = next.Fingerprint
	if said := text(k.compute(all).Drift); !strings.Contains(said, "spec.replicas") || !strings.Contains(said, "note") {
		t.Errorf("the drift is:\n%s", said)
	}
	k.settle(all)
	k.shows(3, "chart", "server:2.0.0")
}
