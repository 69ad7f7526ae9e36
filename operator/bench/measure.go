package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"
)

// The names of contenders.
const (
	bareLoop          = "bare loop"
	controllerRuntime = "controller-runtime"
	operatorKit       = "operatorkit"
)

// contender is one way to do the work of a row.
type contender struct {
	name string
	// operations is how many operations one run is, such as keys to reconcile. What is measured is given per operation.
	operations int
	// run is called with the timer stopped. It starts the timer for what is to be measured, and stops it again.
	run func(ctx context.Context, b *testing.B) error
}

// sample is what one run of a contender took, per operation.
type sample struct {
	Nanoseconds float64 `json:"nanoseconds"`
	Allocations float64 `json:"allocations"`
	Bytes       float64 `json:"bytes"`
	// Processor is the processor time in nanoseconds; 0 where it is not known.
	Processor float64 `json:"processor"`
	// Extra is what the contender reported itself, per run, by name.
	Extra map[string]float64 `json:"extra,omitempty"`
}

func nanoseconds(s sample) float64 { return s.Nanoseconds }
func processor(s sample) float64   { return s.Processor }
func allocations(s sample) float64 { return s.Allocations }
func memory(s sample) float64      { return s.Bytes }

func extra(name string) func(sample) float64 {
	return func(s sample) float64 { return s.Extra[name] }
}

// series are the samples of a row's contenders, one for each round, in the order of the rounds.
type series map[string][]sample

// median returns the median over the rounds of one figure of a contender.
func (s series) median(name string, figure func(sample) float64) float64 {
	values := make([]float64, 0, len(s[name]))
	for _, one := range s[name] {
		values = append(values, figure(one))
	}
	return median(values)
}

// ratio returns the median over the rounds of a contender's figure divided by that of another one in the same round.
func (s series) ratio(name, to string, figure func(sample) float64) float64 {
	values := make([]float64, 0, len(s[name]))
	for round, one := range s[name] {
		values = append(values, figure(one)/figure(s[to][round]))
	}
	return median(values)
}

func median(values []float64) float64 {
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

// stopwatch runs contenders and says so.
type stopwatch struct {
	rounds   int
	progress io.Writer
}

// measure lets the contenders take turns.
func (w stopwatch) measure(ctx context.Context, row string, contenders ...contender) (series, error) {
	all := series{}
	for round := range w.rounds {
		for i := range contenders {
			c := contenders[(i+round)%len(contenders)]
			w.say("%s: round %d of %d, %s", row, round+1, w.rounds, c.name)
			one, err := once(ctx, c)
			if err != nil {
				return nil, fmt.Errorf("measure %s of %s: %w", row, c.name, err)
			}
			all[c.name] = append(all[c.name], one)
		}
	}
	return all, nil
}

// once runs a contender a single time.
func once(ctx context.Context, c contender) (sample, error) {
	if err := ctx.Err(); err != nil {
		return sample{}, err
	}
	var err error
	result := testing.Benchmark(func(b *testing.B) {
		b.StopTimer()
		b.ResetTimer()
		err = c.run(ctx, b)
	})
	if err != nil {
		return sample{}, err
	}
	n := float64(c.operations)
	return sample{
		Nanoseconds: float64(result.T.Nanoseconds()) / n,
		Allocations: float64(result.MemAllocs) / n,
		Bytes:       float64(result.MemBytes) / n,
		Processor:   result.Extra[processorNanoseconds] / n,
		Extra:       result.Extra,
	}, nil
}

func (w stopwatch) say(format string, args ...any) {
	fmt.Fprintf(w.progress, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
