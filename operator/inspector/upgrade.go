package inspector

import "github.com/operatorkit/operatorkit/operator/internal/upgrade"

// LimitBy shows the upgrade of the operator on the page. It is called before the page is served.
func (i *Inspector) LimitBy(c *upgrade.Controller) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.upgrades = c
}

// upgrade returns the upgrade that is under way, or nil.
func (i *Inspector) upgrade() *upgrade.View {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.upgrades == nil {
		return nil
	}
	return i.upgrades.View()
}

// barPart is a part of the bar of an upgrade. Its place and its width are in hundredths.
type barPart struct {
	Name, Label string
	Objects     int
	At, Width   float64
}

func barOf(u *upgrade.View) []barPart {
	total, changing := u.Total(), len(u.Places)
	parts := []barPart{
		{Name: "done", Label: "as the new build wants", Objects: max(total.Objects-changing-total.Held-total.Unseen, 0)},
		{Name: "changing", Label: "changed, not ready yet", Objects: changing},
		{Name: "held", Label: "held", Objects: total.Held},
		{Name: "unseen", Label: "not reconciled yet", Objects: total.Unseen},
	}
	at := 0.0
	for i := range parts {
		parts[i].At, parts[i].Width = at, min(float64(parts[i].Objects)*100/float64(max(total.Objects, 1)), 100-at)
		at += parts[i].Width
	}
	return parts
}
