package operator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/slots"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// undertakers is several replicas that share ConfigMaps without finalizers, and records the
// replicas that processed each deletion.
type undertakers struct {
	*replicas
	namespaces []string

	mu sync.Mutex
	// shown is the content of objects at their last reconciliation, and known the replica that did
	// it. tried are the objects whose first deletion has failed.
	shown map[types.UID]string
	known map[types.UID]string
	tried map[types.UID]bool
	// processed lists the replicas that have processed the deletion of an object, in order.
	processed map[types.UID][]string
	// failing is set while all deletions fail. begun is closed when the deletion of an object named
	// slow has started, and going when it may continue.
	failing      bool
	begun, going chan struct{}
	begin        func()
}

func newUndertakers(t *testing.T, namespaces int) *undertakers {
	t.Helper()
	u := &undertakers{replicas: newReplicas(t), shown: map[types.UID]string{}, known: map[types.UID]string{}, tried: map[types.UID]bool{},
		processed: map[types.UID][]string{}, begun: make(chan struct{}), going: make(chan struct{}),
	}
	u.begin = sync.OnceFunc(func() { close(u.begun) })
	for range namespaces {
		u.namespaces = append(u.namespaces, u.instance.Namespace(t))
	}
	return u
}

// join starts a replica with a connection.
func (u *undertakers) join(identity string, config *rest.Config) *running {
	u.t.Helper()
	source, err := informer.NewKubernetes(informer.KubernetesConfig{
		Client: operatortest.NewClient(u.t, config, nil), Object: &corev1.ConfigMap{}, Logger: quiet(u.t),
		LabelSelector: labels.SelectorFromSet(labels.Set{crewLabel: u.namespace}),
	})
	if err != nil {
		u.t.Fatal(err)
	}
	f, err := framework.New(framework.Config{
		Name: "config maps", Source: source, Logger: quiet(u.t), Resources: []framework.Resource{&undertaker{u, identity}}, DisableFinalizer: true,
		BackOffFactory: func() backoff.BackOff { return backoff.NewConstantBackOff(100 * time.Millisecond) },
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return run(u.t, newOperator(u.t, operator.Config{
		RESTConfig: config, Frameworks: []*framework.Framework{f}, LeaderElection: u.election(identity, nil),
		Sharding: operator.ShardingConfig{Enabled: true},
	}))
}

type undertaker struct {
	*undertakers
	identity string
}

func (u *undertaker) Name() string { return "undertaker" }

func (u *undertaker) EnsureCreated(_ context.Context, obj any) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	object := obj.(*corev1.ConfigMap)
	u.shown[object.UID], u.known[object.UID] = object.Data["says"], u.identity
	return nil
}

var errNotNow = errors.New("not now")

// EnsureDeleted fails once for every third object.
func (u *undertaker) EnsureDeleted(_ context.Context, obj any) error {
	o := obj.(client.Object)
	slow := o.GetName() == "slow"
	if slow {
		u.begin()
		<-u.going
	}
	time.Sleep(time.Millisecond)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.failing || !slow && !u.tried[o.GetUID()] && len(u.tried)%3 == 0 {
		u.tried[o.GetUID()] = true
		return errNotNow
	}
	u.tried[o.GetUID()] = true
	u.processed[o.GetUID()] = append(u.processed[o.GetUID()], u.identity)
	return nil
}

func (u *undertakers) fail(failing bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.failing = failing
}

// make creates an object, and waits until a replica knows it.
func (u *undertakers) make(namespace, name string, finalizers ...string) (uid types.UID) {
	u.t.Helper()
	object := configMap(namespace, name)
	object.Labels, object.Finalizers = map[string]string{crewLabel: u.namespace}, finalizers
	if err := u.client.Create(u.t.Context(), object); err != nil {
		u.t.Fatal(err)
	}
	operatortest.Eventually(u.t, name+" is reconciled", func() bool { return u.knownBy(object.UID) != "" })
	return object.UID
}

// knownBy returns the replica that last reconciled an object.
func (u *undertakers) knownBy(uid types.UID) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.known[uid]
}

func (u *undertakers) remove(namespace, name string) {
	u.t.Helper()
	if err := u.client.Delete(u.t.Context(), configMap(namespace, name)); err != nil {
		u.t.Fatal(err)
	}
}

func (u *undertakers) by(uid types.UID) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.processed[uid])
}

// oneEach creates an object in each namespace, and returns their UIDs by namespace.
func (u *undertakers) oneEach() map[string]types.UID {
	u.t.Helper()
	uids := map[string]types.UID{}
	for _, namespace := range u.namespaces {
		uids[namespace] = u.make(namespace, "object")
	}
	return uids
}

// shares waits until a replica has reconciled some of the objects, which others had before, and
// returns the namespaces of these objects.
func (u *undertakers) shares(identity string, uids map[string]types.UID) (namespaces []string) {
	u.t.Helper()
	operatortest.Eventually(u.t, identity+" has a part", func() bool {
		namespaces = slices.DeleteFunc(slices.Clone(u.namespaces), func(n string) bool { return u.knownBy(uids[n]) != identity })
		return len(namespaces) > 0
	})
	return namespaces
}

func TestDeletionsWithoutFinalizersAreProcessedWhileReplicasComeAndGo(t *testing.T) {
	u := newUndertakers(t, 12)
	a := u.join("a", u.instance.RESTConfig())
	uids := u.oneEach()
	u.shares("a", uids)

	// Objects come and go all the time, and each exists for a while.
	var removed []types.UID
	ctx, cancel := context.WithCancel(context.Background())
	var churn sync.WaitGroup
	for _, namespace := range u.namespaces {
		churn.Go(func() {
			alive := map[string]types.UID{}
			for i := 0; ctx.Err() == nil || len(alive) > 0; i++ {
				if ctx.Err() == nil {
					name := fmt.Sprint("short-", i)
					alive[name] = u.make(namespace, name)
					time.Sleep(100 * time.Millisecond)
				}
				if name := fmt.Sprint("short-", i-3); alive[name] != "" {
					u.remove(namespace, name)
					u.mu.Lock()
					removed = append(removed, alive[name])
					u.mu.Unlock()
					delete(alive, name)
				}
			}
		})
	}
	end := sync.OnceFunc(func() {
		cancel()
		churn.Wait()
	})
	t.Cleanup(end)

	b := u.join("b", u.instance.RESTConfig())
	u.shares("b", uids)
	c := u.join("c", u.instance.RESTConfig())
	u.shares("c", uids)
	leaves := func(r *running) {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}
	leaves(b)
	d := u.join("d", u.instance.RESTConfig())
	u.shares("d", uids)
	leaves(a) // It leads.
	leaves(d)
	e := u.join("e", u.instance.RESTConfig())
	u.shares("e", uids)
	end()
	operatortest.Eventually(t, "all deletions are processed", func() error {
		u.mu.Lock()
		defer u.mu.Unlock()
		for _, uid := range removed {
			if len(u.processed[uid]) == 0 {
				return fmt.Errorf("that of one of %d objects is not, which %s has reconciled last", len(removed), u.known[uid])
			}
		}
		return nil
	})
	leaves(c)
	leaves(e)
	whoses, twice := map[string]int{}, 0
	for _, uid := range removed {
		by := u.by(uid)
		whoses[by[0]]++
		if len(by) > 1 {
			twice++
		}
	}
	t.Logf("%d deletions were processed by %v, %d of them more than once", len(removed), whoses, twice)
	if replicas := slices.Sorted(maps.Keys(whoses)); len(replicas) < 4 {
		t.Errorf("only %q have processed deletions", replicas)
	}
}

// isConfigMap matches requests for what the sources read.
func isConfigMap(r operatortest.Request) bool { return r.Resource == "configmaps" }

func TestADeletionThatTheFormerHolderSeesLateIsProcessedBeforeTheNextOneGetsTheObjects(t *testing.T) {
	u := newUndertakers(t, 8)
	lag := operatortest.NewLag()
	u.join("a", lag.Wrap(u.instance.RESTConfig()))
	uids, doomed := u.oneEach(), map[string]types.UID{}
	for _, namespace := range u.namespaces {
		doomed[namespace] = u.make(namespace, "doomed")
	}
	lag.Hold(isConfigMap)
	for _, namespace := range u.namespaces {
		u.remove(namespace, "doomed")
	}
	u.join("b", u.instance.RESTConfig())
	operatortest.Eventually(t, "b is ready for something", u.released)
	time.Sleep(300 * time.Millisecond) // a passes no slots meanwhile
	for _, uid := range uids {
		if by := u.knownBy(uid); by != "a" {
			t.Errorf("%s has reconciled an object before a has seen what is gone", by)
		}
	}
	lag.Release()
	u.shares("b", uids)
	u.processedBy(doomed, "a")
}

// released reports whether a slot is about to be passed from a to b.
func (u *undertakers) released() bool {
	u.t.Helper()
	list := &coordinationv1.LeaseList{}
	if err := u.client.List(u.t.Context(), list, client.InNamespace(u.namespace), client.HasLabels{"operatorkit.io/slot"}); err != nil {
		u.t.Fatal(err)
	}
	for _, lease := range list.Items {
		for _, namespace := range u.namespaces {
			if lease.Labels["operatorkit.io/slot"] == strconv.Itoa(slots.Of(namespace, "")) && lease.Annotations["operatorkit.io/slot-ready"] != "" {
				return true
			}
		}
	}
	return false
}

// processedBy waits until each deletion is processed, and checks that the given replica was the
// first to do so.
func (u *undertakers) processedBy(uids map[string]types.UID, identity string) {
	u.t.Helper()
	operatortest.Eventually(u.t, "all deletions are processed", func() bool {
		for _, uid := range uids {
			if len(u.by(uid)) == 0 {
				return false
			}
		}
		return true
	})
	for namespace, uid := range uids {
		if by := u.by(uid); by[0] != identity {
			u.t.Errorf("the deletion of an object in namespace %s was processed by %q, want %s", namespace, by, identity)
		}
	}
}

func TestAReplicaWorksInWhatAnotherOneIsToGetUntilThatHasListedIt(t *testing.T) {
	u := newUndertakers(t, 8)
	u.join("a", u.instance.RESTConfig())
	uids, doomed := u.oneEach(), map[string]types.UID{}
	for _, namespace := range u.namespaces {
		doomed[namespace] = u.make(namespace, "doomed")
	}
	faults, release := operatortest.NewFaults(), make(chan struct{})
	var member atomic.Bool
	lists := faults.On(func(r operatortest.Request) bool {
		if r.Resource == "leases" && r.Verb == "create" {
			member.Store(true) // Earlier lists are of an empty part.
		}
		return member.Load() && isConfigMap(r) && (r.Verb == "list" || r.Verb == "watch")
	}, operatortest.DelayUntil(release))
	u.join("b", faults.Wrap(u.instance.RESTConfig()))
	operatortest.Eventually(t, "b begins to list", func() bool { return lists.Hits() > 0 })
	for _, namespace := range u.namespaces {
		u.make(namespace, "made-while-b-lists")
		u.remove(namespace, "doomed")
	}
	u.processedBy(doomed, "a")
	close(release)
	u.shares("b", uids)
}

func TestADeletionThatFailsIsTriedByTheFormerHolderBeforeTheNextOneGetsTheObjects(t *testing.T) {
	u := newUndertakers(t, 8)
	u.join("a", u.instance.RESTConfig())
	uids, doomed := u.oneEach(), map[string]types.UID{}
	for _, namespace := range u.namespaces {
		doomed[namespace] = u.make(namespace, "doomed")
	}
	u.fail(true)
	for _, namespace := range u.namespaces {
		u.remove(namespace, "doomed")
	}
	u.join("b", u.instance.RESTConfig())
	operatortest.Eventually(t, "b is ready for something", u.released)
	u.fail(false)
	u.shares("b", uids)
	u.processedBy(doomed, "a")
}

func TestWhatChangesWhileAReplicaGivesItUpIsReconciledByItWhenNobodyTakesIt(t *testing.T) {
	u := newUndertakers(t, 8)
	u.join("a", u.instance.RESTConfig())
	uids := u.oneEach()
	for _, namespace := range u.namespaces {
		u.make(namespace, "doomed")
	}
	u.fail(true) // While these fail, b does not own what a has released.
	for _, namespace := range u.namespaces {
		u.remove(namespace, "doomed")
	}
	b := u.join("b", u.instance.RESTConfig())
	operatortest.Eventually(t, "b is ready for something", u.released)
	// Until a has released an object, it keeps reconciling the object.
	for round := 0; ; round++ {
		if round == 200 {
			t.Fatal("a gives up nothing")
		}
		says := fmt.Sprint("round ", round)
		u.change(says)
		if !u.says(says) {
			break
		}
	}
	u.change("last")
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	u.fail(false)
	operatortest.Eventually(t, "a has reconciled all", func() bool { return u.says("last") })
	for _, uid := range uids {
		if by := u.knownBy(uid); by != "a" {
			t.Errorf("%s has reconciled an object", by)
		}
	}
}

// change writes a text into the object in each namespace.
func (u *undertakers) change(says string) {
	u.t.Helper()
	for _, namespace := range u.namespaces {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"says":%q}}`, says))
		if err := u.client.Patch(u.t.Context(), configMap(namespace, "object"), patch); err != nil {
			u.t.Fatal(err)
		}
	}
	time.Sleep(50 * time.Millisecond) // time for the reconciliations
}

// says reports whether a text was reconciled in each namespace.
func (u *undertakers) says(text string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	said := 0
	for _, s := range u.shown {
		if s == text {
			said++
		}
	}
	return said == len(u.namespaces)
}

func TestAnObjectThatWasNotSelectedForAWhileIsReconciledAndDeletedByWhoGetsItNext(t *testing.T) {
	u := newUndertakers(t, 8)
	u.join("a", u.instance.RESTConfig())
	uids, wanderers := u.oneEach(), map[string]types.UID{}
	for _, namespace := range u.namespaces {
		wanderers[namespace] = u.make(namespace, "wanderer")
	}
	for _, namespace := range u.namespaces {
		u.label(namespace, "wanderer", "null")
		u.make(namespace, "later") // By now a has looked up the one that it lacks.
		u.label(namespace, "wanderer", fmt.Sprintf("%q", u.namespace))
	}
	u.join("b", u.instance.RESTConfig())
	for _, namespace := range u.shares("b", uids) {
		operatortest.Eventually(t, "b has reconciled it", func() bool { return u.knownBy(wanderers[namespace]) == "b" })
	}
	for _, namespace := range u.namespaces {
		u.remove(namespace, "wanderer")
	}
	operatortest.Eventually(t, "all deletions are processed", func() bool {
		return !slices.ContainsFunc(u.namespaces, func(n string) bool { return len(u.by(wanderers[n])) == 0 })
	})
}

// label sets the label that selects objects, to a JSON value.
func (u *undertakers) label(namespace, name, value string) {
	u.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, crewLabel, value))
	if err := u.client.Patch(u.t.Context(), configMap(namespace, name), patch); err != nil {
		u.t.Fatal(err)
	}
}
