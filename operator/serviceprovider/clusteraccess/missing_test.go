package clusteraccess_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// Once a Cluster is gone nobody can take away there what was granted: a scheduler that does not see the request, because a list lacked it, asks
// before it lets the Cluster go.
func TestAClusterIsNotLetGoWhileAListLacksARequestForIt(t *testing.T) {
	w, cluster, ar, lag := aClusterInUse(t)
	var asked atomic.Int32
	w.runningWith(lag.Wrap(w.kube.RESTConfig()), func() { asked.Add(1) })
	operatortest.Eventually(t, "the API server is asked who uses the Cluster", func() bool { return asked.Load() > 2 || !w.isThere(cluster) })
	lag.Release()
	w.goesAfter(cluster, ar)
}

// The request may come to the source just when the API server was asked for what the source lacks.
func TestAClusterIsNotLetGoWhenARequestForItComesWhileItIsLookedFor(t *testing.T) {
	w, cluster, ar, lag := aClusterInUse(t)
	asked, goOn := make(chan struct{}, 1), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	defer release() // before the end of the operator is waited for
	w.runningWith(lag.Wrap(w.kube.RESTConfig()), func() {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-goOn
	})
	<-asked
	lag.Release()
	operatortest.Eventually(t, "the request comes to the sources", func() bool {
		return w.frameworks["granter"].Sources()[0].Status().Objects == 1
	})
	release()
	w.goesAfter(cluster, ar)
}

// aClusterInUse is one that is being deleted while no operator runs, to which access was granted, and a lag by which no list has the request.
func aClusterInUse(t *testing.T) (*world, *v1alpha1.Cluster, *v1alpha1.AccessRequest, *operatortest.Lag) {
	t.Helper()
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
	if err := w.user.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	lag := operatortest.NewLag()
	lag.Omit(func(r operatortest.Request) bool { return r.Resource == "accessrequests" && r.Name == ar.Name })
	return w, cluster, ar, lag
}

// runningWith runs an operator. Answers to its lists of what AccessRequests live, without what they say, wait for a function.
func (w *world) runningWith(config *rest.Config, answered func()) {
	w.t.Helper()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return liveLists{next, answered} })
	deps, frameworks, err := w.open(config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.running(deps, frameworks)
}

type liveLists struct {
	next     http.RoundTripper
	answered func()
}

func (l liveLists) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/accessrequests") && strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
		l.answered()
	}
	return answer, err
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (l liveLists) WrappedRoundTripper() http.RoundTripper { return l.next }

func (w *world) isThere(cluster *v1alpha1.Cluster) bool {
	return w.user.Get(w.t.Context(), client.ObjectKeyFromObject(cluster), &v1alpha1.Cluster{}) == nil
}

// goesAfter has a Cluster go after the request for it, and not before.
func (w *world) goesAfter(cluster *v1alpha1.Cluster, ar *v1alpha1.AccessRequest) {
	w.t.Helper()
	operatortest.Eventually(w.t, "it is told what the Cluster waits for", func() error {
		if !w.isThere(cluster) {
			w.t.Fatal("the Cluster is gone while there is access to it")
		}
		events := &corev1.EventList{}
		err := w.user.List(w.t.Context(), events, client.InNamespace(w.clusters))
		if err == nil && !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.Name == cluster.Name && e.Reason == v1alpha1.ReasonInUse
		}) {
			return fmt.Errorf("%d events, and none says so", len(events.Items))
		}
		return err
	})
	if err := w.user.Delete(w.t.Context(), ar); err != nil {
		w.t.Fatal(err)
	}
	operatortest.Eventually(w.t, "both go", func() error {
		err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(ar), &v1alpha1.AccessRequest{})
		if w.isThere(cluster) || !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the Cluster or the request is there"), err)
		}
		return nil
	})
	w.wantNothingOf(ar.Name)
}
