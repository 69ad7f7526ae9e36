package secretscontext

import (
	"strings"
	"unicode/utf8"
)

// dictionary finds values in texts.
type dictionary struct {
	open [2]string
	// first tells with which bytes words begin, and words are filed by their first MinLength bytes.
	first [256]bool
	words map[[MinLength]byte][]string
	known map[string]bool
}

func newDictionary(open [2]string) *dictionary {
	return &dictionary{open: open, words: map[[MinLength]byte][]string{}, known: map[string]bool{}}
}

// learn adds values and their parts.
func (d *dictionary) learn(values []string) {
	for _, value := range values {
		for _, part := range parts(strings.TrimSpace(value)) {
			d.put(part)
		}
	}
}

func (d *dictionary) put(word string) {
	if len(word) < MinLength || d.known[word] || strings.Contains(d.open[0], word) || strings.Contains(d.open[1], word) {
		return
	}
	d.known[word] = true
	d.first[word[0]] = true
	key := [MinLength]byte([]byte(word[:MinLength]))
	d.words[key] = append(d.words[key], word)
}

// scrub returns a text with Redacted in place of the words, in whatever form they are there.
func (d *dictionary) scrub(text string) string {
	var hidden []bool
	views(text, func(v view) {
		d.find(v, text, func(start, end int) {
			if hidden == nil {
				hidden = make([]bool, len(text))
			}
			from, to := v.place(start, end)
			for i := from; i < to; i++ {
				hidden[i] = true
			}
		})
	})
	if hidden == nil {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		padding := i > 0 && hidden[i-1] && text[i] == '='
		hidden[i] = hidden[i] || padding
		switch {
		case !hidden[i]:
			b.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			b.WriteString(Redacted)
		}
	}
	return b.String()
}

// find calls found with the place of each word in a view of a text, and of the beginning of one where the text was cut.
func (d *dictionary) find(v view, text string, found func(start, end int)) {
	for i := 0; i+MinLength <= len(v.text); i++ {
		if !d.first[v.text[i]] {
			continue
		}
		for _, word := range d.words[[MinLength]byte(v.text[i:i+MinLength])] {
			end := i + MinLength
			for end < len(v.text) && end-i < len(word) && v.text[end] == word[end-i] {
				end++
			}
			if _, to := v.place(i, end); end-i == len(word) || isCut(text[to:]) {
				found(i, end)
			}
		}
	}
}

// ellipsis stands where a text was cut.
const ellipsis = "…"

// isCut tells whether a text begins where one was cut: up to three letters before it may be too few to stand for a byte.
func isCut(text string) bool {
	place := strings.Index(text[:min(len(text), 3+len(ellipsis))], ellipsis)
	return place == 0 || place > 0 && strings.IndexFunc(text[:place], func(r rune) bool { return r >= utf8.RuneSelf || !isBase64(byte(r)) }) < 0
}
