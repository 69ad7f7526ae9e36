package informer

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// freshness records when each part of a source last had contact.
type freshness struct {
	mu       sync.Mutex
	order    []string
	parts    map[string]*part
	unlisted int
	synced   chan struct{}
	failures []*failureHandler
	// unusable is the error about the newest unusable input. The map has the sorts reported so far.
	unusable error
	told     map[string]bool
}

type part struct {
	listed  bool
	contact time.Time
	err     error
}

type failureHandler struct{ handle func(error) }

func newFreshness(namespaces []string) *freshness {
	f := &freshness{
		order:    namespaces,
		parts:    make(map[string]*part, len(namespaces)),
		unlisted: len(namespaces),
		synced:   make(chan struct{}),
	}
	for _, namespace := range namespaces {
		f.parts[namespace] = &part{}
	}
	return f
}

func (f *freshness) contact(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.parts[namespace]
	p.contact, p.err = time.Now(), nil
}

func (f *freshness) fail(namespace string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parts[namespace].err = err
	for _, h := range f.failures {
		h.handle(err)
	}
}

// cantUse notes unusable input and reports whether it is the first of its sort.
func (f *freshness) cantUse(sort string, err error) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unusable = err
	if f.told[sort] {
		return false
	}
	if f.told == nil {
		f.told = map[string]bool{}
	}
	f.told[sort] = true
	for _, h := range f.failures {
		h.handle(err)
	}
	return true
}

// onFailure registers handle for every failure, and for the first unusable input of each sort.
// handle must not block.
func (f *freshness) onFailure(handle func(error)) (remove func()) {
	h := &failureHandler{handle: handle}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures, h)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failures = slices.DeleteFunc(f.failures, func(known *failureHandler) bool { return known == h })
	}
}

// has reports whether a namespace is a separate part. The parts do not change.
func (f *freshness) has(namespace string) bool { return f.parts[namespace] != nil }

func (f *freshness) listed(namespace string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.parts[namespace].listed
}

// isSynced reports whether all parts were listed.
func (f *freshness) isSynced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unlisted == 0
}

func (f *freshness) markListed(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.parts[namespace]
	p.contact, p.err = time.Now(), nil
	if p.listed {
		return
	}
	p.listed = true
	f.unlisted--
	if f.unlisted == 0 {
		close(f.synced)
	}
}

// status is as fresh as the part without contact for the longest time.
func (f *freshness) status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{Synced: f.unlisted == 0, Unusable: f.unusable}
	var errs []error
	for i, namespace := range f.order {
		p := f.parts[namespace]
		if i == 0 || p.contact.Before(s.LastContact) {
			s.LastContact = p.contact
		}
		switch {
		case p.err == nil:
		case namespace == "":
			errs = append(errs, p.err)
		default:
			errs = append(errs, fmt.Errorf("namespace %s: %w", namespace, p.err))
		}
	}
	s.LastError = errors.Join(errs...)
	return s
}
