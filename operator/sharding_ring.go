package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/internal/ring"
)

// counted returns the table with what the replicas have said in the last seconds of where their objects are, or as it is if that can't be
// found out.
func (s *sharing) counted() ring.Table {
	table := s.replica.Table()
	if known, ok := s.pages.Get(table.Generation); ok {
		return known.(ring.Table)
	}
	weighed, err := s.replica.Weighed(context.Background(), table)
	if err == nil {
		s.pages.Set(table.Generation, weighed, pagesKnown)
	}
	return weighed
}

// Replicas implements inspector.Ring.
func (s *sharing) Replicas() (replicas []inspector.Replica) {
	table, objects := s.counted(), map[string]int{}
	if len(table.Ranges) == 0 {
		return nil
	}
	for i, r := range table.Ranges {
		objects[r.Owner] += table.Objects(i)
	}
	objects[s.This()] = 0
	for _, f := range s.frameworks {
		for _, key := range f.Keys() {
			if table.Find(hashOf(key)).Owner == s.This() {
				objects[s.This()]++
			}
		}
	}
	for _, p := range table.Parts() {
		replicas = append(replicas, inspector.Replica{
			Name: p.Member, This: p.Member == s.This(), Ranges: p.Ranges, Moving: p.Moving, Objects: objects[p.Member],
		})
	}
	return replicas
}

// see takes note of a table at a time.
func (s *sharing) see(t ring.Table, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(map[ring.Range]time.Time, len(t.Ranges))
	for _, r := range t.Ranges {
		seen[r] = now
		if since, ok := s.seen[r]; ok {
			seen[r] = since
		}
	}
	s.seen = seen
}

// Ranges implements inspector.Ring.
func (s *sharing) Ranges() (ranges []inspector.RingRange) {
	table := s.counted()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range table.Ranges {
		ranges = append(ranges, inspector.RingRange{
			First: r.First.String(), Owner: r.Owner, Next: r.Next, Since: s.seen[r], Objects: table.Objects(i),
		})
	}
	return ranges
}

// Filter implements inspector.Ring.
func (s *sharing) Filter() inspector.Filter {
	filter, _ := s.division.filter.Load().(inspector.Filter)
	return filter
}

// Owner implements inspector.Ring.
func (s *sharing) Owner(key informer.Key) string {
	table := s.replica.Table()
	if len(table.Ranges) == 0 {
		return ""
	}
	return table.Find(hashOf(key)).Owner
}

// This implements inspector.Ring.
func (s *sharing) This() string { return s.leader.config.Identity }

// pagesKnown is for how long it is believed where the page of a replica is, and how many objects it has.
const pagesKnown = 5 * time.Second

// Page implements inspector.Ring.
func (s *sharing) Page(ctx context.Context, replica string) (inspector.Page, error) {
	if known, ok := s.pages.Get(replica); ok {
		return known.(inspector.Page), nil
	}
	page, err := s.replica.PageOf(ctx, replica)
	host, _ := os.Hostname()
	switch {
	case err != nil:
		return inspector.Page{}, err
	case page.URL == "":
		return inspector.Page{}, errors.New("it serves none")
	case page.Host != "" && page.Host != host:
		return inspector.Page{}, fmt.Errorf("it is on the loopback of %s: have each replica serve its page on an address that the others reach, with a certificate", page.Host)
	}
	found := inspector.Page{URL: page.URL, Certificate: page.Certificate}
	s.pages.Set(replica, found, pagesKnown)
	return found, nil
}
