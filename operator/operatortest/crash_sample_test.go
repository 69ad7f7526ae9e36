package operatortest

import (
	"fmt"
	"slices"
	"testing"
)

func TestASampleOfCrashesHasBothEndsBothMomentsAndIsTheSameEachTime(t *testing.T) {
	differ := map[string]bool{}
	for writes := 1; writes <= 200; writes++ {
		all := crashPoints(writes, Scenario{})
		for i := range 20 {
			scenario := Scenario{Name: fmt.Sprint("scenario ", i), Sample: true}
			points := crashPoints(writes, scenario)
			if !slices.Equal(points, crashPoints(writes, scenario)) {
				t.Fatalf("%d writes: two samples of one scenario differ", writes)
			}
			if points[0] != all[0] || points[len(points)-1] != all[len(all)-1] {
				t.Errorf("%d writes: %v leaves out an end", writes, points)
			}
			if len(points) < min(5, len(all)) || len(points) > 10 {
				t.Errorf("%d writes: a sample has %d points", writes, len(points))
			}
			if !slices.IsSortedFunc(points, func(a, b crashPoint) int { return slices.Index(all, a) - slices.Index(all, b) }) {
				t.Errorf("%d writes: %v is not in order", writes, points)
			}
			between := points[1 : len(points)-1]
			for _, moment := range []Moment{Before, After} {
				if writes > 3 && !slices.ContainsFunc(between, func(p crashPoint) bool { return p.moment == moment }) {
					t.Errorf("%d writes: no crash %s a write between the ends: %v", writes, moment, points)
				}
			}
			if writes == 100 {
				differ[fmt.Sprint(points)] = true
			}
		}
	}
	if len(differ) < 10 {
		t.Errorf("20 scenarios crash at only %d different samples", len(differ))
	}
}
