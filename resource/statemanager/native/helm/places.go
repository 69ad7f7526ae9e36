package helm

import (
	"context"
	"sync"
)

// places are those for charts that are being rendered, and for those that never end. One namespace of the management cluster has half of them
// at most, so that the charts of one tenant can't take them all.
type places struct {
	all chan struct{}

	mu     sync.Mutex
	shares map[string]*share
	// endless are the fingerprints of services whose charts are rendered still after their deadline.
	endless map[string]int
}

// share is what a namespace has of the places, and how many want or have one.
type share struct {
	taken chan struct{}
	users int
}

func newPlaces(number int) *places {
	return &places{all: make(chan struct{}, number), shares: map[string]*share{}, endless: map[string]int{}}
}

// take waits for a place of a namespace, which has to be given back.
func (p *places) take(ctx context.Context, namespace string) (giveBack func(), err error) {
	share := p.shareOf(namespace)
	select {
	case share.taken <- struct{}{}:
	case <-ctx.Done():
		p.leave(namespace)
		return nil, context.Cause(ctx)
	}
	select {
	case p.all <- struct{}{}:
	case <-ctx.Done():
		<-share.taken
		p.leave(namespace)
		return nil, context.Cause(ctx)
	}
	return func() {
		<-p.all
		<-share.taken
		p.leave(namespace)
	}, nil
}

func (p *places) shareOf(namespace string) *share {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shares[namespace]
	if s == nil {
		s = &share{taken: make(chan struct{}, max(1, cap(p.all)/2))}
		p.shares[namespace] = s
	}
	s.users++
	return s
}

// leave forgets the share of a namespace that nobody uses.
func (p *places) leave(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shares[namespace]
	if s.users--; s.users == 0 {
		delete(p.shares, namespace)
	}
}

// isEndless tells whether what has this fingerprint is rendered still after its deadline.
func (p *places) isEndless(fingerprint string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.endless[fingerprint] > 0
}

// late notes that a rendering goes on after its deadline, and ended that it has come to its end after that.
func (p *places) late(fingerprint string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endless[fingerprint]++
}

func (p *places) ended(fingerprint string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.endless[fingerprint]--; p.endless[fingerprint] == 0 {
		delete(p.endless, fingerprint)
	}
}
