package helm

// Kept returns how many bytes are kept of revisions, and of their contents.
func (c *Carrier) Kept() (revisions, contents int) { return c.revisions.Bytes(), c.contents.Bytes() }
