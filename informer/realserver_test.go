package informer_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/giantswarm/micrologger"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// realServer is an API server with an operator, with sources that are aware of its writes, and
// another client. Disruption budgets represent any objects that have a status: no controller of the
// server reconciles them.
type realServer struct {
	t        *testing.T
	instance *operatortest.Instance
	logger   micrologger.Logger
	// user is the other client, operator writes, and reader is for sources: their answers go
	// through lag and wire.
	user, operator client.Client
	reader         client.WithWatch
	lag            *operatortest.Lag
	wire           *wire
	count          atomic.Int64
}

func newRealServer(t *testing.T) *realServer {
	t.Helper()
	s := &realServer{t: t, instance: operatortest.Start(t), lag: operatortest.NewLag(), wire: &wire{}}
	s.logger, _ = newLogger(t)
	s.user = operatortest.NewClient(t, s.instance.RESTConfig(), nil)
	writes := &informer.Writes{}
	writing := s.instance.RESTConfig()
	writing.Wrap(func(next http.RoundTripper) http.RoundTripper { return answersHeld{next} })
	writing.Wrap(writes.Transport)
	s.operator = operatortest.NewClient(t, writing, nil)
	s.reader = writes.Client(operatortest.NewClient(t, s.wire.install(t, s.lag.Wrap(s.instance.RESTConfig())), nil))
	return s
}

// ticket holds the answer to a request back.
type ticket struct {
	arrived chan struct{}
	release chan error
}

type ticketKey struct{}

func newTicket() *ticket { return &ticket{arrived: make(chan struct{}), release: make(chan error)} }

// in is a context for the request.
func (t *ticket) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, ticketKey{}, t)
}

// answersHeld holds back the answers to requests with a ticket, if they were carried out.
type answersHeld struct{ http.RoundTripper }

func (a answersHeld) WrappedRoundTripper() http.RoundTripper { return a.RoundTripper }

func (a answersHeld) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := a.RoundTripper.RoundTrip(r)
	held, ok := r.Context().Value(ticketKey{}).(*ticket)
	if !ok || r.Method == http.MethodGet || err != nil || response.StatusCode >= http.StatusMultipleChoices {
		return response, err
	}
	held.arrived <- struct{}{}
	if err := <-held.release; err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Context() context.Context
	Fatal(...any)
}

// live returns the current object, or nil.
func (s *realServer) live(t tester, key informer.Key) *policyv1.PodDisruptionBudget {
	obj := &policyv1.PodDisruptionBudget{}
	err := s.user.Get(t.Context(), key, obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

const markerName = "marker"

// all returns all objects of a namespace.
func (s *realServer) all(t tester, namespace string) []policyv1.PodDisruptionBudget {
	list := &policyv1.PodDisruptionBudgetList{}
	if err := s.user.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// mark makes the other client write an object that is newer than everything else.
func (s *realServer) mark(t tester, namespace string) *policyv1.PodDisruptionBudget {
	mark := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: markerName}}
	if err := s.apply(t.Context(), s.user, mark, s.count.Add(1)); err != nil {
		t.Fatal(err)
	}
	return mark
}

func (s *realServer) apply(ctx context.Context, c client.Client, obj *policyv1.PodDisruptionBudget, n int64) error {
	document := fmt.Appendf(nil, `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":%q,"labels":{"applied":"%d"}}}`, obj.Name, n)
	return c.Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, document), client.FieldOwner("test"), client.ForceOwnership)
}

// perform sends a request. read is the object as known to the sender, if it is. A write that
// requires it does nothing without it.
func (s *realServer) perform(ctx context.Context, c client.Client, write string, key informer.Key, read *policyv1.PodDisruptionBudget) error {
	n := s.count.Add(1)
	obj := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	switch {
	case write == "create":
		return c.Create(ctx, obj)
	case write == "apply":
		return s.apply(ctx, c, obj, n%2)
	case read == nil:
		return nil
	}
	obj = read.DeepCopy()
	merge := ""
	switch write {
	case "update":
		obj.Labels = map[string]string{"updated": strconv.FormatInt(n, 10)}
		return c.Update(ctx, obj)
	case "status":
		obj.Status.DesiredHealthy = int32(n) //nolint:gosec // it counts requests
		return c.Status().Update(ctx, obj)
	case "delete":
		return c.Delete(ctx, obj, client.Preconditions{UID: &read.UID})
	case "locked delete":
		return c.Delete(ctx, obj, client.Preconditions{UID: &read.UID, ResourceVersion: &read.ResourceVersion})
	case "tested patch":
		return c.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, fmt.Appendf(nil,
			`[{"op":"test","path":"/metadata/resourceVersion","value":%q},{"op":"add","path":"/metadata/labels","value":{"tested":"%d"}}]`, read.ResourceVersion, n)))
	case "locked patch":
		merge = fmt.Sprintf(`"resourceVersion":%q,"labels":{"patched":"%d"}`, read.ResourceVersion, n)
	case "nothing":
		merge = `"generateName":null`
	case "locked nothing":
		merge = fmt.Sprintf(`"resourceVersion":%q`, read.ResourceVersion)
	case "patch":
		merge = fmt.Sprintf(`"labels":{"patched":"%d"}`, n)
	case "hold":
		merge = `"finalizers":["test.operatorkit.io/held"]`
	case "unhold":
		merge = `"finalizers":null`
	}
	return c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"uid":%q,%s}}`, read.UID, merge)))
}

// numberOf returns a resource version.
func numberOf(obj client.Object) int64 {
	version, _ := strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
	return version
}
