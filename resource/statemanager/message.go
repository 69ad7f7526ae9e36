package statemanager

import (
	"strings"

	"github.com/operatorkit/operatorkit/internal/cut"
)

// MaxMessage is how long a message in a status is at most, in bytes.
const MaxMessage = 2048

// FirstLine returns the first line of a text that says something, of MaxMessage bytes at most. A line that ends with a colon says it
// together with the next one, as Helm's errors do.
func FirstLine(text string) string {
	var first []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		first = append(first, line)
		if !strings.HasSuffix(line, ":") {
			break
		}
	}
	return cut.Text(strings.Join(first, " "), MaxMessage)
}
