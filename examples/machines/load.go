package machines

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/operatorkit/operatorkit/examples/machines/shop"
)

// Load asks an address again and again, and counts what becomes of it. Its methods are safe for concurrent use.
type Load struct {
	address string
	client  *http.Client

	mu sync.Mutex
	// answers are counted by the version that they tell.
	answers map[string]int
	failed  []error
}

// NewLoad returns a load client for an address.
func NewLoad(address string) *Load {
	return &Load{address: address, client: &http.Client{Transport: &http.Transport{}}, answers: map[string]int{}}
}

// Run asks, a number of times at once, until the context ends. What was asked by then is answered and counted.
func (l *Load) Run(ctx context.Context, parallel int) error {
	defer l.client.CloseIdleConnections()
	var group sync.WaitGroup
	for range parallel {
		group.Go(func() {
			for ctx.Err() == nil {
				l.count(l.ask(context.WithoutCancel(ctx)))
			}
		})
	}
	group.Wait()
	return nil
}

// Once asks once, and counts nothing.
func (l *Load) Once(ctx context.Context) error {
	defer l.client.CloseIdleConnections()
	_, err := l.ask(ctx)
	return err
}

func (l *Load) ask(ctx context.Context) (string, error) {
	return shop.Ask(ctx, l.client, http.MethodGet, l.address)
}

func (l *Load) count(answer string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed = append(l.failed, err)
		return
	}
	// An answer is "version 1 at 1a2b3c4d5e6f".
	version, _, _ := strings.Cut(strings.TrimPrefix(answer, "version "), " ")
	l.answers[version]++
}

// Answered returns how many answers were of a version.
func (l *Load) Answered(version string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answers[version]
}

// Ended returns how many requests were answered or have failed.
func (l *Load) Ended() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended()
}

func (l *Load) ended() int {
	all := len(l.failed)
	for _, answers := range l.answers {
		all += answers
	}
	return all
}

// Failed returns what went wrong.
func (l *Load) Failed() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.failed)
}

// String says how many requests were answered by which version, and how many failed.
func (l *Load) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var by []string
	for _, version := range slices.Sorted(maps.Keys(l.answers)) {
		by = append(by, fmt.Sprintf("%d by version %s", l.answers[version], version))
	}
	return fmt.Sprintf("%d requests: %s, %d failed", l.ended(), strings.Join(by, ", "), len(l.failed))
}
