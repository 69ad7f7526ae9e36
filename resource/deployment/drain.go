package deployment

import (
	"fmt"

	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// drained says of what is on a machine why it has to go elsewhere, or nothing.
func drained(m *scheduler.Machine) string {
	if !m.Drain {
		return ""
	}
	return m.Name + " is drained" + because(m.Unschedulable)
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return " because " + why
}

// drain finds places elsewhere for containers that are as they should be, on machines that are drained. Those for which there is none
// stay.
func (p *planner) drain() {
	for i, m := range p.leaving {
		machine, err := p.sched.Next()
		if err != nil {
			p.stay(p.leaving[i:])
			break
		}
		f := &fill{machine: machine}
		f.take(m)
		p.fills = append(p.fills, f)
	}
	p.explain()
}

// stay keeps containers that should go elsewhere.
func (p *planner) stay(members []*member) {
	for _, m := range members {
		p.keep(m)
		p.stuck = append(p.stuck, m)
	}
}

// resume fills a place with a container that is there, and only has to work.
func (p *planner) resume(m *member) {
	m.taken = true
	p.fills = append(p.fills, &fill{machine: m.machine, existing: m})
}

// resumeDrained fills places for which there is no machine with containers that only have to work, on machines that are drained. It
// returns the error if they are too few.
func (p *planner) resumeDrained(need int, nowhere error) error {
	for _, m := range p.of(pending) {
		if need > 0 && m.machine.Drain && p.sched.Resume(m.machine.ID) {
			p.resume(m)
			p.stuck = append(p.stuck, m)
			need--
		}
	}
	if need > 0 {
		return nowhere
	}
	return nil
}

// explain says of each machine that is drained how many containers stay on it, and why.
func (p *planner) explain() {
	on := map[string]int{}
	for _, m := range p.stuck {
		on[m.machine.ID]++
	}
	for _, m := range p.machines() {
		if n := on[m.ID]; n > 0 {
			p.undrained = append(p.undrained, fmt.Sprintf("left on %s, although it is drained: %s, because there is no other machine: %s",
				m.Name, containers(n), p.sched.Report().Reasons()))
		}
	}
}

// drainedLast puts containers on machines that are drained last.
func drainedLast(a, b *member) int {
	switch {
	case a.machine.Drain == b.machine.Drain:
		return 0
	case a.machine.Drain:
		return 1
	}
	return -1
}
