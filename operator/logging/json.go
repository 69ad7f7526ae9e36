package logging

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/giantswarm/microerror"

	"github.com/operatorkit/operatorkit/internal/liblog"
)

// jsonAttr gives slog's own attributes the names and the values that micrologger's have.
func jsonAttr(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case time.Time:
		return slog.Time(a.Key, v.UTC())
	case slog.Level:
		switch {
		case a.Key != slog.LevelKey:
			return a
		case v == liblog.NoLevel:
			return slog.Attr{}
		}
		return slog.String(keyLevel, liblog.Word(v))
	case *slog.Source:

		return slog.String(keyCaller, fmt.Sprintf("%s/%s:%d", packageOf(v.Function), filepath.Base(v.File), v.Line))
	case failure:
		return slog.Any(keyStack, json.RawMessage(microerror.JSON(v.error)))
	case string:
		switch {
		case a.Key == slog.MessageKey && v == "":
			return slog.Attr{}
		case a.Key == slog.MessageKey:
			return slog.String(keyMessage, v)
		case a.Key == keyStack && strings.HasPrefix(v, "{") && json.Valid([]byte(v)): // One of microerror.
			return slog.Any(keyStack, json.RawMessage(v))
		}
	}
	return a
}

// packageOf returns the import path in the full name of a function.
func packageOf(function string) string {
	end := strings.LastIndex(function, "/") + 1
	if point := strings.Index(function[end:], "."); point >= 0 {
		end += point
	}
	return function[:end]
}
