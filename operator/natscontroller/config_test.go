package natscontroller_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
)

func TestNewNamesEachFault(t *testing.T) {
	w := openWorld(t, newWorld(t).js, func() error { return nil })
	unfenced := openWorld(t, w.js, nil).config()
	tests := []struct {
		name   string
		change func(*natscontroller.Config[*Gateway])
		want   string
	}{
		{"everything", func(c *natscontroller.Config[*Gateway]) { *c = natscontroller.Config[*Gateway]{} },
			`natscontroller.Config: Name must not be empty; ` +
				`Kind must consist of letters, digits, '-', '_' and '.', 63 at most, is ""; Primary must not be nil; Logger must not be nil`},
		{"secondaries and sets", func(c *natscontroller.Config[*Gateway]) {
			c.Secondaries = []natscontroller.Secondary{{}}
			c.Resources = []framework.Resource{&recording{}}
			c.ResourceSets = []*framework.ResourceSet{nil}
			c.Garbage.Rate = -1
		}, `natscontroller.Config: Secondaries[0] must be made by Kube or Entities; Resources and ResourceSets must not both be set; ` +
			`ResourceSets[0] must not be nil; Garbage.Rate must not be negative, is -1`},
		{"of the framework", func(c *natscontroller.Config[*Gateway]) { c.Workers = -1 }, "Config: Workers must not be negative, is -1"},
		{"of the operator", func(c *natscontroller.Config[*Gateway]) { c.LeaderElection.Enabled = true },
			"operator.Config: RESTConfig must not be nil when LeaderElection is enabled; LeaderElection.Namespace must not be empty"},
		{"of how stale a source may be", func(c *natscontroller.Config[*Gateway]) { c.ContactTimeout = -time.Second },
			"operator.Config: ContactTimeout must not be negative, is -1s"},
		{"former names", func(c *natscontroller.Config[*Gateway]) { c.FormerNames = []string{c.Name} },
			`Config: FormerNames[0] must be another name than "gateway-controller"`},
		{"buckets without a fence", func(c *natscontroller.Config[*Gateway]) {
			c.Primary, c.Secondaries, c.Events = unfenced.Primary, unfenced.Secondaries, unfenced.Events
			c.LeaderElection.Enabled = true
		}, `natscontroller.Config: the bucket gateways must have a Fence, the Check of the one of LeaderElection; ` +
			`the bucket routes must have a Fence, the Check of the one of LeaderElection; ` +
			`the bucket events must have a Fence, the Check of the one of LeaderElection`},
		{"one name for two sources", func(c *natscontroller.Config[*Gateway]) {
			c.Tertiaries = []framework.Watch{{Source: informer.NewPush("bucket gateways"), Map: func(context.Context, any) []informer.Key { return nil }}}
		}, `operator.Config: two sources are named "bucket gateways": use one for both, or name them apart`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			config := w.config()
			tt.change(&config)
			_, err := natscontroller.NewControllerRuntime(config)
			if !framework.IsInvalidConfig(err) {
				t.Fatalf("IsInvalidConfig(%v) = false", err)
			}
			if diff := cmp.Diff("invalid config: "+tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
