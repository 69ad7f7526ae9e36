package api

import "fmt"

// Hidden is a text that must not be shown, such as a password. It prints as "(hidden)".
type Hidden string

const hidden = "(hidden)"

// String returns "(hidden)".
func (Hidden) String() string { return hidden }

// GoString returns "(hidden)".
func (Hidden) GoString() string { return hidden }

// Format writes "(hidden)", whatever the verb.
func (Hidden) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(hidden)) }
