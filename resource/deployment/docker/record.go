package docker

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// The labels that say what is ours.
const (
	// LabelService has the name of the service of a container, LabelServiceID its ID.
	LabelService   = "io.operatorkit.service"
	LabelServiceID = "io.operatorkit.service-id"
	// LabelCluster has Config.Cluster.
	LabelCluster = "io.operatorkit.cluster"
	// LabelSpec has the specification that a container was made from, in JSON, with fingerprints for what is secret.
	LabelSpec = "io.operatorkit.spec"
	// LabelHook is on the containers of pre-deploy hooks.
	LabelHook = "io.operatorkit.hook"
	// LabelConfigsOf is on volumes with the configs of a container, and has its name.
	LabelConfigsOf = "io.operatorkit.configs-of"
)

// labels returns all labels of a container. Those that say what is ours can't be set by the specification.
func (c *Client) labels(options *api.CreateContainerOptions) (map[string]string, error) {
	spec := options.Spec.Fingerprinted()
	record, err := json.Marshal(&spec)
	if err != nil {
		return nil, fmt.Errorf("record the specification: %w", err)
	}
	labels := map[string]string{}
	maps.Copy(labels, options.Spec.Container.Labels)
	delete(labels, LabelHook)
	delete(labels, LabelConfigsOf)
	labels[LabelService] = options.Spec.Name
	labels[LabelServiceID] = options.ServiceID
	labels[LabelCluster] = c.config.Cluster
	labels[LabelSpec] = string(record)
	if options.Hook {
		labels[LabelHook] = "true"
	}
	return labels, nil
}

// ours tells whether the labels are those of a container of the cluster.
func (c *Client) ours(labels map[string]string) bool {
	cluster, ok := labels[LabelCluster]
	return ok && cluster == c.config.Cluster && labels[LabelService] != ""
}

// recorded returns the specification in labels. One that can't be read is that of a service of which nothing else is known, so that
// the container is replaced.
func recorded(labels map[string]string) api.ServiceSpec {
	var spec api.ServiceSpec
	if err := json.Unmarshal([]byte(labels[LabelSpec]), &spec); err != nil {
		spec = api.ServiceSpec{}
	}
	spec.Name = labels[LabelService]
	return spec
}
