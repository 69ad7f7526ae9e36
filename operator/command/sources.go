package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/operator"
)

// lookPeriod is the pause between two looks at a source that is not synced yet.
const lookPeriod = 20 * time.Millisecond

// runningSources are the sources of an operator that is read and does not run.
type runningSources struct {
	sources []informer.Source
	cancel  context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex
	failed  map[string]error
}

// startSources runs the sources that an operator of this configuration has, each once, until stop.
func startSources(ctx context.Context, config operator.Config) *runningSources {
	all := slices.Clone(config.Sources)
	for _, f := range config.Frameworks {
		all = append(all, f.Sources()...)
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &runningSources{cancel: cancel, failed: map[string]error{}}
	for _, source := range all {
		if slices.Contains(s.sources, source) {
			continue
		}
		s.sources = append(s.sources, source)
		s.running.Go(func() {
			if err := source.Run(ctx); err != nil {
				s.mu.Lock()
				s.failed[source.Name()] = err
				s.mu.Unlock()
			}
		})
	}
	return s
}

// stop ends the sources and waits for them.
func (s *runningSources) stop() {
	s.cancel()
	s.running.Wait()
}

// wait waits until every source holds everything. The error names a source that does not, and why.
func (s *runningSources) wait(ctx context.Context, timeout time.Duration, operatorName string) error {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	look := time.NewTicker(lookPeriod)
	defer look.Stop()
	for _, source := range s.sources {
		for !source.Status().Synced {
			if err := s.hopeless(source); err != nil {
				return fmt.Errorf("read source %q: %w%s", source.Name(), err, remedy(err, operatorName))
			}
			select {
			case <-look.C:
			case <-waiting.Done():
				return s.unsynced(ctx, source, timeout, operatorName)
			}
		}
	}
	return nil
}

// unsynced says why a source is not synced when the time is up, or ctx has ended.
func (s *runningSources) unsynced(ctx context.Context, source informer.Source, timeout time.Duration, operatorName string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped before source %q was synced: %w", source.Name(), err)
	}
	err := source.Status().LastError
	if err == nil {
		return fmt.Errorf("source %q is not synced after %s: give --timeout more time", source.Name(), timeout)
	}
	return fmt.Errorf("source %q is not synced after %s: %w%s", source.Name(), timeout, err, remedy(err, operatorName))
}

// hopeless returns the failure of a source that waiting will not mend.
func (s *runningSources) hopeless(source informer.Source) error {
	s.mu.Lock()
	err := s.failed[source.Name()]
	s.mu.Unlock()
	if err != nil {
		return err
	}
	err = source.Status().LastError
	if isUnknownKind(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return err
	}
	return nil
}

// isUnknownKind tells whether the API server does not serve the kind of a source.
func isUnknownKind(err error) bool {
	return err != nil && (meta.IsNoMatchError(err) || apierrors.IsNotFound(err))
}

// remedy says what can be done about the failure of a source, as the end of an error.
func remedy(err error, operatorName string) string {
	var answer apierrors.APIStatus
	switch {
	case isUnknownKind(err):
		return fmt.Sprintf(": install its custom resource definition, for example with \"%s crds --apply\"", operatorName)
	case apierrors.IsForbidden(err):
		needs := fmt.Sprintf(": a plan needs the permissions that \"%s manifests --plan\" prints; --namespace limits them", operatorName)
		if advice := access.Advice(err); advice != "" {
			needs += "; " + advice
		}
		return needs
	case apierrors.IsUnauthorized(err), errors.As(err, &answer):
		return ""
	}
	return ": is the server there?"
}
