package fetch

import (
	"errors"
	"fmt"
)

// These are the classes of errors, for errors.Is.
var (
	// ErrNotFound means that the repository answered and does not have it.
	ErrNotFound = errors.New("not found")
	// ErrUnauthorized means that credentials are missing or were refused.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrUntrusted means that the connection is not safe: the certificate of the server is not trusted, or what should be
	// encrypted is not.
	ErrUntrusted = errors.New("connection not trusted")
	// ErrDigest means that what came is not what was promised.
	ErrDigest = errors.New("digest mismatch")
	// ErrTooLarge means that a limit was reached.
	ErrTooLarge = errors.New("too large")
	// ErrInvalid means that it came and can't be used, or that the template or Secret says nothing that can be asked for.
	ErrInvalid = errors.New("invalid")
	// ErrProvenance means that the signature of a chart is missing or not by a key of the keyring.
	ErrProvenance = errors.New("not signed as asked")
	// ErrUnavailable means that there was no answer, or none that says anything about what was asked for.
	ErrUnavailable = errors.New("unavailable")
)

// Error is why something could not be fetched, in one line for people. It belongs to one of the classes above.
type Error struct {
	// What is what should have been fetched, like "chart nginx 1.2.3 of https://charts.example.com".
	What string
	// Reason is what went wrong.
	Reason string
	// Mend is what to do about it. It is empty where waiting is what to do.
	Mend string

	class     error
	permanent bool
}

// Error says what could not be fetched, why, and what to do.
func (e *Error) Error() string {
	text := fmt.Sprintf("fetch %s: %v: %s", e.What, e.class, e.Reason)
	if e.Mend != "" {
		text += ": " + e.Mend
	}
	return text
}

// Unwrap returns the class.
func (e *Error) Unwrap() error { return e.class }

// Permanent tells whether fetching again is useless until the template, its Secret or the configuration changes, or until
// somebody changes what is offered under the same name. Everything else is worth a retry with a backoff: no answer, an
// error of the server, and also what is not found, because charts are often published after the template.
func Permanent(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.permanent
}

// permanent returns an error that a retry does not mend.
func permanent(class error, mend, format string, args ...any) *Error {
	return &Error{Reason: fmt.Sprintf(format, args...), Mend: mend, class: class, permanent: true}
}

// passing returns an error that a retry may mend.
func passing(class error, mend, format string, args ...any) *Error {
	return &Error{Reason: fmt.Sprintf(format, args...), Mend: mend, class: class}
}

// tooLarge returns the error of a limit.
func tooLarge(limit, mend, format string, args ...any) *Error {
	if mend != "" {
		mend += ", or "
	}
	return permanent(ErrTooLarge, mend+"raise "+limit+" in the operator's configuration", format, args...)
}

// size writes a number of bytes for people.
func size(bytes int64) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	default:
		return fmt.Sprintf("%d bytes", bytes)
	}
}
