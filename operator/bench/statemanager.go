package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// The contenders of a change on all clusters but one.
const (
	besideDead  = "beside a dead cluster"
	besideQuiet = "beside a quiet cluster"
)

// The names under which the row reports how many requests there were.
const (
	toTargets    = "requests-to-targets"
	toManagement = "requests-to-management"
	writesOfAll  = "writes"
	toOthers     = "requests-to-others"
)

// fleet is how many clusters there are, how many services each has, and how many of these are charts, of so many objects each; the
// others are manifests.
type fleet struct{ clusters, services, charts, objects int }

// stateManagers measures how services come up on many clusters, what a change on one of them asks of the others, and what a
// cluster that does not answer costs the others. The services come up once, however many rounds there are.
func stateManagers(ctx context.Context, e *environment) (lines []line, err error) {
	w, err := newFleetWorld(ctx, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	single := *e
	single.rounds = 1
	all := w.clusters * w.services
	up, err := single.compare(ctx, "statemanager", contender{operatorKit, all, w.comeUp})
	if err != nil {
		return nil, err
	}
	one, err := e.compare(ctx, "statemanager, one cluster", contender{operatorKit, 1, w.changeOne})
	if err != nil {
		return nil, err
	}
	rest, err := e.compare(ctx, "statemanager, all clusters but one",
		contender{besideDead, w.clusters - 1, w.changeRest(true)}, contender{besideQuiet, w.clusters - 1, w.changeRest(false)})
	if err != nil {
		return nil, err
	}
	each := func(name string) func(sample) float64 {
		return func(s sample) float64 { return s.Extra[name] / float64(all) }
	}
	what := fmt.Sprintf("%d services on each of %d clusters: ", w.services, w.clusters)
	return []line{
		reportLine(what+"time for each", inMicroseconds, up, nanoseconds),
		reportLine(what+"processor time for each", inMicroseconds, up, processor),
		reportLine(what+"requests to its cluster for each", counted, up, each(toTargets)),
		reportLine(what+"requests to the management cluster for each", counted, up, each(toManagement)),
		reportLine(what+"writes for each", counted, up, each(writesOfAll)),
		reportLine("change on one of these clusters: time", inMicroseconds, one, nanoseconds),
		reportLine("change on one of these clusters: requests to it", counted, one, extra(toTargets)),
		reportLine("change on one of these clusters: requests to the others", counted, one, extra(toOthers)).atMost(0),
		line{
			Measure: "change on all of these clusters but one, which is dead: time for each",
			Unit:    inMicroseconds,
			Figures: map[string]float64{operatorKit: rest.median(besideDead, nanoseconds)},
			Ratio:   rest.ratio(besideDead, besideQuiet, nanoseconds),
		}.ratioAtMost(1.05),
	}, nil
}

// comeUp measures how long it takes until all services are deployed on all clusters, from nothing.
func (w *fleetWorld) comeUp(ctx context.Context, b *testing.B) error {
	seen, err := w.follow(ctx)
	if err != nil {
		return err
	}
	defer seen.stop()
	before, used := w.counts(), processorTime()
	b.StartTimer()
	if err := w.createClusters(ctx); err != nil {
		return err
	}
	if err := seen.await(ctx, w.all(), w.deployed(1)); err != nil {
		return err
	}
	b.StopTimer()
	b.ReportMetric(float64(processorTime()-used), processorNanoseconds)
	after := w.counts()
	b.ReportMetric(float64(after.targets-before.targets), toTargets)
	b.ReportMetric(float64(after.management-before.management), toManagement)
	b.ReportMetric(float64(after.writes-before.writes), writesOfAll)
	for i := range w.versions {
		w.versions[i] = 1
	}
	return w.quiet(ctx)
}

// changeOne measures how long it takes until a service of one cluster has another version, and counts who is asked for what
// meanwhile.
func (w *fleetWorld) changeOne(ctx context.Context, b *testing.B) error {
	const which = 1
	seen, err := w.follow(ctx)
	if err != nil {
		return err
	}
	defer seen.stop()
	before := w.links[which].count()
	all := w.counts()
	b.StartTimer()
	if err := w.change(ctx, which); err != nil {
		return err
	}
	if err := seen.await(ctx, []int{which}, w.deployed(w.versions[which])); err != nil {
		return err
	}
	b.StopTimer()
	if err := w.quiet(ctx); err != nil {
		return err
	}
	to := w.links[which].count() - before
	b.ReportMetric(float64(to), toTargets)
	b.ReportMetric(float64(w.counts().targets-all.targets-to), toOthers)
	return nil
}

// changeRest measures how long it takes until a service has another version on all clusters but the first one. That is dead
// meanwhile, although something is to be done there too, or there is nothing to do for it.
func (w *fleetWorld) changeRest(dead bool) func(context.Context, *testing.B) error {
	return func(ctx context.Context, b *testing.B) error {
		seen, err := w.follow(ctx)
		if err != nil {
			return err
		}
		defer seen.stop()
		changed := w.all()[1:]
		if dead {
			w.links[0].breakDown()
			changed = w.all()
		}
		b.StartTimer()
		err = inParallel(ctx, len(changed), len(changed), func(ctx context.Context, i int) error { return w.change(ctx, changed[i]) })
		if err == nil {
			err = seen.await(ctx, w.all()[1:], func(i int, set *v1alpha1.ServiceSet) bool { return w.deployed(w.versions[i])(i, set) })
		}
		b.StopTimer()
		w.links[0].mend()
		if err != nil {
			return err
		}
		if err := seen.await(ctx, w.all(), func(i int, set *v1alpha1.ServiceSet) bool { return w.deployed(w.versions[i])(i, set) }); err != nil {
			return err
		}
		return w.quiet(ctx)
	}
}
