package natscontroller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/natscontroller/natslease"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// copying is a controller whose SyncHandler copies the first host of a gateway into routes that are called like it. It decides by what it
// reads: from a state before the event it would conclude that nothing is to be done, and nothing would wake it again.
type copying struct {
	*natscontroller.ControllerRuntime[*Gateway]
	gateways *natsinformer.Bucket[*Gateway]
	routes   *natsinformer.Bucket[*Route]
	// suffixes are what the names of the routes have behind that of the gateway: there is a route for each.
	suffixes []string
	// keeps has routes deleted and not purged: the bucket has them in its history then.
	keeps bool
}

func (c *copying) SyncHandlerContext(ctx context.Context, key string) error {
	gateway, err := c.gateways.Get(ctx, key)
	if apierrors.IsNotFound(err) {
		gateway, err = nil, nil
	}
	if err != nil {
		return err
	}
	for _, suffix := range c.suffixes {
		if err := c.copy(ctx, gateway, key, key+suffix); err != nil {
			return err
		}
	}
	return nil
}

// copy makes a route what it should be for a gateway, or removes it if that is gone.
func (c *copying) copy(ctx context.Context, gateway *Gateway, key, name string) error {
	route, err := c.routes.Get(ctx, name)
	switch {
	case apierrors.IsNotFound(err) && gateway == nil:
		return nil
	case apierrors.IsNotFound(err):
		return c.routes.Create(ctx, &Route{Meta: natsinformer.Meta{Name: name, OwnerKind: kind, OwnerKey: key}, Host: gateway.Hosts[0]})
	case err != nil:
		return err
	case gateway == nil && c.keeps:
		return c.routes.Delete(ctx, route)
	case gateway == nil:
		return c.routes.Purge(ctx, route)
	case route.Host == gateway.Hosts[0]:
		return nil
	}
	route.Host = gateway.Hosts[0]
	return c.routes.Update(ctx, route)
}

// onCluster is a controller that runs on buckets of three replicas, and a connection of the test's own.
type onCluster struct {
	*world
	cluster *natsserver.Cluster
	// names is how many gateways there are, at different times, and suffixes are those of the routes of each.
	names    int
	suffixes []string
	// want is what becomes of each route, as record has it.
	want map[string][]string
}

// maxHistory is how many changes of an entry a bucket can keep.
const maxHistory = 64

// newOnCluster starts a controller of that many gateways. If it keeps the routes that go, the bucket has the record of them.
func newOnCluster(t *testing.T, names int, keeps bool) *onCluster {
	t.Helper()
	cluster := natsserver.StartCluster(t)
	_, js := cluster.Connect(t)
	for _, name := range []string{"gateways", "routes", "events", "leases"} {
		natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: name, History: maxHistory, Replicas: 3})
	}
	o := &onCluster{world: openWorld(t, js, nil), cluster: cluster, names: names, suffixes: []string{"-a", "-b", "-c"}, want: map[string][]string{}}

	_, own := cluster.Connect(t)
	fence := operator.NewFence()
	behind := openWorld(t, own, fence.Check)
	t.Cleanup(func() {
		if t.Failed() {
			lines := behind.log.all()
			t.Logf("the end of the controller's log:\n%s", strings.Join(lines[max(0, len(lines)-50):], ""))
		}
	})
	lease, err := natslease.New(natslease.Config{JetStream: own, Bucket: "leases", Key: "copying", Operator: "copying"})
	if err != nil {
		t.Fatal(err)
	}
	config := behind.config()
	config.LeaderElection = operator.LeaderElectionConfig{
		Enabled: true, Lock: lease, Fence: fence, LeaseDuration: 2 * time.Minute, RenewDeadline: time.Minute, RetryPeriod: time.Second,
	}
	c := &copying{ControllerRuntime: behind.controller(config), gateways: behind.gateways, routes: behind.routes, suffixes: o.suffixes, keeps: keeps}
	c.SetCustomController(c)
	running := run(t, c.Start)
	t.Cleanup(func() {
		if err := running.stop(); err != nil {
			t.Error(err)
		}
	})
	operatortest.Eventually(t, "the controller is synced", func() bool { return config.Primary.Status().Synced })
	return o
}

// change sets the host of a gateway and waits until that was carried out.
func (o *onCluster) change(t *testing.T, name, host string) {
	t.Helper()
	retried(t, "the change of "+name, func(ctx context.Context) error {
		gateway, err := o.gateways.Get(ctx, name)
		if apierrors.IsNotFound(err) {
			return o.gateways.Create(ctx, &Gateway{Meta: natsinformer.Meta{Name: name}, Hosts: []string{host}})
		}
		if err != nil || gateway.Hosts[0] == host {
			return err
		}
		gateway.Hosts = []string{host}
		return o.gateways.Update(ctx, gateway)
	})
	for _, suffix := range o.suffixes {
		retried(t, "the change of "+name+" to "+host+" is carried out", func(ctx context.Context) error {
			route, err := o.routes.Get(ctx, name+suffix)
			if err == nil && route.Host != host {
				err = fmt.Errorf("it is %q", route.Host)
			}
			return err
		})
		o.happens(name+suffix, host)
	}
}

// happens notes what is to be in the record.
func (o *onCluster) happens(route, what string) {
	if history := o.want[route]; len(history) == 0 || history[len(history)-1] == deleted {
		what = made + what
	}
	o.want[route] = append(o.want[route], what)
}

// What the record says of a route besides its hosts.
const (
	made    = "made with "
	deleted = "deleted"
)

// record returns what the bucket says has become of each route: its hosts in their order, that it was made when it has another UID than
// before, and that it was deleted.
func (o *onCluster) record(ctx context.Context) (map[string][]string, error) {
	kv, err := o.js.KeyValue(ctx, "routes")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	all, err := kv.WatchAll(ctx, jetstream.IncludeHistory())
	if err != nil {
		return nil, err
	}
	record, uids := map[string][]string{}, map[string]types.UID{}
	for entry := range all.Updates() {
		if entry == nil {
			return record, nil
		}
		what := deleted
		if entry.Operation() == jetstream.KeyValuePut {
			route := &Route{}
			if err := json.Unmarshal(entry.Value(), route); err != nil {
				return nil, err
			}
			what = route.Host
			if uids[entry.Key()] != route.UID {
				what = made + what
			}
			uids[entry.Key()] = route.UID
		}
		record[entry.Key()] = append(record[entry.Key()], what)
	}
	return nil, errors.New("the watch has ended")
}

// remove deletes a gateway and waits until that was processed.
func (o *onCluster) remove(t *testing.T, name string) {
	t.Helper()
	retried(t, "the deletion of "+name, func(ctx context.Context) error {
		gateway, err := o.gateways.Get(ctx, name)
		if err == nil {
			err = o.gateways.Delete(ctx, gateway)
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	for _, suffix := range o.suffixes {
		retried(t, "the deletion of "+name+" is processed", func(ctx context.Context) error {
			_, err := o.routes.Get(ctx, name+suffix)
			if err == nil {
				return fmt.Errorf("its route %s%s is there still", name, suffix)
			}
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		o.happens(name+suffix, deleted)
	}
}

// work makes changes and deletions one at a time, five of the former to one of the latter. each is called before every change.
func (o *onCluster) work(t *testing.T, changes int, each func(i int)) {
	t.Helper()
	for i := range changes {
		each(i)
		name := "gateway-" + strconv.Itoa(i/5%o.names)
		o.change(t, name, "host-"+strconv.Itoa(i))
		if i%5 == 4 {
			o.remove(t, name)
		}
	}
}

func TestR11NothingIsLostOnReplicatedBuckets(t *testing.T) {
	changes := 5000
	if testing.Short() {
		changes = 150
	}
	o := newOnCluster(t, 7, false)
	o.work(t, changes, func(int) {})
}

// TestR11NothingIsLostOrDoneTwiceWhenTheLeadersOfReplicatedBucketsAreKilled holds besides that each secondary is made once and deleted once in
// each life of its primary, and written once for each change of it, whatever answers are lost.
func TestR11NothingIsLostOrDoneTwiceWhenTheLeadersOfReplicatedBucketsAreKilled(t *testing.T) {
	changes, kills := 5000, 40
	if testing.Short() {
		changes, kills = 24, 1
	}
	// Six changes for each life of a route have to stay in the history.
	lives := maxHistory / 10
	o := newOnCluster(t, changes/5/lives+1, true)
	buckets := []string{"gateways", "routes", "leases"}
	var killed *natsserver.Process
	o.work(t, changes, func(i int) {
		period := changes / kills
		switch i % period {
		case period / 3:
			killed = o.cluster.KillLeader(t, o.js, buckets[i/period%len(buckets)])
		case 2 * period / 3:
			killed.Start(t)
			for _, bucket := range buckets {
				o.cluster.AwaitCurrent(t, o.js, bucket)
			}
		}
	})
	operatortest.Eventually(t, "the bucket has the record of what was asked for, and nothing else", func() error {
		record, err := o.record(t.Context())
		if diff := cmp.Diff(o.want, record); err == nil && diff != "" {
			err = errors.New(diff)
		}
		return err
	})
}
