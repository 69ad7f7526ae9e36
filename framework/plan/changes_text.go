package plan

import "io"

// WriteChangesText writes changes, one below the other, as WriteText writes the changes of a
// resource.
func WriteChangesText(w io.Writer, changes []Change, options TextOptions) error {
	p := newPrinter(options)
	for _, c := range changes {
		p.change(c)
	}
	_, err := w.Write(p.out.Bytes())
	return err
}
