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
	from, to []int
}

// place is where in the text itself the bytes from start to end come from.
func (v view) place(start, end int) (from, to int) {
	if v.from == nil {
		return start, end
	}
	return v.from[start], v.to[end-1]
}

// put appends a byte that stands in bytes from start to end of source.
func (v *view) put(source view, b byte, start, end int) {
	from, to := source.place(start, end)
	v.text, v.from, v.to = append(v.text, b), append(v.from, from), append(v.to, to)
}

// viewsOf returns all ways in which a text can be read. A quotation may have been quoted once more.
func viewsOf(text string) []view {
	plain := view{text: []byte(text)}
	views := []view{plain}
	for v, ok := unquoted(plain); ok && len(views) < 4; v, ok = unquoted(v) {
		views = append(views, v)
	}
	for _, v := range views {
		if bytes.IndexByte(v.text, '%') >= 0 {
			views = append(views, unescapedURL(v, '+'))
		}
		if bytes.IndexByte(v.text, '+') >= 0 {
			views = append(views, unescapedURL(v, ' '))
		}
	}
	all := views
	for _, v := range views {
		all = append(all, lists(v)...)
		all = append(all, runs(v, isHex, 2*MinLength, hexAt)...)
		all = append(all, runs(v, isBase64, (4*MinLength+2)/3, base64At)...)
	}
	return all
}

// unquoted reads the escapes of Go and JSON.
func unquoted(source view) (view, bool) {
	if bytes.IndexByte(source.text, '\\') < 0 {
		return view{}, false
	}
	var v view
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
func unescapedURL(source view, plus byte) view {
	var v view
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
	return v
}

// lists reads lists of bytes, such as [104 117] and 0x68, 0x75.
func lists(source view) []view {
	var all []view
	var v view
	flush := func() {
		if len(v.text) >= MinLength {
			all = append(all, v)
		}
		v = view{}
	}
	for i := 0; i < len(source.text); {
		end := i
		for end < len(source.text) && (isHex(source.text[end]) || source.text[end] == 'x') {
			end++
		}
		n, err := strconv.ParseUint(string(source.text[i:min(end, i+5)]), 0, 8)
		if end == i || end-i > 4 || err != nil {
			flush()
			i = max(end, i+1)
			continue
		}
		v.put(source, byte(n), i, end)
		i = end
		if i < len(source.text) && source.text[i] == ',' {
			i++
		}
		if i < len(source.text) && source.text[i] == ' ' {
			i++
		}
	}
	flush()
	return all
}

// runs reads the sequences of at least that many letters of an alphabet, beginning at each place at which a code may begin.
func runs(source view, belongs func(byte) bool, least int, decode func(source view, start, end int) view) []view {
	var all []view
	for i := 0; i < len(source.text); i++ {
		start := i
		for i < len(source.text) && belongs(source.text[i]) {
			i++
		}
		for shift := range 4 {
			if i-start-shift >= least {
				all = append(all, decode(source, start+shift, i))
			}
		}
	}
	return all
}

// hexAt reads hexadecimal.
func hexAt(source view, start, end int) view {
	var v view
	for i := start; i+1 < end; i += 2 {
		v.put(source, 16*hexValue(source.text[i])+hexValue(source.text[i+1]), i, i+2)
	}
	return v
}

// base64At reads base64, standard or for URLs, up to its padding.
func base64At(source view, start, end int) view {
	var v view
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
	return v
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
