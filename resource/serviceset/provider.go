package serviceset

import (
	"bytes"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// StateManagementProviderConfigFromServiceSpec returns which state manager a ServiceSet is for, and with which configuration:
//
//	name      config    result
//	set       set       both
//	set       not set   the name, and a configuration made from the other fields of the spec
//	not set   set       the default provider, and the config
//	not set   not set   the default provider, and a configuration made from the other fields of the spec
//
// The configuration that is made has the keys priority, syncMode, stopOnConflict, continueOnError and reload, as far as they
// are set. One that is given counts as it is. The error says that it is no JSON object. The spec is not changed.
func StateManagementProviderConfigFromServiceSpec(serviceSpec v1alpha1.ServiceSpec) (v1alpha1.StateManagementProviderConfig, error) {
	config := *serviceSpec.Provider.DeepCopy()
	if config.Name == "" {
		config.Name = v1alpha1.DefaultStateManagementProvider
	}
	if config.Config != nil {
		if raw := bytes.TrimSpace(config.Config.Raw); !json.Valid(raw) || raw[0] != '{' {
			return v1alpha1.StateManagementProviderConfig{}, fmt.Errorf("provider.config is %q: it has to be a JSON object", raw)
		}
		return config, nil
	}
	raw, err := json.Marshal(struct {
		Priority        int32             `json:"priority,omitempty"`
		SyncMode        v1alpha1.SyncMode `json:"syncMode,omitempty"`
		StopOnConflict  bool              `json:"stopOnConflict,omitempty"`
		ContinueOnError bool              `json:"continueOnError,omitempty"`
		Reload          bool              `json:"reload,omitempty"`
	}{serviceSpec.Priority, serviceSpec.SyncMode, serviceSpec.StopOnConflict, serviceSpec.ContinueOnError, serviceSpec.Reload})
	if err != nil {
		return v1alpha1.StateManagementProviderConfig{}, fmt.Errorf("make the provider's config: %w", err)
	}
	config.Config = &apiextensionsv1.JSON{Raw: raw}
	return config, nil
}
