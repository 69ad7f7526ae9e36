package clusteraccess_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/granter"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// providerOf runs a Provider of an operator, for the workload cluster alone.
func (w *world) providerOf(operator, provider string, change func(*clusteraccess.ProviderConfig)) *clusteraccess.Provider {
	w.t.Helper()
	return w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.Operator, c.Provider, c.Workload = operator, provider, nil
		if change != nil {
			change(c)
		}
	})
}

// asked returns the request of a Provider for an object, and the Secret that it got.
func (w *world) asked(p *clusteraccess.Provider, request reconcile.Request) (*v1alpha1.AccessRequest, *corev1.Secret) {
	w.t.Helper()
	w.done("access is granted", p.Reconcile, request)
	ar, err := p.MCPAccessRequest(w.t.Context(), request)
	if err != nil {
		w.t.Fatal(err)
	}
	secret, _ := w.credentials(ar)
	return ar, secret
}

func TestR16TwoOperatorsWithProvidersOfOneNameHaveTheirOwnCredentials(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	w.start()
	request := object("db")
	a, b := w.providerOf("a", "postgres", nil), w.providerOf("b", "postgres", nil)
	first, _ := w.asked(a, request)
	second, before := w.asked(b, request)
	if first.UID == second.UID || first.Status.ServiceAccount.Name == second.Status.ServiceAccount.Name {
		t.Errorf("both have AccessRequest %s with service account %s", first.Name, first.Status.ServiceAccount.Name)
	}
	w.done("what a has is taken away", a.ReconcileDelete, request)
	w.wantGone(first)
	now, after := w.asked(b, request)
	if now.UID != second.UID || after.ResourceVersion != before.ResourceVersion {
		t.Error("a has touched the credentials of b")
	}
	if _, err := b.MCPCluster(t.Context(), request); err != nil {
		t.Error(err)
	}
}

func TestR16WhatWasAskedForUnderAFormerNameIsTakenOver(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	w.start()
	request := object("db")
	ar, secret := w.asked(w.providerOf("a", "postgres", nil), request)
	renamed, renamedSecret := w.asked(w.providerOf("b", "databases", func(c *clusteraccess.ProviderConfig) {
		c.FormerOperators, c.FormerProviders = []string{"a"}, []string{"postgres"}
	}), request)
	operatortest.Eventually(t, "the request has the present mark", func() bool {
		err := w.user.Get(t.Context(), client.ObjectKeyFromObject(renamed), renamed)
		return err == nil && strings.Contains(renamed.Annotations[clusteraccess.OwnerAnnotation], `"databases" of operator "b"`)
	})
	// Once it is taken over the former names are not needed any more.
	last := w.providerOf("b", "databases", nil)
	kept, keptSecret := w.asked(last, request)
	for what, has := range map[string]struct {
		ar     *v1alpha1.AccessRequest
		secret *corev1.Secret
	}{"renamed": {renamed, renamedSecret}, "without the former names": {kept, keptSecret}} {
		if has.ar.UID != ar.UID || has.secret.ResourceVersion != secret.ResourceVersion {
			t.Errorf("%s: the request or its credentials are others", what)
		}
	}
	list := &v1alpha1.ClusterRequestList{}
	if err := w.user.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil || len(list.Items) != 1 {
		t.Errorf("there are %d ClusterRequests, want the one that there was: %v", len(list.Items), err)
	}
	w.done("all is taken away", last.ReconcileDelete, request)
	w.wantGone(ar)
	w.wantNothingLeft()
}

func TestR16ARequestOfAnotherIsRefusedAndNamed(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	w.start()
	request := object("db")
	p := w.providerOf("a", "postgres", nil)
	ar, _ := w.asked(p, request)
	w.patch(ar, fmt.Sprintf(`{"metadata":{"labels":{%q:"v1-x",%q:"v1-x"},"annotations":{%q:"provider b"}}}`,
		clusteraccess.OwnerLabel, clusteraccess.ObjectLabel, clusteraccess.OwnerAnnotation))
	operatortest.Eventually(t, "it is refused", func() error {
		if _, err := p.Reconcile(t.Context(), request); err == nil || !strings.Contains(err.Error(), "of provider b, and not of") {
			return fmt.Errorf("err = %w", err)
		}
		return nil
	})
	if _, err := p.ReconcileDelete(t.Context(), request); err != nil {
		t.Error(err)
	}
	if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(ar), ar); err != nil || ar.DeletionTimestamp != nil {
		t.Errorf("what is another's was deleted: %v", err)
	}
}

func TestARequestWithoutItsLabelsThatWouldOutliveItsObjectIsNamed(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	w.start()
	request := object("db")
	p := w.providerOf("a", "postgres", nil)
	ar, _ := w.asked(p, request)
	labels := ar.Labels
	w.patch(ar, `{"metadata":{"labels":null}}`)
	operatortest.Eventually(t, "its deletion names it", func() error {
		if _, err := p.ReconcileDelete(t.Context(), request); err == nil || !strings.Contains(err.Error(), "AccessRequest "+ar.Namespace+"/"+ar.Name+" has the name of one for "+request.String()) {
			return fmt.Errorf("err = %w", err)
		}
		return nil
	})
	w.patch(ar, fmt.Sprintf(`{"metadata":{"labels":{%q:%q,%q:%q,%q:%q}}}`, clusteraccess.OwnerLabel, labels[clusteraccess.OwnerLabel],
		clusteraccess.ObjectLabel, labels[clusteraccess.ObjectLabel], clusteraccess.AccessLabel, labels[clusteraccess.AccessLabel]))
	w.done("it is taken away when it has them again", p.ReconcileDelete, request)
	w.wantGone(ar)
}

func TestR16OfTwoGrantersOneGrantsARequestAndTheOtherSaysSo(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	w.start()
	other := *w
	other.operator = "second"
	other.start()
	ar := newAccess("a", "c", inNamespace(w.remoteNamespace(), "get"))
	w.create(ar)
	before, _ := w.credentials(w.granted(ar))
	loser, winner := &other, `framework "granter" of operator "access"`
	if strings.Contains(ar.Status.Granter, "second") {
		loser, winner = w, `framework "granter" of operator "second"`
	}
	if !strings.HasSuffix(ar.Status.Granter, winner) {
		t.Fatalf("it is granted by %q", ar.Status.Granter)
	}
	operatortest.Eventually(t, "an event says who grants it", func() bool {
		events := &corev1.EventList{}
		if err := w.user.List(t.Context(), events, client.InNamespace(w.namespace)); err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == ar.Name && strings.Contains(e.Message, "it is granted by another granter") && e.Source.Component+e.ReportingController != "" {
				return strings.Contains(strings.ReplaceAll(e.Message, `\"`, `"`), winner)
			}
		}
		return false
	})
	for range 3 {
		loser.looked(ar)
	}
	after, _ := w.credentials(w.granted(ar))
	left, err := w.remains(w.namespace)
	if err != nil {
		t.Fatal(err)
	}
	accounts := 0
	for _, o := range left {
		if _, is := o.(*corev1.ServiceAccount); is {
			accounts++
		}
	}
	if after.ResourceVersion != before.ResourceVersion || accounts != 1 {
		t.Errorf("the credentials were written again, or there are %d service accounts", accounts)
	}
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.wantGone(ar)
	w.wantNothingLeft()
}

func TestR16ARequestThatWaitsIsOneGrantersToo(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	stop := w.start()
	tooMuch := v1alpha1.Permission{Namespace: w.remoteNamespace(), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}}
	denied, waiting := newAccess("a", "c", tooMuch), newAccess("b", "absent", inNamespace(w.remoteNamespace(), "get"))
	w.create(denied, waiting)
	other := *w
	other.operator = "second"
	for _, ar := range []*v1alpha1.AccessRequest{denied, waiting} {
		operatortest.Eventually(t, ar.Name+" says who answers it, and what", func() error {
			if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(ar), ar); err != nil {
				return err
			}
			if !strings.HasSuffix(ar.Status.Granter, `framework "granter" of operator "access"`) || len(ar.Status.Conditions) == 0 {
				return fmt.Errorf("the status is %+v", ar.Status)
			}
			return nil
		})
	}
	stop()
	other.start()
	for _, ar := range []*v1alpha1.AccessRequest{denied, waiting} {
		operatortest.Eventually(t, "an event on "+ar.Name+" says whose it is", func() error {
			events := &corev1.EventList{}
			if err := w.user.List(t.Context(), events, client.InNamespace(w.namespace)); err != nil {
				return err
			}
			for _, e := range events.Items {
				if e.InvolvedObject.UID == ar.UID && strings.Contains(e.Message, "it is granted by another granter") {
					return nil
				}
			}
			return errors.New("there is none")
		})
		if err := w.user.Delete(t.Context(), ar); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.wantGone(denied)
	w.wantGone(waiting)
}

func TestR16AGranterThatWasRenamedTakesOverWhatItHasGranted(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	stop := w.start()
	ar := newAccess("a", "c", inNamespace(w.remoteNamespace(), "get"))
	w.create(ar)
	before, _ := w.credentials(w.granted(ar))
	stop()
	w.operator, w.former = "second", []string{"access"}
	w.start()
	operatortest.Eventually(t, "it is granted under the present name", func() bool {
		return w.user.Get(t.Context(), client.ObjectKeyFromObject(ar), ar) == nil && strings.Contains(ar.Status.Granter, "second")
	})
	w.looked(ar)
	if after, _ := w.credentials(w.granted(ar)); after.ResourceVersion != before.ResourceVersion {
		t.Error("the credentials were written again")
	}
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.wantGone(ar)
	w.wantNothingLeft()
}

// wantRefusal waits until an event on an object says that an operator does nothing for it, because another one has it.
func (w *world) wantRefusal(o client.Object, what, operator, holder string) {
	w.t.Helper()
	want := regexp.MustCompile(fmt.Sprintf(`%s is claimed by framework "[a-z-]+" of operator %q, and framework "[a-z-]+" of operator %q does nothing for it`,
		regexp.QuoteMeta(what), holder, operator))
	operatortest.Eventually(w.t, fmt.Sprintf("%s says that %s is the one of %s", operator, what, holder), func() error {
		events := &corev1.EventList{}
		if err := w.user.List(w.t.Context(), events, client.InNamespace(o.GetNamespace())); err != nil {
			return err
		}
		var all []string
		for i := range events.Items {
			if events.Items[i].InvolvedObject.UID == o.GetUID() {
				all = append(all, events.Items[i].Message)
			}
		}
		if !slices.ContainsFunc(all, want.MatchString) {
			return fmt.Errorf("the events are %q", all)
		}
		return nil
	})
}

// idle waits until the scheduler and the health of an operator have nothing to do.
func (w *world) idle() {
	w.t.Helper()
	operatortest.Eventually(w.t, w.operator+" has nothing to do", func() bool {
		for _, f := range w.frameworks {
			if s := f.Status(); s.Fresh+s.Backlog+s.Active > 0 {
				return false
			}
		}
		return true
	})
}

func TestR16OneOfTwoOperatorsHasAClusterAndARequestAndTheOtherSaysWhose(t *testing.T) {
	w := newWorld(t)
	capacity := int32(2)
	cluster := w.addPlace("c", "workload", capacity, nil)
	stop := w.start()
	first := newRequest("first", "workload", nil)
	w.create(first)
	w.placed(first, v1alpha1.PhaseGranted, v1alpha1.ReasonGranted, "c")
	settles(w, cluster, "it answers, and has a request", func(c *v1alpha1.Cluster) error {
		if !apimeta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady) || c.Status.Requests != 1 {
			return fmt.Errorf("the status is %+v", c.Status)
		}
		return nil
	})
	w.idle()
	if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}

	// A second one that sees other Clusters and other requests would say something else of all of them.
	second := *w
	second.operator = "second"
	second.change = func(c *granter.Config) { c.Secrets = labels.SelectorFromSet(labels.Set{"none": "has-it"}) }
	stopSecond := second.start()
	second.wantRefusal(cluster, "the usage of Cluster "+client.ObjectKeyFromObject(cluster).String(), "second", "access")
	second.wantRefusal(cluster, "the health of Cluster "+client.ObjectKeyFromObject(cluster).String(), "second", "access")
	second.wantRefusal(first, "ClusterRequest "+client.ObjectKeyFromObject(first).String(), "second", "access")
	second.idle()
	w.idle()
	version, finalizers := cluster.ResourceVersion, len(cluster.Finalizers)
	if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	if cluster.ResourceVersion != version || len(cluster.Finalizers) != finalizers || len(first.Finalizers) != 1 {
		t.Errorf("the second one has written: %+v", cluster)
	}

	// What the second one has gets no room in a Cluster of the first one, and is told why.
	stop()
	theirs := newRequest("theirs", "workload", nil)
	w.create(theirs)
	w.placed(theirs, v1alpha1.PhasePending, v1alpha1.ReasonNoRoom, "")
	if want := `c is given away by framework "cluster-usage" of operator "access"`; !strings.Contains(requestMessage(theirs), want) {
		t.Errorf("the message does not say %q: %s", want, requestMessage(theirs))
	}

	// The first one has gone for good: its claims are taken off by hand.
	w.patch(cluster, `{"metadata":{"annotations":{"usage.operatorkit.io/claimed-by":null}}}`)
	w.patch(first, `{"metadata":{"annotations":null}}`)
	w.placed(theirs, v1alpha1.PhaseGranted, v1alpha1.ReasonGranted, "c")
	w.patch(cluster, `{"metadata":{"annotations":{"health.operatorkit.io/claimed-by":null}}}`) // no sooner: the second one sees no Secrets, and says that it is not ready
	settles(w, cluster, "the second one says how it is", func(c *v1alpha1.Cluster) error {
		if apimeta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady) || c.Status.Requests != 2 {
			return fmt.Errorf("the status is %+v", c.Status)
		}
		return nil
	})
	stopSecond()

	// What became of the second one takes over what that had.
	third := *w
	third.operator, third.former = "third", []string{"second"}
	third.start()
	settles(w, cluster, "the Cluster is claimed under the new name", func(c *v1alpha1.Cluster) error {
		for _, name := range []string{"usage.operatorkit.io/claimed-by", "health.operatorkit.io/claimed-by"} {
			if by := c.Annotations[name]; !strings.HasSuffix(by, `of operator "third"`) {
				return fmt.Errorf("%s is %q", name, by)
			}
		}
		return nil
	})
	for _, r := range []*v1alpha1.ClusterRequest{first, theirs} {
		if err := w.user.Delete(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	w.wantGone(theirs)
	w.start() // its finalizer is on the first one
	w.wantGone(first)
}

// preconditions notes the changes of what exists that don't say which version they are for.
type preconditions struct {
	mu      sync.Mutex
	missing []string
	seen    int
}

// wrap has the requests of a configuration looked at.
func (p *preconditions) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &looking{p, next} })
	return config
}

type looking struct {
	*preconditions
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (l *looking) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodDelete || r.Method == http.MethodPatch || r.Method == http.MethodPut {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		l.look(r, body)
	}
	return l.next.RoundTrip(r)
}

func (p *preconditions) look(r *http.Request, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.Contains(r.URL.Path, "/events") {
		return
	}
	if names(r, body) {
		p.seen++
		return
	}
	p.missing = append(p.missing, r.Method+" "+r.URL.Path+" "+string(body))
}

// names reports whether a change names the version that it is for, or tests what it changes.
func names(r *http.Request, body []byte) bool {
	if r.Method == http.MethodDelete {
		options := &metav1.DeleteOptions{}
		if _, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, options); err != nil {
			_ = json.Unmarshal(body, options)
		}
		return options.Preconditions != nil && options.Preconditions.UID != nil && options.Preconditions.ResourceVersion != nil
	}
	if r.Header.Get("Content-Type") == string(types.JSONPatchType) {
		return bytes.Contains(body, []byte(`"path":"/metadata/uid"`)) &&
			(bytes.Contains(body, []byte(`"path":"/metadata/resourceVersion"`)) || bytes.Contains(body, []byte(`{"op":"test","path":"/metadata/finalizers"`)))
	}
	var changed struct{ Metadata metav1.ObjectMeta }
	return json.Unmarshal(body, &changed) == nil && changed.Metadata.ResourceVersion != ""
}

func TestR17ChangesSayWhichVersionTheyAreFor(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	looks := &preconditions{}
	deps, frameworks, err := w.open(looks.wrap(w.kube.RESTConfig()))
	if err != nil {
		t.Fatal(err)
	}
	w.running(deps, frameworks)
	asking := w.config()
	if asking.Platform, err = clusters.New("platform", looks.wrap(w.kube.RESTConfig()), w.scheme); err != nil {
		t.Fatal(err)
	}
	namespace := w.remoteNamespace()
	verbs := []string{"get"}
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.Config = asking
		c.MCP = func(reconcile.Request) (*clusteraccess.Ask, error) {
			return &clusteraccess.Ask{Permissions: []v1alpha1.Permission{inNamespace(namespace, verbs...)}}, nil
		}
	})
	request := object("db")
	w.asked(p, request)
	verbs = []string{"get", "list"}
	w.asked(p, request)
	w.done("all is taken away", p.ReconcileDelete, request)
	looks.mu.Lock()
	defer looks.mu.Unlock()
	if len(looks.missing) > 0 || looks.seen == 0 {
		t.Errorf("%d changes say which version they are for, and these don't:\n%s", looks.seen, strings.Join(looks.missing, "\n"))
	}
}
