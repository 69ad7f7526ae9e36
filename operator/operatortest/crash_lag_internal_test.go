package operatortest

import (
	"fmt"
	"slices"
	"testing"
)

func TestASweepOfLagsHasEachRestartAtEachWriteAndAllOthers(t *testing.T) {
	const writes = 20
	met := map[Mishap]int{}
	for _, plan := range plans(Lags, writes, Scenario{Name: "story"}) {
		met[plan[0].mishap]++
	}
	for _, mishap := range []Mishap{RestartBehind, RestartInThePast, RestartWarm} {
		if met[mishap] != writes {
			t.Errorf("%q %d writes, want each of %d", mishap, met[mishap], writes)
		}
	}
	for _, mishap := range eventLags {
		if met[mishap] != writes/len(eventLags) {
			t.Errorf("%q %d writes, want %d", mishap, met[mishap], writes/len(eventLags))
		}
	}
}

func TestASampleOfLagsHasAsManyRunsAsOneOfCrashesAndAllKindsInTheEnd(t *testing.T) {
	kinds := map[Mishap]bool{}
	for writes := 3; writes <= 60; writes++ {
		for i := range 10 {
			scenario := Scenario{Name: fmt.Sprint("scenario ", i), Sample: true}
			all := plans(Lags, writes, scenario)
			if len(all) != len(plans(Crashes, writes, scenario)) {
				t.Errorf("%d writes: %v is no sample like one of crashes", writes, all)
			}
			for _, plan := range all {
				if len(plan) == 2 && plan[0].n >= plan[1].n {
					t.Errorf("%d writes: %v is not in order", writes, plan)
				}
				for _, point := range plan {
					kinds[point.mishap] = true
				}
			}
		}
	}
	if len(kinds) != 3+len(eventLags) {
		t.Errorf("the samples know only %v", kinds)
	}
}

func TestMishapsAreLeftOut(t *testing.T) {
	left := without(plans(Lags, 9, Scenario{Name: "story"}), []Mishap{EventsDropped, RestartInThePast})
	has := func(mishap Mishap) bool {
		return slices.ContainsFunc(left, func(plan []runPoint) bool { return plan[0].mishap == mishap })
	}
	if has(EventsDropped) || has(RestartInThePast) || !has(RestartBehind) || !has(EventsHeld) {
		t.Errorf("left are %v", left)
	}
}

func TestBeforeTheFirstPhaseThereIsNoPast(t *testing.T) {
	l := &lags{phases: []Phase{{Name: "create"}}, changes: &changes{}, witness: newWitness("shop")}
	if detail := l.meet(runPoint{RestartInThePast, 1, 1}, NewLag()); detail != `before phase "create"` {
		t.Errorf("got %q", detail)
	}
	if lag := l.next(); lag.behind != 0 || !lag.Lags() {
		t.Errorf("the next life begins at version %d", lag.behind)
	}
}

func TestEachRunOfASweepHasANameOfItsOwn(t *testing.T) {
	if name := nameOf([]runPoint{{CrashAfter, 1, 3}, {AnswerNotFound, 2, 1}}); name != "crash after 3, then lying 404 to 1 of life 2" {
		t.Errorf("got %q", name)
	}
	for _, sweep := range []Sweep{Crashes, Lies, Mishaps, Lags} {
		names := map[string]bool{}
		for _, plan := range plans(sweep, 30, Scenario{Name: "story"}) {
			if name := nameOf(plan); names[name] {
				t.Errorf("two runs are called %q", name)
			}
			names[nameOf(plan)] = true
		}
	}
}
