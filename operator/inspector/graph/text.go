package graph

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// The measures of a node, in pixels.
const (
	minNodeWidth = 132.0
	maxNodeWidth = 248.0
	// textX is where texts begin, and textEnd how far from the right side they end.
	textX, textEnd = 34.0, 12.0
	// padding is above and below the texts.
	padding                            = 9.0
	labelLine, versionsLine, groupLine = 18.0, 16.0, 15.0
	// The sizes of the fonts are those of the style sheet; that of the labels is bold and so wider.
	labelFont, versionsFont, groupFont = 13.0 * 1.1, 12.0, 11.0
)

// size says how large all nodes of a picture are, and which lines they have.
type size struct {
	nodeWidth, nodeHeight float64
	hasVersions, hasGroup bool
}

func sizeOf(nodes []Node) size {
	s := size{nodeWidth: minNodeWidth, nodeHeight: 2*padding + labelLine}
	for i := range nodes {
		node := &nodes[i]
		s.hasVersions = s.hasVersions || len(node.Versions) > 0
		s.hasGroup = s.hasGroup || node.Group != ""
		widest := max(widthOf(clean(node.Label), labelFont), widthOf(arrows(node.Versions), versionsFont),
			widthOf(clean(node.Group), groupFont))
		s.nodeWidth = max(s.nodeWidth, min(textX+widest+textEnd, maxNodeWidth))
	}
	if s.hasVersions {
		s.nodeHeight += versionsLine
	}
	if s.hasGroup {
		s.nodeHeight += groupLine
	}
	s.nodeWidth = 4 * math.Ceil(s.nodeWidth/4)
	return s
}

// clean makes characters that have no shape, or change that of others, into their numbers.
func clean(text string) string { return plan.Escape(text) }

// arrow is between versions.
const arrow = " → "

// arrows writes versions in their order, of which those that are the same and next to each other stand once.
func arrows(versions []string) string {
	shown := make([]string, len(versions))
	for i, v := range versions {
		shown[i] = clean(v)
	}
	return strings.Join(slices.Compact(shown), arrow)
}

// fitVersions writes versions so that they take a width at most. The first and the last are what matters most.
func fitVersions(versions []string, width float64) string {
	text := arrows(versions)
	if n := len(versions); n > 2 && widthOf(text, versionsFont) > width {
		text = clean(versions[0]) + arrow + "…" + arrow + clean(versions[n-1])
	}
	return fit(text, versionsFont, width)
}

// fit cuts a text so that it takes a width at most.
func fit(text string, font, width float64) string {
	if widthOf(text, font) <= width {
		return text
	}
	width -= widthOf("…", font)
	taken := 0.0
	for i, r := range text {
		if taken += widthOfRune(r) * font; taken > width {
			return strings.TrimRight(text[:i], " ") + "…"
		}
	}
	return text
}

// widthOf returns about how wide a text is, rather too wide: which font draws it is not known.
func widthOf(text string, font float64) float64 {
	if len(text) > maxMeasured {
		return maxNodeWidth + 1
	}
	sum := 0.0
	for _, r := range text {
		sum += widthOfRune(r)
	}
	return sum * font
}

// maxMeasured is how many bytes a text has at most that fits into a node.
const maxMeasured = 1000

// widthOfRune returns about how wide a character is, in sizes of its font.
func widthOfRune(r rune) float64 {
	switch {
	case r >= 0x1100 && utf8.RuneLen(r) > 2 && r != '…' && r != '→':
		return 1.05
	case strings.ContainsRune("iljI.,:;'|! ", r):
		return 0.34
	case strings.ContainsRune("frt-()[]/\\\"", r):
		return 0.43
	case strings.ContainsRune("mwMW@%", r):
		return 0.96
	case r >= 'A' && r <= 'Z', r == '…', r == '→', r > 0x7F:
		return 0.78
	}
	return 0.63
}
