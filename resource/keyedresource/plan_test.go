package keyedresource_test

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
	"github.com/operatorkit/operatorkit/resource/keyedresource"
)

// Things implements plantest.World.
func (z *zone) Things(context.Context) (map[plan.Object]plantest.Thing, error) {
	things := map[plan.Object]plantest.Thing{}
	for _, r := range z.list() {
		o := plan.Object{Kind: "record", Name: r.Host}
		fields := map[string]any{"host": r.Host, "address": r.Address}
		for name, value := range map[string]string{"token": r.Token, "owner": r.Owner} {
			if value != "" {
				fields[name] = value
			}
		}
		if r.Rank != 0 {
			fields["rank"] = int64(r.Rank)
		}
		things[o] = plantest.Thing{Fields: fields, Object: o}
	}
	return things, nil
}

// Writes implements plantest.World.
func (z *zone) Writes() ([]plantest.Write, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Clone(z.writes), nil
}

// asOf is a check in a framework.
type asOf struct {
	*rapid.T
	ctx context.Context
}

func (a asOf) Context() context.Context { return a.ctx }

// The plan is what is done then, whatever there is, whoever it belongs to, and whatever is desired; and then there is nothing to do.
func TestThePlanIsWhatIsDoneThen(t *testing.T) {
	hosts := rapid.SampledFrom([]string{"a", "b", "c", "d", ""})
	owners := rapid.SampledFrom([]string{"", "v1/o/f/records/default/home", "v1/o/f/before/default/home", "v1/o/f/other/default/home"})
	one := rapid.Custom(func(t *rapid.T) record {
		return record{
			Host: hosts.Draw(t, "host"), Address: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "address"),
			Token: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "token"), Rank: rapid.IntRange(0, 2).Draw(t, "rank"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		z := newZone()
		for _, r := range rapid.SliceOfN(one, 0, 4).Draw(rt, "there") {
			r.Owner = owners.Draw(rt, "owner")
			if err := z.put(r); err != nil {
				rt.Fatal(err)
			}
		}
		var desired []record
		r := newResource(t, z, &bytes.Buffer{}, func(c *config) {
			c.FormerNames = []string{"before"}
			c.Adopt = rapid.Bool().Draw(rt, "adopt")
			c.Sensitive = func(path string) bool { return path == "token" }
			c.Desired = func(ctx context.Context, _ primary) ([]record, error) {
				marked := slices.Clone(desired)
				for i := range marked {
					marked[i].Owner = keyedresource.Mark(ctx)
				}
				return marked, nil
			}
		})
		in := asOf{rt, as(t, "o", "f")}
		for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			desired = rapid.SliceOfN(one, 0, 5).Draw(rt, "desired")
			plantest.Update(in, z, newPrimary("home"), r)
			if again := plantest.Update(in, z, newPrimary("home"), r); again.Outcome == plan.Planned && again.Counts().Any() {
				rt.Errorf("there is something to do again: %s", again.Counts())
			}
		}
		plantest.Delete(in, z, newPrimary("home"), r)
		for _, left := range z.list() {
			if left.Owner == "v1/o/f/records/default/home" || left.Owner == "v1/o/f/before/default/home" {
				rt.Errorf("%s is left", left.Host)
			}
		}
	})
}

// Whatever ranks things have and however many are put at once, one of a lower rank is put before one of a higher.
func TestThingsOfALowerRankArePutFirst(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		z := newZone()
		ranks := rapid.SliceOfN(rapid.IntRange(-2, 2), 0, 8).Draw(rt, "ranks")
		var put []int
		r := newResource(t, z, &bytes.Buffer{}, func(c *config) {
			c.Concurrency = rapid.IntRange(1, 4).Draw(rt, "concurrency")
			c.Order = func(r record) int { return r.Rank }
			c.Desired = func(ctx context.Context, _ primary) (records []record, err error) {
				for i, rank := range ranks {
					records = append(records, record{Host: strconv.Itoa(i), Rank: rank, Owner: keyedresource.Mark(ctx)})
				}
				return records, nil
			}
			c.Put = func(_ context.Context, _ primary, r record) error {
				z.mu.Lock()
				defer z.mu.Unlock()
				put = append(put, r.Rank)
				return nil
			}
		})
		if err := update(t.Context(), newPrimary("home"), r); err != nil {
			rt.Fatal(err)
		}
		if len(put) != len(ranks) || !slices.IsSorted(put) {
			rt.Errorf("of %v, put in the order %v", ranks, put)
		}
	})
}
