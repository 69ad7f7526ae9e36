package clusteraccess_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

func TestR17BehindTheFenceOfAnOperatorNothingIsAskedForAndNothingWritten(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	w.start()
	fence := operator.NewFence() // It belongs to no operator, and so is closed.
	config := w.kube.RESTConfig()
	config.Wrap(fence.Transport)
	platform, err := clusters.New("platform", config, w.scheme)
	if err != nil {
		t.Fatal(err)
	}
	fenced := w.providerOf("a", "postgres", func(c *clusteraccess.ProviderConfig) {
		c.Platform, c.WrapTransport = platform, fence.TransportTo(nil)
	})
	if _, err := fenced.Reconcile(t.Context(), object("db")); !errors.Is(err, operator.ErrLeaseLost) {
		t.Errorf("asking for access: %v", err)
	}
	list := &v1alpha1.AccessRequestList{}
	if err := w.user.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil || len(list.Items) > 0 {
		t.Errorf("%d requests were made: %v", len(list.Items), err)
	}

	// What was asked for before can be used for reading only.
	leader := w.providerOf("a", "postgres", nil)
	w.asked(leader, object("db"))
	operatortest.Eventually(t, "the access is known", func() error {
		_, err := fenced.MCPCluster(t.Context(), object("db"))
		return err
	})
	mcp, err := fenced.MCPCluster(t.Context(), object("db"))
	if err != nil {
		t.Fatal(err)
	}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fenced"}}
	if err := mcp.Client().Create(t.Context(), made); !errors.Is(err, operator.ErrLeaseLost) {
		t.Errorf("writing into the cluster: %v", err)
	}
}
