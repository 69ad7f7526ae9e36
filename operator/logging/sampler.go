package logging

import (
	"sync"
	"time"
)

// Messages that are repeated are sampled: of those with the same level and text, burst are written in a second, and then each
// hundredth.
const (
	burst = 100
	each  = 100
	// maxTexts is how many different texts are counted at a time. More of them are all written.
	maxTexts = 1000
)

// sampler counts messages. It is shared by all loggers that are derived from one.
type sampler struct {
	mu     sync.Mutex
	second time.Time
	counts map[repeated]*count
}

// repeated is what messages have in common that count as the same.
type repeated struct {
	severity severity
	text     string
}

// count is how many messages there were in this second, and how many were left out since the last one that was written.
type count struct{ seen, left int }

// take tells whether to write a message, and how many of its like were left out before it.
func (s *sampler) take(severity severity, text string) (left int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.second) >= time.Second {
		s.begin(now)
	}
	c := s.counts[repeated{severity, text}]
	if c == nil {
		if len(s.counts) >= maxTexts {
			return 0, true
		}
		c = &count{}
		s.counts[repeated{severity, text}] = c
	}
	c.seen++
	if c.seen > burst && (c.seen-burst)%each != 0 {
		c.left++
		return 0, false
	}
	left, c.left = c.left, 0
	return left, true
}

// begin begins another second. What was left out is told with the next message of its like.
func (s *sampler) begin(now time.Time) {
	s.second = now
	for key, c := range s.counts {
		if c.seen = 0; c.left == 0 {
			delete(s.counts, key)
		}
	}
	if s.counts == nil {
		s.counts = map[repeated]*count{}
	}
}
