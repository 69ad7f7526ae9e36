package native_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// hooking is a recorder whose operations begin a hook, which fails.
type hooking struct{ *recorder }

func (h hooking) CarryOut(ctx context.Context, cluster carrier.Cluster, s *carrier.Service, result *carrier.Result) error {
	begins := !result.UnderWay
	h.will(func(r *recorder) { r.underWay[s.Key.Name] = begins })
	if begins {
		h.will(func(r *recorder) { r.does = append(r.does, "begin "+s.Key.Name) })
		return nil
	}
	return h.recorder.CarryOut(ctx, cluster, s, result)
}

// begins reconciles until a hook was begun so often, and returns how long after the one before each was. The time between is what the
// state manager asks for; without that the set is reconciled at once, as after an error whose backoff begins again.
func (w *world) begins(charts *recorder, clock *clocktesting.FakePassiveClock, times int) (pauses []time.Duration) {
	w.t.Helper()
	charts.done()
	last := clock.Now()
	for range 10 * times {
		work, _ := w.step("a")
		if slices.Contains(charts.done(), "begin web") {
			pauses = append(pauses, clock.Now().Sub(last))
			last = clock.Now()
		}
		if len(pauses) == times {
			return pauses
		}
		clock.SetTime(clock.Now().Add(work.Requeue))
	}
	w.t.Fatalf("the hook was begun %d times, and not %d", len(pauses), times)
	return nil
}

func TestAHookThatFailsAgainAndAgainIsBegunAfterEverLongerPauses(t *testing.T) {
	w, charts, _ := decisions(t)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	w.config.Helm, w.config.Clock = hooking{charts}, clock
	w.restart()
	w.set("a", "east", w.service("web", "chart-1"))
	charts.will(func(r *recorder) { r.fails["web"] = errors.New("the hook failed") })
	grow := func(what string, pauses []time.Duration) {
		t.Helper()
		t.Logf("%s: %v", what, pauses)
		for i := 2; i < len(pauses); i++ {
			if want := min(2*pauses[i-1], 5*time.Minute); pauses[i] < want || pauses[i] == 0 || pauses[i] > 5*time.Minute {
				t.Errorf("%s: the pauses are %v", what, pauses)
				break
			}
		}
	}
	grow("an installation", w.begins(charts, clock, 12))
	if _, err := w.step("a"); err == nil { // the hook, which fails
		t.Error("the failure is not told")
	}
	if _, err := w.step("a"); !framework.IsPermanent(err) || !strings.Contains(err.Error(), "the hook failed") {
		t.Errorf("while it waits, the error is %v", err)
	}
	if got := states(w.get("a")); got != "web Failed" {
		t.Errorf("states: %s", got)
	}

	// Whoever asks for another try has it at once, and so has another version.
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Annotations = map[string]string{statemanager.RetryAnnotation: "now"} })
	if pause := w.begins(charts, clock, 1)[0]; pause != 0 {
		t.Errorf("it is tried %s after somebody has asked for it", pause)
	}
	charts.will(func(r *recorder) { delete(r.fails, "web") })
	w.settle("a", "web Deployed")
	charts.will(func(r *recorder) { r.fails["web"] = errors.New("the hook failed") })
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].Template = "chart-2" })
	if pause := w.begins(charts, clock, 1)[0]; pause != 0 {
		t.Errorf("another version is tried after %s", pause)
	}

	charts.will(func(r *recorder) { r.underWay["web"] = false })
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services = nil })
	grow("a removal", w.begins(charts, clock, 6))
	charts.will(func(r *recorder) { delete(r.fails, "web") })
	w.settle("a", "")
}

func TestOthersOfTheSetThatProgressCutNoPauseShort(t *testing.T) {
	w, charts, manifests := decisions(t)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	w.config.Clock = clock
	w.restart()
	w.set("a", "east", w.service("other", "chart-1"), w.service("web", "files"))
	manifests.will(func(r *recorder) { r.fails["web"] = errors.New("it does not want to") })
	tries := 0
	for i := range 20 {
		w.change("a", func(s *v1alpha1.ServiceSet) {
			for at := range s.Spec.Services {
				if s.Spec.Services[at].Name == "other" {
					s.Spec.Services[at].Values = "x: " + strings.Repeat("1", i+1)
				}
			}
		})
		clock.SetTime(clock.Now().Add(time.Second))
		_, _ = w.step("a")
		tries += len(manifests.done())
	}
	if others := len(charts.done()); tries > 6 || tries < 3 || others != 20 {
		t.Errorf("in 20 seconds it was tried %d times, while another service was changed %d times", tries, others)
	}
}

func TestAFailureThatIsNotTheServicesUsesUpNoAttempt(t *testing.T) {
	kind, group := schema.GroupResource{Resource: "configmaps"}, schema.GroupKind{Kind: "ConfigMap"}
	terminating := apierrors.NewForbidden(kind, "page", errors.New("unable to create new content in namespace a because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	webhook := func(text string) error { return apierrors.NewInternalError(errors.New(text)) }
	for name, tt := range map[string]struct {
		err    error
		counts bool
	}{
		"a webhook that is not there":    {webhook(`failed calling webhook "a.example.com": failed to call webhook: Post "https://a": connection refused`), false},
		"a webhook for conversion":       {webhook(`conversion webhook for example.com/v1, Kind=A failed: Post "https://a": EOF`), false},
		"a proxy in trouble":             {apierrors.NewGenericServerResponse(http.StatusBadGateway, "patch", kind, "page", "bad gateway", 0, true), false},
		"a proxy that fails":             {apierrors.NewGenericServerResponse(http.StatusInternalServerError, "patch", kind, "page", "oops", 0, true), false},
		"a proxy that waits too long":    {apierrors.NewGenericServerResponse(http.StatusGatewayTimeout, "patch", kind, "page", "too late", 0, true), false},
		"a store in trouble":             {&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "etcdserver: request timed out"}}, false},
		"an API server that is late":     {apierrors.NewTimeoutError("request did not complete within requested timeout", 1), false},
		"an API server that has to wait": {apierrors.NewServerTimeout(kind, "patch", 1), false},
		"an API that is not served":      {apierrors.NewServiceUnavailable("no endpoints"), false},
		"too many requests":              {apierrors.NewTooManyRequests("slow down", 1), false},
		"no answer":                      {&url.Error{Op: "Patch", URL: "https://a", Err: context.DeadlineExceeded}, false},
		"a quota":                        {apierrors.NewForbidden(kind, "page", errors.New("exceeded quota: small, requested: count/configmaps=1")), false},
		"a namespace that goes":          {terminating, false},
		"an object that is invalid":      {apierrors.NewInvalid(group, "page", nil), true},
		"a right that is lacking":        {apierrors.NewForbidden(kind, "page", errors.New(`User "a" cannot patch resource "configmaps"`)), true},
		"a webhook that says no":         {apierrors.NewForbidden(kind, "page", errors.New(`admission webhook "a" denied the request: no`)), true},
		"an API server that can't":       {apierrors.NewInternalError(errors.New(`failed to create typed patch object: .spec.a: field not declared in schema`)), true},
		"something else":                 {errors.New("a hook failed"), true},
	} {
		t.Run(name, func(t *testing.T) {
			w, charts, _ := decisions(t)
			web := w.service("web", "chart-1")
			web.MaxAttempts = 2
			w.set("a", "east", web)
			charts.will(func(r *recorder) { r.fails["web"] = tt.err })
			for range 4 {
				if _, err := w.step("a"); err == nil {
					t.Error("the failure is not told")
				}
			}
			want := 4
			if tt.counts {
				want = 2
			}
			if got := len(charts.done()); got != want {
				t.Errorf("it was tried %d times, want %d", got, want)
			}
			if tt.counts {
				return
			}
			if told := w.stateOf("a", "web").FailedAttempts; told != nil {
				t.Errorf("the attempts are told as %+v", told)
			}
			charts.will(func(r *recorder) { delete(r.fails, "web") })
			w.settle("a", "web Deployed")
		})
	}
}

func TestAServiceGoesOnWhenAWebhookAnswersAgain(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	nowhere, rule := "https://127.0.0.1:1/", admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}
	none := admissionv1.SideEffectClassNone
	webhook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "nowhere.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: &nowhere}, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		Rules:             []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: rule}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
	}}}
	for _, object := range []client.Object{namespace, webhook} {
		if err := w.east.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	away := func() error { return client.IgnoreNotFound(w.east.Delete(context.Background(), webhook)) }
	defer func() { _ = away() }()
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", files{"templates/page.yaml": configMapText("page", "1")})})
	w.manifests("files", configMapText("one", "1"))
	chart, manifests := w.service("app", "app-1.0.0"), w.service("files", "files")
	chart.MaxAttempts, manifests.MaxAttempts = 1, 1
	w.set("a", "east", chart, manifests)
	for range 4 {
		_, _ = w.step("a")
	}
	for _, name := range []string{"app", "files"} {
		says(t, w.stateOf("a", name).FailureMessage, "failed calling webhook")
	}
	if err := away(); err != nil {
		t.Fatal(err)
	}
	w.settle("a", "app Deployed, files Deployed")
}

// TestARollbackWhoseHookFailsHasPausesToo holds that it is no way around them that a rollback is gone on with until it succeeds.
func TestARollbackWhoseHookFailsHasPausesToo(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	w.config.Clock = clock
	w.restart()
	failing := strings.ReplaceAll(hookText, "pre-install,pre-upgrade", "post-upgrade,pre-rollback")
	w.charts(map[string][]byte{
		"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", files{"templates/hook.yaml": failing}), "app-2.0.0.tgz": chartOf(t, "app", "2.0.0", files{"templates/hook.yaml": failing}),
	})
	app := w.service("app", "app-1.0.0")
	atomic := true
	app.HelmOptions = &v1alpha1.ServiceHelmOptions{Atomic: &atomic}
	w.set("a", "east", app)
	w.settle("a", "app Deployed")
	w.mustStep("a") // It is known as healthy.
	defer w.end(batchv1.JobFailed)()
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].Template = "app-2.0.0" })
	operatortest.Eventually(t, "the third failure is waited after", func() error {
		work, err := w.step("a")
		if err == nil || !strings.Contains(err.Error(), "pre-rollback") || work.Requeue < time.Second {
			return fmt.Errorf("it is looked at again after %s: %w", work.Requeue, err)
		}
		return nil
	})
}
