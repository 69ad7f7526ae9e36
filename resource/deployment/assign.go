package deployment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// assign decides which containers stay, which come and whose place they take, and which go.
func (p *planner) assign() error {
	p.observe()
	if p.isJob() {
		return p.assignJob()
	}
	if p.sideBySide {
		if err := p.checkSideBySide(); err != nil {
			return err
		}
	}
	if p.spec.Mode == api.ServiceModeGlobal {
		return p.assignGlobal()
	}
	return p.assignReplicated()
}

func (p *planner) of(c condition) []*member {
	return slices.DeleteFunc(slices.Clone(p.members), func(m *member) bool { return m.condition != c || m.taken })
}

func (p *planner) assignReplicated() error {
	slots := p.slots()
	stay := spreadFirst(p.of(working))
	n := min(slots, len(stay))
	for _, m := range stay[n:] {
		p.drop(m, fmt.Sprintf("more than %d", slots))
	}
	for _, m := range stay[:n] {
		if m.machine.Drain {
			p.leaving = append(p.leaving, m)
			continue
		}
		p.keep(m)
	}
	if err := p.fillReplicated(slots - n); err != nil {
		return err
	}
	p.drain()
	p.pair()
	for _, m := range p.members {
		if !m.taken {
			p.drop(m, cmp.Or(m.why, p.superfluous(m, slots)))
		}
	}
	return nil
}

func (p *planner) keep(m *member) {
	m.taken = true
	p.kept = append(p.kept, m)
	p.sched.Keep(m.machine.ID)
}

func (p *planner) superfluous(m *member, slots int) string {
	if p.sideBySide && m.condition == outdated {
		return "the new version has taken its place"
	}
	return fmt.Sprintf("more than %d", slots)
}

// slots returns how many containers there should be on the machines that are seen. Those that may be on others are not made again,
// and none that is seen is taken away for one that is not.
func (p *planner) slots() int {
	want := p.spec.DesiredReplicas()
	remembered, on, blind := p.unseen()
	hidden := min(remembered, want)
	if remembered > 0 {
		p.note("left alone: %s last seen on %s, which can't be seen now", containers(remembered), strings.Join(on, ", "))
	}
	if missing := want - hidden - len(p.members); missing > 0 && len(blind) > 0 {
		p.note("not made: %s that may be on %s, which can't be seen; bring it back, or declare it gone for good",
			containers(missing), strings.Join(blind, ", "))
		hidden += missing
	}
	return min(want, max(want-hidden, p.active()))
}

func containers(n int) string {
	if n == 1 {
		return "1 container"
	}
	return fmt.Sprintf("%d containers", n)
}

func (p *planner) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// spreadFirst puts the first container of each machine before the second ones, and those that are as they should be before others
// of the same turn. Those on machines that are drained come last.
func spreadFirst(members []*member) []*member {
	turn := map[*member]int{}
	seen := map[string]int{}
	sorted := slices.SortedStableFunc(slices.Values(members), func(a, b *member) int { return cmp.Compare(len(a.changes), len(b.changes)) })
	for _, m := range sorted {
		turn[m] = seen[m.machine.ID]
		seen[m.machine.ID]++
	}
	slices.SortStableFunc(sorted, func(a, b *member) int {
		return cmp.Or(drainedLast(a, b), cmp.Compare(turn[a], turn[b]))
	})
	return sorted
}

// drop makes a container one that is removed in the end.
func (p *planner) drop(m *member, why string) {
	m.taken, m.why = true, why
	p.surplus = append(p.surplus, m)
}

// fillReplicated finds places: where containers are that only have to work, then where outdated ones are as long as that spreads them
// well, then the best of all machines.
func (p *planner) fillReplicated(need int) error {
	for _, m := range p.of(pending) {
		if need > 0 && !m.machine.Drain && !p.sched.Better(m.machine.ID) && p.sched.Resume(m.machine.ID) {
			p.resume(m)
			need--
		}
	}
	if need > 0 && !p.sideBySide {
		need -= p.fillInPlace(need)
	}
	for ; need > 0; need-- {
		m, err := p.sched.Next()
		if err != nil {
			return p.resumeDrained(need, err)
		}
		p.fills = append(p.fills, &fill{machine: m})
	}
	return nil
}

// fillInPlace replaces outdated containers where they are, as many on a machine as it would have if all were spread evenly.
func (p *planner) fillInPlace(need int) int {
	eligible := p.sched.Eligible()
	if eligible == 0 {
		return 0
	}
	fair := (len(p.kept) + len(p.leaving) + len(p.fills) + need + eligible - 1) / eligible
	on := map[string]int{}
	for _, m := range p.kept {
		on[m.machine.ID]++
	}
	for _, f := range p.fills {
		on[f.machine.ID]++
	}
	filled := 0
	for _, m := range p.of(outdated) {
		if filled == need {
			break
		}
		if id := m.machine.ID; on[id] < fair && !p.sched.Better(id) && p.sched.Take(id) {
			on[id]++
			p.fills = append(p.fills, &fill{machine: m.machine})
			filled++
		}
	}
	return filled
}

// pair says which containers go when a place is filled: those in its way, then one on its machine, then any, and one that works if
// there are.
func (p *planner) pair() {
	if p.sideBySide {
		return
	}
	here := map[string][]*member{}
	for _, m := range p.of(outdated) {
		here[m.machine.ID] = append(here[m.machine.ID], m)
	}
	for _, m := range p.of(pending) {
		here[m.machine.ID] = append(here[m.machine.ID], m)
	}
	for _, f := range p.fills {
		for _, m := range here[f.machine.ID] {
			if !m.taken && p.conflicts(m) {
				f.take(m)
			}
		}
	}
	for _, f := range p.fills {
		if i := slices.IndexFunc(here[f.machine.ID], func(m *member) bool { return !m.taken }); i >= 0 && len(f.old) == 0 {
			f.take(here[f.machine.ID][i])
		}
	}
	p.pairExclusive()
	rest := append(p.of(outdated), p.of(pending)...)
	for _, f := range p.fills {
		if len(rest) > 0 && len(f.old) == 0 {
			f.take(rest[0])
			rest = rest[1:]
		}
	}
	// What works goes only for what works, as far as there is enough of it.
	for _, f := range p.fills {
		if len(rest) > 0 && rest[0].Ready() && !slices.ContainsFunc(f.old, func(m *member) bool { return m.Ready() }) {
			f.take(rest[0])
			rest = rest[1:]
		}
	}
}

func (f *fill) take(m *member) {
	m.taken = true
	f.old = append(f.old, m)
}

// pairExclusive makes all old containers go with the first place when two versions must not share a volume.
func (p *planner) pairExclusive() {
	shared := slices.ContainsFunc(p.members, func(m *member) bool { return m.condition != working && p.sharesVolume(m) })
	single := p.spec.DesiredReplicas() == 1 || p.active() <= 1
	if !shared || !single || len(p.fills) == 0 {
		return
	}
	p.exclusive = true
	first := p.fills[0]
	for _, f := range p.fills[1:] {
		first.old = append(first.old, f.old...)
		f.old = nil
	}
	for _, m := range append(p.of(outdated), p.of(pending)...) {
		first.take(m)
	}
}

// assignGlobal gives each machine one container.
func (p *planner) assignGlobal() error {
	on := map[string][]*member{}
	for _, m := range p.members {
		on[m.machine.ID] = append(on[m.machine.ID], m)
	}
	var waits []string
	for _, m := range p.machines() {
		switch {
		case m.Unknown():
			waits = append(waits, m.Name)
		case p.sched.Allowed(m.ID) && !m.Drain && (p.sched.Open(m.ID) || len(on[m.ID]) > 0):
			p.assignOn(m, on[m.ID])
		}
	}
	if len(waits) > 0 {
		p.note("left alone: what is on %s, which can't be seen now", strings.Join(waits, ", "))
	}
	if len(p.kept)+len(p.fills) == 0 {
		p.stay(p.of(working))
		p.explain()
	}
	if len(p.kept)+len(p.fills)+len(waits) == 0 {
		return &scheduler.UnschedulableError{Service: p.spec.Name, Container: 1, Report: p.sched.Report()}
	}
	for _, m := range p.members {
		if !m.taken {
			p.drop(m, cmp.Or(m.why, p.superfluous(m, 1)))
		}
	}
	return nil
}

// assignOn decides for one machine of a global service.
func (p *planner) assignOn(machine *scheduler.Machine, members []*member) {
	if len(members) > 0 && members[0].condition == working {
		p.keep(members[0])
		return
	}
	resumes := len(members) > 0 && members[0].condition == pending && p.sched.Resume(machine.ID)
	if !resumes && !p.sched.Take(machine.ID) {
		report := p.sched.Report()
		i := slices.IndexFunc(report, func(r scheduler.MachineReport) bool { return r.MachineID == machine.ID })
		p.note("%s gets no container: %s", machine.Name, strings.Join(report[i].Reasons, ", "))
		for _, m := range members {
			// What can't be replaced stays.
			m.taken = true
		}
		return
	}
	f := &fill{machine: machine}
	p.fills = append(p.fills, f)
	if resumes {
		f.existing, members[0].taken = members[0], true
	}
	for _, m := range members {
		if !m.taken && !p.sideBySide {
			f.take(m)
		}
	}
}

// checkSideBySide refuses what two versions can't have at once, and takes out the machines where ports are not free.
func (p *planner) checkSideBySide() error {
	for _, m := range p.members {
		if m.condition == working || !m.Active() {
			continue
		}
		single := p.spec.Mode == api.ServiceModeGlobal || p.spec.DesiredReplicas() == 1 || p.active() <= 1
		if p.sharesVolume(m) && single {
			return &NotSideBySideError{Service: p.spec.Name, Reason: "container " + m.Name + " and the new one would share a volume"}
		}
		if p.conflicts(m) {
			if p.spec.Mode == api.ServiceModeGlobal {
				return &NotSideBySideError{Service: p.spec.Name, Reason: "container " + m.Name + " holds a port that the new one needs"}
			}
			p.sched.Block(m.machine.ID, "container "+m.Name+" of the version that runs holds a port that the new one needs")
		}
	}
	return nil
}
