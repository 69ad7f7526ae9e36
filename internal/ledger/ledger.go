// Package ledger counts the changes that guards limit: which were charged in the last time, of
// which guard. It has only values, so that replicas can share them.
package ledger

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// MaxCharges is how many charges a limit may allow in its time. It bounds the size of a Book:
	// a charge takes about 40 bytes.
	MaxCharges = 1000
	percent    = 100
)

// Charge asks for things to be charged to the limit of a guard.
type Charge struct {
	// Guard is the name of the guard.
	Guard string
	// IDs are what is charged. One that is charged already is not charged again.
	IDs []string
	// Max is how many may be charged in Per. If Percent is set, it is that part of Of instead,
	// rounded down and 1 at least, and MaxCharges at most.
	Max, Percent int
	Per          time.Duration
	// Scope is the framework whose objects Of counts.
	Scope string
	Of    int
}

// Answer is the answer to a Charge.
type Answer struct {
	// Charged is true if everything is charged. Otherwise nothing is.
	Charged bool
	// Allowed is how many may be charged in the time.
	Allowed int
	// After is the time after which it may be charged, at the earliest. It is 0 if the IDs are more
	// than Allowed.
	After time.Duration
}

// Book has the accounts of the guards, by their names, which have no slash. A limit of a percentage
// has one for each framework. Its JSON form is what replicas share.
type Book map[string]*Account

// Account is what is charged to one limit.
type Account struct {
	// Charged has the times of the charges, in seconds since 1970.
	Charged map[string]int64 `json:"charged,omitempty"`
	// Most is how many objects there were at most since the oldest of the charges: objects that
	// are deleted must not lower the number that a percentage allows.
	Most int `json:"most,omitempty"`
}

// Charge charges, and reports whether the book has changed.
func (b Book) Charge(c Charge, now time.Time) (answer Answer, changed bool) {
	name := c.Guard
	if c.Percent > 0 {
		name += "/" + c.Scope
	}
	account := cmp.Or(b[name], &Account{})
	maps.DeleteFunc(account.Charged, func(_ string, at int64) bool { return at <= now.Add(-c.Per).Unix() })
	most := c.Of
	if len(account.Charged) > 0 {
		most = max(most, account.Most)
	}
	if answer.Allowed = c.Max; c.Percent > 0 {
		answer.Allowed = min(max(most*c.Percent/percent, 1), MaxCharges)
	}
	asked := map[string]int64{}
	for _, id := range c.IDs {
		asked[id] = now.Unix()
	}
	after := maps.Clone(asked)
	maps.Copy(after, account.Charged)
	switch over := len(after) - answer.Allowed; {
	case len(after) == len(account.Charged):
		answer.Charged = true
	case over <= 0:
		answer.Charged, changed = true, true
		account.Charged, b[name] = after, account
		if c.Percent > 0 {
			account.Most = most
		}
	case len(asked) <= answer.Allowed:
		times := slices.Sorted(maps.Values(account.Charged))
		expired := time.Unix(times[over-1], 0).Add(c.Per)
		answer.After = max(expired.Sub(now), time.Second)
	}
	return answer, changed
}

// Forgive removes what is charged to a guard, or to all guards if its name is empty. It returns the
// names of the guards that had charges.
func (b Book) Forgive(guard string) (forgiven []string) {
	for name := range b {
		of, _, _ := strings.Cut(name, "/")
		if guard != "" && of != guard {
			continue
		}
		delete(b, name)
		if !slices.Contains(forgiven, of) {
			forgiven = append(forgiven, of)
		}
	}
	slices.Sort(forgiven)
	return forgiven
}
