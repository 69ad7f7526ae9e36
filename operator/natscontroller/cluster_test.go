package natscontroller_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/natscontroller/natslease"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// copying is a controller whose SyncHandler copies the first host of a gateway into a route of its name. It decides by what it reads: from
// a state before the event it would conclude that nothing is to be done, and nothing would wake it again.
type copying struct {
	*natscontroller.ControllerRuntime[*Gateway]
	gateways *natsinformer.Bucket[*Gateway]
	routes   *natsinformer.Bucket[*Route]
}

func (c *copying) SyncHandlerContext(ctx context.Context, key string) error {
	gateway, err := c.gateways.Get(ctx, key)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	gone := err != nil
	route, err := c.routes.Get(ctx, key)
	switch {
	case apierrors.IsNotFound(err) && gone:
		return nil
	case apierrors.IsNotFound(err):
		return c.routes.Create(ctx, &Route{Meta: natsinformer.Meta{Name: key, OwnerKind: kind, OwnerKey: key}, Host: gateway.Hosts[0]})
	case err != nil:
		return err
	case gone:
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
}

func newOnCluster(t *testing.T) *onCluster {
	t.Helper()
	cluster := natsserver.StartCluster(t)
	_, js := cluster.Connect(t)
	for _, name := range []string{"gateways", "routes", "events", "leases"} {
		natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: name, History: 5, Replicas: 3})
	}
	o := &onCluster{world: openWorld(t, js, nil), cluster: cluster}

	_, own := cluster.Connect(t)
	fence := operator.NewFence()
	behind := openWorld(t, own, fence.Check)
	lease, err := natslease.New(natslease.Config{JetStream: own, Bucket: "leases", Key: "copying", Operator: "copying"})
	if err != nil {
		t.Fatal(err)
	}
	config := behind.config()
	config.LeaderElection = operator.LeaderElectionConfig{
		Enabled: true, Lock: lease, Fence: fence, LeaseDuration: 2 * time.Minute, RenewDeadline: time.Minute, RetryPeriod: time.Second,
	}
	c := &copying{ControllerRuntime: behind.controller(config), gateways: behind.gateways, routes: behind.routes}
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
	retried(t, "the change of "+name+" to "+host+" is carried out", func(ctx context.Context) error {
		route, err := o.routes.Get(ctx, name)
		if err == nil && route.Host != host {
			err = fmt.Errorf("it is %q", route.Host)
		}
		return err
	})
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
	retried(t, "the deletion of "+name+" is processed", func(ctx context.Context) error {
		_, err := o.routes.Get(ctx, name)
		if err == nil {
			return errors.New("its route is there still")
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// work makes changes and deletions one at a time, five of the former to one of the latter. each is called before every change.
func (o *onCluster) work(t *testing.T, changes int, each func(i int)) {
	t.Helper()
	for i := range changes {
		each(i)
		name := "gateway-" + strconv.Itoa(i/5%7)
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
	o := newOnCluster(t)
	o.work(t, changes, func(int) {})
}

func TestR11NothingIsLostWhenTheLeadersOfReplicatedBucketsAreKilled(t *testing.T) {
	changes, kills := 5000, 40
	if testing.Short() {
		changes, kills = 24, 1
	}
	o := newOnCluster(t)
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
}
