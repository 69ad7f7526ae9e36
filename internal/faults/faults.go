// Package faults collects what is wrong with a configuration, so that one error names all of it.
//
//	var f faults.List
//	f.If(c.Logger == nil, "Logger must not be nil")
//	for i, s := range c.Sources {
//		f.If(s == nil, "Sources[%d] must not be nil", i)
//	}
//	return f.Of("operator.Config")
package faults

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// ErrInvalidConfig is in the chain of every error about a faulty configuration. Users know it as informer.ErrInvalidConfig and
// framework.ErrInvalidConfig.
var ErrInvalidConfig = errors.New("invalid config")

// List is what is wrong. The zero value is nothing.
type List []error

// Add adds a fault, formatted as by fmt.Errorf.
func (l *List) Add(format string, args ...any) { *l = append(*l, fmt.Errorf(format, args...)) }

// If adds a fault if something is wrong.
func (l *List) If(wrong bool, format string, args ...any) {
	if wrong {
		l.Add(format, args...)
	}
}

// Of returns an error that names the configuration and each fault, and wraps ErrInvalidConfig and the faults; nil without any.
func (l List) Of(config string) error {
	if len(l) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: %w", ErrInvalidConfig, config, joined(l))
}

// joined are faults on one line.
type joined []error

// Error implements error.
func (j joined) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the faults.
func (j joined) Unwrap() []error { return j }

// IsNil tells whether a value is nil, or a pointer, map or function that is.
func IsNil(value any) bool {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Func:
		return v.IsNil()
	}
	return false
}
