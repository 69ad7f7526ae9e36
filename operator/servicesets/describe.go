package servicesets

import (
	"fmt"
	"strings"

	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// describeCluster says what the status of a cluster tells.
func describeCluster(s *v1alpha1.ClusterDeploymentStatus) map[string]string {
	fields := map[string]string{"status.servicesDeployed": s.ServicesDeployed}
	statuses.DescribeGeneration(fields, s.ObservedGeneration)
	statuses.DescribeConditions(fields, "status", s.Conditions)
	for i := range s.Services {
		state := &s.Services[i]
		path := fmt.Sprintf("status.services[%s]", serviceset.ServiceKey(state.Namespace, state.Name))
		version := label(v1alpha1.ServiceVersion{Template: state.Template, Version: state.Version})
		fields[path] = strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", state.State, version, state.FailureMessage)), " ")
		statuses.DescribeConditions(fields, path, state.Conditions)
	}
	for _, set := range s.ServiceSets {
		fields[fmt.Sprintf("status.serviceSets[%s]", set.Name)] = strings.TrimSpace(fmt.Sprintf("%d/%d %s %s", set.Deployed, set.Desired, set.Reason, set.Message))
		describeOwner(fields, &set)
	}
	describePaths(fields, s.ServicesUpgradePaths)
	return fields
}

// describeOwner says of which generation of its owner the summary of a ServiceSet tells.
func describeOwner(fields map[string]string, set *v1alpha1.ServiceSetSummary) {
	fields[fmt.Sprintf("status.serviceSets[%s].observedGeneration", set.Name)] = fmt.Sprint(set.ObservedGeneration)
}

// describeService says what the status of a MultiClusterService tells.
func describeService(s *v1alpha1.MultiClusterServiceStatus) map[string]string {
	fields := map[string]string{"status.clustersDeployed": s.ClustersDeployed}
	statuses.DescribeGeneration(fields, s.ObservedGeneration)
	statuses.DescribeConditions(fields, "status", s.Conditions)
	for _, c := range s.Clusters {
		fields[fmt.Sprintf("status.clusters[%s]", clusterName(c.Namespace, c.Name))] = strings.TrimSpace(fmt.Sprintf("%d/%d %s", c.Deployed, c.Desired, c.Message))
	}
	describePaths(fields, s.ServicesUpgradePaths)
	return fields
}

func describePaths(fields map[string]string, all []v1alpha1.ServiceUpgradePaths) {
	for _, paths := range all {
		var ways []string
		for _, path := range paths.AvailableUpgrades {
			steps := []string{}
			for _, step := range path.Versions {
				steps = append(steps, label(v1alpha1.ServiceVersion{Template: step.Name, Version: step.Version}))
			}
			ways = append(ways, strings.Join(steps, " → "))
		}
		fields[fmt.Sprintf("status.servicesUpgradePaths[%s]", serviceset.ServiceKey(paths.Namespace, paths.Name))] = strings.Join(ways, ", ")
	}
}
