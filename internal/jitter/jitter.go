// Package jitter spreads what happens at an interval, so that many processes do not do it at once.
package jitter

import (
	"math/rand/v2"
	"time"
)

// Of returns a duration ±10 %, at random.
func Of(d time.Duration) time.Duration {
	return time.Duration((0.9 + 0.2*rand.Float64()) * float64(d))
}
