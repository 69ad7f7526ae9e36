package objectresource_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// repaint has an admission webhook set the color of the config maps of the namespace, at each write.
func (k *kit) repaint(color func() string) {
	k.t.Helper()
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		var given corev1.ConfigMap
		if json.NewDecoder(r.Body).Decode(&review) != nil || json.Unmarshal(review.Request.Object.Raw, &given) != nil {
			http.Error(w, "this is no review of a config map", http.StatusBadRequest)
			return
		}
		response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if given.Data["color"] != "" {
			asJSONPatch := admissionv1.PatchTypeJSONPatch
			response.PatchType, response.Patch = &asJSONPatch, fmt.Appendf(nil, `[{"op":"replace","path":"/data/color","value":%q}]`, color())
		}
		review.Request, review.Response = nil, response
		_ = json.NewEncoder(w).Encode(review)
	}))
	k.t.Cleanup(webhook.Close)
	none, rule := registrationv1.SideEffectClassNone, registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}
	registered := &registrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: k.namespace}, Webhooks: []registrationv1.MutatingWebhook{{
		Name: "repaint.example.com", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		ClientConfig: registrationv1.WebhookClientConfig{
			URL: &webhook.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}),
		},
		Rules: []registrationv1.RuleWithOperations{{
			Operations: []registrationv1.OperationType{registrationv1.Create, registrationv1.Update}, Rule: rule,
		}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: k.namespace}},
	}}}
	k.create(registered)
	k.t.Cleanup(func() { _ = k.user.Delete(context.WithoutCancel(k.t.Context()), registered) })
	operatortest.Eventually(k.t, "the webhook is asked", func() error {
		probe := k.data("probe", map[string]string{"color": "none"})
		if err := k.user.Create(k.t.Context(), probe, client.DryRunAll); err != nil || probe.Data["color"] == "none" {
			return fmt.Errorf("a probe has the color %q, error %w", probe.Data["color"], err)
		}
		return nil
	})
}

// warnings are the events on primaries.
type warnings struct{ got []string }

func (w *warnings) Event(object runtime.Object, eventtype, reason, message string) {
	name := object.(client.Object).GetName()
	w.got = append(w.got, strings.Join([]string{name, eventtype, reason, message}, " "))
}

// reconciled runs the resource in a framework with a recorder.
func (k *kit) reconciled(r framework.Resource, p primary, recorder framework.EventRecorder) {
	k.t.Helper()
	f, err := framework.New(framework.Config{
		Source: informer.NewPush("primaries"), Driven: true, Logger: k.logger(), Recorder: recorder, Resources: []framework.Resource{r},
	})
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := f.ReconcileObject(k.t.Context(), p); err != nil {
		k.t.Fatal(err)
	}
}

func TestAnObjectThatAdmissionChangesIsToldOnce(t *testing.T) {
	var n atomic.Int64
	for name, color := range map[string]func() string{
		"the same at each write":    func() string { return "red" },
		"another one at each write": func() string { return fmt.Sprint("shade ", n.Add(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.repaint(color)
			p, told := k.primary("home"), &warnings{}
			r := k.resource(just(k.data("page", map[string]string{"color": "blue", "text": "hello"})))
			if _, err := framework.PlanUpdate(t.Context(), p, []framework.Resource{r}); err != nil || len(told.got) > 0 {
				t.Fatalf("a plan tells %q, error %v", told.got, err)
			}
			for range 3 {
				k.reconciled(r, p, told)
			}
			want := []string{"home Warning " + objectresource.ReasonNotKept + " ConfigMap " + k.namespace +
				"/page does not keep what is applied to it, as an admission webhook or policy may have it: data.color"}
			if diff := cmp.Diff(want, told.got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnotherNotationOrADefaultIsNotToldAsAChangeByAdmission(t *testing.T) {
	k := newKit(t)
	p, told := k.primary("home"), &warnings{}
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{ObjectMeta: k.meta("web").ObjectMeta, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "web", Image: "web:1", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: quantity.MustParse("1000m")}},
		}}}},
	}}
	service := &corev1.Service{ObjectMeta: k.meta("web").ObjectMeta, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}}
	secret := &corev1.Secret{ObjectMeta: k.meta("web").ObjectMeta, StringData: map[string]string{"key": "value", "none": ""}}
	r := k.resource(just(web, service, secret))
	for range 2 {
		k.reconciled(r, p, told)
	}
	if len(told.got) > 0 {
		t.Errorf("events: %q", told.got)
	}
}
