package natsresource_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// bare is a primary without metadata.
type bare struct{ name string }

func TestNewNamesEveryFaultyField(t *testing.T) {
	k := newKit(t)
	_, nothing := natsresource.New(natsresource.Config[*gateway, *route]{})
	_, noMeta := natsresource.New(natsresource.Config[bare, *route]{
		Name: "x", Bucket: k.bucket, Source: k.source, Logger: k.logger(), Kind: "Bare",
		Desired: func(context.Context, bare) ([]*route, error) { return nil, nil },
	})
	_, apart := natsresource.New(config{
		Name: "x", Bucket: newBucket[*route](t, k.js, "routes"), Source: k.source, Logger: k.logger(), Kind: "Gateway",
		Desired: func(context.Context, *gateway) ([]*route, error) { return nil, nil },
	})
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"the source of another bucket": {apart, "Bucket must be the one of Source, of the bucket routes, is another one, of routes"},
		"nothing set": {nothing, "Name must not be empty; Bucket must not be nil; Source must not be nil; Logger must not be nil; " +
			"Desired must not be nil; Kind must not be empty"},
		"a primary without metadata": {noMeta, "OwnerKey must not be nil for a natsresource_test.bare, which has no metadata"},
	} {
		if !framework.IsInvalidConfig(tc.err) {
			t.Fatalf("%s: got %v, want an invalid config", name, tc.err)
		}
		if diff := cmp.Diff("invalid config: natsresource.Config: "+tc.want, tc.err.Error()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAPrimaryCanBeAnything(t *testing.T) {
	k := newKit(t)
	r, err := natsresource.New(natsresource.Config[bare, *route]{
		Name: "routes", Bucket: k.bucket, Source: k.source, Logger: k.logger(), Kind: "Bare",
		OwnerKey: func(b bare) string { return b.name },
		Desired:  func(_ context.Context, b bare) ([]*route, error) { return []*route{newRoute(b.name, "x")}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	k.catchUp()
	if err := framework.ProcessUpdate(t.Context(), bare{"a"}, []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	if got := k.get("a"); got.OwnerKind != "Bare" || got.OwnerKey != "a" {
		t.Errorf("owner %s %s", got.OwnerKind, got.OwnerKey)
	}
	err = framework.ProcessUpdate(t.Context(), bare{}, []framework.Resource{r})
	if err == nil || !framework.IsPermanent(err) || !strings.Contains(err.Error(), "owner key of a natsresource_test.bare must not be empty") {
		t.Errorf("without an owner key: %v", err)
	}
}

func TestWhatCannotBeDesired(t *testing.T) {
	k := newKit(t)
	for name, tc := range map[string]struct {
		routes []*route
		want   string
	}{
		"a nil pointer":        {[]*route{nil}, "desired entry 0: is nil"},
		"no name":              {[]*route{newRoute("a", ""), newRoute("", "x")}, "desired entry 1: has no name: set the Name of its Meta"},
		"the same entry twice": {[]*route{newRoute("a", ""), newRoute("a", "")}, "desired entry 1: entry a of bucket routes is there twice"},
		"a key that can't be":  {[]*route{newRoute("a b", "")}, "create a b in bucket routes: nats: invalid key: keys are letters, digits"},
	} {
		t.Run(name, func(t *testing.T) {
			err := k.tryUpdate(k.resource(just(tc.routes...)), home())
			if err == nil || !strings.Contains(err.Error(), tc.want) || !framework.IsPermanent(err) {
				t.Errorf("got %v, want a permanent error with %q", err, tc.want)
			}
		})
	}
	t.Run("an error of Desired", func(t *testing.T) {
		boom := errors.New("boom")
		r := k.resource(nil, func(c *config) {
			c.Desired = func(context.Context, *gateway) ([]*route, error) { return nil, boom }
		})
		if err := k.tryUpdate(r, home()); !errors.Is(err, boom) || framework.IsPermanent(err) {
			t.Errorf("got %v, want boom, to be tried again", err)
		}
	})
	k.wantHosts("a=") // each fails alone
}

func TestASourceThatCannotServeSaysWhatItLacks(t *testing.T) {
	k := newKit(t)
	unsynced := k.resource(just(newRoute("a", "x")), func(c *config) { c.Source = newSource(t, k.bucket, k.logger()) })
	err := framework.ProcessUpdate(t.Context(), home(), []framework.Resource{unsynced})
	if err == nil || !strings.Contains(err.Error(), "source bucket routes is not synced yet: if it never is, nobody runs it: watch it") {
		t.Errorf("not synced: %v", err)
	}

	for name, tc := range map[string]struct {
		config informer.HubConfig
		object any
		want   string
	}{
		"no index": {informer.HubConfig{Name: "plain"}, nil, "give it the index of OwnerIndexers"},
		"entities of another type": {
			informer.HubConfig{Name: "gateways", Indexers: natsresource.OwnerIndexers()},
			&gateway{Meta: natsinformer.Meta{Name: "a"}}, "give it the type of the bucket",
		},
	} {
		hub, feed := informer.NewHub(tc.config)
		var items []informer.Item
		if tc.object != nil {
			items = append(items, informer.Item{Key: informer.Key{Name: "a"}, Object: tc.object})
		}
		feed.Replace("", items)
		r := k.resource(just(newRoute("a", "x")), func(c *config) { c.Source = hub })
		err := framework.ProcessUpdate(t.Context(), home(), []framework.Resource{r})
		if err == nil || !framework.IsPermanent(err) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want a permanent error with %q", name, err, tc.want)
		}
	}
	k.wantHosts()
}
