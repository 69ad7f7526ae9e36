package main

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// serviceSets measures how long it takes to work out which services a cluster gets now, and what a state manager says of them, and how that
// grows with the number of services.
func serviceSets(ctx context.Context, e *environment) ([]line, error) {
	var lines []line
	for _, of := range []struct {
		name, what string
		work       func(serviceset.Input) error
	}{{"serviceset", "service set", resolve}, {"servicestates", "states", report}} {
		found, err := e.growing(ctx, of.name, of.what, of.work)
		if err != nil {
			return nil, err
		}
		lines = append(lines, found...)
	}
	return lines, nil
}

func resolve(in serviceset.Input) error {
	_, err := serviceset.Resolve(in)
	return err
}

// report works out the states of the services that a set reports: nothing has changed.
func report(in serviceset.Input) error {
	states := statemanager.NewStates(in.Owner.Set, time.Now())
	for i := range in.Owner.Set.Status.Services {
		reported := &in.Owner.Set.Status.Services[i]
		state := states.Begin(reported.Key())
		states.Enter(reported.Key(), state)
	}
	if n, want := len(states.Sorted()), len(in.Owner.Set.Status.Services); n != want {
		return fmt.Errorf("%d services have a state, want %d", n, want)
	}
	return nil
}

// growing measures work on service sets from few services to many.
func (e *environment) growing(ctx context.Context, name, what string, work func(serviceset.Input) error) ([]line, error) {
	few, most := e.services[0], e.services[len(e.services)-1]
	contenders := make([]contender, len(e.services))
	for i, services := range e.services {
		contenders[i] = working(services, most/services, work)
	}
	s, err := e.compare(ctx, name, contenders...)
	if err != nil {
		return nil, err
	}
	var lines []line
	for _, services := range e.services {
		what := fmt.Sprintf("%s of %d services: ", what, services)
		one := series{operatorKit: s[ofServices(services)]}
		lines = append(lines,
			reportLine(what+"time", inMicroseconds, one, nanoseconds),
			reportLine(what+"allocations", counted, one, allocations),
			reportLine(what+"memory", inBytes, one, memory),
		)
	}
	ratio := func(measure string, figure func(sample) float64) line {
		return line{
			Measure: fmt.Sprintf("%s of %d services to %d: %s", what, most, few, measure),
			Unit:    counted,
			Ratio:   s.ratio(ofServices(most), ofServices(few), figure),
		}
	}
	return append(lines,
		ratio("time", nanoseconds).ratioAtMost(float64(most/few)),
		ratio("processor time", processor),
		ratio("allocations", allocations).ratioAtMost(float64(most/few)),
	), nil
}

func ofServices(services int) string { return strconv.Itoa(services) + " services" }

// working works so often that every size has as many services to do.
func working(services, times int, work func(serviceset.Input) error) contender {
	in := newPlatform(services)
	return contender{ofServices(services), times, func(_ context.Context, b *testing.B) error {
		before := processorTime()
		b.StartTimer()
		for range times {
			if err := work(in); err != nil {
				return err
			}
		}
		b.StopTimer()
		b.ReportMetric(float64(processorTime()-before), processorNanoseconds)
		return nil
	}}
}
