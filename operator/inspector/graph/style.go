package graph

import (
	_ "embed"
	"strings"
)

//go:embed style.css
var style string

// Style returns the style sheet of pictures that are part of a page. It takes its colours from the custom properties
// --text, --quiet, --panel, --raised, --edge (lines that must be seen), --accent, --accent-soft, --good, --bad, --bad-soft
// and --warn.
func Style() string { return style }

// The colours of a picture that stands alone.
var (
	lightColors = strings.NewReplacer("var(--text)", "#1b2027", "var(--quiet)", "#59636f", "var(--panel)", "#ffffff", "var(--raised)", "#f0f2f5",
		"var(--edge)", "#8b95a1", "var(--accent)", "#2f5bd0", "var(--accent-soft)", "#eef3ff", "var(--good)", "#17713c", "var(--bad)", "#b3261e",
		"var(--bad-soft)", "#fbe9e7", "var(--warn)", "#865500")
	darkColors = strings.NewReplacer("var(--text)", "#e6e9ee", "var(--quiet)", "#9aa5b3", "var(--panel)", "#1c2027", "var(--raised)", "#252a33",
		"var(--edge)", "#5b6675", "var(--accent)", "#86a8ff", "var(--accent-soft)", "#222c45", "var(--good)", "#5fca8a", "var(--bad)", "#ff8f85",
		"var(--bad-soft)", "#3d2221", "var(--warn)", "#e9b95c")
)

// ownStyle is the style sheet of a picture that stands alone.
func ownStyle() string {
	return ".graph { background: #f5f6f8; }\n" + lightColors.Replace(style) +
		"@media (prefers-color-scheme: dark) {\n.graph { background: #14171c; }\n" + darkColors.Replace(style) + "}\n"
}
