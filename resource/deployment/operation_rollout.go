package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// RolloutOperation brings the containers of a service to what they should be, wave after wave, and does what was asked for when too
// many fail. Its operations are those that run, start, replace and update containers; others are an error.
//
// With FailureRollback the containers that were replaced are only stopped, and removed when all is done: so everything can be undone,
// as it was. When the context ends, nothing is undone but what is under way.
type RolloutOperation struct {
	Waves []Wave
	// FailureAction is what is done when more than MaxFailurePercent of the operations failed.
	FailureAction     api.FailureAction
	MaxFailurePercent int
}

// Wave are operations of a rollout that go on at once.
type Wave struct {
	Operations []Operation
	// Pause is how long is waited after them.
	Pause time.Duration
	// Verify looks after the pause whether all containers of this wave and those before still work.
	Verify bool
}

// PartialError says that some operations of a rollout failed, and that it went on because this is allowed. They are for the next plan.
type PartialError struct {
	Failed, Total int
	// Errs are why.
	Errs []error
}

// Error says how many, and why.
func (e *PartialError) Error() string {
	return fmt.Sprintf("%d of %d containers failed: %v", e.Failed, e.Total, errors.Join(e.Errs...))
}

// Unwrap returns why.
func (e *PartialError) Unwrap() []error { return e.Errs }

// Why a rollout did not end, to be found with errors.Is beside the errors of its operations.
var (
	// ErrPaused is a rollout that was left as it is because too many containers failed.
	ErrPaused = errors.New("too many containers failed; what was done stays, the rest is left as it is")
	// ErrRolledBack is a rollout that was undone because too many containers failed.
	ErrRolledBack = errors.New("too many containers failed; everything was undone")
)

// Execute implements Operation.
func (o *RolloutOperation) Execute(ctx context.Context, cli Client) error {
	r, err := o.begin(ctx, cli)
	if err != nil {
		return err
	}
	for i, wave := range o.Waves {
		r.wave(r.steps[i])
		if err := r.judge(); err != nil {
			return err
		}
		if wave.Pause > 0 && !sleep(ctx, wave.Pause) {
			return r.interrupted()
		}
		if wave.Verify {
			r.verify()
			if err := r.judge(); err != nil {
				return err
			}
		}
	}
	if err := r.commit(); err != nil {
		return err
	}
	if r.failed > 0 {
		return &PartialError{Failed: r.failed, Total: r.total, Errs: r.errs}
	}
	return nil
}

// rollout is a RolloutOperation that is under way.
type rollout struct {
	*RolloutOperation
	ctx           context.Context
	cli           Client
	steps         [][]step
	total, failed int
	errs          []error
	// done are the steps that succeeded and are not committed, wave by wave.
	done [][]step
	// verified are all that succeeded.
	verified []step
}

func (o *RolloutOperation) begin(ctx context.Context, cli Client) (*rollout, error) {
	r := &rollout{RolloutOperation: o, ctx: ctx, cli: cli}
	for _, wave := range o.Waves {
		steps := make([]step, len(wave.Operations))
		for i, op := range wave.Operations {
			s, ok := op.(step)
			if !ok {
				return nil, fmt.Errorf("operation %s can't be part of a rollout, because it can't be undone", op)
			}
			steps[i] = s
		}
		r.steps = append(r.steps, steps)
		r.total += len(steps)
	}
	return r, nil
}

func (r *rollout) rollsBack() bool { return r.FailureAction == api.FailureRollback }

// wave applies steps at once. Without a rollback they are committed at once too.
func (r *rollout) wave(steps []step) {
	errs := atOnce(r.ctx, steps, len(steps), func(s step) error {
		return track(r.ctx, s, s.machine(), func() error {
			if err := s.apply(r.ctx, r.cli); err != nil || r.rollsBack() {
				return err
			}
			return s.commit(r.ctx, r.cli)
		})
	})
	var done []step
	for i, err := range errs {
		if err != nil {
			r.failed++
			r.errs = append(r.errs, err)
			continue
		}
		done = append(done, steps[i])
	}
	r.done = append(r.done, done)
	r.verified = append(r.verified, done...)
}

// verify looks whether what was done still works.
func (r *rollout) verify() {
	errs := atOnce(r.ctx, r.verified, DefaultLimit, func(s step) error { return s.verify(r.ctx, r.cli) })
	r.verified = slices.DeleteFunc(slices.Clone(r.verified), func(s step) bool {
		i := slices.Index(r.verified, s)
		if errs[i] == nil {
			return false
		}
		r.failed++
		r.errs = append(r.errs, errs[i])
		emit(r.ctx, ProgressEvent{Operation: s, MachineID: s.machine(), Status: ProgressFailed, Err: errs[i]})
		return true
	})
}

// judge says why the rollout does not go on, and undoes it if that is asked for.
func (r *rollout) judge() error {
	if r.ctx.Err() != nil {
		return r.interrupted()
	}
	if r.failed*100 <= r.MaxFailurePercent*r.total {
		return nil
	}
	switch r.FailureAction {
	case api.FailureContinue:
		return nil
	case api.FailureRollback:
		if err := r.rollback(); err != nil {
			return fmt.Errorf("too many containers failed, and not everything could be undone: %w", errors.Join(append(r.errs, err)...))
		}
		return errors.Join(append([]error{ErrRolledBack}, r.errs...)...)
	}
	return errors.Join(append([]error{ErrPaused}, r.errs...)...)
}

// interrupted ends the rollout because the context has. Old containers that are stopped and not removed are for the next plan.
func (r *rollout) interrupted() error {
	return errors.Join(append([]error{context.Cause(r.ctx)}, r.errs...)...)
}

// rollback undoes the last wave first.
func (r *rollout) rollback() error {
	var all []error
	for _, steps := range slices.Backward(r.done) {
		errs := atOnce(r.ctx, steps, max(1, len(steps)), func(s step) error {
			err := s.revert(r.ctx, r.cli)
			if err == nil {
				emit(r.ctx, ProgressEvent{Operation: s, MachineID: s.machine(), Status: ProgressReverted})
			}
			return err
		})
		all = append(all, errs...)
	}
	return errors.Join(all...)
}

func (r *rollout) commit() error {
	if !r.rollsBack() {
		return nil
	}
	var errs []error
	for _, steps := range r.done {
		errs = append(errs, atOnce(r.ctx, steps, DefaultLimit, func(s step) error { return s.commit(r.ctx, r.cli) })...)
	}
	return errors.Join(errs...)
}

// sleep tells whether the time has passed before the context ended.
func sleep(ctx context.Context, d time.Duration) bool {
	defer framework.BeginWait(ctx, d)()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Describe implements Operation.
func (o *RolloutOperation) Describe() Description {
	waves := make([]WaveDescription, len(o.Waves))
	for i, w := range o.Waves {
		waves[i] = WaveDescription{Operations: descriptions(w.Operations), PauseSeconds: w.Pause.Seconds(), Verify: w.Verify}
	}
	return Description{Operation: "rollout", Waves: waves, FailureAction: o.FailureAction, MaxFailurePercent: o.MaxFailurePercent}
}

// Format implements Operation.
func (o *RolloutOperation) Format(resolver NameResolver) string { return o.Describe().Format(resolver) }

// String implements Operation.
func (o *RolloutOperation) String() string { return o.Describe().String() }
