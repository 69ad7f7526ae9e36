package operatortest

import (
	"context"
	"fmt"
	"io"
	"time"
)

const (
	// startLimit is when to give up on a part that neither ends nor serves.
	startLimit = hangLimit
	// progressPeriod is the time between two lines of progress.
	progressPeriod = 3 * time.Second
)

// waitReady waits until a part says that it is ready, for as long as all of
// the needed ones run. The API server's word includes that it reaches etcd.
func (p *plane) waitReady(ctx context.Context, part *process, needed ...*process) error {
	probe, err := newProbe(p.kubeconfig, part.readyURL)
	if err != nil {
		return err
	}
	defer probe.close()
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	// A part that waits for a dead one takes connections and says nothing:
	// the dead one must be noticed all the same.
	answer := make(chan error, 1)
	go func() { answer <- probe.untilReady(limited) }()
	progress := newRepeater(p.config.Progress, "operatortest: waiting for "+part.name)
	for {
		for _, other := range needed {
			if other.waitEnd(pollPeriod / time.Duration(len(needed))) {
				cancel()
				<-answer //nolint:errcheck // it was cancelled
				return fmt.Errorf("%s ended while it was started; its log is %s and ends with:\n%s", other.name, other.logFile, other.tail())
			}
		}
		progress.tick()
		select {
		case notReady := <-answer:
			if notReady == nil || ctx.Err() != nil {
				return notReady
			}
			return fmt.Errorf("%s is not ready after %s: %w; its log is %s and ends with:\n%s",
				part.name, startLimit, notReady, part.logFile, part.tail())
		default:
		}
	}
}

// repeater writes a line every few seconds for as long as something is slow.
type repeater struct {
	out   io.Writer
	text  string
	start time.Time
	next  time.Time
}

func newRepeater(out io.Writer, text string) *repeater {
	now := time.Now()
	return &repeater{out: out, text: text, start: now, next: now.Add(2 * progressPeriod)}
}

func (r *repeater) tick() {
	if now := time.Now(); now.After(r.next) {
		r.next = now.Add(progressPeriod)
		fmt.Fprintf(r.out, "%s: %s\n", r.text, now.Sub(r.start).Round(time.Second))
	}
}
