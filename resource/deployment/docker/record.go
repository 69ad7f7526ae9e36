package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// The labels that say what is whose. No specification can set any that begins as they do, and none that an image has counts.
const (
	// LabelForm has the form of the other labels, identity.Form. What has another one is of another version of this library.
	LabelForm = labelPrefix + "form"
	// LabelOperator, LabelFramework and LabelResource say whose a container or a volume is.
	LabelOperator  = labelPrefix + "operator"
	LabelFramework = labelPrefix + "framework"
	LabelResource  = labelPrefix + "resource"
	// LabelService has the name of the service of a container, LabelServiceID its ID.
	LabelService   = labelPrefix + "service"
	LabelServiceID = labelPrefix + "service-id"
	// LabelCluster has Config.Cluster.
	LabelCluster = labelPrefix + "cluster"
	// LabelSpec has the specification that a container was made from, in JSON, with fingerprints for what is secret.
	LabelSpec = labelPrefix + "spec"
	// LabelHook is on the containers of pre-deploy hooks.
	LabelHook = labelPrefix + "hook"
	// LabelAttempt is on the containers of jobs (api.CreateContainerOptions.Attempt).
	LabelAttempt = labelPrefix + "attempt"
	// LabelConfigs is on containers with configs, and has the name of the volume that they are in.
	LabelConfigs = labelPrefix + "configs"
	// LabelConfigsOf is on such volumes, and has the name of the container.
	LabelConfigsOf = labelPrefix + "configs-of"
)

const labelPrefix = "io.operatorkit."

// mark returns labels together with those that say whose something is.
func (c *Client) mark(ctx context.Context, labels map[string]string) map[string]string {
	own := api.OwnershipOf(ctx).Mark
	marked := map[string]string{}
	maps.Copy(marked, labels)
	maps.DeleteFunc(marked, func(name, _ string) bool { return strings.HasPrefix(name, labelPrefix) })
	marked[LabelForm], marked[LabelCluster] = identity.Form, c.config.Cluster
	marked[LabelOperator], marked[LabelFramework], marked[LabelResource] = own.Operator, own.Framework, own.Resource
	return marked
}

// markContainer is mark for a container: an engine adds to its labels those of its image that it has not itself. What does not apply to it
// is empty, which is to those who read it as if it was not there.
func (c *Client) markContainer(ctx context.Context, labels map[string]string) map[string]string {
	marked := c.mark(ctx, labels)
	for _, name := range []string{LabelService, LabelServiceID, LabelSpec, LabelHook, LabelAttempt, LabelConfigs, LabelConfigsOf} {
		marked[name] = ""
	}
	return marked
}

// ownerOf reads whose something is.
func (c *Client) ownerOf(labels map[string]string) api.Owner {
	owner := api.Owner{
		Operator: labels[LabelOperator], Framework: labels[LabelFramework], Resource: labels[LabelResource], Service: labels[LabelService],
	}
	if cluster, ok := labels[LabelCluster]; ok && cluster != c.config.Cluster {
		owner.Cluster = cmp.Or(cluster, "(default)")
	}
	return owner
}

// labels returns all labels of a container.
func (c *Client) labels(ctx context.Context, options *api.CreateContainerOptions) (map[string]string, error) {
	spec := options.Spec.Fingerprinted()
	record, err := json.Marshal(&spec)
	if err != nil {
		return nil, fmt.Errorf("record the specification: %w", err)
	}
	labels := c.markContainer(ctx, options.Spec.Container.Labels)
	labels[LabelService] = options.Spec.Name
	labels[LabelServiceID] = options.ServiceID
	labels[LabelSpec], labels[LabelAttempt] = string(record), options.Attempt
	if options.Hook {
		labels[LabelHook] = "true"
	}
	return labels, nil
}

// known tells whether the labels are those of a container of a service of the cluster, whosever it is.
func (c *Client) known(labels map[string]string) bool {
	cluster, ok := labels[LabelCluster]
	return ok && cluster == c.config.Cluster && labels[LabelForm] == identity.Form && labels[LabelService] != ""
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
