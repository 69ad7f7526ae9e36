package members_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/operator/internal/members"
	"github.com/operatorkit/operatorkit/operator/internal/ring"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) { operatortest.VerifyTestMain(m) }

// The times of the leases in tests.
const (
	leaseDuration = 10 * time.Second
	validity      = 8 * time.Second
	retryPeriod   = 100 * time.Millisecond
)

// places are hashes of objects.
var places = func() []ring.Hash {
	var all []ring.Hash
	for i := range 200 {
		all = append(all, ring.HashOf(fmt.Sprint("object-", i)))
	}
	slices.Sort(all)
	return all
}()

// cluster is a ring in a namespace of a real API server, whose replicas work all the time on whatever they may.
type cluster struct {
	t         *testing.T
	instance  *operatortest.Instance
	namespace string
	leases    coordinationv1client.LeaseInterface
	// patience is how long replicas wait for others that could take what they have.
	patience time.Duration
	// retry is the pause between two renewals.
	retry time.Duration
	// few is set while all objects are at one place.
	few atomic.Bool
	// listsNothing is set while replicas are started that list nothing at first.
	listsNothing bool

	mu sync.Mutex
	// log is what the replicas have logged.
	log strings.Builder
	// workers are who works on a hash.
	workers map[ring.Hash]string
	// worked counts for each replica what it has worked on.
	worked map[string]int
}

func newCluster(t *testing.T) *cluster {
	instance := operatortest.Start(t)
	c := &cluster{
		t: t, instance: instance, namespace: instance.Namespace(t), patience: time.Hour, retry: retryPeriod, workers: map[ring.Hash]string{}, worked: map[string]int{},
	}
	c.leases = c.connect(instance.RESTConfig())
	return c
}

// Write implements io.Writer for the log.
func (c *cluster) Write(entry []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.Write(entry)
}

// told counts the entries of the log with a text.
func (c *cluster) told(text string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Count(c.log.String(), text)
}

func (c *cluster) connect(config *rest.Config) coordinationv1client.LeaseInterface {
	c.t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		c.t.Fatal(err)
	}
	return client.Leases(c.namespace)
}

// member is a replica with a fence, as the operator has one.
type member struct {
	*members.Replica
	c      *cluster
	name   string
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
	faults *operatortest.Faults

	listsNothing atomic.Bool
	// over is set when the test is: nobody need take over then.
	over atomic.Bool

	mu    sync.Mutex
	since time.Time
	notes []string
}

func (m *member) renewed(start time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since = start
}

// open tells whether the fence of the replica is.
func (m *member) open() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.since) < validity
}

func (m *member) works() bool { return m.open() && !m.over.Load() }

// listed is all of it, but while the member lists nothing.
func (m *member) listed() []ring.Span {
	if m.listsNothing.Load() {
		return nil
	}
	return []ring.Span{{Last: ring.MaxHash}}
}

func (m *member) noted(notes []ring.Note) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range notes {
		m.notes = append(m.notes, n.Done...)
	}
}

// giveUp gives up what the table says, and leaves its name.
func (m *member) giveUp() {
	for _, move := range m.Holder().Leaving() {
		m.Holder().GiveUp(move)
		m.Holder().Give(move, []string{"by " + m.name})
	}
}

// start runs a replica that leads, or not.
func (c *cluster) start(name string, leads bool) *member {
	c.t.Helper()
	return c.startBehind(operatortest.NewFaults(), name, leads)
}

func (c *cluster) startBehind(faults *operatortest.Faults, name string, leads bool) *member {
	c.t.Helper()
	m := &member{c: c, name: name, ended: make(chan struct{}), faults: faults}
	m.listsNothing.Store(c.listsNothing)
	logger, err := logging.New(logging.Config{Writer: c, Format: logging.FormatText})
	if err != nil {
		c.t.Fatal(err)
	}
	m.Replica, err = members.New(members.Config{
		Leases: c.connect(m.faults.Wrap(c.instance.RESTConfig())), Ring: "test-shards", Member: name,
		LeaseDuration: leaseDuration, RetryPeriod: c.retry, RequestTimeout: 3 * time.Second,
		Leads: func() bool { return leads }, Renewed: m.renewed, Weigh: c.weigh, Listed: m.listed, Noted: m.noted, Works: m.works, Logger: logger,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	m.OnTable(m.giveUp)
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	leaving, leave := context.WithCancel(context.Background())
	go func() {
		defer close(m.ended)
		if m.err = m.Run(ctx, c.patience); m.err == nil {
			m.err = m.Leave(leaving)
		}
	}()
	working, stop := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	for i := range 4 {
		workers.Go(func() { m.work(working, i) })
	}
	c.t.Cleanup(func() {
		stop()
		workers.Wait()
		m.over.Store(true)
		cancel()
		leave() // what a test that has failed has begun does not end
		<-m.ended
	})
	return m
}

func (c *cluster) weigh(owned []ring.Span) []ring.Bucket {
	there := places
	if c.few.Load() {
		there = places[:1]
	}
	var buckets []ring.Bucket
	for _, s := range owned {
		in := slices.DeleteFunc(slices.Clone(there), func(h ring.Hash) bool { return !s.Contains(h) })
		buckets = append(buckets, ring.Weigh(s, in, 32)...)
	}
	return buckets
}

// work works on one place after the other, and tells of who else does at the same time.
func (m *member) work(ctx context.Context, worker int) {
	for i := worker; ctx.Err() == nil; i += 7 {
		place := places[i%len(places)]
		// No two workers of a replica are at one place.
		if i%4 != worker || !m.open() || !m.Holder().Begin(place) {
			time.Sleep(time.Millisecond)
			continue
		}
		m.at(place)
		m.Holder().End(place)
	}
}

func (m *member) at(place ring.Hash) {
	c := m.c
	c.mu.Lock()
	if other := c.workers[place]; other != "" && other != m.name {
		c.t.Errorf("%s and %s work on %s at the same time", other, m.name, place)
	}
	c.workers[place] = m.name
	c.worked[m.name]++
	c.mu.Unlock()
	time.Sleep(time.Millisecond)
	c.mu.Lock()
	delete(c.workers, place)
	c.mu.Unlock()
}

// shared tells whether every place has one of these as its only owner, and each of them owns something.
func (c *cluster) shared(members ...*member) error {
	for _, place := range places {
		owners := 0
		for _, m := range members {
			if m.open() && m.Holder().Owns(place) {
				owners++
			}
		}
		if owners != 1 {
			return fmt.Errorf("%s has %d owners", place, owners)
		}
	}
	for _, m := range members {
		if len(m.Holder().Owned()) == 0 {
			return fmt.Errorf("%s owns nothing", m.name)
		}
	}
	return nil
}

func (m *member) wait() error {
	m.c.t.Helper()
	operatortest.Eventually(m.c.t, m.name+" ends", func() bool {
		select {
		case <-m.ended:
			return true
		default:
			return false
		}
	})
	return m.err
}

func TestReplicasShareTheWorkAndOneThatStopsLeavesItsPartAtOnce(t *testing.T) {
	c := newCluster(t)
	// All of them lead, at once.
	a, b, d := c.start("a", true), c.start("b", true), c.start("d", true)
	operatortest.Eventually(t, "three share", func() error { return c.shared(a, b, d) })
	operatortest.Eventually(t, "all of them have worked", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.worked["a"] > 0 && c.worked["b"] > 0 && c.worked["d"] > 0
	})
	d.cancel()
	if err := d.wait(); err != nil {
		t.Error(err)
	}
	if left := c.replicas(); left != 2 {
		t.Errorf("there are %d leases of replicas, not 2", left)
	}
	operatortest.Eventually(t, "two share", func() error { return c.shared(a, b) })
}

// replicas counts the leases of replicas.
func (c *cluster) replicas() int {
	c.t.Helper()
	list, err := c.leases.List(c.t.Context(), metav1.ListOptions{LabelSelector: members.RingLabel})
	if err != nil {
		c.t.Fatal(err)
	}
	return len(list.Items)
}

func TestAReplicaThatIsCutOffIsReplacedWhenItsFenceHasClosedAndNeverComesBack(t *testing.T) {
	c := newCluster(t)
	a, b := c.start("a", true), c.start("b", false)
	operatortest.Eventually(t, "two share", func() error { return c.shared(a, b) })
	lost := b.Holder().Owned()[0].First
	b.faults.Cut()
	operatortest.Eventually(t, "a owns what b had", func() bool { return a.Holder().Owns(lost) })
	if b.open() {
		t.Error("b may still write")
	}
	operatortest.Eventually(t, "a owns all", func() error { return c.shared(a) })
	b.faults.Restore()
	if err := b.wait(); !errors.Is(err, members.ErrLost) {
		t.Errorf("want ErrLost, got %v", err)
	}
	if owned := b.Holder().Owned(); len(owned) > 0 || b.open() {
		t.Errorf("b owns %v, and its fence is open: %t", owned, b.open())
	}
}

func TestALeaseThatIsRenewedAtTheLastMomentIsNotTakenAway(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it waits for the end of a lease")
	}
	c := newCluster(t)
	a, b := c.start("a", true), c.start("b", false)
	operatortest.Eventually(t, "two share", func() error { return c.shared(a, b) })
	release := make(chan struct{})
	deletion := a.faults.On(func(r operatortest.Request) bool { return r.Verb == "delete" }, operatortest.DelayUntil(release))
	b.faults.Cut()
	operatortest.Eventually(t, "a deletes the lease of b", func() bool { return deletion.Hits() > 0 })
	b.faults.Restore()
	operatortest.Eventually(t, "b has renewed it", b.open)
	close(release)
	b.renewsAgain()
	operatortest.Eventually(t, "two share again", func() error { return c.shared(a, b) })
}

func TestAReplicaThatWasCutOffForLessThanItsLeaseGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it waits for the end of a lease")
	}
	c := newCluster(t)
	a, b := c.start("a", true), c.start("b", false)
	operatortest.Eventually(t, "two share", func() error { return c.shared(a, b) })
	b.faults.Cut()
	a.faults.Cut()
	operatortest.Eventually(t, "the fences are closed", func() bool { return !a.open() && !b.open() })
	b.faults.Restore()
	a.faults.Restore()
	operatortest.Eventually(t, "two share again", func() error { return c.shared(a, b) })
}

func TestWhatAReplicaWorksOnGoesToAnotherOneOnlyAfterwards(t *testing.T) {
	c := newCluster(t)
	a := c.start("a", true)
	operatortest.Eventually(t, "a owns all", func() error { return c.shared(a) })
	for _, place := range places {
		if !a.Holder().Begin(place) {
			t.Fatalf("a can't begin at %s", place)
		}
	}
	b := c.start("b", false)
	operatortest.Eventually(t, "something is to move", func() bool { return b.Table().Moving() > 0 })
	generation := b.Table().Generation
	if owned := b.Holder().Owned(); len(owned) > 0 {
		t.Errorf("b owns %v while a works in everything", owned)
	}
	for _, place := range places {
		a.Holder().End(place)
	}
	operatortest.Eventually(t, "two share", func() error { return c.shared(a, b) })
	if b.Table().Generation == generation {
		t.Error("the work was handed over without a table that says so")
	}
}

func TestAReplicaThatStopsKeepsItsLeaseUntilItsWorkHasEnded(t *testing.T) {
	c := newCluster(t)
	a, b := c.start("a", true), c.start("b", true)
	operatortest.Eventually(t, "two share", func() error { return c.shared(a, b) })
	i := slices.IndexFunc(places, a.Holder().Owns)
	if i < 0 || !a.Holder().Begin(places[i]) {
		t.Fatalf("a owns %v, and can't begin there", a.Holder().Owned())
	}
	a.cancel()
	operatortest.Eventually(t, "a has given up", func() bool { return len(a.Holder().Owned()) == 0 })
	a.renewsAgain()
	if left := c.replicas(); left != 2 || b.Holder().Owns(places[i]) {
		t.Errorf("there are %d leases, and b owns what a works on: %t", left, b.Holder().Owns(places[i]))
	}
	a.Holder().End(places[i])
	if err := a.wait(); err != nil {
		t.Error(err)
	}
	operatortest.Eventually(t, "b owns all", func() error { return c.shared(b) })
}

// renewsAgain waits for some renewals that begin from now on.
func (m *member) renewsAgain() {
	m.c.t.Helper()
	for range 3 {
		since := time.Now()
		operatortest.Eventually(m.c.t, m.name+" renews its lease once more", func() bool {
			select {
			case <-m.ended:
				m.c.t.Fatalf("%s has ended: %v", m.name, m.err)
			default:
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.since.After(since)
		})
	}
}

func TestAReplicaThatStopsWorksOnUntilOthersHaveListedWhatTheyGet(t *testing.T) {
	c := newCluster(t)
	a := c.start("a", true)
	operatortest.Eventually(t, "a owns all", func() error { return c.shared(a) })
	c.listsNothing = true
	b := c.start("b", true)
	operatortest.Eventually(t, "b is there", func() bool { return c.replicas() == 2 })
	a.cancel()
	operatortest.Eventually(t, "a is about to leave", func() bool { return b.Table().Moving() > 0 })
	a.renewsAgain()
	if err := c.shared(a); err != nil {
		t.Errorf("a does not work on while nobody can take over: %v", err)
	}
	b.listsNothing.Store(false)
	operatortest.Eventually(t, "b owns all", func() error { return c.shared(b) })
	if err := a.wait(); err != nil {
		t.Error(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.notes, "by a") {
		t.Errorf("what a has left did not reach b: %q", b.notes)
	}
}

func TestAReplicaThatStopsWaitsForNobodyIn(t *testing.T) {
	for name, test := range map[string]struct {
		patience time.Duration
		others   int
		disturb  func(a *member, others []*member)
	}{
		"a ring of its own": {time.Hour, 0, func(*member, []*member) {}},
		"a ring that ends":  {time.Hour, 1, func(_ *member, others []*member) { others[0].cancel() }},
		"a ring that it can't reach": {time.Hour, 1, func(a *member, _ []*member) {
			a.faults.Cut()
			operatortest.Eventually(t, "its fence is closed", func() bool { return !a.open() })
		}},
		"a ring in which nobody takes over for too long": {time.Second, 1, func(*member, []*member) {}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.patience = test.patience
			a := c.start("a", true)
			operatortest.Eventually(t, "a owns all", func() error { return c.shared(a) })
			c.listsNothing = true
			var others []*member
			for range test.others {
				others = append(others, c.start("b", false))
			}
			operatortest.Eventually(t, "all are there and are to get something", func() bool {
				return c.replicas() == 1+test.others && !slices.ContainsFunc(others, func(m *member) bool { return len(m.Holder().Held()) == 0 })
			})
			test.disturb(a, others)
			a.cancel()
			if err := a.wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReplicasForWhichThereIsNothingAreToldOnceAndAlsoThatThereIsSomethingAgain(t *testing.T) {
	const nothing, something = "replicas have no objects", "every replica has objects"
	c := newCluster(t)
	c.few.Store(true)
	a, b := c.start("a", true), c.start("b", false)
	operatortest.Eventually(t, "it is told that one has nothing", func() bool { return c.told(nothing) > 0 })
	a.renewsAgain()
	if again := c.told(nothing); again != 1 || c.told(something) > 0 {
		t.Errorf("it was told %d times that one has nothing, and %d times that all have something", again, c.told(something))
	}
	c.few.Store(false)
	operatortest.Eventually(t, "it is told that all have something", func() bool { return c.told(something) == 1 })
	operatortest.Eventually(t, "two share", func() error { return c.shared(a, b) })
}

func TestAReplicaThatHasJustComeIsNotToldToHaveNothing(t *testing.T) {
	c := newCluster(t)
	a := c.start("a", true)
	operatortest.Eventually(t, "a owns all", func() error { return c.shared(a) })
	a.renewsAgain() // it tells of its objects
	b := c.start("b", false)
	operatortest.Eventually(t, "two share", func() error { return c.shared(a, b) })
	a.renewsAgain()
	if c.told("replicas have no objects") > 0 {
		t.Error("it was told that one has nothing")
	}
}

func TestATableThatSomebodyDeletesIsMadeAnew(t *testing.T) {
	c := newCluster(t)
	a, b, d := c.start("a", true), c.start("b", true), c.start("d", true)
	for range 3 {
		operatortest.Eventually(t, "three share", func() error { return c.shared(a, b, d) })
		former := c.table()
		if err := c.leases.Delete(t.Context(), former.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		operatortest.Eventually(t, "all follow another table", func() bool {
			now, err := c.leases.Get(t.Context(), former.Name, metav1.GetOptions{})
			if err != nil || now.UID == former.UID {
				return false
			}
			for _, m := range []*member{a, b, d} {
				if m.Holder().Confirmation().Life != string(now.UID) {
					return false
				}
			}
			return true
		})
	}
	operatortest.Eventually(t, "three share", func() error { return c.shared(a, b, d) })
}

func TestATableThatSomebodyHasSpoiltChangesNothingUntilItIsDeleted(t *testing.T) {
	c := newCluster(t)
	a := c.start("a", true)
	operatortest.Eventually(t, "a owns all", func() error { return c.shared(a) })
	b := c.start("b", false)
	operatortest.Eventually(t, "two share", func() error { return c.shared(a, b) })
	for _, table := range []string{"{", `{"generation":1000,"ranges":[{"first":"0x5","owner":"b","epoch":9,"since":1000}]}`} {
		operatortest.Eventually(t, "the table is spoilt", func() error {
			lease := c.table()
			var settled ring.Table
			if err := json.Unmarshal([]byte(lease.Annotations[members.TableAnnotation]), &settled); err != nil {
				return err
			}
			// What is on its way from one to another would stay there, with nobody.
			if moving := settled.Moving(); moving > 0 {
				return fmt.Errorf("%d ranges are moving", moving)
			}
			if err := c.shared(a, b); err != nil {
				return err
			}
			lease.Annotations[members.TableAnnotation] = table
			_, err := c.leases.Update(t.Context(), lease, metav1.UpdateOptions{})
			return err
		})
		d := c.start("d"+table[:1]+strconv.Itoa(len(table)), false)
		if err := c.shared(a, b); err != nil || len(d.Holder().Owned()) > 0 {
			t.Errorf("%s: d owns %v (%v)", table, d.Holder().Owned(), err)
		}
		if err := c.leases.Delete(t.Context(), "test-shards", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		operatortest.Eventually(t, "three share", func() error { return c.shared(a, b, d) })
		d.cancel()
		if err := d.wait(); err != nil {
			t.Error(err)
		}
		operatortest.Eventually(t, "two share again", func() error { return c.shared(a, b) })
	}
}

func (c *cluster) table() *coordinationv1.Lease {
	c.t.Helper()
	lease, err := c.leases.Get(c.t.Context(), "test-shards", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return lease
}

// TestALeaderThatCrashesAtAnyOfItsWritesLeavesNoPartWithoutAnOwner cuts the first of three replicas off for good, at one of its writes after
// the other, before and after that was carried out.
func TestATableThatTheServerRefusesIsWrittenAgainAtTheNextRenewalOnly(t *testing.T) {
	c := newCluster(t)
	c.retry = time.Second
	a := c.start("a", true)
	operatortest.Eventually(t, "a owns all", func() error { return c.shared(a) })
	var renewals atomic.Int64
	isTable := func(r operatortest.Request) bool {
		if r.Verb == "update" && r.Name != "test-shards" {
			renewals.Add(1)
		}
		return r.Verb == "update" && r.Name == "test-shards"
	}
	refused := a.faults.On(isTable, operatortest.Answer(apierrors.NewInvalid(coordinationv1.SchemeGroupVersion.WithKind("Lease").GroupKind(), "test-shards", nil)))
	b := c.start("b", false)
	operatortest.Eventually(t, "a table is refused", func() bool { return refused.Hits() > 0 })
	before, hits := renewals.Load(), refused.Hits()
	operatortest.Eventually(t, "a has renewed its lease thrice", func() bool { return renewals.Load() >= before+3 })
	// What b says wakes a now and then too.
	if again, times := refused.Hits()-hits, int(renewals.Load()-before); again > 3*times+3 {
		t.Errorf("the table was written %d times during %d renewals", again, times)
	}
	refused.Remove()
	operatortest.Eventually(t, "two share", func() error { return c.shared(a, b) })
}

func TestALeaderThatCrashesAtAnyOfItsWritesLeavesNoPartWithoutAnOwner(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: leases run out again and again")
	}
	for _, fault := range []operatortest.Fault{operatortest.FailBefore(), operatortest.FailAfter()} {
		t.Run(fault.String(), func(t *testing.T) {
			writes := 1
			for crashAt(t, writes, fault) {
				writes++
			}
			if writes < 5 {
				t.Errorf("all was shared out by %d writes", writes-1)
			}
		})
	}
}

// crashAt tells whether the leader came to that write before all was shared out.
func crashAt(t *testing.T, write int, fault operatortest.Fault) bool {
	t.Helper()
	c := newCluster(t)
	faults := operatortest.NewFaults()
	writes := 0
	rule := faults.On(func(r operatortest.Request) bool {
		if slices.Contains([]string{"create", "update", "delete"}, r.Verb) {
			writes++
		}
		return writes >= write
	}, fault)
	a := c.startBehind(faults, "a", true)
	b, d := c.start("b", true), c.start("d", true)
	crashed := false
	operatortest.Eventually(t, "a crashes, or all is shared out", func() bool {
		crashed = rule.Hits() > 0
		return crashed || c.shared(a, b, d) == nil
	})
	if !crashed {
		return false
	}
	faults.Cut()
	operatortest.Eventually(t, fmt.Sprintf("the others share after a has crashed at write %d", write), func() error { return c.shared(b, d) })
	return true
}

func TestEachFaultOfAConfigIsNamed(t *testing.T) {
	_, err := members.New(members.Config{Capacity: -1})
	for _, field := range []string{"Leases", "Ring", "Member", "Capacity", "LeaseDuration", "RetryPeriod", "RequestTimeout", "Leads, Renewed, Weigh, Listed, Noted, Works and Logger"} {
		if err == nil || !strings.Contains(err.Error(), field+" must") {
			t.Errorf("%v: %s is not named", err, field)
		}
	}
	_, err = members.New(members.Config{LeaseDuration: 1900 * time.Millisecond})
	if want := "LeaseDuration must be in whole seconds, one at least, is 1.9s"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want an error with %q, got %v", want, err)
	}
}
