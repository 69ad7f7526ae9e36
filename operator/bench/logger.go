package main

import (
	"io"

	"github.com/giantswarm/micrologger"
	"github.com/go-logr/logr"
	"k8s.io/klog/v2/textlogger"

	"github.com/operatorkit/operatorkit/operator/logging"
)

// Both frameworks log as in production, at level info, to nowhere: what they do for messages, written or not, is a part
// of what they cost.

func controllerRuntimeLogger() logr.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard)))
}

func operatorKitLogger() (micrologger.Logger, error) {
	return logging.New(logging.Config{Writer: io.Discard, Level: logging.LevelInfo})
}
