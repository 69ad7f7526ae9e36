package serviceprovider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// failure is something that goes wrong for an object, which may have had access before, or be on its way out.
type failure struct {
	granted, deleted bool
	// breaks has it go wrong.
	breaks func(w *world, r *reconciler, request ctrl.Request)
	want   string
}

// failures are those in which the errors are full of what is the platform's. secret is what they say.
func failures(secret string) map[string]failure {
	private := errors.New(secret)
	on := func(role, resource string, err *apierrors.StatusError) func(*world, *reconciler, ctrl.Request) {
		return func(w *world, _ *reconciler, _ ctrl.Request) {
			w.faults[role].On(func(r operatortest.Request) bool { return r.Resource == resource }, operatortest.Answer(err))
		}
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "admin", private)
	says := func(phase clustersv1alpha1.Phase) func(*world, *reconciler, ctrl.Request) {
		return func(w *world, r *reconciler, request ctrl.Request) {
			w.access.ungranted = true
			_, _ = r.Reconcile(w.t.Context(), request)
			if err := say(w.t.Context(), planes[platform].user, w.access.key(request, mcp), phase, secret); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	return map[string]failure{
		"nobody has looked at the request": {breaks: func(w *world, _ *reconciler, _ ctrl.Request) { w.access.ungranted = true }, want: "Progressing/False/AccessPending"},
		"the request waits":                {breaks: says(clustersv1alpha1.PhasePending), want: "Progressing/False/AccessPending"},
		"the request is denied":            {breaks: says(clustersv1alpha1.PhaseDenied), want: "Progressing/False/AccessDenied"},
		"access can't be asked for": {breaks: func(w *world, _ *reconciler, _ ctrl.Request) {
			w.access.fail = func() error { return fmt.Errorf("no quota: %w", forbidden) }
		}, want: "Progressing/False/ReconcileFailed"},
		"asking for access is forbidden":         {breaks: on(platform, "accessrequests", forbidden), want: "Progressing/False/ReconcileFailed"},
		"there is no config":                     {breaks: func(w *world, _ *reconciler, _ ctrl.Request) { w.unconfigure() }, want: "Progressing/False/ProviderConfigAbsent"},
		"the config can't be read":               {breaks: on(platform, "providerconfigs", forbidden), want: "Progressing/False/ReconcileFailed"},
		"the platform does not answer":           {granted: true, breaks: func(w *world, _ *reconciler, _ ctrl.Request) { w.faults[platform].Cut() }, want: "Progressing/False/ClusterUnreachable"},
		"the MCP does not answer":                {granted: true, breaks: func(w *world, _ *reconciler, _ ctrl.Request) { w.faults[mcp].Cut() }, want: "Progressing/False/ClusterUnreachable"},
		"the MCP refuses":                        {granted: true, breaks: on(mcp, "configmaps", forbidden), want: "Progressing/False/ReconcileFailed"},
		"the credentials are gone":               {granted: true, breaks: func(w *world, _ *reconciler, request ctrl.Request) { w.deleteSecret(request) }, want: "Progressing/False/ReconcileFailed"},
		"the credentials are garbled":            {granted: true, breaks: func(w *world, _ *reconciler, request ctrl.Request) { w.garble(request, secret) }, want: "Progressing/False/ReconcileFailed"},
		"the author tells what a client says":    {granted: true, breaks: func(w *world, _ *reconciler, _ ctrl.Request) { w.author.createOrUpdate = passing(w) }, want: "Progressing/False/ReconcileFailed"},
		"access goes in a deletion":              {granted: true, deleted: true, breaks: func(w *world, _ *reconciler, request ctrl.Request) { w.leave(request) }, want: "Terminating/False/AccessLeaving"},
		"a deletion finds no answer":             {granted: true, deleted: true, breaks: func(w *world, _ *reconciler, _ ctrl.Request) { w.faults[mcp].Cut() }, want: "Terminating/False/ClusterUnreachable"},
		"the config of a deletion":               {granted: true, deleted: true, breaks: on(platform, "providerconfigs", forbidden), want: "Terminating/False/ReconcileFailed"},
		"what was let go can't be abandoned":     {granted: true, deleted: true, breaks: func(w *world, _ *reconciler, _ ctrl.Request) { w.letGo(forbidden) }, want: "Terminating/False/ReconcileFailed"},
		"access can't be taken away":             {granted: true, deleted: true, breaks: on(platform, "secrets", forbidden), want: "Terminating/False/ReconcileFailed"},
		"the request of a deletion is unread":    {granted: true, deleted: true, breaks: on(platform, "accessrequests", forbidden), want: "Terminating/False/ReconcileFailed"},
		"the finalizers can't be put on":         {breaks: on(onboarding, "postgreses", apierrors.NewInternalError(private)), want: ""},
		"the clean-up passes what a client says": {granted: true, deleted: true, breaks: func(w *world, _ *reconciler, _ ctrl.Request) { w.author.del = passing(w) }, want: "Terminating/False/ReconcileFailed"},
	}
}

// unconfigure takes the config away.
func (w *world) unconfigure() {
	w.t.Helper()
	if err := planes[platform].user.Delete(w.t.Context(), w.config(ProviderConfigSpec{})); err != nil {
		w.t.Fatal(err)
	}
}

// secretOf is the Secret with the credentials of an object.
func (w *world) secretOf(request ctrl.Request) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.access.namespace, Name: w.access.key(request, mcp).Name}}
}

func (w *world) deleteSecret(request ctrl.Request) {
	w.t.Helper()
	if err := planes[platform].user.Delete(w.t.Context(), w.secretOf(request)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) garble(request ctrl.Request, text string) {
	w.t.Helper()
	secret := w.secretOf(request)
	if err := planes[platform].user.Get(w.t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		w.t.Fatal(err)
	}
	secret.Data[clustersv1alpha1.KubeconfigKey] = []byte(text)
	if err := planes[platform].user.Update(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
}

// leave has the access request of an object wait for its end.
func (w *world) leave(request ctrl.Request) {
	w.t.Helper()
	ar := &clustersv1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: w.access.namespace, Name: w.access.key(request, mcp).Name}}
	w.patch(platform, ar, `{"metadata":{"finalizers":["`+leavingFinalizer+`"]}}`)
	w.t.Cleanup(func() {
		_ = planes[platform].user.Patch(context.Background(), ar, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	if err := planes[platform].user.Delete(w.t.Context(), ar); err != nil {
		w.t.Fatal(err)
	}
}

// letGo lets the MCP go, which does not answer, and has that refused on the platform.
func (w *world) letGo(err *apierrors.StatusError) {
	w.t.Helper()
	w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp"`)
	w.faults[mcp].Cut()
	w.faults[platform].On(func(r operatortest.Request) bool { return r.Resource == "accessrequests" && r.Verb == "patch" }, operatortest.Answer(err))
}

// passing is an author who returns what clients of the platform and of a cluster say.
func passing(w *world) authorFunc {
	return func(ctx context.Context, _ *Postgres, _ *ProviderConfig, found clusterCtx) (ctrl.Result, error) {
		missing := planes[platform].user.Get(ctx, client.ObjectKey{Namespace: w.access.namespace, Name: "pull"}, &corev1.Secret{})
		refused := found.MCPCluster.Client().Get(ctx, client.ObjectKey{Namespace: w.access.namespace, Name: "other"}, &corev1.Secret{})
		return ctrl.Result{}, fmt.Errorf("images can't be pulled: %w", errors.Join(missing, refused))
	}
}

// TestUsersAreToldNothingOfThePlatform looks at the status of an object, and at the events on it, in everything that goes wrong.
func TestUsersAreToldNothingOfThePlatform(t *testing.T) {
	allPlanes(t)
	const secret = "Secret platform-namespace/mcp-admin of https://10.9.8.7:6443"
	for name, f := range failures(secret) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configure(ProviderConfigSpec{})
			w.access.namespace, w.access.through = planes[platform].kube.Namespace(t), w.throughFaults
			r, request := w.build(), w.order("db", 3)
			if f.granted {
				settle(t, r, request)
			}
			if f.deleted {
				w.patch(onboarding, w.named("db"), `{"metadata":{"finalizers":[`+quoted(append(w.get("db").Finalizers, "services.example.com/test"))+`]}}`)
				w.delete("db")
			}
			f.breaks(w, r, request)
			var err error
			for range 2 {
				_, err = r.Reconcile(t.Context(), request)
			}
			p := w.get("db")
			if f.want != "" && told(p) != f.want {
				t.Errorf("the status says %s (%s), want %s; the error is %v", told(p), messageOf(p), f.want, err)
			}
			text, marshalErr := json.Marshal([]any{p.Conditions, p.Phase, w.events.all})
			if marshalErr != nil {
				t.Fatal(marshalErr)
			}
			private := []string{"platform-namespace", "mcp-admin", "10.9.8.7", w.access.namespace, w.access.key(request, mcp).Name}
			for _, plane := range planes {
				host, err := url.Parse(plane.kube.RESTConfig().Host)
				if err != nil {
					t.Fatal(err)
				}
				private = append(private, host.Host)
			}
			for _, part := range private {
				if strings.Contains(string(text), part) {
					t.Errorf("users are told %q: %s", part, text)
				}
			}
		})
	}
}

func quoted(list []string) string { return `"` + strings.Join(list, `","`) + `"` }
