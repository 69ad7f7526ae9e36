package logging

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/giantswarm/micrologger"
	kitlog "github.com/go-kit/log"
	"golang.org/x/term"

	"github.com/operatorkit/operatorkit/framework"
)

// Format is how a message is written.
type Format string

// The formats.
const (
	// FormatJSON is one JSON object a line, as micrologger writes it, for machines.
	FormatJSON Format = "json"
	// FormatText is time, level, message and key=value pairs on a line, for people.
	FormatText Format = "text"
)

// Level is the weight of a message.
type Level string

// The levels, lightest first.
const (
	LevelDebug   Level = "debug"
	LevelInfo    Level = "info"
	LevelWarning Level = "warning"
	LevelError   Level = "error"
)

// Config configures a logger.
type Config struct {
	// Writer receives each message in one Write, never two at once. Default: os.Stderr.
	Writer io.Writer
	// Format is how messages are written. Text is coloured when Writer is a terminal and the environment variable
	// NO_COLOR is empty (https://no-color.org). Default: FormatJSON.
	Format Format
	// Level is the lightest level that is written. Default: LevelInfo.
	Level Level
}

// New returns a logger, or an error for which framework.IsInvalidConfig holds.
func New(config Config) (micrologger.Logger, error) {
	if config.Writer == nil {
		config.Writer = os.Stderr
	}
	if config.Format == "" {
		config.Format = FormatJSON
	}
	if config.Level == "" {
		config.Level = LevelInfo
	}
	threshold, err := thresholdOf(config.Level)
	if err != nil {
		return nil, fmt.Errorf("%w: logging.Config: %w", framework.ErrInvalidConfig, err)
	}
	next, err := newFormat(config)
	if err != nil {
		return nil, err
	}
	f := &filtered{next: next, base: next, threshold: &atomic.Int32{}, preset: unknown, sampler: &sampler{}}
	f.threshold.Store(int32(threshold))
	return f, nil
}

// thresholdOf returns the severity of a level, or what is wrong with it.
func thresholdOf(level Level) (severity, error) {
	threshold := severityOf(string(level))
	if threshold == unknown {
		return threshold, fmt.Errorf("Level must be %s, is %q", oneOf(LevelDebug, LevelInfo, LevelWarning, LevelError), level)
	}
	return threshold, nil
}

func newFormat(config Config) (micrologger.Logger, error) {
	switch config.Format {
	case FormatText:
		out := &output{writer: config.Writer, colour: colourful(config.Writer)}
		return &pairLogger{write: out.write}, nil
	case FormatJSON:
		logger, err := micrologger.New(micrologger.Config{IOWriter: config.Writer, Caller: kitlog.Valuer(callerAbove(0))})
		if err != nil {
			return nil, fmt.Errorf("make the JSON logger: %w", err)
		}
		return &jsonLines{Logger: logger}, nil
	}
	return nil, fmt.Errorf("%w: logging.Config: Format must be %s, is %q", framework.ErrInvalidConfig,
		oneOf(FormatJSON, FormatText), config.Format)
}

// colourful tells whether to colour what is written to w.
func colourful(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))
}

func oneOf[S ~string](words ...S) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = string(w)
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
}
