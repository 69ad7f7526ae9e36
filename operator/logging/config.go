package logging

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/giantswarm/micrologger"
	"golang.org/x/term"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/liblog"
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
	to := &stream{threshold: &slog.LevelVar{}, sampler: &sampler{counts: map[repeated]*count{}}}
	to.threshold.Set(threshold)
	to.enabled = func(level slog.Level) bool { return level >= to.threshold.Level() }
	switch config.Format {
	case FormatText:
		to.write = newTextOutput(config.Writer).write
	case FormatJSON:
		to.write = slog.NewJSONHandler(config.Writer, &slog.HandlerOptions{
			AddSource: true, Level: slog.LevelDebug, ReplaceAttr: jsonAttr,
		}).Handle
	default:
		return nil, fmt.Errorf("%w: logging.Config: Format must be json or text, is %q", framework.ErrInvalidConfig,
			config.Format)
	}
	return &logger{stream: to, preset: liblog.NoLevel}, nil
}

// colourful reports whether to colour what is written to w.
func colourful(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))
}
