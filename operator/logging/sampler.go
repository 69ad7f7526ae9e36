package logging

import (
	"log/slog"
	"maps"
	"sync"
	"time"
)

// Repeated messages are sampled: of those with the same level and text, burst are written in a
// second, and then each hundredth.
const (
	burst = 100
	each  = 100
	// maxTexts is how many different texts are counted at a time. More of them are all written.
	maxTexts = 1000
)

// sampler counts messages. It is shared by all loggers derived from one.
type sampler struct {
	mu     sync.Mutex
	counts map[repeated]*count
}

// repeated is what messages have in common that count as the same.
type repeated struct {
	level slog.Level
	text  string
}

// count is how many messages there were in a second, and how many were left out since the last one
// that was written.
type count struct {
	second     time.Time
	seen, left int
}

// take reports whether to write a message, and how many like it were left out before it. Messages
// without a text are all written, and so is everything without a sampler.
func (s *sampler) take(level slog.Level, text string) (left int, ok bool) {
	if s == nil || text == "" {
		return 0, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, key := time.Now(), repeated{level, text}
	c := s.counts[key]
	if c == nil {
		if len(s.counts) >= maxTexts {
			maps.DeleteFunc(s.counts, func(_ repeated, c *count) bool { return c.left == 0 && now.Sub(c.second) >= time.Second })
		}
		if len(s.counts) >= maxTexts {
			return 0, true
		}
		c = &count{}
		s.counts[key] = c
	}
	if now.Sub(c.second) >= time.Second {
		c.second, c.seen = now, 0
	}
	c.seen++
	if c.seen > burst && (c.seen-burst)%each != 0 {
		c.left++
		return 0, false
	}
	left, c.left = c.left, 0
	return left, true
}
