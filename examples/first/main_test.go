package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) { operatortest.VerifyTestMain(m) }

func TestNamespacesGetTheQuotaOfTheirSize(t *testing.T) {
	kube := operatortest.Start(t)
	namespace := kube.Namespace(t)
	user := operatortest.NewClient(t, kube.RESTConfig(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		config := command.Config{Name: "first", New: newFrameworks, KeepGlobalLoggers: true}
		ended <- command.Execute(ctx, config, []string{"run", "--kubeconfig", kube.Kubeconfig(), "--listen-address", "", "--inspector-address", ""}, io.Discard, io.Discard)
	}()
	defer func() {
		cancel()
		if code := <-ended; code != command.ExitOK {
			t.Errorf("the operator ended with exit code %d", code)
		}
	}()
	label := func(size string) {
		t.Helper()
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		document := fmt.Sprintf(`{"metadata":{"labels":{"size":%s}}}`, size)
		if err := user.Patch(ctx, ns, client.RawPatch("application/merge-patch+json", []byte(document))); err != nil {
			t.Fatal(err)
		}
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "size"}}
	allows := func(pods string) func() error {
		return func() error {
			if err := user.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
				return err
			}
			if got := quota.Spec.Hard.Pods().String(); got != pods {
				return fmt.Errorf("the quota allows %s pods", got)
			}
			return nil
		}
	}

	label(`"small"`)
	operatortest.Eventually(t, "the quota is small", allows("10"))
	label(`"large"`)
	operatortest.Eventually(t, "the quota is large", allows("100"))
	if err := user.Delete(ctx, quota.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the quota is back", allows("100"))
	label(`null`)
	operatortest.Eventually(t, "the quota is gone", func() error {
		err := user.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	})
}
