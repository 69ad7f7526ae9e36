package natsresource_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// start runs a version of a controller until stop is called, or the test ends.
func (k *kit) start(v version, log *buffer) (stop func()) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(k.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := v.run(ctx, k.js, log); err != nil {
			k.t.Errorf("run: %v", err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	k.t.Cleanup(stop)
	return stop
}

// newGateways makes the bucket of the primaries.
func (k *kit) newGateways() *natsinformer.Bucket[*gateway] {
	k.t.Helper()
	natsserver.NewBucket(k.t, k.js, jetstream.KeyValueConfig{Bucket: "gateways", History: 5})
	return newBucket[*gateway](k.t, k.js, "gateways")
}

func TestR16TwoOperatorsWithTheSameNamesConvergeOnEntriesOfTheirOwn(t *testing.T) {
	k := newKit(t)
	gateways := k.newGateways()
	g := home()
	g.Routes = map[string]string{"one": "a", "two": "a"}
	if err := gateways.Create(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	for _, operator := range []string{"first", "second"} {
		k.start(version{framework: framework.Config{Operator: operator}, resources: []part{{name: "routes", suffix: "-" + operator}}}, &buffer{})
	}
	k.eventually(asDesired, "one-first=a", "one-second=a", "two-first=a", "two-second=a")
	// One write for each entry, and none of the other's.
	if got := k.lastSequence(); got != 4 {
		t.Errorf("%d writes, want 4", got)
	}
	g.Routes = map[string]string{"one": "b"}
	if err := gateways.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	k.eventually(asDesired, "one-first=b", "one-second=b")
	if got := k.lastSequence(); got != 8 {
		t.Errorf("%d writes, want 8", got)
	}
}

func TestR16OfTwoOperatorsThatWantOneEntryOneHasItAndTheOtherSaysWhose(t *testing.T) {
	k := newKit(t)
	gateways := k.newGateways()
	g := home()
	g.Routes = map[string]string{"one": "a"}
	if err := gateways.Create(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	logs := map[string]*buffer{"first": {}, "second": {}}
	stops := map[string]func(){}
	for operator, log := range logs {
		stops[operator] = k.start(version{framework: framework.Config{Operator: operator}}, log)
	}
	k.eventually(asDesired, "one=a")
	has, waits := "first", "second"
	if strings.Contains(k.get("one").Annotations[natsresource.MadeByAnnotation], waits) {
		has, waits = waits, has
	}
	refusal := fmt.Sprintf("refusing to take over entry one of bucket routes: it belongs to Gateway home and was made by "+
		"resource %q of framework %q of operator %q", "routes", "gateways", has)
	says := func() bool { return strings.Contains(strings.ReplaceAll(logs[waits].String(), `\"`, `"`), refusal) }
	operatortest.Eventually(t, "the other says whose it is", says)

	for _, host := range []string{"b", "c", "d"} {
		g.Routes["one"] = host
		if err := gateways.Update(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		k.eventually(asDesired, "one="+host)
	}
	if got := k.lastSequence(); got != 4 {
		t.Errorf("%d writes, want 4: one for each change", got)
	}
	// Whose it was gives it up: the other gets it.
	stops[has]()
	if err := k.bucket.Purge(t.Context(), k.get("one")); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the other has it", func() bool {
		r, err := k.bucket.Get(t.Context(), "one")
		return err == nil && strings.Contains(r.Annotations[natsresource.MadeByAnnotation], waits)
	})
}

func TestR16OnlyEntriesOfItsOwnFrameworkWakeAPrimary(t *testing.T) {
	k := newKit(t)
	scope := &identity.Scope{Identity: identity.Identity{Operator: "o", Framework: "f", FormerOperators: []string{"before"}}}
	for name, tc := range map[string]struct {
		operator, framework string
		want                bool
	}{
		"its own":             {"o", "f", true},
		"a former name":       {"before", "f", true},
		"another framework":   {"o", "f2", false},
		"another operator":    {"o2", "f", false},
		"a name that is like": {`x" of framework "f" of operator "o`, "f", false},
	} {
		t.Run(name, func(t *testing.T) {
			k := k.by(tc.operator, tc.framework)
			k.t = t
			key := strings.ReplaceAll(name, " ", "-")
			k.update(k.resource(just(newRoute(key, "x"))), &gateway{Meta: natsinformer.Meta{Name: key}})
			var want []informer.Key
			if tc.want {
				want = []informer.Key{{Name: key}}
			}
			got := natsresource.OwnerMap("Gateway")(identity.NewContext(t.Context(), scope), k.get(key))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// uids are the UIDs of the entries.
func (k *kit) uids() map[string]types.UID {
	k.t.Helper()
	uids := map[string]types.UID{}
	hosts, err := k.hosts()
	if err != nil {
		k.t.Fatal(err)
	}
	for _, host := range hosts {
		name, _, _ := strings.Cut(host, "=")
		uids[name] = k.get(name).UID
	}
	return uids
}

func TestR16EntriesOfFormerNamesAreTakenOverAsTheyAre(t *testing.T) {
	for name, tc := range map[string]struct {
		now    identity.Identity
		rename string
		former []string
	}{
		"of the resource":  {identity.Identity{Operator: "o", Framework: "f"}, "paths", []string{"routes"}},
		"of the framework": {identity.Identity{Operator: "o", Framework: "f2", FormerFrameworks: []string{"f"}}, "routes", nil},
		"of the operator":  {identity.Identity{Operator: "o2", Framework: "f", FormerOperators: []string{"o"}}, "routes", nil},
		"of all": {identity.Identity{Operator: "o2", Framework: "f2", FormerOperators: []string{"o"}, FormerFrameworks: []string{"f"}},
			"paths", []string{"other", "routes"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t).by("o", "f")
			labelled := newRoute("kept", "x")
			labelled.Labels = map[string]string{"tier": "web"}
			k.update(k.resource(just(labelled, newRoute("changed", "x"), newRoute("undesired", "x"))), home())
			before := k.uids()

			k.as = &identity.Scope{Identity: tc.now}
			renamed := func(c *config) { c.Name, c.FormerNames = tc.rename, tc.former }
			r := k.resource(just(newRoute("changed", "y"), newRoute("kept", "x")), renamed)
			mark := identity.Mark{Operator: tc.now.Operator, Framework: tc.now.Framework, Resource: tc.rename}
			by := fmt.Sprintf(`  metadata.annotations["operatorkit.io/made-by"]: %q -> %q`,
				`v1 resource "routes" of framework "f" of operator "o"`, "v1 "+mark.String())
			taken := `: taken over from resource "routes" of framework "f" of operator "o"`
			k.wantPlan(r, home(),
				"update changed"+taken, `  host: "x" -> "y"`, by,
				"update kept"+taken, `  metadata.annotations["operatorkit.io/applied"]: "kept#{\"labels\":[\"tier\"]}" -> "kept#"`, by, `  metadata.labels.tier: "web" removed`,
				"delete undesired")
			k.wantWrites(3, func() { k.update(r, home()) })
			k.wantHosts("changed=y", "kept=x")
			delete(before, "undesired")
			if diff := cmp.Diff(before, k.uids()); diff != "" {
				t.Errorf("UIDs (-before +after):\n%s", diff)
			}
			k.wantQuiet(r, home())

			// The old one, should it still run, leaves them alone.
			k.as = k.by("o", "f").as
			var refused *natsresource.RefusedError
			if err := k.tryUpdate(k.resource(just(newRoute("kept", "x"))), home()); !errors.As(err, &refused) || !strings.Contains(refused.Reason, mark.String()) {
				t.Errorf("got %v", err)
			}
			k.wantQuiet(k.resource(just()), home())
			k.wantHosts("changed=y", "kept=x")
		})
	}
}

func TestR16EntriesOfAFormerNameAreDeletedWithTheirPrimary(t *testing.T) {
	k := newKit(t)
	k.update(k.resource(just(newRoute("a", "x"))), home())
	k.catchUp()
	r := k.resource(just(newRoute("a", "x")), func(c *config) { c.Name, c.FormerNames = "paths", []string{"routes"} })
	if err := framework.ProcessDelete(t.Context(), home(), []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	k.wantHosts()
}

// split are the resources of a set of which some take over from "routes".
func (k *kit) split(last config, first ...*route) []framework.Resource {
	left := k.resource(just(first...), func(c *config) { c.Name, c.FormerNames = "left", []string{"routes"} })
	right := k.resource(nil, func(c *config) { c.Name, c.FormerNames, c.Desired = last.Name, last.FormerNames, last.Desired })
	return []framework.Resource{left, right}
}

func TestR16AResourceIsSplitWithoutALoss(t *testing.T) {
	right := func(context.Context, *gateway) ([]*route, error) { return []*route{newRoute("b", "x")}, nil }
	for name, tc := range map[string]struct {
		last config
		// writes are those of the split.
		writes uint64
	}{
		"into two new ones":           {config{Name: "right", FormerNames: []string{"routes"}, Desired: right}, 3},
		"into a new one and the rest": {config{Name: "routes", Desired: right}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.update(k.resource(just(newRoute("a", "x"), newRoute("b", "x"), newRoute("c", "x"))), home())
			before := k.uids()
			delete(before, "c")
			set := k.split(tc.last, newRoute("a", "x"))
			k.catchUp()
			p, err := framework.PlanUpdate(t.Context(), home(), set)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range p.Resources {
				for _, c := range r.Changes {
					got = append(got, r.Name+" "+string(c.Action)+" "+c.Object.Name)
				}
			}
			want := []string{"left update a", tc.last.Name + " update b", tc.last.Name + " delete c"}
			if tc.writes == 2 {
				want = slices.Delete(want, 1, 2)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			// The source stays as it was before the first write, which no resource takes for a reason to delete or to fail.
			k.wantWrites(tc.writes, func() {
				for range 3 {
					if err := framework.ProcessUpdate(t.Context(), home(), set); err != nil {
						t.Fatal(err)
					}
				}
			})
			k.wantHosts("a=x", "b=x")
			if diff := cmp.Diff(before, k.uids()); diff != "" {
				t.Errorf("UIDs (-before +after):\n%s", diff)
			}
			for key, owner := range map[string]string{"a": "left", "b": tc.last.Name} {
				if by := k.get(key).Annotations[natsresource.MadeByAnnotation]; !strings.Contains(by, fmt.Sprintf("resource %q", owner)) {
					t.Errorf("%s was made by %s", key, by)
				}
			}
			k.catchUp()
			k.wantWrites(0, func() {
				if err := framework.ProcessUpdate(t.Context(), home(), set); err != nil {
					t.Fatal(err)
				}
			})
			if err := framework.ProcessDelete(t.Context(), home(), set); err != nil {
				t.Fatal(err)
			}
			k.wantHosts()
		})
	}
}

func TestR16ASplitThatHasNotBegunIsDeletedOnce(t *testing.T) {
	k := newKit(t)
	k.update(k.resource(just(newRoute("a", "x"), newRoute("b", "x"))), home())
	k.catchUp()
	set := k.split(config{Name: "right", FormerNames: []string{"routes"}, Desired: part{}.desired}, newRoute("a", "x"))
	k.wantWrites(2, func() {
		if err := framework.ProcessDelete(t.Context(), home(), set); err != nil {
			t.Fatal(err)
		}
	})
	k.wantHosts()
}

// takeOver has an operator with three routes replaced by one under other names, whose first run crashes. It returns how many writes
// the first run tried, and how many messages there are in the bucket.
func takeOver(t *testing.T, n int, at moment) (tried int, messages uint64) {
	t.Helper()
	k := newKit(t)
	gateways := k.newGateways()
	g := home()
	g.Routes = map[string]string{"one": "a", "two": "a", "undesired": "a"}
	if err := gateways.Create(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	stop := k.start(version{framework: framework.Config{Operator: "old", Name: "gateways"}}, k.log)
	k.eventually(asDesired, "one=a", "two=a", "undesired=a")
	stop()
	before := k.uids()
	delete(before, "undesired")

	doomed := &crash{JetStream: k.js, n: n, moment: at, crashed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() {
		names := framework.Config{Operator: "new", FormerOperators: []string{"old"}, Name: "portals", FormerNames: []string{"gateways"}}
		split := []part{{name: "ones", prefix: "one", former: []string{"routes"}}, {name: "twos", prefix: "two", former: []string{"routes"}}}
		if err := (version{names, split}).runDoomed(ctx, doomed, k.log); err != nil {
			t.Error(err)
		}
	})
	k.eventually(asDesired, "one=a", "two=a")
	operatortest.Eventually(t, "all is taken over", func() bool {
		made := k.get("one").Annotations[natsresource.MadeByAnnotation] + k.get("two").Annotations[natsresource.MadeByAnnotation]
		return strings.Count(made, `of framework "portals" of operator "new"`) == 2
	})
	if diff := cmp.Diff(before, k.uids()); diff != "" {
		t.Errorf("UIDs (-before +after):\n%s", diff)
	}
	doomed.mu.Lock()
	defer doomed.mu.Unlock()
	return doomed.writes, k.lastSequence()
}

func TestR16ATakeoverSurvivesACrashAtEveryWrite(t *testing.T) {
	writes, messages := takeOver(t, 0, "")
	if writes != 3 || messages != 6 {
		t.Fatalf("%d writes and %d messages, want one for each entry and no more", writes, messages)
	}
	for n := 1; n <= writes; n++ {
		for _, at := range []moment{beforeWrite, afterWrite} {
			t.Run(fmt.Sprintf("%s write %d", at, n), func(t *testing.T) {
				t.Parallel()
				if _, got := takeOver(t, n, at); got != messages {
					t.Errorf("%d messages in the bucket, want %d", got, messages)
				}
			})
		}
	}
}

func TestR17WhatALeaderDecidedBeforeAPauseDoesNotUndoWhatTheNextDid(t *testing.T) {
	for name, tc := range map[string]struct {
		before, paused, next []*route
		then                 []string
	}{
		"an update": {
			[]*route{newRoute("a", "1")}, []*route{newRoute("a", "2")}, []*route{newRoute("a", "3")},
			[]string{"a=3"},
		},
		"an update of what was deleted": {
			[]*route{newRoute("a", "1")}, []*route{newRoute("a", "2")}, nil, nil,
		},
		"a deletion": {
			[]*route{newRoute("a", "1")}, nil, []*route{newRoute("a", "3")}, []string{"a=3"},
		},
		"a creation": {
			nil, []*route{newRoute("a", "2")}, []*route{newRoute("a", "3")}, []string{"a=3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.update(k.resource(just(tc.before...)), home())
			next := k.resource(just(tc.next...))
			err := k.between(k.resource(just(tc.paused...)), home(), func() { k.update(next, home()) })
			if !apierrors.IsConflict(err) {
				t.Errorf("got %v", err)
			}
			k.wantHosts(tc.then...)
			k.wantQuiet(next, home())
		})
	}
	t.Run("a deletion of what was taken over", func(t *testing.T) {
		k := newKit(t)
		k.update(k.resource(just(newRoute("a", "1"))), home())
		next := k.resource(just(newRoute("a", "1")), func(c *config) { c.Name, c.FormerNames = "paths", []string{"routes"} })
		err := k.between(k.resource(just()), home(), func() { k.update(next, home()) })
		if !apierrors.IsConflict(err) {
			t.Errorf("got %v", err)
		}
		k.wantHosts("a=1")
	})
}
