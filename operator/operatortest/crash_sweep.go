package operatortest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sweep goes through a scenario with a crash at each write.
type sweep struct {
	scenario       Scenario
	connections    *http.Client // the user's, and the operator's below its faults
	user           client.Client
	operatorConfig *rest.Config
	snapshots      *snapshots

	expected []snapshot // the state at the end of each phase; nil until known
	counts   []int      // the writes up to then
}

func newSweep(scenario Scenario) (*sweep, error) {
	config := rest.CopyConfig(scenario.Config)
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1
	}
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make the user's connections: %w", err)
	}
	user, err := newUser(config, connections, scenario.Scheme)
	if err != nil {
		return nil, fmt.Errorf("make the user's client: %w", err)
	}
	snapshots, err := newSnapshots(scenario, user)
	if err != nil {
		connections.CloseIdleConnections()
		return nil, err
	}
	return &sweep{
		scenario:       scenario,
		connections:    connections,
		user:           user,
		operatorConfig: config,
		snapshots:      snapshots,
	}, nil
}

func (s *sweep) run(ctx context.Context) (*CrashReport, error) {
	defer s.connections.CloseIdleConnections()
	calm, err := s.playCalm(ctx)
	if err != nil {
		return nil, err
	}
	report := &CrashReport{Scenario: s.scenario.Name, Writes: calm.writes}

	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.scenario.Parallel)
	for _, point := range crashPoints(s.counts[len(s.counts)-1], s.scenario) {
		group.Go(func() error {
			result, err := s.play(ctx, point.n, point.moment)
			if err != nil {
				return fmt.Errorf("crash %s write %d: %w", point.moment, point.n, err)
			}
			mu.Lock()
			defer mu.Unlock()
			report.add(point.n, point.moment, result)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	report.sort()
	return report, nil
}

// playCalm runs the scenario twice without a crash: the first run says what is to
// be expected, the second that it can be. A sample does without the second.
func (s *sweep) playCalm(ctx context.Context) (runResult, error) {
	first, err := s.playOnce(ctx)
	if err != nil {
		return first, err
	}
	s.expected, s.counts = first.states, first.counts
	last := len(s.counts) - 1
	if !s.scenario.Sample {
		second, err := s.playOnce(ctx)
		if err != nil {
			return second, err
		}
		s.counts[last] = max(s.counts[last], second.counts[last])
	}
	if s.counts[last] == 0 {
		return first, errors.New("the operator wrote nothing: does it use the config that start is given?")
	}
	return first, nil
}

func (s *sweep) playOnce(ctx context.Context) (runResult, error) {
	result, err := s.play(ctx, 0, Before)
	if err != nil {
		return result, fmt.Errorf("run without a crash: %w", err)
	}
	failure := result.failure
	switch {
	case failure == nil:
		return result, nil
	case failure.Diff != "":
		return result, fmt.Errorf("phase %q ends differently each time, without any crash; let normalize drop what differs by nature, "+
			"and until wait for all that happens (-first run +second run):\n%s", failure.Phase, failure.Diff)
	}
	return result, fmt.Errorf("phase %q fails without any crash: %s", failure.Phase, failure.Reason)
}

// cleanUp removes what a run left, also when the run's context has ended. An
// object whose finalizer nobody takes away any more would keep the namespace.
func (s *sweep) cleanUp(ctx context.Context, namespace *corev1.Namespace) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.scenario.Timeout)
	defer cancel()
	var errs []error
	if s.scenario.Cleanup != nil {
		errs = append(errs, s.scenario.Cleanup(ctx, s.user, namespace.Name))
	}
	errs = append(errs, s.snapshots.dropFinalizers(ctx, namespace.Name))
	errs = append(errs, client.IgnoreNotFound(s.user.Delete(ctx, namespace)))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clean up after a run in namespace %s: %w", namespace.Name, err)
	}
	return nil
}

// add takes the result of the run that was to crash at the given point.
func (r *CrashReport) add(n int, moment Moment, result runResult) {
	point := CrashPoint{Moment: moment, Write: r.writeOf(n)}
	if result.crash == nil {
		r.NotReached = append(r.NotReached, point)
	} else {
		point.Write = *result.crash
		r.Crashes++
	}
	if failure := result.failure; failure != nil {
		if result.crash == nil {
			failure.Reason = "the crash was not reached: " + failure.Reason
		}
		failure.CrashPoint = point
		r.Failures = append(r.Failures, *failure)
	}
}

// writeOf returns the n-th write of the run without a crash, or only its number
// when that run had fewer.
func (r *CrashReport) writeOf(n int) Write {
	if n <= len(r.Writes) {
		return r.Writes[n-1]
	}
	return Write{Request: Request{N: n}}
}

func (r *CrashReport) sort() {
	order := func(a, b CrashPoint) int {
		return cmp.Or(cmp.Compare(a.Write.N, b.Write.N), cmp.Compare(a.Moment, b.Moment))
	}
	slices.SortFunc(r.NotReached, order)
	slices.SortFunc(r.Failures, func(a, b CrashFailure) int { return order(a.CrashPoint, b.CrashPoint) })
}
