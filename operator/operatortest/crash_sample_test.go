package operatortest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
)

func TestASampleOfCrashesHasBothEndsBothMomentsAndIsTheSameEachTime(t *testing.T) {
	differ := map[string]bool{}
	for writes := 1; writes <= 200; writes++ {
		all := plans(Crashes, writes, Scenario{})
		for i := range 20 {
			scenario := Scenario{Name: fmt.Sprint("scenario ", i), Sample: true}
			points := plans(Crashes, writes, scenario)
			if !reflect.DeepEqual(points, plans(Crashes, writes, scenario)) {
				t.Fatalf("%d writes: two samples of one scenario differ", writes)
			}
			if points[0][0] != all[0][0] || points[len(points)-1][0] != all[len(all)-1][0] {
				t.Errorf("%d writes: %v leaves out an end", writes, points)
			}
			if len(points) != min(5, len(all)) {
				t.Errorf("%d writes: a sample has %d points", writes, len(points))
			}
			if !slices.IsSortedFunc(points, func(a, b []runPoint) int { return place(all, a) - place(all, b) }) {
				t.Errorf("%d writes: %v is not in order", writes, points)
			}
			between := points[1 : len(points)-1]
			for _, mishap := range []Mishap{CrashBefore, CrashAfter} {
				if writes > 3 && !slices.ContainsFunc(between, func(plan []runPoint) bool { return plan[0].mishap == mishap }) {
					t.Errorf("%d writes: no %s a write between the ends: %v", writes, mishap, points)
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

// place is where a plan is among all.
func place(all [][]runPoint, plan []runPoint) int {
	return slices.IndexFunc(all, func(other []runPoint) bool { return reflect.DeepEqual(other, plan) })
}

func TestASweepOfMishapsHasEachCrashOneLieToEachWriteAndAllPairs(t *testing.T) {
	const writes = 42
	alone, pairs := map[runPoint]bool{}, map[[2]Mishap]bool{}
	lied := map[int]bool{}
	for _, plan := range plans(Mishaps, writes, Scenario{Name: "story"}) {
		switch {
		case len(plan) == 2:
			pairs[[2]Mishap{plan[0].mishap, plan[1].mishap}] = true
		case plan[0].mishap.isCrash():
			alone[plan[0]] = true
		default:
			lied[plan[0].n] = true
		}
	}
	if len(alone) != 2*writes || len(lied) != writes {
		t.Errorf("%d crashes and %d lies alone, want %d and %d", len(alone), len(lied), 2*writes, writes)
	}
	for _, companion := range companions {
		if !pairs[[2]Mishap{CrashBefore, companion}] || !pairs[[2]Mishap{CrashAfter, companion}] {
			t.Errorf("%q does not follow both kinds of crashes: %v", companion, pairs)
		}
	}
}

func TestASampleOfMishapsHasAsManyRunsAsOneOfCrashesWithALieAndASecondMishap(t *testing.T) {
	kinds := map[Mishap]bool{}
	for writes := 3; writes <= 100; writes++ {
		for i := range 20 {
			scenario := Scenario{Name: fmt.Sprint("scenario ", i), Sample: true}
			crashes, all := plans(Crashes, writes, scenario), plans(Mishaps, writes, scenario)
			if len(all) != len(crashes) || !reflect.DeepEqual(all[0], crashes[0]) || !reflect.DeepEqual(all[len(all)-1], crashes[len(all)-1]) {
				t.Errorf("%d writes: %v is no sample like %v", writes, all, crashes)
			}
			second := slices.ContainsFunc(all, func(plan []runPoint) bool { return len(plan) == 2 })
			lie := slices.ContainsFunc(all, func(plan []runPoint) bool { return !plan[0].mishap.isCrash() })
			if !second || !lie {
				t.Errorf("%d writes: no lie, or no second mishap: %v", writes, all)
			}
			for _, plan := range all {
				kinds[plan[len(plan)-1].mishap] = true
			}
		}
	}
	if len(kinds) != 2+len(lies) {
		t.Errorf("the samples know only %v", kinds)
	}
}
