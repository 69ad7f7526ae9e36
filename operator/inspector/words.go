package inspector

import (
	"strings"
	"unicode/utf8"
)

// byFrequency are the characters of English texts and of names, the most frequent first.
const byFrequency = "etaoinsr-hldcumfpgw./:0123456789ybvkxjqz"

// word is one that is searched for: a text has it if it is in there in small or capital letters.
type word struct {
	// small is the word in small letters.
	small string
	// forms are the small and the capital form of its rarest character, which is at place. There are none if not all are ASCII.
	forms []byte
	place int
}

func newWord(text string) word {
	w := word{small: strings.ToLower(text)}
	rarest := -1
	for place := range len(w.small) {
		c := w.small[place]
		if c >= utf8.RuneSelf {
			w.forms = nil
			return w
		}
		if at := strings.IndexByte(byFrequency, c); at > rarest {
			rarest, w.place, w.forms = at, place, []byte{c}
			if 'a' <= c && c <= 'z' {
				w.forms = append(w.forms, c-('a'-'A'))
			}
		}
	}
	return w
}

// in tells whether the text has the word. It looks for the rarest character, which the processor finds in many bytes at once, and copies
// nothing unless there is no such character.
func (w word) in(text string) bool {
	if len(w.forms) == 0 {
		return strings.Contains(strings.ToLower(text), w.small)
	}
	end := len(text) - len(w.small) + w.place + 1
	for _, form := range w.forms {
		for from := w.place; from < end; {
			at := strings.IndexByte(text[from:end], form)
			if at < 0 {
				break
			}
			start := from + at - w.place
			if strings.EqualFold(text[start:start+len(w.small)], w.small) {
				return true
			}
			from += at + 1
		}
	}
	return false
}
