package logging

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/liblog"
)

// errForeign is that of a logger that New has not made.
var errForeign = errors.New("the logger is not one of logging.New")

// SetLevel has a logger of New, and all loggers derived from the same one, write messages of a
// level and heavier ones from now on. It may be called at any time. For the error
// framework.IsInvalidConfig holds.
func SetLevel(l micrologger.Logger, level Level) error {
	own, ok := l.(*logger)
	threshold, err := thresholdOf(level)
	if !ok || own.threshold == nil {
		err = errForeign
	}
	if err != nil {
		return fmt.Errorf("%w: set the level of the log: %w", framework.ErrInvalidConfig, err)
	}
	own.threshold.Set(threshold)
	return nil
}

// LevelOf returns the lightest level that a logger of New writes, and nothing for another logger.
func LevelOf(l micrologger.Logger) Level {
	own, ok := l.(*logger)
	if !ok || own.threshold == nil {
		return ""
	}
	if level := own.threshold.Level(); level != liblog.NoLevel {
		return Level(liblog.Word(level))
	}
	return LevelError
}

// thresholdOf returns from which level on a logger of a level writes. Messages without a level are
// always written.
func thresholdOf(level Level) (slog.Level, error) {
	threshold, known := levelOf(level)
	if !known {
		return 0, fmt.Errorf("Level must be debug, info, warning or error, is %q", level)
	}
	return min(threshold, liblog.NoLevel), nil
}

// levelOf returns the level for the value of a pair, and liblog.NoLevel if it is none.
func levelOf(value any) (level slog.Level, known bool) {
	word, _ := value.(string)
	if level, ok := value.(Level); ok {
		word = string(level)
	}
	switch word {
	case string(LevelDebug):
		return slog.LevelDebug, true
	case string(LevelInfo):
		return slog.LevelInfo, true
	case string(LevelWarning), "warn":
		return slog.LevelWarn, true
	case string(LevelError):
		return slog.LevelError, true
	}
	return liblog.NoLevel, false
}
