package logging

// severity orders the levels.
type severity int8

const (
	debug severity = iota
	info
	warning
	failure
	// unknown is the severity of a message that does not tell, or that tells something else. It passes every threshold.
	unknown
)

func severityOf(level string) severity {
	switch level {
	case string(LevelDebug):
		return debug
	case string(LevelInfo):
		return info
	case string(LevelWarning), "warn":
		return warning
	case string(LevelError):
		return failure
	}
	return unknown
}

// level is the word for a severity in the stream.
func (s severity) level() string {
	switch s {
	case debug:
		return string(LevelDebug)
	case info:
		return string(LevelInfo)
	case warning:
		return string(LevelWarning)
	case failure:
		return string(LevelError)
	}
	return ""
}

// presetOr returns the severity that the key-value pairs set, or the given one when they set none.
func presetOr(preset severity, keyVals []any) severity {
	for i := 1; i < len(keyVals); i += 2 {
		if keyVals[i-1] != keyLevel {
			continue
		}
		switch level := keyVals[i].(type) {
		case string:
			return severityOf(level)
		case Level:
			return severityOf(string(level))
		}
		return unknown
	}
	return preset
}
