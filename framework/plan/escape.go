package plan

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Escape makes a text safe for a terminal. It writes characters that could move the cursor, change
// colours or turn the direction of writing as \u and their number, and a line break as \n.
func Escape(text string) string {
	if isHarmless(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n':
			b.WriteString(`\n`)
		case harmless(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func isHarmless(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !harmless(r) }) < 0
}

func harmless(r rune) bool { return strconv.IsPrint(r) || r == '\t' }
