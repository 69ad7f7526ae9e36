package secretscontext

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// view is a text, or what a part of it stands for.
type view struct {
	text []byte
	// from and to say from which bytes of the text itself each byte comes; nil for the text itself.
	from, to []int32
}

// place is where in the text itself the bytes from start to end come from.
func (v view) place(start, end int) (from, to int) {
	if v.from == nil {
		return start, end
	}
	return int(v.from[start]), int(v.to[end-1])
}

// put appends a byte that stands in bytes from start to end of source.
func (v *view) put(source view, b byte, start, end int) {
	from, to := source.place(start, end)
	v.text, v.from, v.to = append(v.text, b), append(v.from, int32(from)), append(v.to, int32(to))
}

// empty makes room for that many bytes.
func (v *view) empty(size int) {
	if cap(v.text) < size {
		*v = view{make([]byte, 0, size), make([]int32, 0, size), make([]int32, 0, size)}
	}
	v.text, v.from, v.to = v.text[:0], v.from[:0], v.to[:0]
}

// reading goes through the views of one text, and has memory for two of them beside that from which they are made: a view takes nine times
// the text that it shows, and there may be a hundred.
type reading struct {
	url, code view
	found     func(view)
}

// views calls found with all ways in which a text can be read, one after the other. A view is gone when found returns. A quotation may have
// been quoted once more.
func views(text string, found func(view)) {
	r := reading{found: found}
	v, ok := view{text: []byte(text)}, true
	for n := 0; ok && n < 4; n++ {
		r.all(v)
		if bytes.IndexByte(v.text, '%') >= 0 {
			r.all(r.unescapedURL(v, '+'))
		}
		if bytes.IndexByte(v.text, '+') >= 0 {
			r.all(r.unescapedURL(v, ' '))
		}
		v, ok = unquoted(v)
	}
}

// all finds a view and the codes in it.
func (r *reading) all(v view) {
	r.found(v)
	r.lists(v)
	r.runs(v, isHex, 2*MinLength, hexAt)
	r.runs(v, isBase64, (4*MinLength+2)/3, base64At)
}

// unquoted reads the escapes of Go and JSON.
func unquoted(source view) (view, bool) {
	if bytes.IndexByte(source.text, '\\') < 0 {
		return view{}, false
	}
	var v view
	v.empty(len(source.text))
	text := string(source.text)
	for i := 0; i < len(text); {
		if text[i] != '\\' || i+1 == len(text) {
			v.put(source, text[i], i, i+1)
			i++
			continue
		}
		if c := text[i+1]; c == '"' || c == '\'' || c == '/' || c == '\\' {
			v.put(source, c, i, i+2)
			i += 2
			continue
		}
		r, multibyte, rest, err := strconv.UnquoteChar(text[i:], 0)
		if err != nil {
			v.put(source, text[i], i, i+1)
			i++
			continue
		}
		end := len(text) - len(rest)
		encoded := []byte{byte(r)}
		if multibyte {
			encoded = utf8.AppendRune(nil, r)
		}
		for _, b := range encoded {
			v.put(source, b, i, end)
		}
		i = end
	}
	return v, true
}

// unescapedURL reads the escapes of URLs, in which a plus is one only in paths.
func (r *reading) unescapedURL(source view, plus byte) view {
	v := &r.url
	v.empty(len(source.text))
	for i := 0; i < len(source.text); i++ {
		if source.text[i] == '%' && i+2 < len(source.text) && isHex(source.text[i+1]) && isHex(source.text[i+2]) {
			v.put(source, 16*hexValue(source.text[i+1])+hexValue(source.text[i+2]), i, i+3)
			i += 2
			continue
		}
		if source.text[i] == '+' {
			v.put(source, plus, i, i+1)
			continue
		}
		v.put(source, source.text[i], i, i+1)
	}
	return *v
}

// lists finds lists of bytes, such as [104 117] and 0x68, 0x75.
func (r *reading) lists(source view) {
	v := &r.code
	v.empty(0)
	flush := func() {
		if len(v.text) >= MinLength {
			r.found(*v)
		}
		v.empty(0)
	}
	for i := 0; i < len(source.text); {
		end := i
		for end < len(source.text) && (isHex(source.text[end]) || source.text[end] == 'x') {
			end++
		}
		b, ok := listed(source.text[i:end])
		if !ok {
			flush()
			i = max(end, i+1)
			continue
		}
		v.put(source, b, i, end)
		i = end
		if i < len(source.text) && source.text[i] == ',' {
			i++
		}
		if i < len(source.text) && source.text[i] == ' ' {
			i++
		}
	}
	flush()
}

// listed returns the byte for which a number stands.
func listed(number []byte) (b byte, ok bool) {
	digits, base := number, 10
	if rest, ok := bytes.CutPrefix(number, []byte("0x")); ok {
		digits, base = rest, 16
	}
	if len(digits) == 0 || len(digits) > 3 {
		return 0, false
	}
	n := 0
	for _, c := range digits {
		if !isHex(c) || base == 10 && c > '9' {
			return 0, false
		}
		n = n*base + int(hexValue(c))
	}
	return byte(n), n <= 0xff
}

// runs finds the sequences of at least that many letters of an alphabet, beginning at each place at which a code may begin.
func (r *reading) runs(source view, belongs func(byte) bool, least int, decode func(into *view, source view, start, end int)) {
	for i := 0; i < len(source.text); i++ {
		start := i
		for i < len(source.text) && belongs(source.text[i]) {
			i++
		}
		for shift := range 4 {
			if i-start-shift >= least {
				r.code.empty(i - start)
				decode(&r.code, source, start+shift, i)
				r.found(r.code)
			}
		}
	}
}

// hexAt reads hexadecimal.
func hexAt(v *view, source view, start, end int) {
	for i := start; i+1 < end; i += 2 {
		v.put(source, 16*hexValue(source.text[i])+hexValue(source.text[i+1]), i, i+2)
	}
}

// base64At reads base64, standard or for URLs, up to its padding.
func base64At(v *view, source view, start, end int) {
	for i := start; i+1 < end; i++ {
		a, b := base64Value(source.text[i]), base64Value(source.text[i+1])
		switch (i - start) % 4 {
		case 0:
			v.put(source, a<<2|b>>4, i, i+2)
		case 1:
			v.put(source, a<<4|b>>2, i, i+2)
		case 2:
			v.put(source, a<<6|b, i, i+2)
		}
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func hexValue(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}

func isBase64(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '+' || c == '/' || c == '-' || c == '_'
}

func base64Value(c byte) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return c - 'A'
	case 'a' <= c && c <= 'z':
		return c - 'a' + 26
	case '0' <= c && c <= '9':
		return c - '0' + 52
	case c == '+' || c == '-':
		return 62
	}
	return 63
}
