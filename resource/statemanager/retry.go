package statemanager

// RetryAnnotation has services tried again that were given up after Service.MaxAttempts, on a ServiceSet or on its ClusterDeployment:
// whenever its value changes.
const RetryAnnotation = "services.operatorkit.io/retry"

// RetryAsked returns what stands for the last time that another try was asked for.
func RetryAsked(set *Set) string {
	asked := set.ServiceSet.Annotations[RetryAnnotation]
	if set.Cluster != nil {
		asked += "\n" + set.Cluster.Annotations[RetryAnnotation]
	}
	return asked
}
