// Package cut shortens texts that are too long for where they go.
package cut

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const more = "…"

// Text shortens a text to a number of bytes, between two characters. What was cut ends with "…".
func Text(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:max(0, limit-len(more))], "") + more
}

// Runes shortens a text to a number of characters, and says how many more there are.
func Runes(text string, limit int) string {
	n := utf8.RuneCountInString(text)
	if n <= limit {
		return text
	}
	return fmt.Sprintf("%s%s (%d more)", string([]rune(text)[:limit]), more, n-limit)
}
