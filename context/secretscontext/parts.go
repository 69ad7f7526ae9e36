package secretscontext

import (
	"encoding/json"
	"regexp"
	"strings"
)

// parts returns a value, and what in it is secret by itself.
func parts(value string) []string {
	all := []string{value}
	if inner := leaves([]byte(value), true); inner != nil {
		return append(all, inner...)
	}
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if len(line) > maxLine {
			all = append(all, line)
			continue
		}
		for _, m := range password.FindAllStringSubmatch(line, -1) {
			all = append(all, m[1])
		}
		m := setting.FindStringSubmatch(line)
		switch {
		case m == nil:
			all = append(all, line)
		case !names[m[1]]:
			all = append(all, strings.Trim(m[2], `"' `))
		}
	}
	return all
}

// maxLine is how many bytes a line has at most that people have written, and in which something is looked for.
const maxLine = 8 << 10

var (
	// password is that of a URL.
	password = regexp.MustCompile(`://[^/\s:@]*:([^@\s/]+)@`)
	// setting is a line such as "token: …" or "TOKEN=…".
	setting = regexp.MustCompile(`^[-\s"']*([A-Za-z_][\w.-]*)["']?\s*[:=]\s*(.*)$`)
)

// names are the fields of a kubeconfig that say what something is called and where it is.
var names = map[string]bool{
	"apiVersion": true, "kind": true, "name": true, "namespace": true, "cluster": true, "user": true, "context": true, "current-context": true,
	"server": true,
}

// leaves returns the strings in a JSON value that is an object or a list, and nil for anything else. With skip those under names are
// left out.
func leaves(data []byte, skip bool) []string {
	if len(data) == 0 || data[0] != '{' && data[0] != '[' && (skip || data[0] != '"') {
		return nil
	}
	var value any
	if json.Unmarshal(data, &value) != nil {
		return nil
	}
	found := []string{}
	var visit func(any)
	visit = func(value any) {
		switch v := value.(type) {
		case string:
			found = append(found, v)
		case []any:
			for _, element := range v {
				visit(element)
			}
		case map[string]any:
			for name, field := range v {
				if !skip || !names[name] {
					visit(field)
				}
			}
		}
	}
	visit(value)
	return found
}
