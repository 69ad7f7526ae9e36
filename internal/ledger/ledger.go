// Package ledger counts the changes that guards limit: which were charged in the last time, of
// which guard. It has only values, so that replicas can share them.
package ledger

import (
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
	account := b[name]
	if account == nil {
		account = &Account{}
	}
	account.expire(now.Add(-c.Per))
	most := max(account.Most, c.Of)
	answer.Allowed = c.allowed(most)
	fresh := account.without(c.IDs)
	if len(fresh) == 0 {
		answer.Charged = true
		return answer, false
	}
	if over := len(account.Charged) + len(fresh) - answer.Allowed; over > 0 {
		if len((&Account{}).without(c.IDs)) <= answer.Allowed {
			answer.After = account.wait(over, now, c.Per)
		}
		return answer, false
	}
	if account.Charged == nil {
		account.Charged = map[string]int64{}
	}
	for _, id := range fresh {
		account.Charged[id] = now.Unix()
	}
	if c.Percent > 0 {
		account.Most = most
	}
	b[name] = account
	answer.Charged = true
	return answer, true
}

func (c Charge) allowed(of int) int {
	if c.Percent == 0 {
		return c.Max
	}
	return min(max(of*c.Percent/percent, 1), MaxCharges)
}

// expire removes the charges of before that time.
func (a *Account) expire(before time.Time) {
	maps.DeleteFunc(a.Charged, func(_ string, at int64) bool { return at <= before.Unix() })
	if len(a.Charged) == 0 {
		a.Most = 0
	}
}

func (a *Account) without(ids []string) (fresh []string) {
	for _, id := range ids {
		if _, charged := a.Charged[id]; !charged && !slices.Contains(fresh, id) {
			fresh = append(fresh, id)
		}
	}
	return fresh
}

// wait returns the time until n charges have expired.
func (a *Account) wait(n int, now time.Time, per time.Duration) time.Duration {
	times := slices.Sorted(maps.Values(a.Charged))
	return max(time.Unix(times[min(n, len(times))-1], 0).Add(per).Sub(now), time.Second)
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
