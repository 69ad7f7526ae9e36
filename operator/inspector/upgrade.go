package inspector

import "time"

// Upgrade is the upgrade of the operator to another build, see operator.UpgradeConfig.
type Upgrade struct {
	From  string    `json:"from"`
	To    string    `json:"to"`
	Phase string    `json:"phase"`
	Since time.Time `json:"since"`
	// Reason says why it is halted.
	Reason string `json:"reason,omitempty"`
	// Objects is the number of objects, by the last reports of the replicas. Of these, Unseen are
	// not reconciled yet and Held wait for a place. Done have become ready after the upgrade has
	// changed them.
	Objects int `json:"objects"`
	Unseen  int `json:"unseen"`
	Held    int `json:"held"`
	Done    int `json:"done"`
	// Places are the objects that the upgrade has admitted and that are not ready yet.
	Places []UpgradeObject `json:"places,omitempty"`
	// Waiting are objects of this replica that are held, ten at most.
	Waiting []UpgradeObject `json:"waiting,omitempty"`
}

// UpgradeObject is an object of an upgrade.
type UpgradeObject struct {
	Framework string `json:"framework"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Failed is true if the object counts as a failure.
	Failed bool `json:"failed,omitempty"`
	// Why says why it is held, or not ready.
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// Summary names the object as the list of objects does.
func (o UpgradeObject) Summary() ObjectSummary {
	return ObjectSummary{Framework: o.Framework, Namespace: o.Namespace, Name: o.Name}
}

// Bar returns the parts of the bar of an upgrade, in hundredths: done or unaffected, with a place,
// held, and not reconciled yet.
func (u Upgrade) Bar() []BarPart {
	total := float64(max(u.Objects, 1))
	parts := []BarPart{
		{Name: "done", Objects: max(u.Objects-len(u.Places)-u.Held-u.Unseen, 0)},
		{Name: "changing", Objects: len(u.Places)},
		{Name: "held", Objects: u.Held},
		{Name: "unseen", Objects: u.Unseen},
	}
	at := 0.0
	for i := range parts {
		parts[i].At, parts[i].Width = at, min(float64(parts[i].Objects)*100/total, 100-at)
		at += parts[i].Width
	}
	return parts
}

// BarPart is a part of the bar of an upgrade.
type BarPart struct {
	Name      string
	Objects   int
	At, Width float64
}

// Upgrades knows the upgrade of an operator. Its methods are safe for concurrent use.
type Upgrades interface {
	// Upgrade returns the upgrade, or nil if none is under way.
	Upgrade() *Upgrade
}

// LimitBy shows the upgrade of the operator on the page. It is called before the page is served.
func (i *Inspector) LimitBy(u Upgrades) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.upgrades = u
}

// upgrade returns the upgrade that is under way, or nil.
func (i *Inspector) upgrade() *Upgrade {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.upgrades == nil {
		return nil
	}
	return i.upgrades.Upgrade()
}
