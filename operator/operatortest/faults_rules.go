package operatortest

import "slices"

// Match says whether a rule is meant for a request. It is called with the lock
// of its [Faults] held: it must be quick and must not call back.
type Match func(Request) bool

// Leases matches requests for leases, which leader election and heartbeats renew.
func Leases(r Request) bool {
	return r.Group == "coordination.k8s.io" && r.Resource == "leases"
}

// Events matches requests for events, which tell about other objects.
func Events(r Request) bool {
	return r.Resource == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}

// Throttled matches requests for a kind, by the plural of its name. With TooManyRequests of a long pause, in any scenario, everything that
// has nothing to do with the kind must go on.
func Throttled(resource string) Match {
	return func(r Request) bool { return r.Resource == resource }
}

func matchesAny(matches []Match, r Request) bool {
	return slices.ContainsFunc(matches, func(match Match) bool { return match(r) })
}

// Rule is a fault and the requests it is meant for. It is safe for concurrent use.
type Rule struct {
	faults *Faults
	match  Match
	fault  Fault
	limit  int // 0 is without limit
	hits   int
}

// At breaks the n-th counted write since f was made, from 1. A client that tries
// again, as client-go does after 429, does so with the write after it.
func (f *Faults) At(n int, fault Fault) *Rule {
	return f.On(func(r Request) bool { return r.N == n }, fault)
}

// On breaks each request that match accepts: reads, watches, dry runs and
// uncounted requests too, so a match that means writes looks at the verb. Of
// several rules that fit a request, the one made first is applied, alone.
func (f *Faults) On(match Match, fault Fault) *Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	rule := &Rule{faults: f, match: match, fault: fault}
	f.rules = append(f.rules, rule)
	return rule
}

// Times limits the rule to its first n requests; 0, the default, is no limit. It
// returns the rule.
func (r *Rule) Times(n int) *Rule {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.limit = n
	return r
}

// Hits returns to how many requests the rule was applied. One that is being
// delayed counts already.
func (r *Rule) Hits() int {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	return r.hits
}

// Remove ends the rule. Requests that it is delaying stay delayed.
func (r *Rule) Remove() {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.faults.rules = slices.DeleteFunc(r.faults.rules, func(other *Rule) bool { return other == r })
}

// choose returns the fault for a request, or the one that does nothing. It needs
// the lock.
func (f *Faults) choose(request Request) Fault {
	for _, rule := range f.rules {
		if rule.limit > 0 && rule.hits >= rule.limit || !rule.match(request) {
			continue
		}
		rule.hits++
		return rule.fault
	}
	return pass
}
