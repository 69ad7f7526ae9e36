package main

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/operatorkit/operatorkit/resource/serviceset"
)

// serviceSets measures how long it takes to work out which services a cluster gets now, and how that grows with the number of
// services.
func serviceSets(ctx context.Context, e *environment) ([]line, error) {
	most := e.services[len(e.services)-1]
	contenders := make([]contender, len(e.services))
	for i, services := range e.services {
		contenders[i] = resolving(services, most/services)
	}
	s, err := e.compare(ctx, "serviceset", contenders...)
	if err != nil {
		return nil, err
	}
	var lines []line
	for _, services := range e.services {
		what := fmt.Sprintf("service set of %d services: ", services)
		one := series{operatorKit: s[ofServices(services)]}
		lines = append(lines,
			reportLine(what+"time", inMicroseconds, one, nanoseconds),
			reportLine(what+"allocations", counted, one, allocations),
			reportLine(what+"memory", inBytes, one, memory),
		)
	}
	few := e.services[0]
	ratio := func(what string, figure func(sample) float64) line {
		return line{
			Measure: fmt.Sprintf("service set of %d services to one of %d: %s", most, few, what),
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

// resolving resolves so often that every size has as many services to do.
func resolving(services, times int) contender {
	in := newPlatform(services)
	return contender{ofServices(services), times, func(_ context.Context, b *testing.B) error {
		before := processorTime()
		b.StartTimer()
		for range times {
			if _, err := serviceset.Resolve(in); err != nil {
				return err
			}
		}
		b.StopTimer()
		b.ReportMetric(float64(processorTime()-before), processorNanoseconds)
		return nil
	}}
}
