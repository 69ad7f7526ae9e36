package operatortest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// quietRounds is how often a marker has to go through the watches of an operator that does nothing.
const quietRounds = 3

// Quiet proves that an operator which has nothing left to do does nothing: it goes through a scenario once, without mishaps, and after each phase,
// once its state is final, fails t when the operator sends any request but watches and the renewal of leases, or reconciles anything. The failure
// names the requests and the reconciliations.
//
// Then it restarts the operator, so that it reconciles everything once more, and fails t when it changes something. A write that leaves its object as it
// was changes nothing, such as the apply of a definition at each start. What a second look changes was left undone by the first: as by a resource
// that reads what a later one writes, and relied on being woken by that (framework.Watch.OwnWrites).
//
// It looks for three rounds. In each the user changes an object that is none of the operator's, a ConfigMap with the name quiet-marker;
// the round ends once the operator's watches have shown it, if it watches all ConfigMaps of the namespace, and after [Scenario.Settle] at the
// earliest. An operator whose primaries are all ConfigMaps reconciles the marker, rightly: it needs a selector here. What an operator does at longer intervals, such as a resync, is not seen.
//
// A request that the operator sends to another system is seen when it goes through [TransportOf]. Reconciliations are known by the metrics of the
// operator, which [CountReconciliations] hands over; the package commandtest does so by itself. Without them only requests count.
func Quiet(t testing.TB, scenario Scenario) {
	t.Helper()
	if scenario.Config == nil {
		scenario.Config = Start(t).RESTConfig()
	}
	failure, err := quietOf(t.Context(), scenario)
	switch {
	case err != nil:
		t.Fatal(err)
	case failure != nil:
		t.Errorf("scenario %q: phase %q: %s", scenario.Name, failure.Phase, failure.Reason)
	}
}

func quietOf(ctx context.Context, scenario Scenario) (*Failure, error) {
	scenario = scenario.withDefaults()
	if err := scenario.validate(); err != nil {
		return nil, fmt.Errorf("scenario %q: %w", scenario.Name, err)
	}
	s, err := newSweep(scenario)
	if err != nil {
		return nil, fmt.Errorf("scenario %q: %w", scenario.Name, err)
	}
	defer s.connections.CloseIdleConnections()
	l := &listener{lag: NewLag()}
	l.lag.passing = true
	s.operatorConfig = l.lag.Wrap(s.operatorConfig)
	start := s.scenario.Start
	s.scenario.Start = func(ctx context.Context, cfg *rest.Config, namespace string) error {
		if faults, ok := ctx.Value(faultsKey{}).(*Faults); ok {
			faults.mu.Lock()
			faults.record = &l.record
			faults.mu.Unlock()
		}
		return start(ctx, cfg, namespace)
	}
	s.afterPhase = l.afterPhase
	result, err := s.play(context.WithValue(ctx, gatherersKey{}, &l.gatherers), nil)
	if err != nil {
		return nil, fmt.Errorf("scenario %q: %w", scenario.Name, err)
	}
	return result.failure, nil
}

// listener hears what an operator does.
type listener struct {
	lag       *Lag
	record    exchanges
	gatherers gatherers
}

// heard is what an operator has done so far.
type heard struct {
	requests        []string
	reconciliations map[string]uint64
}

func (l *listener) hear() (heard, error) {
	h := heard{}
	for _, e := range l.record.list() {
		if e.Verb != "watch" && !Leases(e.Request) {
			h.requests = append(h.requests, e.String())
		}
	}
	var err error
	h.reconciliations, err = l.gatherers.count()
	return h, err
}

// since tells what was done since an earlier time; empty when nothing was.
func (h heard) since(before heard) string {
	var parts []string
	if requests := h.requests[len(before.requests):]; len(requests) > 0 {
		parts = append(parts, fmt.Sprintf("%d requests: %s", len(requests), strings.Join(requests, ", ")))
	}
	for _, what := range slices.Sorted(maps.Keys(h.reconciliations)) {
		if n := h.reconciliations[what] - before.reconciliations[what]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d reconciliations: %s", n, what))
		}
	}
	return strings.Join(parts, "; ")
}

func (l *listener) afterPhase(ctx context.Context, r *crashRun, _ Phase) *Failure {
	failure := l.look(ctx, r)
	// A scenario may hold that its next phase leaves nothing.
	if err := r.user.Delete(ctx, markerIn(r.namespace)); client.IgnoreNotFound(err) != nil && failure == nil {
		return &Failure{Reason: fmt.Sprintf("delete the marker: %v", err)}
	}
	return failure
}

func markerIn(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "quiet-marker"}}
}

// look looks whether the operator is quiet.
func (l *listener) look(ctx context.Context, r *crashRun) *Failure {
	fail := func(err error) *Failure { return &Failure{Reason: err.Error()} }
	// What the last write brought about may be on its way still.
	before, err := l.hear()
	for range patience {
		if err == nil {
			err = l.round(ctx, r)
		}
		if err != nil {
			return fail(err)
		}
		var now heard
		if now, err = l.hear(); err == nil && now.since(before) == "" {
			break
		}
		before = now
	}
	for range quietRounds - 1 {
		if err == nil {
			err = l.round(ctx, r)
		}
	}
	if err != nil {
		return fail(err)
	}
	after, err := l.hear()
	if err != nil {
		return fail(err)
	}
	if done := after.since(before); done != "" {
		return &Failure{Reason: "the operator has nothing to do, and is not quiet: " + done}
	}
	written, err := l.secondLook(ctx, r)
	if err != nil {
		return fail(err)
	}
	if len(written) > 0 {
		return &Failure{Reason: "after a restart, by which it reconciled everything once more, the operator wrote what was left undone before: " +
			strings.Join(written, ", ") + "; does a resource read what a later one writes? (framework.Watch.OwnWrites, package ownwritescontext)"}
	}
	return nil
}

// secondLook has the operator begin anew, and returns the writes by which it changes something until it is calm.
func (l *listener) secondLook(ctx context.Context, r *crashRun) ([]string, error) {
	version, err := r.version(ctx)
	if err != nil {
		return nil, err
	}
	before := len(l.lag.changes.wrote())
	lives := r.operator.progress().lives
	r.operator.restart(ctx)
	deadline := time.NewTimer(r.scenario.Timeout)
	defer deadline.Stop()
	var calm calm
	for {
		now, err := l.hear()
		if err != nil {
			return nil, err
		}
		p := r.operator.progress()
		if calm.since(p, fmt.Sprint(len(now.requests), now.reconciliations)) >= r.scenario.Settle && p.lives > lives {
			return l.changed(r, before, version), nil
		}
		paused := time.Now()
		select {
		case <-time.After(firstPause):
			calm.overslept(paused)
		case <-ctx.Done():
			return nil, ctx.Err()
		case err := <-r.operator.failed:
			return nil, err
		case <-deadline.C:
			return nil, fmt.Errorf("after a restart the operator was not calm within %s", r.scenario.Timeout)
		}
	}
}

// changed names the writes that changed something after a resource version, but for so many of the first ones: those to the API server as it answered
// them, and all of the present life to other systems.
func (l *listener) changed(r *crashRun, first int, version int64) []string {
	var texts []string
	uncounted := r.scenario.faults().uncounted
	for _, w := range l.lag.changes.wrote()[first:] {
		if w.after(version) && !matchesAny(uncounted, w.request) {
			texts = append(texts, w.request.String())
		}
	}
	for _, w := range r.operator.writes() {
		if w.Resource == "" {
			texts = append(texts, w.Request.String())
		}
	}
	return texts
}

// round ends when a change of the marker has gone through the operator's watches.
func (l *listener) round(ctx context.Context, r *crashRun) error {
	earliest := time.NewTimer(r.scenario.Settle)
	defer earliest.Stop()
	marker := markerIn(r.namespace)
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"time":%q}}`, time.Now().Format(time.RFC3339Nano)))
	err := r.user.Patch(ctx, marker, patch)
	if client.IgnoreNotFound(err) == nil && err != nil {
		err = r.user.Create(ctx, marker)
	}
	if err != nil {
		return fmt.Errorf("change the marker: %w", err)
	}
	deadline := time.NewTimer(r.scenario.Timeout)
	defer deadline.Stop()
	for l.lag.shows("configmaps", r.namespace) && !l.lag.changes.has(marker.ResourceVersion) {
		select {
		case <-time.After(firstPause):
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return fmt.Errorf("the operator's watches did not show the marker within %s", r.scenario.Timeout)
		}
	}
	select {
	case <-earliest.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CountReconciliations tells [Quiet] of the metrics of an operator whose [Scenario.Start] was given ctx: those of this framework and of
// controller-runtime count its reconciliations. With any other context it does nothing.
func CountReconciliations(ctx context.Context, metrics prometheus.Gatherer) {
	if g, ok := ctx.Value(gatherersKey{}).(*gatherers); ok {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.all = append(g.all, metrics)
	}
}

// gatherersKey is the key of the gatherers in the context of a start.
type gatherersKey struct{}

type gatherers struct {
	mu  sync.Mutex
	all []prometheus.Gatherer
}

// count returns the numbers of reconciliations, by what and how.
func (g *gatherers) count() (map[string]uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	counts := map[string]uint64{}
	for _, gatherer := range g.all {
		families, err := gatherer.Gather()
		if err != nil {
			return nil, fmt.Errorf("read the metrics of the operator: %w", err)
		}
		for _, family := range families {
			if name := family.GetName(); name != "operatorkit_framework_reconciliation_duration_seconds" && name != "controller_runtime_reconcile_total" {
				continue
			}
			for _, metric := range family.GetMetric() {
				labels := make([]string, 0, len(metric.GetLabel()))
				for _, label := range metric.GetLabel() {
					labels = append(labels, label.GetName()+"="+label.GetValue())
				}
				counts[strings.Join(labels, " ")] += cmp.Or(metric.GetHistogram().GetSampleCount(), uint64(metric.GetCounter().GetValue()))
			}
		}
	}
	return counts, nil
}
