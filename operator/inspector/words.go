package inspector

import "strings"

// word is one that is searched for, in small letters: a text has it if it is in there in small or capital letters.
type word string

func newWord(text string) word { return word(strings.ToLower(text)) }

// in tells whether the text has the word.
func (w word) in(text string) bool { return strings.Contains(strings.ToLower(text), string(w)) }
