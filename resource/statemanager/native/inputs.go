package native

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// Inputs reads what services are made of, for state managers that make something else of it. It reads each ConfigMap and each Secret
// once, so there has to be another one for each Compute. It is safe for concurrent use.
type Inputs struct{ objects *objects }

// NewInputs reads ConfigMaps and Secrets by a reader, and has archives fetched.
func NewInputs(management client.Reader, fetcher *fetch.Fetcher) *Inputs {
	o := &objects{config: &Config{Management: management, Fetcher: fetcher}}
	o.begin()
	return &Inputs{o}
}

// Input is a service with all that it is made of: its values, those from Secrets among them, and where its files come from. Nothing of it may
// be changed.
type Input struct {
	*carrier.Service
	// Fingerprint stands for it all, in this set: values of Secrets can't be tried out with it.
	Fingerprint string
	// Windows tells that the set says when services may be changed.
	Windows bool
	hider   *carrier.Hider
}

// Resolve reads what an entry of a set names; archives are not fetched. What is secret is in no error.
func (i *Inputs) Resolve(ctx context.Context, set *statemanager.Set, entry *v1alpha1.ServiceWithValues) (*Input, error) {
	service, err := i.objects.resolve(ctx, set, entry)
	if err != nil {
		return nil, err
	}
	fingerprint, err := fingerprintOf(set, service)
	if err != nil {
		return nil, framework.Permanent(err)
	}
	return &Input{service.Service, fingerprint, len(set.ServiceSet.Spec.ChangeWindows) > 0, service.hider}, nil
}

// Conceal adds texts that must not be shown.
func (i *Input) Conceal(texts []string) { i.hider.AddTexts(texts) }

// Text returns a text without what must not be shown.
func (i *Input) Text(text string) string { return i.hider.Text(text) }

// Err returns an error without what must not be shown. It stays what it is for errors.Is and errors.As.
func (i *Input) Err(err error) error { return i.hider.Error(err) }

// Changes returns changes without the values that must not be shown.
func (i *Input) Changes(changes []plan.Change) []plan.Change { return i.hider.Changes(changes) }

// IsMissing tells whether an error says that something does not exist that a service is made of.
func IsMissing(err error) bool {
	missing := (*missingError)(nil)
	return errors.As(err, &missing)
}

// SameEntry tells whether a fingerprint of an Input is one of an entry as it is, whatever what the entry names says now.
func SameEntry(set *statemanager.Set, entry *v1alpha1.ServiceWithValues, fingerprint string) bool {
	said, err := entryFingerprint(set, entry)
	return err == nil && len(fingerprint) >= entryDigits && fingerprint[:entryDigits] == said
}
