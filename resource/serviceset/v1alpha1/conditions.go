package v1alpha1

// Types of conditions. Ready, Progressing and Blocked stand on ClusterDeployments and MultiClusterServices for all their
// services together, and on a ServiceState for one service.
const (
	// ConditionReady is True when every service that is desired is Deployed as it is desired, in version and values, and the
	// state manager can tell: not while the cluster can't be reached, or the provider is suspended.
	ConditionReady = "Ready"
	// ConditionProgressing is True while something changes by itself: a step under way, or one that waits for another.
	ConditionProgressing = "Progressing"
	// ConditionBlocked is True when something will not change before a person acts: its reason is one of the reasons below,
	// its message names every service concerned.
	ConditionBlocked = "Blocked"
	// ConditionPlanned stands on ClusterDeployments and MultiClusterServices that the operator only plans for: it is True when
	// there is something that it would do.
	ConditionPlanned = "Planned"
)

// ConditionValid stands on ServiceTemplateChains: it is False, with ReasonChainInvalid, while a chain contradicts itself.
const ConditionValid = "Valid"

// ReasonValid is the reason of a condition Valid that is True.
const ReasonValid = "Valid"

// Types of conditions that a state manager sets on a ServiceSet. Beside these, one that sets Ready says with False that the
// set is not as it should be, whatever the states of its services are.
const (
	// ConditionReachable is False while the cluster of a ServiceSet can't be reached.
	ConditionReachable = "Reachable"
	// ConditionSuspended is True while nothing is done for a ServiceSet.
	ConditionSuspended = "Suspended"
)

// Reasons of the condition Ready, and of Progressing.
const (
	// ReasonDeployed says that what is desired runs.
	ReasonDeployed = "Deployed"
	// ReasonStepping says that a service is on its way to another version, one step after the other.
	ReasonStepping = "Stepping"
	// ReasonInFlight says that the version in the ServiceSet is not Deployed yet: nothing is advanced before it is.
	ReasonInFlight = "InFlight"
	// ReasonWaiting says that a service waits for services that it depends on.
	ReasonWaiting = "WaitingForDependencies"
	// ReasonRemoving says that a service is taken away, or waits until what depends on it is gone.
	ReasonRemoving = "Removing"
	// ReasonDisabled says that a service is kept as it runs because it is disabled.
	ReasonDisabled = "Disabled"
	// ReasonOverridden says that another owner with a higher precedence has the same service on the same cluster. The owner leaves it
	// to that one, and is Ready without it.
	ReasonOverridden = "Overridden"
	// ReasonNotReconciled says that a cluster has not taken note of a change of a MultiClusterService yet.
	ReasonNotReconciled = "NotReconciled"
	// ReasonSetNotReady says that all services are Deployed, but the state manager says of their ServiceSet that it is not Ready.
	ReasonSetNotReady = "ServiceSetNotReady"
	// ReasonDeleting says that a ClusterDeployment or a MultiClusterService is being deleted, and waits until its ServiceSets
	// are gone.
	ReasonDeleting = "Deleting"
	// ReasonNotBlocked is the reason of a condition Blocked that is False.
	ReasonNotBlocked = "NotBlocked"
)

// Reasons of the condition Planned.
const (
	// ReasonChangesPlanned says that there is something that the operator would do.
	ReasonChangesPlanned = "ChangesPlanned"
	// ReasonNothingPlanned says that the operator would do nothing.
	ReasonNothingPlanned = "NothingPlanned"
)

// Reasons of the condition Blocked.
const (
	// ReasonFailed says that a service failed in the desired version. New values, or another version, are tried at once.
	ReasonFailed = "Failed"
	// ReasonStepFailed says that a step on the way to the desired version failed. The next one is not taken: new values
	// repair the step; desiring another version leaves it.
	ReasonStepFailed = "StepFailed"
	// ReasonTemplateMissing says that a ServiceTemplate does not exist.
	ReasonTemplateMissing = "TemplateMissing"
	// ReasonChainMissing says that a ServiceTemplateChain does not exist.
	ReasonChainMissing = "ChainMissing"
	// ReasonChainInvalid says that a ServiceTemplateChain contradicts itself.
	ReasonChainInvalid = "ChainInvalid"
	// ReasonNotInChain says that the chain of a service does not have the desired template or version.
	ReasonNotInChain = "NotInChain"
	// ReasonNoWay says that the chain does not lead from the present template to the desired one.
	ReasonNoWay = "NoUpgradePath"
	// ReasonDuplicate says that an owner lists a service more than once.
	ReasonDuplicate = "DuplicateService"
	// ReasonDependencyAbsent says that a service depends on one that is not desired, or a MultiClusterService on one that does not
	// exist or is being deleted.
	ReasonDependencyAbsent = "DependencyAbsent"
	// ReasonDependencyCycle says that services, or MultiClusterServices, depend on each other.
	ReasonDependencyCycle = "DependencyCycle"
	// ReasonHandoverStuck says that a service can't go from one owner to another, because something is wrong with one of them.
	ReasonHandoverStuck = "HandoverStuck"
	// ReasonProviderMissing says that the StateManagementProvider does not exist.
	ReasonProviderMissing = "ProviderMissing"
	// ReasonProviderSuspended says that the StateManagementProvider is suspended: all stays as it is.
	ReasonProviderSuspended = "ProviderSuspended"
	// ReasonSelectorInvalid says that the clusterSelector of a MultiClusterService can't be read.
	ReasonSelectorInvalid = "SelectorInvalid"
	// ReasonInvalid says that the ServiceSet can't be made, because what it is made of contradicts itself, or because there
	// is one that belongs to somebody else.
	ReasonInvalid = "Invalid"
)
