package framework

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
)

// tree yields an error and all errors that it wraps, the outermost first.
func tree(err error) iter.Seq[error] {
	return func(yield func(error) bool) { climb(err, yield) }
}

func climb(err error, yield func(error) bool) bool {
	if err == nil {
		return true
	}
	if !yield(err) {
		return false
	}
	below, _ := unwrap(err)
	for _, e := range below {
		if !climb(e, yield) {
			return false
		}
	}
	return true
}

// consistsOf reports whether something holds for an error, for an error that it wraps, or, of several
// joined errors, for all of them.
func consistsOf(err error, holds func(error) bool) bool {
	if err == nil || holds(err) {
		return err != nil
	}
	below, joined := unwrap(err)
	if !joined {
		return slices.ContainsFunc(below, func(e error) bool { return consistsOf(e, holds) })
	}
	return len(below) > 0 && !slices.ContainsFunc(below, func(e error) bool { return !consistsOf(e, holds) })
}

// several is the type that fmt.Errorf returns for more than one %w. It is one error with several
// names, not several errors.
var several = reflect.TypeOf(fmt.Errorf("%w %w", errors.ErrUnsupported, errors.ErrUnsupported))

// unwrap returns the errors that an error wraps directly, and whether they happened independently.
func unwrap(err error) (below []error, joined bool) {
	switch e := err.(type) { //nolint:errorlint // this is the way down
	case *partialError:
		return e.errs, true
	case interface{ Unwrap() []error }:
		return e.Unwrap(), reflect.TypeOf(err) != several
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return []error{inner}, false
		}
	}
	return nil, false
}
