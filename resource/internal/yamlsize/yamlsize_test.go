package yamlsize_test

import (
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/resource/internal/yamlsize"
)

func TestAliasesCountAsWhatTheyStandFor(t *testing.T) {
	const most = 1 << 20
	long := strings.Repeat("x", 10_000)
	for name, tt := range map[string]struct {
		document string
		refused  bool
	}{
		"without aliases":       {"a: " + long, false},
		"few":                   {"a: &a " + long + "\nb: [*a, *a]", false},
		"many":                  {"a: &a " + long + "\nb: [" + strings.Repeat("*a,", 1000) + "]", true},
		"of a list":             {"a: &a [" + long + "]\nb: [" + strings.Repeat("*a,", 1000) + "]", true},
		"of a map":              {"a: &a {x: " + long + "}\nb: [" + strings.Repeat("*a,", 1000) + "]", true},
		"merged into maps":      {"a: &a {x: " + long + "}\nb: [" + strings.Repeat("{<<: *a},", 1000) + "]", true},
		"as keys":               {"a: &a " + long[:1000] + "\nb: [" + strings.Repeat("{*a : 1},", 2000) + "]", true},
		"in another document":   {"a: 1\n---\na: &a " + long + "\nb: [" + strings.Repeat("*a,", 1000) + "]", true},
		"in a stream":           {"a: 1\n--- &a " + long + "\n---  # more\n" + "a: &a " + long + "\nb: [" + strings.Repeat("*a,", 1000) + "]", true},
		"behind an unread part": {"a: 1\n...\nx\n---\na: &a " + long + "\nb: [" + strings.Repeat("*a,", 1000) + "]", true},
		"what can't be read":    {"a: [*b, &", false},
		"nothing but the signs": {"a: 'x && y * z'", false},
	} {
		if _, err := yamlsize.Of([]byte(tt.document), most); (err != nil) != tt.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
