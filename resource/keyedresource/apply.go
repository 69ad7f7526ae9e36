package keyedresource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// ApplyCreateChange implements framework.TypedCRUDResourceOps.
func (r *resource[O, T]) ApplyCreateChange(ctx context.Context, obj O, change State[T]) error {
	return r.put(ctx, obj, change, "put a new thing")
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps.
func (r *resource[O, T]) ApplyUpdateChange(ctx context.Context, obj O, change State[T]) error {
	return r.put(ctx, obj, change, "put a thing")
}

// put puts things, whose keys are in the journal then.
func (r *resource[O, T]) put(ctx context.Context, obj O, change State[T], done string) error {
	ctx, _, err := r.ownership(ctx, obj)
	if err != nil {
		return err
	}
	names := slices.Clone(change.bequest)
	for _, it := range change.Items {
		names = append(names, it.key.Name)
	}
	if err := change.journal.add(ctx, names); err != nil {
		return err
	}
	ranks := r.ranks(change.Items)
	_, err = r.each(ctx, ranks, done, func(it item[T]) error { return r.config.Put(ctx, obj, it.content) })
	return err
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps. What is gone is taken from the journal; what takes its time is when it
// is not found any more.
func (r *resource[O, T]) ApplyDeleteChange(ctx context.Context, obj O, change State[T]) error {
	ctx, _, err := r.ownership(ctx, obj)
	if err != nil {
		return err
	}
	ranks := r.ranks(change.Items)
	slices.Reverse(ranks)
	gone, err := r.each(ctx, ranks, "deleted a thing", func(it item[T]) error { return r.config.Delete(ctx, obj, it.content) })
	if r.config.WaitForDeletion {
		gone = nil
	}
	if noted := change.journal.remove(ctx, append(gone, change.stale...)); noted != nil {
		return framework.Partial(err, noted)
	}
	return err
}

// ranks sorts things by their rank: each of the lists has those of one, in their order.
func (r *resource[O, T]) ranks(items []item[T]) [][]item[T] {
	if r.config.Order == nil {
		return [][]item[T]{items}
	}
	byRank := map[int][]item[T]{}
	var ranks []int
	for _, it := range items {
		rank := r.config.Order(it.content)
		if byRank[rank] == nil {
			ranks = append(ranks, rank)
		}
		byRank[rank] = append(byRank[rank], it)
	}
	slices.Sort(ranks)
	sorted := make([][]item[T], 0, len(ranks))
	for _, rank := range ranks {
		sorted = append(sorted, byRank[rank])
	}
	return sorted
}

// each does something with all things of a rank, and then with those of the next one, unless one has failed. It returns the names of
// those with which it was done.
func (r *resource[O, T]) each(ctx context.Context, ranks [][]item[T], done string, do func(item[T]) error) (names []string, err error) {
	for _, items := range ranks {
		errs := r.atOnce(ctx, items, do)
		for i, it := range items {
			if errs[i] == nil {
				names = append(names, it.key.Name)
				r.log(ctx, done, it)
			}
		}
		errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, errNotBegun) })
		if err := framework.Partial(errs...); err != nil {
			return names, err
		}
	}
	return names, nil
}

// errNotBegun is the error of things with which nothing was done because nobody answers any more.
var errNotBegun = errors.New("not begun")

// atOnce does something with some things at the same time, and returns an error for each.
func (r *resource[O, T]) atOnce(ctx context.Context, items []item[T], do func(item[T]) error) []error {
	errs := make([]error, len(items))
	free := make(chan struct{}, r.config.Concurrency)
	var running sync.WaitGroup
	var stop atomic.Bool
	for i, it := range items {
		free <- struct{}{}
		if stop.Load() {
			errs[i] = errNotBegun
			<-free
			continue
		}
		running.Go(func() {
			defer func() { <-free }()
			if err := panics.Recovered(func() error { return do(it) }); err != nil {
				errs[i] = fmt.Errorf("%s %s: %w", it.action, it.key, err)
				if unreachable(ctx, err) {
					stop.Store(true)
				}
			}
		})
	}
	running.Wait()
	return errs
}

// unreachable tells whether the next thing would fail in the same way: the context has ended, or nobody answers.
func unreachable(ctx context.Context, err error) bool {
	var unanswered net.Error
	return ctx.Err() != nil || errors.As(err, &unanswered)
}

func (r *resource[O, T]) log(ctx context.Context, message string, it item[T]) {
	from := ""
	if it.claim.IsFormer() {
		from = it.claim.Former.String()
	}
	keyed.Log(ctx, r.config.Logger, message, it, from)
}
