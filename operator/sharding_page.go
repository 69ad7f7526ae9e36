package operator

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
)

// Replicas implements inspector.Ring.
func (s *sharing) Replicas() (replicas []inspector.Replica) {
	ring, said := s.member.view()
	byName := map[string]*inspector.Replica{}
	for name, says := range said {
		byName[name] = &inspector.Replica{Name: name, This: name == s.This(), Objects: says.Objects}
	}
	for _, slot := range ring.Slots {
		holder := slot.Holder
		if _, exists := said[holder]; !exists {
			holder = ""
		}
		if byName[holder] == nil {
			byName[holder] = &inspector.Replica{}
		}
		byName[holder].Slots++
		if _, exists := said[slot.Next]; exists {
			byName[holder].Moving++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		replicas = append(replicas, *byName[name])
	}
	return replicas
}

// Owner implements inspector.Ring.
func (s *sharing) Owner(key informer.Key) string {
	ring, said := s.member.view()
	holder := ring.Slots[slotOf(key)].Holder
	if _, exists := said[holder]; !exists {
		return ""
	}
	return holder
}

// This implements inspector.Ring.
func (s *sharing) This() string { return s.member.name }

// Page implements inspector.Ring.
func (s *sharing) Page(replica string) (inspector.Page, error) {
	_, said := s.member.view()
	says, exists := said[replica]
	host, _ := os.Hostname()
	switch page := says.Page; {
	case !exists:
		return inspector.Page{}, errors.New("it has gone")
	case page.URL == "":
		return inspector.Page{}, errors.New("it serves none")
	case page.Host != "" && page.Host != host:
		return inspector.Page{}, fmt.Errorf("it is on the loopback of %s: have each replica serve its page on an address that the others reach, with a certificate", page.Host)
	default:
		return inspector.Page{URL: page.URL, Certificate: page.Certificate}, nil
	}
}
