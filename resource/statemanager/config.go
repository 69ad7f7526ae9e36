package statemanager

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Config is what every state manager understands of the configuration of its provider: what
// serviceset.StateManagementProviderConfigFromServiceSpec makes of a spec. A state manager may have more fields of its own.
type Config struct {
	// Priority decides between sets that want the same thing: the higher one gets it. Default: v1alpha1.DefaultPriority.
	Priority int32 `json:"priority,omitempty"`
	// SyncMode is when things are put right. Default: Continuous.
	SyncMode v1alpha1.SyncMode `json:"syncMode,omitempty"`
	// StopOnConflict ends the work at the first object that somebody else manages. Default: such an object is an error of its
	// service only.
	StopOnConflict bool `json:"stopOnConflict,omitempty"`
	// ContinueOnError goes on with the other services when one fails, with the state manager sveltos. The others always do.
	ContinueOnError bool `json:"continueOnError,omitempty"`
	// Reload restarts workloads whose mounted ConfigMaps or Secrets change. Only the state manager sveltos does that; the others leave
	// workloads as they are.
	Reload bool `json:"reload,omitempty"`
	// ReplaceKinds are the kinds, as Job or Job.batch, of which objects are deleted and created anew where an API server refuses to change
	// them, as `helm upgrade --force-replace` and Flux's force do it. Default: none; such a change fails until the service changes.
	ReplaceKinds []string `json:"replaceKinds,omitempty"`
	// ServiceAccountName is the Service.ServiceAccountName of the services of the set that have none. Default: that of the state manager.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// Replaces tells whether objects of a kind are in ReplaceKinds. Definitions and namespaces never are: what is in them would go too.
func (c Config) Replaces(kind schema.GroupKind) bool {
	if kind.Kind == "CustomResourceDefinition" || kind == (schema.GroupKind{Kind: "Namespace"}) {
		return false
	}
	return slices.ContainsFunc(c.ReplaceKinds, func(name string) bool { return name == kind.Kind || name == kind.String() })
}

// ErrAccountUnknown is the error, for errors.Is, of a configuration whose serviceAccountName can't be read: nothing may be done for the set
// then, because nobody knows with whose rights.
var ErrAccountUnknown = errors.New("spec.provider.config.serviceAccountName can't be read, and without it nothing is done, with more rights than it gives: " +
	"mend it, in the ServiceSet too if that is being deleted")

// ConfigOf reads the configuration of a set. Fields that it does not know are ignored. The error is permanent and says which
// field is wrong; the others are in what is returned all the same, for a set that is to go.
func ConfigOf(set *v1alpha1.ServiceSet) (Config, error) {
	config := Config{Priority: v1alpha1.DefaultPriority, SyncMode: v1alpha1.SyncModeContinuous}
	given := set.Spec.Provider.Config
	if given == nil {
		return config, nil
	}
	// What is of another type is left out, and the rest is read.
	err := json.Unmarshal(given.Raw, &config)
	if err != nil {
		err = fmt.Errorf("spec.provider.config can't be read: %w", err)
		if json.Unmarshal(given.Raw, &struct{ ServiceAccountName string }{}) != nil {
			err = fmt.Errorf("%w (%w)", ErrAccountUnknown, err)
		}
	} else if name := config.ServiceAccountName; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		err = fmt.Errorf("spec.provider.config.serviceAccountName is %q, which is no name of a service account", name)
	}
	switch config.SyncMode {
	case v1alpha1.SyncModeOneTime, v1alpha1.SyncModeContinuous, v1alpha1.SyncModeContinuousWithDriftDetection, v1alpha1.SyncModeDryRun, "":
	default:
		err = cmp.Or(err, fmt.Errorf("spec.provider.config.syncMode is %q: it is OneTime, Continuous, ContinuousWithDriftDetection or DryRun", config.SyncMode))
		config.SyncMode = ""
	}
	config.SyncMode = cmp.Or(config.SyncMode, v1alpha1.SyncModeContinuous)
	if err != nil {
		return config, framework.Permanent(err)
	}
	return config, nil
}
