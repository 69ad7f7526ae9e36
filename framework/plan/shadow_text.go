package plan

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteShadowText writes comparisons for people. It writes the differences in the form of
// WriteText, and then for each shadow set a line such as "v2 would change 3 of 214 objects" with
// the places where it differs. The guarantees of WriteText hold here too.
func WriteShadowText(w io.Writer, comparisons []*Comparison, options TextOptions) error {
	p := newPrinter(options)
	for _, c := range comparisons {
		if c.Verdict() != Agrees || len(c.Opaque) > 0 {
			p.comparison(c)
			p.blank()
		}
	}
	for _, s := range Summarize(comparisons) {
		p.summary(s)
	}
	_, err := w.Write(p.out.Bytes())
	return err
}

func (p *printer) comparison(c *Comparison) {
	about := string(c.Event)
	if c.Framework != "" {
		about += ", framework " + c.Framework
	}
	p.line(0, bold, Escape(fmt.Sprintf("%s (%s): %s beside %s", c.Object, about, c.Shadow, c.active())))
	if c.Error != "" {
		p.line(1, red, "can't be compared: "+Escape(c.Error))
	}
	before := ""
	for _, d := range c.Differences {
		switch {
		case d.Active == nil:
			before = p.side(before, d.Resource+", only "+c.Shadow, d.Shadow)
		case d.Shadow == nil:
			before = p.side(before, d.Resource+", only "+c.active(), d.Active)
		default:
			before = p.side(before, d.Resource+", "+c.active(), d.Active)
			before = p.side(before, d.Resource+", "+c.Shadow, d.Shadow)
		}
	}
	for _, name := range c.Opaque {
		p.line(1, regular, Escape(name))
		p.line(2, yellow, "? can't tell what it would change")
	}
}

// side writes the change by one of the sets. It writes the heading only if it differs from before.
func (p *printer) side(before, heading string, c *Change) string {
	if heading != before {
		p.line(1, regular, Escape(heading))
	}
	p.change(*c)
	return heading
}

// active returns the name of the active resource set.
func (c *Comparison) active() string {
	if c.Active == "" {
		return "the active set"
	}
	return c.Active
}

func (p *printer) summary(s ShadowSummary) {
	p.line(0, bold, Escape(s.String()))
	for _, place := range s.Places {
		text := fmt.Sprintf("%s: %s (resource %s)", objectCount(place.Objects), place.Place, place.Resource)
		p.line(1, regular, Escape(text))
	}
	if s.OtherPlaces > 0 {
		p.line(1, faint, fmt.Sprintf("… and %d other places", s.OtherPlaces))
	}
}

// WriteShadowJSON writes comparisons and their summaries as JSON, in the form in the package
// documentation. Nothing is cut, and values of Secrets are not in it.
func WriteShadowJSON(w io.Writer, comparisons []*Comparison) error {
	if comparisons == nil {
		comparisons = []*Comparison{}
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Version     int             `json:"version"`
		Comparisons []*Comparison   `json:"comparisons"`
		Shadows     []ShadowSummary `json:"shadows"`
	}{Version, comparisons, Summarize(comparisons)})
}
