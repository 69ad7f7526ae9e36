package target

import (
	"context"
	"time"

	"k8s.io/utils/lru"

	"github.com/operatorkit/operatorkit/context/secretscontext"
)

const (
	// warnedAgain is after how long a warning is told once more, and warningsKept of how many it is known when they were told.
	warnedAgain  = time.Hour
	warningsKept = 100
)

// warnings gives what API servers warn of, such as a version of a kind that is going to be removed, to the logger: each once an hour,
// because it comes with every request.
type warnings struct {
	cluster *Cluster
	told    *lru.Cache // times by text
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	// 299 is the only code that API servers use.
	if code != 299 || text == "" {
		return
	}
	if last, ok := w.told.Get(text); ok && time.Since(last.(time.Time)) < warnedAgain {
		return
	}
	w.told.Add(text, time.Now())
	w.cluster.clusters.config.Logger.LogCtx(ctx, "level", "warning", "message", "the API server warns: "+secretscontext.Scrub(ctx, text),
		"cluster", describe(w.cluster.key))
}
