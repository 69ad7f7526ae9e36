package logging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/giantswarm/micrologger"
	"github.com/giantswarm/micrologger/loggermeta"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/logging"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLogger(t testing.TB, w io.Writer, format logging.Format, level logging.Level) micrologger.Logger {
	t.Helper()
	logger, err := logging.New(logging.Config{Writer: w, Format: format, Level: level})
	if err != nil {
		t.Fatal(err)
	}
	return logger
}

func TestBadConfigurationNamesTheFieldAndTheChoices(t *testing.T) {
	tests := []struct {
		name   string
		config logging.Config
		want   string
	}{
		{"level", logging.Config{Level: "loud"}, `invalid config: logging.Config: Level must be debug, info, warning or error, is "loud"`},
		{"format", logging.Config{Format: "xml"}, `invalid config: logging.Config: Format must be json or text, is "xml"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := logging.New(tt.config)
			if !framework.IsInvalidConfig(err) {
				t.Fatalf("IsInvalidConfig(%v) = false", err)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// R14: a logger knows what is secret by the context of a message.
func TestR14NoSecretOfTheContextIsLogged(t *testing.T) {
	const value = "hunter2-and-more"
	ctx := secretscontext.NewContext(t.Context())
	secretscontext.Add(ctx, value)
	for _, format := range []logging.Format{logging.FormatJSON, logging.FormatText} {
		var b bytes.Buffer
		logger := newLogger(t, &b, format, logging.LevelDebug)
		logger.Debug(ctx, value)
		logger.Debugf(ctx, "use %s", value)
		logger.Error(ctx, fmt.Errorf("use: %w", errors.New(value)), value)
		logger.Errorf(ctx, errors.New(value), "use %s", value)
		logger.LogCtx(ctx, "level", "info", "message", value, "error", errors.New(value), "data", map[string][]byte{"password": []byte(value)})
		pointed := value
		logger.LogCtx(ctx, "level", "info", "message", "pointers", "token", &pointed, "config", struct{ Password *string }{&pointed})
		derived := logger.With("dsn", value, "open", "kept")
		derived.WithIncreasedCallerDepth().With("more", 1).Debug(ctx, "derived")
		derived.LogCtx(ctx, "level", "info", "message", "derived too")
		if shown := b.String(); strings.Contains(shown, value) || strings.Contains(shown, "aHVudGVyMi1hbmQtbW9yZ") ||
			strings.Count(shown, "(sensitive)") < 9 || strings.Count(shown, "kept") != 2 {
			t.Errorf("%s: it is in the log, or messages are missing:\n%s", format, shown)
		}
	}
}

// logAtEveryLevel writes one message in every way there is.
func logAtEveryLevel(logger micrologger.Logger) {
	ctx := context.Background()
	logger.Debug(ctx, "debug")
	logger.Debugf(ctx, "%s", "debugf")
	logger.Log("level", "debug", "message", "log debug")
	logger.Log("message", "log info", "level", "info")
	logger.LogCtx(ctx, "level", "warning", "message", "logctx warning")
	logger.With("level", "debug").Log("message", "with debug")
	logger.Error(ctx, errors.New("broken"), "error")
	logger.Errorf(ctx, errors.New("broken"), "%s", "errorf")
	logger.Log("message", "no level")
	logger.Log("level", "fatal", "message", "unknown level")
}

func TestLevelHoldsBackWhatIsLighter(t *testing.T) {
	errs := []string{"error", "errorf", "no level", "unknown level"}
	tests := map[logging.Level][]string{
		logging.LevelDebug:   append([]string{"debug", "debugf", "log debug", "log info", "logctx warning", "with debug"}, errs...),
		"":                   append([]string{"log info", "logctx warning"}, errs...), // the default is info
		logging.LevelInfo:    append([]string{"log info", "logctx warning"}, errs...),
		logging.LevelWarning: append([]string{"logctx warning"}, errs...),
		logging.LevelError:   errs,
	}
	for level, want := range tests {
		t.Run(string(level), func(t *testing.T) {
			var out bytes.Buffer
			logAtEveryLevel(newLogger(t, &out, logging.FormatJSON, level))
			var got []string
			for _, m := range messages(t, out.String()) {
				got = append(got, m["message"].(string))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func messages(t *testing.T, out string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(out) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("not JSON: %q: %v", line, err)
		}
		all = append(all, m)
	}
	return all
}

func TestTheLevelOfALoggerAndOfThoseOfItChangesAtRunTime(t *testing.T) {
	var out bytes.Buffer
	logger := newLogger(t, &out, logging.FormatText, logging.LevelWarning)
	derived := logger.With("a", "b")
	derived.Log("level", "debug", "message", "before")
	if err := logging.SetLevel(logger, logging.LevelDebug); err != nil {
		t.Fatal(err)
	}
	derived.Log("level", "debug", "message", "after")
	if got := out.String(); strings.Contains(got, "before") || !strings.Contains(got, "after") {
		t.Errorf("got %q", got)
	}
	if got := logging.LevelOf(derived); got != logging.LevelDebug {
		t.Errorf("the level is %q", got)
	}
	if err := logging.SetLevel(logger, "loud"); !framework.IsInvalidConfig(err) {
		t.Errorf("a level that there is not: got %v", err)
	}
	foreign, err := micrologger.New(micrologger.Config{IOWriter: &out})
	if err != nil {
		t.Fatal(err)
	}
	if err := logging.SetLevel(foreign, logging.LevelDebug); !framework.IsInvalidConfig(err) || logging.LevelOf(foreign) != "" {
		t.Errorf("a foreign logger: got %v", err)
	}
}

func TestHeldBackMessageAllocatesNothing(t *testing.T) {
	logger := newLogger(t, io.Discard, logging.FormatJSON, logging.LevelInfo)
	ctx := context.Background()
	pairs := []any{"level", "debug", "message", "quiet", "object", "default/home"}
	allocs := testing.AllocsPerRun(100, func() {
		logger.Debug(ctx, "quiet")
		logger.Log(pairs...)
		logger.LogCtx(ctx, pairs...)
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

func TestJSONIsTheStreamOfMicrologger(t *testing.T) {
	log := func(logger micrologger.Logger) {
		meta := loggermeta.New()
		meta.KeyVals["loop"] = "7"
		ctx := loggermeta.NewContext(context.Background(), meta)
		logger.Debug(ctx, "hello")
		logger.With("framework", "websites").LogCtx(ctx, "level", "info", "message", "done", "took", 1.5)
		logger.Errorf(ctx, errors.New("broken"), "reconcile %s", "home")
		logger.WithIncreasedCallerDepth().Log("message", "deep")
	}
	var want, got bytes.Buffer
	original, err := micrologger.New(micrologger.Config{IOWriter: &want})
	if err != nil {
		t.Fatal(err)
	}
	log(original)
	log(newLogger(t, &got, logging.FormatJSON, logging.LevelDebug))

	if diff := cmp.Diff(comparable(messages(t, want.String())), comparable(messages(t, got.String()))); diff != "" {
		t.Errorf("micrologger -, ours +\n%s", diff)
	}
}

// comparable leaves of the time and of the caller only that they are there.
func comparable(all []map[string]any) []map[string]any {
	for _, m := range all {
		for _, key := range []string{"time", "caller"} {
			if _, ok := m[key].(string); ok {
				m[key] = "some"
			}
		}
	}
	return all
}

var lineTime = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d) `)

// textLines returns what is written in text, without the times.
func textLines(out string) string { return lineTime.ReplaceAllString(out, "TIME ") }

func TestTextIsReadable(t *testing.T) {
	meta := loggermeta.New()
	meta.KeyVals["b"], meta.KeyVals["a"] = "2", "1"
	ctx := loggermeta.NewContext(context.Background(), meta)
	tests := []struct {
		name string
		log  func(micrologger.Logger)
		want string
	}{
		{"message first, pairs in order", func(l micrologger.Logger) { l.Log("z", 1, "message", "started", "level", "info", "a", true) },
			"TIME INFO    started z=1 a=true\n"},
		{"debug", func(l micrologger.Logger) { l.Debugf(context.Background(), "%d objects", 3) },
			"TIME DEBUG   3 objects\n"},
		{"error", func(l micrologger.Logger) { l.Error(context.Background(), errors.New("no such host"), "list") },
			"TIME ERROR   list error=\"no such host\"\n"},
		{"a nil error", func(l micrologger.Logger) { l.Error(context.Background(), nil, "list") },
			"TIME ERROR   list\n"},
		{"pairs of With come last, the nearest first", func(l micrologger.Logger) {
			l.With("framework", "websites").With("object", "ns/home").Log("level", "warning", "message", "slow", "seconds", 2)
		}, "TIME WARNING slow seconds=2 object=ns/home framework=websites\n"},
		{"pairs of the context are sorted", func(l micrologger.Logger) { l.LogCtx(ctx, "level", "info", "message", "m") },
			"TIME INFO    m a=1 b=2\n"},
		{"values with blanks are quoted", func(l micrologger.Logger) { l.Log("level", "info", "message", "m", "k", `say "hi"`, "empty", "") },
			"TIME INFO    m k=\"say \\\"hi\\\"\" empty=\"\"\n"},
		{"no value forges a line", func(l micrologger.Logger) { l.Log("level", "info", "message", "a\nTIME ERROR b\x1b[0m", "k", "x\ny") },
			"TIME INFO    a\\nTIME ERROR b\\x1b[0m k=\"x\\ny\"\n"},
		{"a stack stands below", func(l micrologger.Logger) {
			l.Log("level", "error", "message", "panic", "stack", "main.f()\n\tmain.go:3\n")
		},
			"TIME ERROR   panic\n\tmain.f()\n\t\tmain.go:3\n"},
		{"a missing value is told", func(l micrologger.Logger) { l.Log("message", "m", "k") },
			"TIME         m k=(MISSING)\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			tt.log(newLogger(t, &out, logging.FormatText, logging.LevelDebug))
			if diff := cmp.Diff(tt.want, textLines(out.String())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// lineWriter fails the test when a write is not exactly one line, or when two come at once.
type lineWriter struct {
	t     *testing.T
	mu    sync.Mutex
	lines int
}

func (w *lineWriter) Write(p []byte) (int, error) {
	if !w.mu.TryLock() {
		w.t.Error("two writes at once")
		return len(p), nil
	}
	defer w.mu.Unlock()
	if bytes.Count(p, []byte("\n")) != 1 || p[len(p)-1] != '\n' {
		w.t.Errorf("not a line: %q", p)
	}
	w.lines++
	return len(p), nil
}

func TestConcurrentMessagesAreWholeLines(t *testing.T) {
	for _, format := range []logging.Format{logging.FormatJSON, logging.FormatText} {
		t.Run(string(format), func(t *testing.T) {
			w := &lineWriter{t: t}
			logger := newLogger(t, w, format, logging.LevelInfo)
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					own := logger.With("worker", i)
					for j := range 50 {
						own.Log("level", "info", "message", fmt.Sprint(j))
					}
				})
			}
			all.Wait()
			if w.lines != 400 {
				t.Errorf("%d lines, want 400", w.lines)
			}
		})
	}
}
