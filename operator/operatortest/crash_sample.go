package operatortest

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// Sweep is which mishaps a scenario meets. Each run has its own, one or two.
type Sweep int

const (
	// Crashes has a crash right before and one right after each write.
	Crashes Sweep = iota
	// Lies has each wrong answer to each write: a lost one, 404, 409 and 500.
	Lies
	// Mishaps has a crash right before and one right after each write, a wrong answer to each write, and every fifth crash
	// once more with a second mishap after it: another crash, or a wrong answer, at one of the first writes of the operator
	// that recovers. Which mishaps meet differs from write to write and from scenario to scenario, so that all pairs are
	// met, but not all at each write. A sample has as many runs as one of crashes: half of those between its ends have a second
	// mishap, the other half a wrong answer instead of a crash.
	Mishaps
	// Lags has, after each write, a restart at a lagging replica, one in the past, one with old caches, and one of the ways in
	// which events lag behind, in turns. A sample has as many runs as one of crashes: of those between its ends a third has an object missing,
	// and the others two mishaps, of which the first is with events.
	Lags
	// Tenants has Scenario.Tenant called after each write.
	Tenants
)

// runPoint is one mishap that a run is to have: at the n-th write of a life.
type runPoint struct {
	mishap  Mishap
	life, n int
}

// nameOf is, for example, "crash after 3, then lying 404 to 1 of life 2".
func nameOf(plan []runPoint) string {
	names := make([]string, len(plan))
	for i, p := range plan {
		names[i] = fmt.Sprintf("%s %d", p.mishap, p.n)
		if p.life > 1 {
			names[i] += fmt.Sprintf(" of life %d", p.life)
		}
	}
	return strings.Join(names, ", then ")
}

// plans are the runs of a sweep with so many writes, each with its mishaps: all of them, or a sample of five.
func plans(sweep Sweep, writes int, scenario Scenario) [][]runPoint {
	seed := hash(scenario.Name)
	if sweep == Lags {
		return lagPlans(writes, scenario, seed)
	}
	all := crashPlans(writes)
	switch sweep {
	case Lies:
		all = lyingPlans(writes)
	case Tenants:
		all = tenantPlans(writes)
	}
	if scenario.Sample {
		all = sample(all, seed)
	}
	if sweep != Mishaps {
		return all
	}
	var more [][]runPoint
	for i, plan := range all {
		turn := seed + uint64(i)
		lie := []runPoint{{lies[turn%uint64(len(lies))], 1, plan[0].n}}
		pair := []runPoint{plan[0], {companions[turn%uint64(len(companions))], 2, 1 + int(turn/2%2)}}
		if end := i == 0 || i == len(all)-1; scenario.Sample && !end {
			all[i] = [][]runPoint{lie, pair}[i%2]
		}
		if !scenario.Sample && i%2 == 1 {
			more = append(more, lie)
		}
		if !scenario.Sample && i%5 == 1 {
			more = append(more, pair)
		}
	}
	return append(all, more...)
}

// companions are what may follow a crash.
var companions = []Mishap{CrashAfter, AnswerNotFound, CrashBefore, AnswerConflict, AnswerLost, CrashAfter, AnswerInternalError}

func crashPlans(writes int) [][]runPoint {
	all := make([][]runPoint, 0, 2*writes)
	for n := 1; n <= writes; n++ {
		all = append(all, []runPoint{{CrashBefore, 1, n}}, []runPoint{{CrashAfter, 1, n}})
	}
	return all
}

func lyingPlans(writes int) [][]runPoint {
	all := make([][]runPoint, 0, len(lies)*writes)
	for n := 1; n <= writes; n++ {
		for _, lie := range lies {
			all = append(all, []runPoint{{lie, 1, n}})
		}
	}
	return all
}

func tenantPlans(writes int) [][]runPoint {
	all := make([][]runPoint, 0, writes)
	for n := 1; n <= writes; n++ {
		all = append(all, []runPoint{{TenantMeddles, 1, n}})
	}
	return all
}

// sample takes the first, the last, and three between them, every k-th, with both moments among them. Where these begin depends on the
// seed: scenarios that are alike are crashed at other places, and each always at the same.
func sample(all [][]runPoint, seed uint64) [][]runPoint {
	const between = 3
	if len(all) <= between+2 {
		return all
	}
	last := len(all) - 1
	k := (last - 1) / between
	begin := 1 + int(seed%uint64(k)) //nolint:gosec // k is small
	middle := begin + k
	if k%2 == 0 {
		middle++ // moments alternate
	}
	return [][]runPoint{all[0], all[begin], all[middle], all[begin+2*k], all[last]}
}

// hash is a number for a name, the same each time.
func hash(name string) uint64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return uint64(h.Sum32())
}
