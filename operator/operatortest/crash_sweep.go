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
	ledger         *ledger
	snapshots      *snapshots

	expected []snapshot // the state at the end of each phase; nil until known
	counts   []int      // the writes up to then
	lags     bool       // the sweep has lags, so that runs are witnessed
	calm     []deed     // of the runs without a mishap

	// afterPhase looks at what follows the end of a phase; nil does not.
	afterPhase func(context.Context, *crashRun, Phase) *Failure
}

func newSweep(scenario Scenario) (*sweep, error) {
	config := rest.CopyConfig(scenario.Config)
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1
	}
	ledger := newLedger(scenario.faults().uncounted)
	userConfig := rest.CopyConfig(config)
	userConfig.Wrap(ledger.as(writer{party: theUser}))
	connections, err := rest.HTTPClientFor(userConfig)
	if err != nil {
		return nil, fmt.Errorf("make the user's connections: %w", err)
	}
	user, err := newUser(userConfig, connections, scenario.Scheme)
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
		ledger:         ledger,
		snapshots:      snapshots,
	}, nil
}

// configOf is the API server's for one of the two operators of a run.
func (s *sweep) configOf(party party, namespace string) *rest.Config {
	if s.scenario.Neighbour == nil {
		return s.operatorConfig
	}
	config := rest.CopyConfig(s.operatorConfig)
	config.Wrap(s.ledger.as(writer{party: party, run: namespace}))
	return config
}

func (s *sweep) run(ctx context.Context, kind Sweep, each func(name string, play func() (*Failure, error)) error) (*Report, error) {
	defer s.connections.CloseIdleConnections()
	s.lags = kind == Lags
	calm, err := s.playCalm(ctx)
	if err != nil {
		return nil, err
	}
	report := &Report{Scenario: s.scenario.Name, Writes: calm.writes, Met: map[Mishap]Tally{}}

	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.scenario.Parallel)
	for _, plan := range without(plans(kind, s.counts[len(s.counts)-1], s.scenario), s.scenario.Without) {
		group.Go(func() error {
			return each(nameOf(plan), func() (*Failure, error) {
				result, err := s.play(ctx, plan)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", describePoints(report.expect(plan)), err)
				}
				mu.Lock()
				defer mu.Unlock()
				report.add(plan, result)
				return result.failure, nil
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	report.sort()
	return report, nil
}

// playCalm runs the scenario twice without a mishap: the first run says what is to
// be expected, the second that it can be. A sample does without the second.
func (s *sweep) playCalm(ctx context.Context) (runResult, error) {
	first, err := s.playOnce(ctx)
	if err != nil {
		return first, err
	}
	s.expected, s.counts, s.calm = first.states, first.counts, first.deeds
	last := len(s.counts) - 1
	if !s.scenario.Sample {
		second, err := s.playOnce(ctx)
		if err != nil {
			return second, err
		}
		s.counts[last] = max(s.counts[last], second.counts[last])
		s.calm = append(s.calm, second.deeds...)
	}
	if s.counts[last] == 0 {
		return first, errors.New("the operator wrote nothing: does it use the config that start is given?")
	}
	return first, nil
}

func (s *sweep) playOnce(ctx context.Context) (runResult, error) {
	result, err := s.play(ctx, nil)
	if err != nil {
		return result, fmt.Errorf("run without a mishap: %w", err)
	}
	failure := result.failure
	switch {
	case failure == nil:
		return result, nil
	case failure.Diff != "":
		return result, fmt.Errorf("phase %q ends differently each time, without any mishap; let normalize drop what differs by nature, "+
			"and until wait for all that happens (-first run +second run):\n%s", failure.Phase, failure.Diff)
	}
	return result, fmt.Errorf("phase %q fails without any mishap: %s", failure.Phase, failure.Reason)
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

// add takes the result of the run with a plan.
func (r *Report) add(plan []runPoint, result runResult) {
	points := slices.Concat(result.met, r.expect(plan[len(result.met):]))
	missed := points[len(result.met):]
	r.NotReached = append(r.NotReached, missed...)
	for _, point := range result.met {
		switch {
		case point.Mishap.isLag():
			r.Lags++
		case point.Mishap.isCrash():
			r.Crashes++
		case point.Mishap != TenantMeddles:
			r.Lies++
		}
		tally := r.Met[point.Mishap]
		tally.Runs++
		tally.Wrong += result.wrong
		if result.converged {
			tally.Converged++
		}
		r.Met[point.Mishap] = tally
	}
	if failure := result.failure; failure != nil {
		if len(missed) > 0 {
			failure.Reason = fmt.Sprintf("not reached: %s: %s", describePoints(missed), failure.Reason)
		}
		failure.Points = points
		r.Failures = append(r.Failures, *failure)
	}
}

// expect are the points that a plan stands for: their writes are those of the run without a mishap, as far as it tells.
func (r *Report) expect(plan []runPoint) []Point {
	points := make([]Point, len(plan))
	for i, p := range plan {
		points[i] = Point{Mishap: p.mishap, Life: p.life, Write: Write{Request: Request{N: p.n}}}
		if p.life == 1 && p.n <= len(r.Writes) {
			points[i].Write = r.Writes[p.n-1]
		}
	}
	return points
}

func (r *Report) sort() {
	order := func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Life, b.Life), cmp.Compare(a.Write.N, b.Write.N), cmp.Compare(a.Mishap, b.Mishap))
	}
	slices.SortFunc(r.NotReached, order)
	slices.SortFunc(r.Failures, func(a, b Failure) int { return slices.CompareFunc(a.Points, b.Points, order) })
}
