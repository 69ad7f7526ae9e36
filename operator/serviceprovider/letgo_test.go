package serviceprovider_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// TestAnObjectOfAnOlderVersionThatNeverGotAccessCanLetGo: it was held for the work before there was any.
func TestAnObjectOfAnOlderVersionThatNeverGotAccessCanLetGo(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.ungranted = true
	r, request := w.build(), w.order("db", 3)
	w.patch(onboarding, w.named("db"), fmt.Sprintf(`{"metadata":{"finalizers":[%q,%q]}}`, workFinalizer, accessFinalizer))
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if err := say(t.Context(), planes[platform].user, w.access.key(request, mcp), clustersv1alpha1.PhasePending, "no room"); err != nil {
		t.Fatal(err)
	}
	w.delete("db")
	if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter == 0 {
		t.Fatalf("result %v, error %v; want to wait for the access", result, err)
	}
	w.tells("db", "Terminating/False/AccessPending", "waits for access to the mcp cluster")
	w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp"`)
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) || w.accessOf(request, mcp) != nil || len(w.author.all()) != 0 {
		t.Errorf("the object or its access is left, or the author was called: %q", w.author.all())
	}
}

// TestAnObjectWithoutWorkIsNotHeldUpByWhatItLetsGo: there is nothing to be cleaned up, whether the cluster answers or not.
func TestAnObjectWithoutWorkIsNotHeldUpByWhatItLetsGo(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.ungranted = true
	r, request := w.build(), w.order("db", 3)
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	// It was accepted for a cluster, and the credentials can't be read.
	asked := w.accessOf(request, mcp)
	before := asked.DeepCopy()
	asked.Status.Phase, asked.Status.ClusterRef = clustersv1alpha1.PhasePending, &clustersv1alpha1.LocalObjectReference{Name: mcp}
	asked.Status.SecretRef = &clustersv1alpha1.LocalObjectReference{Name: "missing"}
	if err := planes[platform].user.Status().Patch(t.Context(), asked, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp"`)
	w.delete("db")
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) || w.accessOf(request, mcp) != nil || len(w.author.all()) != 0 {
		t.Errorf("the object or its access is left, or the author was called: %q", w.author.all())
	}
}

// TestAClusterThatIsGoneForGoodIsLetGoWhenItsCredentialsHaveRunOut: nobody could renew them, and so the access is not granted any more.
func TestAClusterThatIsGoneForGoodIsLetGoWhenItsCredentialsHaveRunOut(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	access, err := clusteraccess.NewProvider(clusteraccess.ProviderConfig{
		Config: clusteraccess.Config{
			Provider: "postgres", Namespace: w.namespace, Platform: w.cluster(platform), Scheme: scheme, Logger: logger, RetryPending: accessPause,
		},
		MCP: clusteraccess.Permissions(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- access.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := access.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, request := w.build(func(b *builder) { b.ClusterAccessReconciler(access) }), w.order("db", 3)
	reconciles := func() (ctrl.Result, error) { return r.Reconcile(t.Context(), request) }
	var asked *clustersv1alpha1.AccessRequest
	operatortest.Eventually(t, "access is asked for", func() (err error) {
		_, _ = reconciles()
		asked, err = access.MCPAccessRequest(t.Context(), request)
		return err
	})
	if err := grant(t.Context(), planes[platform].user, asked, mcp); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: asked.Name}}
	w.patch(platform, secret, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"operatorkit-granter"}}}`)
	operatortest.Eventually(t, "the object is ready", func() error {
		_, err := reconciles()
		if got := told(w.get("db")); err == nil && got != "Ready/True/Ready" {
			err = fmt.Errorf("it says %s", got)
		}
		return err
	})

	secret.Data[clustersv1alpha1.KubeconfigKey] = bytes.ReplaceAll(secret.Data[clustersv1alpha1.KubeconfigKey], []byte(adminOf(mcp).Host), []byte("https://127.0.0.1:1"))
	if err := planes[platform].user.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := say(t.Context(), planes[platform].user, client.ObjectKeyFromObject(asked), clustersv1alpha1.PhasePending, "can't be reached"); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the provider knows that the access is not granted any more", func() error {
		known, err := access.MCPAccessRequest(t.Context(), request)
		if err == nil && known.Status.Phase != clustersv1alpha1.PhasePending {
			err = fmt.Errorf("it is %s", known.Status.Phase)
		}
		return err
	})
	w.delete("db")
	operatortest.Eventually(t, "the deletion waits for the access", func() error {
		_, err := reconciles()
		if got := told(w.get("db")); err == nil && got != "Terminating/False/AccessPending" {
			err = fmt.Errorf("it says %s", got)
		}
		return err
	})
	w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp"`)
	operatortest.Eventually(t, "the object is gone", func() error {
		_, err := reconciles()
		if err == nil && w.has(onboarding, w.named("db")) {
			err = errors.New("it is there")
		}
		return err
	})
	if diff := cmp.Diff([]string{"CreateOrUpdate"}, slices.Compact(w.author.all())); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
