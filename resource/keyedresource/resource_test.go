package keyedresource_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/keyedresource"
)

func TestThingsFollowTheirPrimary(t *testing.T) {
	z, log := newZone(record{Host: "theirs", Address: "9", Owner: "somebody"}), &bytes.Buffer{}
	r := newResource(t, z, log)
	ctx := as(t, "o", "f")
	p := newPrimary("home", "a", "1", "b", "2")
	const owner = `  owner: "v1/o/f/records/default/home"`

	for _, step := range []struct {
		change func()
		plan   []string
		writes string
	}{
		{func() {}, []string{"create record a", `  address: "1"`, `  host: "a"`, owner, "create record b", `  address: "2"`, `  host: "b"`, owner}, "put theirs, put a, put b"},
		{func() {}, nil, ""},
		{func() { p.Data["a"] = "3" }, []string{"update record a", `  address: "1" -> "3"`}, "put a"},
		{func() { _ = z.put(record{Host: "b", Address: "drifted", Owner: "v1/o/f/records/default/home"}) }, []string{"update record b", `  address: "drifted" -> "2"`}, "put b, put b"},
		{func() { delete(p.Data, "a"); p.Data["c"] = "4" }, []string{"create record c", `  address: "4"`, `  host: "c"`, owner, "delete record a"}, "put c, delete a"},
	} {
		step.change()
		if diff := cmp.Diff(step.plan, planned(t, ctx, p, r)); diff != "" {
			t.Errorf("the plan (-want +got):\n%s", diff)
		}
		if err := update(ctx, p, r); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.writes, z.written()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	}
	if err := framework.ProcessDelete(ctx, p, plain([]*resource{r})); err != nil {
		t.Fatal(err)
	}
	if got := z.hosts(); got != "theirs=9" {
		t.Errorf("left after the deletion: %s", got)
	}
	for _, want := range []string{"put a new thing", "record a", "deleted a thing"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not tell %q:\n%s", want, log)
		}
	}
}

func TestR16AThingThatIsNotTheResourcesOwnIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		owner     string
		adoptable bool
	}{
		"without a mark":       {"", true},
		"of another primary":   {"v1/o/f/records/default/other", false},
		"of another resource":  {"v1/o/f/other/default/home", false},
		"of another framework": {"v1/o/other/records/default/home", false},
		"of another operator":  {"v1/other/f/records/default/home", false},
		"of another form":      {"v0/o/f/records/default/home", false},
	} {
		t.Run(name, func(t *testing.T) {
			z := newZone(record{Host: "a", Address: "theirs", Owner: tc.owner})
			p := newPrimary("home", "a", "1")
			err := update(as(t, "o", "f"), p, newResource(t, z, &bytes.Buffer{}))
			var refused *keyedresource.RefusedError
			if !errors.As(err, &refused) || refused.Adoptable != tc.adoptable || !strings.Contains(err.Error(), tc.owner) {
				t.Fatalf("got %v, want a refusal (adoptable: %v)", err, tc.adoptable)
			}
			if got := z.hosts(); got != "a=theirs" {
				t.Errorf("a refused thing was changed: %s", got)
			}
			err = update(as(t, "o", "f"), p, newResource(t, z, &bytes.Buffer{}, func(c *config) { c.Adopt = true }))
			if adopted := z.hosts() == "a=1"; adopted != tc.adoptable || (err == nil) != tc.adoptable {
				t.Errorf("with Adopt: %v, %v", z.hosts(), err)
			}
			if err := framework.ProcessDelete(as(t, "o", "f"), newPrimary("home"), plain([]*resource{newResource(t, z, &bytes.Buffer{})})); err != nil {
				t.Error(err)
			}
			if deleted := z.hosts() == ""; deleted != tc.adoptable {
				t.Errorf("after the deletion: %q", z.hosts())
			}
		})
	}
}

func TestR16AThingUnderAFormerNameIsTakenOver(t *testing.T) {
	z := newZone()
	if err := update(as(t, "o", "f"), newPrimary("home", "a", "1", "b", "1", "c", "1"), newResource(t, z, &bytes.Buffer{})); err != nil {
		t.Fatal(err)
	}
	// The resource is split: both parts had its name.
	half := func(name, hosts string) *resource {
		return newResource(t, z, &bytes.Buffer{}, func(c *config) {
			c.Name, c.FormerNames = name, []string{"records"}
			c.Desired = func(ctx context.Context, p primary) (records []record, err error) {
				all, err := wanted(ctx, p)
				for _, r := range all {
					if strings.Contains(hosts, r.Host) {
						records = append(records, r)
					}
				}
				return records, err
			}
		})
	}
	first, second := half("first", "a"), half("second", "b")
	scopes := identity.Scope{Identity: identity.Identity{Operator: "o", Framework: "f"}}
	ctx := identity.NewContext(t.Context(), &scopes)
	p := newPrimary("home", "a", "1", "b", "1")
	want := []string{
		`update record a: taken over from resource "records" of framework "f" of operator "o"`,
		`  owner: "v1/o/f/records/default/home" -> "v1/o/f/first/default/home"`,
		`update record b: taken over from resource "records" of framework "f" of operator "o"`,
		`  owner: "v1/o/f/records/default/home" -> "v1/o/f/second/default/home"`,
		"delete record c",
	}
	if diff := cmp.Diff(want, planned(t, ctx, p, first, second)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	if err := update(ctx, p, first, second); err != nil {
		t.Fatal(err)
	}
	if got := z.hosts(); got != "a=1 b=1" {
		t.Errorf("after the split: %s", got)
	}
	if got := planned(t, ctx, p, first, second); got != nil {
		t.Errorf("not quiet: %q", got)
	}
}

func TestEachThingFailsAlone(t *testing.T) {
	z := newZone(record{Host: "old", Owner: "v1/o/f/records/default/home"}, record{Host: "changed", Owner: "v1/o/f/records/default/home"}, record{Host: "refused"})
	z.refuse["bad"] = errors.New("a bad host")
	p := newPrimary("home", "", "1", "bad", "1", "changed", "2", "new", "3", "panics", "", "refused", "4")
	ctx := as(t, "o", "f")
	r := newResource(t, z, &bytes.Buffer{}, func(c *config) {
		put := c.Put
		c.Put = func(ctx context.Context, p primary, r record) error {
			if r.Host == "panics" {
				panic("no address")
			}
			return put(ctx, p, r)
		}
	})
	would := strings.Join(planned(t, ctx, p, r), "\n")
	for _, want := range []string{"create record new", "update record changed", "error: ", "refusing to take over record refused", "desired thing 0: it has no key"} {
		if !strings.Contains(would, want) {
			t.Errorf("the plan does not tell %q:\n%s", want, would)
		}
	}
	err := update(ctx, p, r)
	for _, want := range []string{"create record bad: a bad host", "refusing to take over record refused", "it has no key", "create record panics: panic"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told by %v", want, err)
		}
	}
	if got := z.hosts(); got != "changed=2 new=3 old= refused=" {
		t.Errorf("got %s; want what was not refused put, and nothing deleted", got)
	}
	p.Data = map[string]string{"changed": "2"}
	z.refuse["new"] = errors.New("it can't go")
	if err := update(ctx, p, r); err == nil || z.hosts() != "changed=2 new=3 refused=" {
		t.Errorf("got %v and %s; want all deleted that can be", err, z.hosts())
	}
}

// unanswered is the error of a network.
type unanswered struct{}

func (unanswered) Error() string   { return "nobody answers" }
func (unanswered) Timeout() bool   { return true }
func (unanswered) Temporary() bool { return true }

func TestNothingMoreIsAskedOfWhoDoesNotAnswer(t *testing.T) {
	z := newZone()
	for _, host := range []string{"a", "b", "c"} {
		z.refuse[host] = fmt.Errorf("put: %w", unanswered{})
	}
	if err := update(as(t, "o", "f"), newPrimary("home", "a", "", "b", "", "c", ""), newResource(t, z, &bytes.Buffer{})); err == nil {
		t.Fatal("no error")
	}
	if got := z.written(); got != "put a" {
		t.Errorf("asked: %s", got)
	}
}

func TestThingsArePutByRankAndDeletedTheOtherWayRound(t *testing.T) {
	z := newZone()
	ranks := map[string]int{"a": 2, "b": 1, "c": 1}
	r := newResource(t, z, &bytes.Buffer{}, func(c *config) {
		c.Order = func(r record) int { return ranks[r.Host] }
	})
	ctx, p := as(t, "o", "f"), newPrimary("home", "a", "", "b", "", "c", "")
	z.refuse["b"] = errors.New("later")
	if err := update(ctx, p, r); err == nil {
		t.Error("no error")
	}
	if got := z.written(); got != "put b, put c" {
		t.Errorf("while one of a lower rank fails: %s", got)
	}
	delete(z.refuse, "b")
	if err := update(ctx, p, r); err != nil {
		t.Error(err)
	}
	if got := z.written(); got != "put b, put a" {
		t.Errorf("in order: %s", got)
	}
	if err := framework.ProcessDelete(ctx, p, plain([]*resource{r})); err != nil {
		t.Error(err)
	}
	if got := z.written(); got != "delete a, delete c, delete b" {
		t.Errorf("deletion: %s", got)
	}
}

func TestAsManyThingsArePutAtOnceAsConcurrencySays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := newZone()
		var now, most atomic.Int32
		r := newResource(t, z, &bytes.Buffer{}, func(c *config) {
			c.Concurrency = 3
			put := c.Put
			c.Put = func(ctx context.Context, p primary, r record) error {
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Second)
				defer now.Add(-1)
				return put(ctx, p, r)
			}
		})
		p := newPrimary("home")
		for i := range 7 {
			p.Data[fmt.Sprint(i)] = ""
		}
		start := time.Now()
		if err := update(as(t, "o", "f"), p, r); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); most.Load() != 3 || took != 3*time.Second {
			t.Errorf("%d at once, in %s", most.Load(), took)
		}
	})
}

func TestR14SensitiveValuesAreNowhere(t *testing.T) {
	const old, now = "old-secret-token", "new-secret-token"
	z, log := newZone(record{Host: "b", Token: old, Owner: "v1/o/f/records/default/home"}), &bytes.Buffer{}
	for _, host := range []string{"a", "b"} {
		z.refuse[host] = fmt.Errorf("the system quotes %s and %s", old, now)
	}
	r := newResource(t, z, log, func(c *config) {
		c.Sensitive = func(path string) bool { return path == "token" }
		c.Desired = func(ctx context.Context, _ primary) ([]record, error) {
			return []record{{Host: "a", Token: now, Owner: keyedresource.Mark(ctx)}, {Host: "b", Token: now, Owner: keyedresource.Mark(ctx)}}, nil
		}
	})
	ctx, p := as(t, "o", "f"), newPrimary("home")
	would := strings.Join(planned(t, ctx, p, r), "\n")
	current, err := r.GetCurrentState(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	failed := update(ctx, p, r)
	if failed == nil || !strings.Contains(failed.Error(), "the system quotes") || !strings.Contains(would, "token: (sensitive, changed)") {
		t.Errorf("too little is told: %v\n%s", failed, would)
	}
	json, err := current.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{would, log.String(), fmt.Sprintf("%v %+v %#v", current, current, current), string(json)} {
		if strings.Contains(text, old) || strings.Contains(text, now) {
			t.Errorf("a secret is shown: %s", text)
		}
	}
	if strings.Contains(failed.Error(), now) {
		t.Errorf("a secret is in an error: %s", failed)
	}
}

func TestAPrimaryIsPolledWhileItStays(t *testing.T) {
	r := newResource(t, newZone(), &bytes.Buffer{}, func(c *config) { c.Poll = time.Minute })
	p := newPrimary("home")
	for _, deleted := range []bool{false, true} {
		if deleted {
			p.DeletionTimestamp = &p.CreationTimestamp
		}
		ctx := requeuecontext.NewContext(t.Context())
		if _, err := r.GetCurrentState(ctx, p); err != nil {
			t.Fatal(err)
		}
		if after, asked := requeuecontext.After(ctx); asked == deleted || asked && after != time.Minute {
			t.Errorf("deleted %v: asked %v, after %s", deleted, asked, after)
		}
	}
}

func TestEqualDecidesWhetherAThingIsAsItShouldBe(t *testing.T) {
	z := newZone(record{Host: "a", Address: "HOME.", Owner: "v1/o/f/records/default/home"})
	r := newResource(t, z, &bytes.Buffer{}, func(c *config) {
		c.Equal = func(a, b record) bool { return strings.EqualFold(strings.TrimSuffix(a.Address, "."), b.Address) }
	})
	if got := planned(t, as(t, "o", "f"), newPrimary("home", "a", "home"), r); got != nil {
		t.Errorf("planned: %q", got)
	}
	if got := planned(t, as(t, "o", "f"), newPrimary("home", "a", "away"), r); len(got) != 2 {
		t.Errorf("planned: %q", got)
	}
}

func TestADesiredThingWithoutTheMarkIsAFault(t *testing.T) {
	z := newZone()
	r := newResource(t, z, &bytes.Buffer{}, func(c *config) {
		c.Desired = func(context.Context, primary) ([]record, error) { return []record{{Host: "a"}}, nil }
	})
	err := update(as(t, "o", "f"), newPrimary("home"), r)
	if !framework.IsPermanent(err) || !strings.Contains(err.Error(), "have Desired set it to keyedresource.Mark(ctx)") || z.hosts() != "" {
		t.Errorf("got %v and %s", err, z.hosts())
	}
}

// system is a zone whose client knows nothing of primaries.
type system struct{ z *zone }

func (s system) Get(_ context.Context, key string) (record, bool, error) {
	r, found := s.z.get(key)
	return r, found, nil
}
func (s system) Put(_ context.Context, r record) error      { return s.z.put(r) }
func (s system) Delete(_ context.Context, key string) error { return s.z.delete(key) }

func TestASystemStandsForGetPutAndDelete(t *testing.T) {
	z, ctx := newZone(record{Host: "mine", Owner: "somebody"}), as(t, "o", "f")
	through := func(c *config) { c.Put, c.Delete, c.System = nil, nil, system{z} }
	r := newResource(t, z, &bytes.Buffer{}, through)
	if err := update(ctx, newPrimary("home", "a", "1"), r); err != nil || z.hosts() != "a=1 mine=" {
		t.Errorf("got %v and %s", err, z.hosts())
	}
	if err := update(ctx, newPrimary("home"), r); err != nil || z.hosts() != "mine=" {
		t.Errorf("got %v and %s", err, z.hosts())
	}
	// What Current does not return is looked up.
	r = newResource(t, z, &bytes.Buffer{}, through, func(c *config) {
		c.Current = func(context.Context, primary) ([]record, error) { return nil, nil }
	})
	if err := update(ctx, newPrimary("home", "mine", "1"), r); !errors.As(err, new(*keyedresource.RefusedError)) {
		t.Errorf("got %v, want that the one of somebody else is refused", err)
	}
	_, err := keyedresource.New(config{System: system{z}, Get: func(context.Context, primary, string) (record, bool, error) { return record{}, false, nil }})
	if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), "System and Get, Put or Delete must not both be set") {
		t.Errorf("got %v, want that both are set", err)
	}
}

func TestNewNamesEveryFaultyField(t *testing.T) {
	_, err := keyedresource.New(keyedresource.Config[struct{}, record]{Concurrency: -1, Poll: -1, Adopt: true})
	want := "invalid config: keyedresource.Config: Name must not be empty; Logger must not be nil; Desired must not be nil; Key must not be nil; " +
		"Put must not be nil; Delete must not be nil; Current must not be nil without Get and Journal: nothing would be found again; " +
		"Adopt must not be true without Mark or Get: nothing tells then what belongs to nobody; Concurrency must not be negative, and is -1; " +
		"Poll must not be negative, and is -1ns; OwnerKey must not be nil for a struct {}, which has no metadata"
	if !framework.IsInvalidConfig(err) || err.Error() != want {
		t.Error(cmp.Diff(want, fmt.Sprint(err)))
	}
}
