package demo

import (
	"context"
	"errors"
	"fmt"
)

// part is something that runs beside the story.
type part struct {
	cancel context.CancelFunc
	ended  chan struct{}
	// err is what it ended with. It is for who has seen that it has ended.
	err error
}

// Go runs something beside the story until its context ends, which is when stop is called or, last started first, when the
// story is over. If it ends earlier, the story fails. Stop waits for the end and returns the error; it may be called
// several times.
func (d *Demo) Go(name string, run func(ctx context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &part{cancel: cancel, ended: make(chan struct{})}
	d.parts = append(d.parts, p)
	go func() {
		defer close(p.ended)
		p.err = run(ctx)
		if ctx.Err() != nil {
			return
		}
		if p.err == nil {
			p.err = errors.New("there is nothing left to do")
		}
		p.err = fmt.Errorf("%s ended by itself: %w", name, p.err)
		d.fail()
	}()
	return p.stop
}

func (p *part) stop() error {
	p.cancel()
	<-p.ended
	return p.err
}

// stopParts stops everything that Go has started.
func (d *Demo) stopParts() error {
	var errs []error
	for i := len(d.parts) - 1; i >= 0; i-- {
		errs = append(errs, d.parts[i].stop())
	}
	return errors.Join(errs...)
}
