package statemanager

// LetGoAnnotation lets go of what is on a cluster that is gone for good, with the value "true" on a ServiceSet or on its
// ClusterDeployment: while the cluster can't be reached, and the set is being deleted or takes services away, they count as gone.
// What is on the cluster stays there, should it come back. A cluster that has not answered yet, or that only refuses what it is asked, is
// not let go of.
const LetGoAnnotation = "services.operatorkit.io/let-go"

// LetGo tells whether what is on the cluster of a set may be let go of.
func LetGo(set *Set) bool {
	if set.ServiceSet.Annotations[LetGoAnnotation] == "true" {
		return true
	}
	return set.Cluster != nil && set.Cluster.Annotations[LetGoAnnotation] == "true"
}
