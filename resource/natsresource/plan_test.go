package natsresource_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
)

// world is the bucket of a kit as a plantest.World. What is written is read from the bucket's stream.
type world struct {
	k      *kit
	last   uint64
	writes []plantest.Write
}

func (w *world) name(key string) plan.Object {
	return plan.Object{Kind: "Entry", Namespace: w.k.bucket.Name(), Name: key}
}

func (w *world) Things(ctx context.Context) (map[plan.Object]plantest.Thing, error) {
	keys, err := w.k.kv.Keys(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
		return nil, err
	}
	things := map[plan.Object]plantest.Thing{}
	for _, key := range keys {
		entry, err := w.k.kv.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		entity, err := w.k.bucket.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		fields, err := shownOf(entry.Value())
		if err != nil {
			return nil, err
		}
		o := w.name(key)
		o.UID, o.Version = entity.UID, fmt.Sprint(entry.Revision())
		things[w.name(key)] = plantest.Thing{Fields: fields, Object: o, Terminating: entity.DeletionTimestamp != nil}
	}
	return things, nil
}

// shownOf returns the fields of an entry that its author or its owner wrote.
func shownOf(value []byte) (map[string]any, error) {
	var fields map[string]any
	if err := utiljson.Unmarshal(value, &fields); err != nil {
		return nil, err
	}
	metadata, _ := fields["metadata"].(map[string]any)
	for _, name := range []string{"name", "uid", "generation", "creationTimestamp"} {
		delete(metadata, name)
	}
	conditions, _ := metadata["conditions"].([]any)
	for _, c := range conditions {
		c.(map[string]any)["lastTransitionTime"] = nil
	}
	return fields, nil
}

func (w *world) Writes() ([]plantest.Write, error) {
	ctx := w.k.t.Context()
	stream, err := w.k.js.Stream(ctx, "KV_"+w.k.bucket.Name())
	if err != nil {
		return nil, err
	}
	for last := stream.CachedInfo().State.LastSeq; w.last < last; {
		w.last++
		message, err := stream.GetMsg(ctx, w.last)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // An edit of the user's, purged since.
		}
		if err != nil {
			return nil, err
		}
		_, key, _ := strings.Cut(strings.TrimPrefix(message.Subject, "$KV."), ".")
		w.writes = append(w.writes, plantest.Write{Object: w.name(key), Delete: isDeletion(message)})
	}
	return slices.Clone(w.writes), nil
}

// clear empties the bucket, so that it does not grow with each check.
func (w *world) clear() {
	keys, err := w.k.kv.Keys(w.k.t.Context())
	if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
		w.k.t.Fatal(err)
	}
	for _, key := range keys {
		if err := w.k.kv.Purge(w.k.t.Context(), key); err != nil {
			w.k.t.Fatal(err)
		}
	}
	w.writes = nil
}

// isDeletion tells whether a message takes an entry away, or asks whoever holds it to let it go.
func isDeletion(message *jetstream.RawStreamMsg) bool {
	if message.Header.Get("KV-Operation") != "" {
		return true
	}
	fields, err := shownOf(message.Data)
	metadata, _ := fields["metadata"].(map[string]any)
	return err == nil && metadata["deletionTimestamp"] != nil
}

// The plan of an update or deletion is what is written then, whatever there is and whatever is desired: hundreds of random
// states of a real bucket, after edits of others, beside entries of others, and with entries that wait for their deletion.
func TestThePlanIsWhatIsDoneThen(t *testing.T) {
	k := newKit(t)
	w := &world{k: k}
	seen := plan.Counts{}
	failed, run := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		g := &generator{k: k, rt: rt, prefix: fmt.Sprintf("r%d.", run)}
		primary := &gateway{Meta: natsinformer.Meta{Name: fmt.Sprintf("home%d", run)}}
		var desired []*route
		r := k.resource(func() []*route { return desired }, func(c *config) {
			c.Adopt = g.bool("adopt")
			c.RequestDeletion = g.bool("request deletion")
			c.Keep = func(current, desired *route) { desired.Status = current.Status }
			c.Sensitive = func(r *route) bool { return strings.HasSuffix(r.Name, "c") }
		})
		for range rapid.IntRange(1, 12).Draw(rt, "rounds") {
			desired = g.desired()
			for range rapid.IntRange(0, 2).Draw(rt, "edits") {
				g.edit()
			}
			k.catchUp()
			p := plantest.Update(rt, w, primary, r)
			seen = seen.Add(p.Counts())
			if p.Outcome == plan.Failed {
				failed++
				continue
			}
			if p.Counts().Delete > 0 {
				continue // What is desired and was being deleted is created by the next plan.
			}
			k.catchUp()
			left, err := framework.PlanUpdate(t.Context(), primary, []framework.Resource{r})
			if err != nil || left.Counts().Any() {
				rt.Fatalf("left to do after the plan was applied: %v, %v", left, err)
			}
		}
		k.catchUp()
		seen = seen.Add(plantest.Delete(rt, w, primary, r).Counts())
		w.clear()
	})
	t.Logf("%d sequences: %s, refusals: %d", run, seen, failed)
	if !testing.Short() && (seen.Create == 0 || seen.Update == 0 || seen.Delete == 0 || failed == 0) { // a sample need not have them all
		t.Error("the states were not various enough to prove anything")
	}
}

// generator makes states up.
type generator struct {
	k      *kit
	rt     *rapid.T
	prefix string
}

var (
	texts = rapid.SampledFrom([]string{"", "1", "a\nb\n", "ä\u202e<>"})
	words = rapid.SampledFrom([]string{"x", "y.z", "a-b"})
	pairs = rapid.MapOfN(words, texts, 0, 2)
)

func (g *generator) bool(what string) bool { return rapid.Bool().Draw(g.rt, what) }

func (g *generator) desired() []*route {
	var routes []*route
	for _, name := range []string{"a", "b", "c", "d"} {
		if !g.bool("wants " + name) {
			continue
		}
		r := newRoute(g.prefix+name, texts.Draw(g.rt, "host"))
		r.Backends = rapid.SliceOfN(texts, 0, 2).Draw(g.rt, "backends")
		r.Labels, r.Annotations = pairs.Draw(g.rt, "labels"), pairs.Draw(g.rt, "annotations")
		if g.bool("has finalizer") {
			r.Finalizers = []string{"example.com/ours"}
		}
		if g.bool("has condition") {
			status := rapid.SampledFrom([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}).Draw(g.rt, "status")
			r.Conditions = []metav1.Condition{{Type: "Ready", Status: status, Reason: "Because", Message: texts.Draw(g.rt, "message")}}
		}
		routes = append(routes, r)
	}
	return rapid.Permutation(routes).Draw(g.rt, "order")
}

// edit is something that somebody else does.
func (g *generator) edit() {
	name := g.prefix + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(g.rt, "edited")
	_, err := g.k.kv.Get(g.k.t.Context(), name)
	exists := err == nil
	change := func(change func(*route)) func() {
		return func() {
			if exists {
				g.k.change(name, change)
			}
		}
	}
	edits := map[string]func(){
		"create a foreign entry": func() {
			if !exists {
				g.k.create(newRoute(name, "theirs"))
			}
		},
		"purge": func() {
			if err := g.k.kv.Purge(g.k.t.Context(), name); err != nil {
				g.rt.Fatal(err)
			}
		},
		"change the host":      change(func(r *route) { r.Host = "drifted" }),
		"change the status":    change(func(r *route) { r.Status = &status{Ready: true} }),
		"add a label":          change(func(r *route) { r.Labels = map[string]string{"theirs": "1"} }),
		"remove annotations":   change(func(r *route) { r.Annotations = nil }),
		"hold the deletion":    change(func(r *route) { r.Finalizers = []string{"example.com/hold"} }),
		"release the holding":  change(func(r *route) { r.Finalizers = nil }),
		"ask for the deletion": change(func(r *route) { now := metav1.Now().Rfc3339Copy(); r.DeletionTimestamp = &now }),
		"add a condition": change(func(r *route) {
			r.Conditions = append(r.Conditions, metav1.Condition{Type: "Theirs", Status: metav1.ConditionUnknown})
		}),
	}
	edits[rapid.SampledFrom(slices.Sorted(maps.Keys(edits))).Draw(g.rt, "edit")]()
}
