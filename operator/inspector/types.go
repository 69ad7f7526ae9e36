package inspector

import (
	"time"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/operator/internal/upgrade"
)

// Overview is what GET api/v1/overview answers.
type Overview struct {
	// Operator is the name of the operator.
	Operator string `json:"operator"`
	// At is when this was so.
	At time.Time `json:"at"`
	// Replicas are those that share the objects, by name. It is empty without sharding.
	Replicas []Replica `json:"replicas,omitempty"`
	// Upgrade is the upgrade that is under way, or nil.
	Upgrade    *upgrade.View       `json:"upgrade,omitempty"`
	Frameworks []frameworkOverview `json:"frameworks"`
	// Failing are objects that fail, those that failed last first, a hundred at most. FailingCount is how many there are, also of
	// those of which the inspector remembers nothing.
	Failing      []ObjectSummary `json:"failing"`
	FailingCount int             `json:"failingCount"`
	// Fights are changes that are undone again and again, a hundred at most, and FightCount is the number of all.
	Fights     []fightOverview `json:"fights,omitempty"`
	FightCount int             `json:"fightCount"`
	// Unreached says of which replicas it is not known what fails there, and why.
	Unreached []string `json:"unreached,omitempty"`
}

// fightOverview is a fight with the object for which the change is applied.
type fightOverview struct {
	Framework string `json:"framework"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	framework.Fight
}

// Summary names the object, for links.
func (f fightOverview) Summary() ObjectSummary {
	return ObjectSummary{Framework: f.Framework, Namespace: f.Namespace, Name: f.Name}
}

// frameworkOverview is how one framework does.
type frameworkOverview struct {
	Name string `json:"name"`
	// Kind is the kind of its objects. It is empty until one has been reconciled.
	Kind   string           `json:"kind,omitempty"`
	Status framework.Status `json:"status"`
	// Reconciled and Failed are how many reconciliations ended since the start, and ended with an error.
	Reconciled uint64 `json:"reconciled"`
	Failed     uint64 `json:"failed"`
	// Sources are the primary source and then the watched ones.
	Sources []sourceOverview `json:"sources"`
	// Resources are sorted by Recent, the slowest first.
	Resources []resourceOverview `json:"resources,omitempty"`
	// Shadows say how shadow resource sets compare with the active ones.
	Shadows []plan.ShadowSummary `json:"shadows,omitempty"`
	// Samples are from the last five minutes, one for each second, the newest last.
	Samples []sample `json:"samples,omitempty"`
}

// sourceOverview is how fresh a source is.
type sourceOverview struct {
	Name    string `json:"name"`
	Primary bool   `json:"primary,omitempty"`
	Synced  bool   `json:"synced"`
	Objects int    `json:"objects"`
	// Staleness is the time since the last contact; negative without one.
	Staleness time.Duration `json:"stalenessNanoseconds"`
	// Error is that of the current outage.
	Error string `json:"error,omitempty"`
	// Unusable is about what arrived last of that which can't be used (informer.Status). It is no outage, and stays.
	Unusable string `json:"unusable,omitempty"`
}

func newSourceOverview(name string, status informer.Status, primary bool, now time.Time) sourceOverview {
	o := sourceOverview{Name: name, Primary: primary, Synced: status.Synced, Objects: status.Objects, Staleness: -1}
	if !status.LastContact.IsZero() {
		o.Staleness = max(now.Sub(status.LastContact), 0)
	}
	if status.LastError != nil {
		o.Error = cut.Text(status.LastError.Error(), maxText)
	}
	if status.Unusable != nil {
		o.Unusable = cut.Text(status.Unusable.Error(), maxText)
	}
	return o
}

// State is how an object is doing.
type State string

const (
	// fine is an object whose last reconciliation did all there was to do.
	fine State = "fine"
	// failing is an object whose last reconciliation failed.
	failing State = "failing"
	// waiting is an object whose deletion is not finished, or whose reconciliation a resource
	// cancelled.
	waiting State = "waiting"
	// planned is an object that is only planned for.
	planned State = "planned"
	// leftAlone is an object that is paused, that no resource set handles, or the like.
	leftAlone State = "left alone"
	// gone is an object that does not exist any more.
	gone State = "gone"
	// unseen is an object of which no reconciliation is known.
	unseen State = "unseen"
)

// states are all states.
var states = []State{fine, failing, waiting, planned, leftAlone, gone, unseen}

// ObjectSummary is one object in a list.
type ObjectSummary struct {
	// Framework, Namespace and Name identify the object. Namespace and Name are its key in the primary source.
	Framework string `json:"framework"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Kind is empty until an object of the framework has been reconciled.
	Kind  string `json:"kind,omitempty"`
	State State  `json:"state"`
	// Reason says why the object is left alone or waits, or that its reconciliations are forgotten.
	Reason string `json:"reason,omitempty"`
	// Error is that of the last reconciliation, FailingSince is when the first of those began that failed in a row, and
	// Failures how many these are.
	Error        string    `json:"error,omitempty"`
	FailingSince time.Time `json:"failingSince,omitzero"`
	Failures     int       `json:"failures,omitempty"`
	// Last is when the last reconciliation began. It is zero when none is known.
	Last time.Time `json:"last,omitzero"`
	// NextTry is when it is looked at again without a change of it; zero is never.
	NextTry time.Time `json:"nextTry,omitzero"`
}

// ObjectList is what GET api/v1/objects answers.
type ObjectList struct {
	// Total is how many objects match, of which Objects are some.
	Total   int             `json:"total"`
	Objects []ObjectSummary `json:"objects"`
	// Unreached says of which replicas it is not known how their objects are doing, and why.
	Unreached []string `json:"unreached,omitempty"`
}

// Object is what GET api/v1/object answers.
type Object struct {
	ObjectSummary
	// Object is the object as the last reconciliation knew it.
	Object plan.Object `json:"object"`
	// Identity is whose the marks are on the object and on what was made for it.
	Identity struct {
		Operator  string `json:"operator"`
		Framework string `json:"framework"`
		// Finalizer is empty if the framework puts none on its objects.
		Finalizer string `json:"finalizer,omitempty"`
	} `json:"identity"`
	// Owner is the replica that reconciles the object, when replicas share them. It is empty without sharding, and when none may at the moment.
	Owner string `json:"owner,omitempty"`
	// Unreached is why that one does not tell what it has done with the object.
	Unreached string `json:"unreached,omitempty"`
	// Reconciliations are the last ones, the newest first.
	Reconciliations []Reconciliation `json:"reconciliations"`
	// Fights are changes for the object that are undone again and again.
	Fights []framework.Fight `json:"fights,omitempty"`
	// Shadows are the last comparisons with shadow resource sets that did not come out equal.
	Shadows []*plan.Comparison `json:"shadows,omitempty"`
}

// Reconciliation is a record, which stands for a row of them when nothing happened in any.
type Reconciliation struct {
	*framework.Record
	// Repeats is how many reconciliations right before it, the first of which began at RepeatedSince, found nothing to do
	// either and are not listed.
	Repeats       int       `json:"repeats,omitempty"`
	RepeatedSince time.Time `json:"repeatedSince,omitzero"`
}
