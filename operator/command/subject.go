package command

import (
	"context"
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// subject is an object that is planned.
type subject struct {
	framework *framework.Framework
	key       informer.Key
	// object is set for one that is not, or not so, in the source.
	object any
	// isNew is true for an object that does not exist: its UID and version are those of a dry run.
	isNew bool
}

func (s subject) plan(ctx context.Context) (*plan.Plan, error) {
	if s.object == nil {
		return s.framework.Plan(ctx, s.key)
	}
	p, err := s.framework.PlanObject(ctx, s.object)
	if err == nil && s.isNew {
		p.Object.UID, p.Object.Version = "", ""
	}
	return p, err
}

func (s subject) shadows(ctx context.Context) ([]*plan.Comparison, error) {
	if s.object == nil {
		return s.framework.PlanShadows(ctx, s.key)
	}
	comparisons, err := s.framework.PlanObjectShadows(ctx, s.object)
	for _, c := range comparisons {
		if s.isNew {
			c.Object.UID, c.Object.Version = "", ""
		}
	}
	return comparisons, err
}

// plansOf plans the subjects.
func plansOf(ctx context.Context, subjects []subject) ([]*plan.Plan, error) {
	return ofEach(ctx, subjects, func(ctx context.Context, s subject) ([]*plan.Plan, error) {
		p, err := s.plan(ctx)
		return []*plan.Plan{p}, err
	})
}

// shadowsOf compares the resource sets that are in charge of the subjects with those that are only tried.
func shadowsOf(ctx context.Context, subjects []subject) ([]*plan.Comparison, error) {
	return ofEach(ctx, subjects, func(ctx context.Context, s subject) ([]*plan.Comparison, error) { return s.shadows(ctx) })
}

// ofEach asks about several subjects at once, and returns the answers in their order. Subjects that have gone meanwhile
// are left out.
func ofEach[T any](ctx context.Context, subjects []subject, ask func(context.Context, subject) ([]T, error)) ([]T, error) {
	answers, errs := make([][]T, len(subjects)), make([]error, len(subjects))
	var running sync.WaitGroup
	turns := make(chan struct{}, framework.DefaultWorkers)
	for i, s := range subjects {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			answers[i], errs[i] = ask(ctx, s)
			if apierrors.IsNotFound(errs[i]) {
				answers[i], errs[i] = nil, nil
			}
		})
	}
	running.Wait()
	return slices.Concat(answers...), errors.Join(errs...)
}
