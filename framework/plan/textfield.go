package plan

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// fieldIndent is the indentation of the fields of a change.
const fieldIndent = 4

// field writes the change of a field: on one line, or line by line for values of several lines.
func (p *printer) field(f FieldChange) {
	action := Update
	switch {
	case f.Old == nil:
		action = Create
	case f.New == nil:
		action = Delete
	}
	mark := marks[action]
	head := mark.text + " " + Escape(f.Path) + ":"
	if f.Sensitive {
		p.line(fieldIndent, mark.style, head+" "+f.changed())
		return
	}
	if before, after, ok := linesOf(f); ok {
		p.line(fieldIndent, mark.style, head)
		p.lines(before, after)
		return
	}
	before, after := Escape(jsonText(f.Old)), Escape(jsonText(f.New))
	switch action {
	case Create:
		p.line(fieldIndent, mark.style, head+" "+p.short(after))
	case Delete:
		p.line(fieldIndent, mark.style, head+" "+p.short(before))
	default:
		before, after = p.apart(before, after)
		p.line(fieldIndent, mark.style, head+" "+before+" -> "+after)
	}
}

// lead is the length of the common text of two long values that is shown before their first
// difference.
const lead = 20

// apart cuts two values so that the place where they differ remains visible.
func (p *printer) apart(before, after string) (string, string) {
	b, a := []rune(before), []rune(after)
	if p.options.MaxValue < 0 || max(len(b), len(a)) <= p.options.MaxValue {
		return before, after
	}
	common := 0
	for common < min(len(b), len(a)) && b[common] == a[common] {
		common++
	}
	if common <= lead {
		return p.short(before), p.short(after)
	}
	from := common - lead
	return "…" + p.short(string(b[from:])), "…" + p.short(string(a[from:]))
}

// linesOf returns the values of a field as texts, if they are texts or missing, and one of them has
// several lines.
func linesOf(f FieldChange) (before, after string, ok bool) {
	before, isText := f.Old.(string)
	if !isText && f.Old != nil {
		return "", "", false
	}
	after, isText = f.New.(string)
	if !isText && f.New != nil {
		return "", "", false
	}
	return before, after, strings.Contains(strings.TrimSuffix(before, "\n"), "\n") ||
		strings.Contains(strings.TrimSuffix(after, "\n"), "\n")
}

// lines writes the lines in which two texts differ, with a few around them.
func (p *printer) lines(before, after string) {
	shown := changedLines(before, after)
	limit := p.options.MaxLines
	if limit < 0 {
		limit = len(shown)
	}
	for i, line := range shown {
		if i == limit {
			p.line(fieldIndent+2, faint, fmt.Sprintf("… (%d more lines)", len(shown)-limit))
			return
		}
		s := faint
		switch line[0] {
		case '+':
			s = green
		case '-':
			s = red
		}
		p.line(fieldIndent+2, s, strings.TrimRight(p.short(Escape(line)), " "))
	}
}

// changedLines returns the lines in which two texts differ, each with "+ ", "- " or " " before it:
// a unified diff without its headers. A line break at the end is mentioned only if it changes.
func changedLines(before, after string) []string {
	var changed []string
	unified := string(diff.Diff("", []byte(ended(before)), "", []byte(ended(after))))
	for i, line := range strings.Split(strings.TrimSuffix(unified, "\n"), "\n") {
		switch {
		case i < 3: // the names
		case strings.HasPrefix(line, "@@"):
			if len(changed) > 0 {
				changed = append(changed, "  …")
			}
		default:
			changed = append(changed, line[:1]+" "+line[1:])
		}
	}
	switch b, a := strings.HasSuffix(before, "\n"), strings.HasSuffix(after, "\n"); {
	case before == "" || after == "" || b == a:
	case a:
		changed = append(changed, "+ (a line break at the end)")
	default:
		changed = append(changed, "- (a line break at the end)")
	}
	return changed
}

// ended returns the text with a line break at its end.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
