package logging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/giantswarm/micrologger/loggermeta"
	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/operator/logging"
)

func lines(out *bytes.Buffer) []string {
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestMessagesThatAreRepeatedAreSampled(t *testing.T) {
	for name, log := range map[string]func(logger micrologger.Logger, n int){
		"Log": func(l micrologger.Logger, n int) {
			l.Log("level", "error", "message", "reconciliation failed", "object", n)
		},
		"LogCtx": func(l micrologger.Logger, n int) {
			l.LogCtx(context.Background(), "level", "error", "message", "reconciliation failed", "object", n)
		},
		"Errorf": func(l micrologger.Logger, n int) {
			l.Errorf(context.Background(), errors.New("broken"), "object %d", n)
		},
		"Debugf": func(l micrologger.Logger, n int) { l.Debugf(context.Background(), "object %d", n) },
		"With": func(l micrologger.Logger, n int) {
			l.With("object", n).Error(context.Background(), nil, "reconciliation failed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				logger := newLogger(t, &out, logging.FormatText, logging.LevelDebug)
				for n := range 1050 {
					log(logger, n)
				}
				got := lines(&out)
				if len(got) != 109 {
					t.Fatalf("%d of 1050 messages were written, want 100 and then each hundredth: 109", len(got))
				}
				for i, line := range got {
					if told := strings.Contains(line, "suppressed=99"); told != (i >= 100) {
						t.Errorf("line %d: %s", i, line)
					}
				}
				out.Reset()
				time.Sleep(time.Second)
				log(logger, 1050)
				log(logger, 1051)
				if got := lines(&out); len(got) != 2 || !strings.Contains(got[0], "suppressed=50") || strings.Contains(got[1], "suppressed") {
					t.Errorf("in the next second it wrote\n%s", out.String())
				}
			})
		})
	}
}

func TestMessagesThatDifferAreNotSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := newLogger(t, &out, logging.FormatText, logging.LevelDebug)
		for n := range 500 {
			logger.Log("level", "info", "message", fmt.Sprint("message ", n))
			logger.Log("level", "info", "n", n)
		}
		for range 60 {
			logger.Log("level", "info", "message", "twice")
			logger.Log("level", "error", "message", "twice")
		}
		if got := len(lines(&out)); got != 1120 {
			t.Errorf("%d lines, want all 1120", got)
		}
	})
}

func TestLongValuesAreCut(t *testing.T) {
	long := strings.Repeat("ä", 10_000)
	for _, format := range []logging.Format{logging.FormatText, logging.FormatJSON} {
		for name, log := range map[string]func(l micrologger.Logger){
			"a message":         func(l micrologger.Logger) { l.Log("message", long) },
			"a formatted one":   func(l micrologger.Logger) { l.Debugf(context.Background(), "%s", long) },
			"a text":            func(l micrologger.Logger) { l.Log("message", "x", "value", long) },
			"bytes":             func(l micrologger.Logger) { l.Log("message", "x", "value", []byte(long)) },
			"an error":          func(l micrologger.Logger) { l.Log("message", "x", "error", errors.New(long)) },
			"the error":         func(l micrologger.Logger) { l.Error(context.Background(), errors.New(long), "x") },
			"a list":            func(l micrologger.Logger) { l.Log("message", "x", "value", strings.Split(long, "")) },
			"one of the logger": func(l micrologger.Logger) { l.With("value", long).Log("message", "x") },
		} {
			t.Run(string(format)+" "+name, func(t *testing.T) {
				var out bytes.Buffer
				log(newLogger(t, &out, format, logging.LevelDebug))
				if got := out.String(); len(got) > 8<<10 || !strings.Contains(got, "…") {
					t.Errorf("%d bytes: %.200s", len(got), got)
				}
			})
		}
	}
	t.Run("a stack is cut later", func(t *testing.T) {
		var out bytes.Buffer
		newLogger(t, &out, logging.FormatText, logging.LevelDebug).Log("message", "x", "stack", strings.Repeat("line\n", 10_000))
		if n := out.Len(); n < 12<<10 || n > 16<<10 {
			t.Errorf("%d bytes", n)
		}
	})
}

func TestWhatAMessageSaysItselfCountsBeforeWhatItsContextCarries(t *testing.T) {
	meta := loggermeta.New()
	meta.KeyVals["object"], meta.KeyVals["loop"] = "carried", "7"
	ctx := loggermeta.NewContext(t.Context(), meta)
	for name, log := range map[string]func(l micrologger.Logger){
		"the message": func(l micrologger.Logger) { l.LogCtx(ctx, "message", "x", "object", "said") },
		"the logger":  func(l micrologger.Logger) { l.With("object", "said").LogCtx(ctx, "message", "x") },
	} {
		t.Run(name, func(t *testing.T) {
			var text, raw bytes.Buffer
			log(newLogger(t, &text, logging.FormatText, logging.LevelDebug))
			if diff := cmp.Diff("TIME         x object=said loop=7\n", textLines(text.String())); diff != "" {
				t.Error(diff)
			}
			log(newLogger(t, &raw, logging.FormatJSON, logging.LevelDebug))
			var got map[string]string
			if err := json.Unmarshal(raw.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if got["object"] != "said" || got["loop"] != "7" {
				t.Errorf("got %v", got)
			}
		})
	}
}
