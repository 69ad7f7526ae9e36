package logging

import (
	"errors"
	"fmt"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
)

// errForeign is that of a logger that New has not made.
var errForeign = errors.New("the logger is not one of logging.New")

// SetLevel has a logger of New, and all loggers that derive from the same one, write messages of a level and heavier ones from now on. It may be
// called at any time. For the error framework.IsInvalidConfig holds.
func SetLevel(logger micrologger.Logger, level Level) error {
	f, ok := logger.(*filtered)
	threshold, err := thresholdOf(level)
	if !ok {
		err = errForeign
	}
	if err != nil {
		return fmt.Errorf("%w: set the level of the log: %w", framework.ErrInvalidConfig, err)
	}
	f.threshold.Store(int32(threshold))
	return nil
}

// LevelOf returns the lightest level that a logger of New writes, and nothing for another logger.
func LevelOf(logger micrologger.Logger) Level {
	if f, ok := logger.(*filtered); ok {
		return Level(severity(f.threshold.Load()).level())
	}
	return ""
}
