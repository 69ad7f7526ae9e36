package clusteraccess_test

import (
	"errors"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// Once a Cluster is gone nobody can take away there what was granted: a scheduler that does not see the request, because a list lacked it, asks
// before it lets the Cluster go.
func TestAClusterIsNotLetGoWhileAListLacksARequestForIt(t *testing.T) {
	w := newWorld(t)
	cluster := w.addCluster("c", "workload")
	ar := newAccess("a", "c", inNamespace(w.namespace+"-remote", "get"))
	stop := w.start()
	w.create(ar)
	settles(w, ar, "access is granted", func(ar *v1alpha1.AccessRequest) error {
		if ar.Status.Phase != v1alpha1.PhaseGranted {
			return errors.New(message(ar))
		}
		return nil
	})
	stop()

	lag, faults := operatortest.NewLag(), operatortest.NewFaults()
	lag.Omit(func(r operatortest.Request) bool { return r.Resource == "accessrequests" && r.Name == ar.Name })
	var listed atomic.Int32
	faults.On(func(r operatortest.Request) bool {
		if r.Resource == "accessrequests" && r.Verb == "list" && r.Namespace == w.namespace {
			listed.Add(1)
		}
		return false
	}, operatortest.InternalError())
	if err := w.user.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	deps, frameworks, err := w.open(faults.Wrap(lag.Wrap(w.kube.RESTConfig())))
	if err != nil {
		t.Fatal(err)
	}
	w.running(deps, frameworks)
	there := func() bool {
		return w.user.Get(t.Context(), client.ObjectKeyFromObject(cluster), &v1alpha1.Cluster{}) == nil
	}
	operatortest.Eventually(t, "the API server is asked who uses the Cluster", func() bool { return listed.Load() > 2 || !there() })
	if !there() {
		t.Fatal("the Cluster is gone while there is access to it")
	}
	lag.Release()
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "both go", func() error {
		err := w.user.Get(t.Context(), client.ObjectKeyFromObject(ar), &v1alpha1.AccessRequest{})
		if there() || !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the Cluster or the request is there"), err)
		}
		return nil
	})
	w.wantNothingOf(ar.Name)
}
