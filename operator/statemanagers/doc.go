// Package statemanagers is the operator that carries ServiceSets out: it gives them to state managers (see package
// statemanager), which put services onto clusters, and writes what became of each service into the status. It
// runs beside the operator of package servicesets, in one process or in another:
//
//	New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
//		sets, err := servicesets.New(d, servicesets.Config{})
//		if err != nil {
//			return nil, err
//		}
//		managers, err := statemanagers.New(d, statemanagers.Config{Native: &statemanagers.NativeConfig{}})
//		return append(sets, managers...), err
//	},
//
// Beside the native state manager there are package resource/statemanager/sveltos, which leaves the work to Sveltos, and package machines
// below this one, which puts services onto machines as MachineServices; Config.Managers takes these, and those of others.
//
// # Several operators
//
// A StateManagementProvider is one operator's, in all namespaces, which its annotation operatorkit.io/claimed-by names: the first one that
// found it. That one writes its status and that of its ServiceSets. Another one does nothing for that provider, and says in events on
// it and on the sets whose it is; a former name is taken over. Operators that work side by side have providers of different names
// (NativeConfig.Provider, Manager.Provider).
//
// The claim stays when its operator is uninstalled. Another one gets the provider when the annotation is taken off:
//
//	kubectl annotate statemanagementprovider native operatorkit.io/claimed-by-
//
// What the first one has put on clusters keeps its marks (see package native): the other one refuses it by name, unless it has the name
// of the first one as a former name. While the first one runs it takes the provider again.
//
// # Metrics
//
// All names begin with operatorkit_statemanagers_ and carry the label provider: sets, services (by state), drifted_services,
// operations_total (by result) and operation_duration_seconds.
//
// # Permissions
//
// On the management cluster, all for the namespaces that the operator looks at. The frameworks declare them, so that "manifests" prints them:
//
//	clusterdeployments, servicesets, servicetemplates, statemanagementproviders: get, list, watch
//	configmaps, secrets, and the kinds in Config.ValueKinds: get, list, watch
//	servicesets, servicesets/status, statemanagementproviders, statemanagementproviders/status: patch
//	statemanagementproviders: create, unless Config.LeaveProviders is set
//	events: create, patch; in the namespace default too, for those on StateManagementProviders
//	namespaces: get, for kube-system only, unless NativeConfig.Origin is set: its UID stands for the management cluster in marks
//
// ServiceSets without a cluster are carried out in Config.SystemNamespace only: with the operator's rights they go to the management
// cluster, and elsewhere they may be somebody's who lacks these. One in another namespace is Suspended, for the reason Misplaced.
//
// Of ConfigMaps, Secrets and ValueKinds it watches the metadata only, and reads those that a service or a ClusterDeployment names. For
// sets that go to the management cluster itself, it needs there what a kubeconfig needs elsewhere.
//
// The kubeconfig of a target cluster, for the native state manager:
//
//	namespaces: get, and create unless helmOptions.createNamespace is false
//	secrets: get, list, watch, create, update, patch, delete; releases and inventories are Secrets
//	all else that services consist of: get, list, watch, create, patch, delete
//
//	serviceaccounts: impersonate, for services with a serviceAccountName, or with NativeConfig.DefaultServiceAccount. Of what such services
//	consist of it needs get, list and watch: the rest are the rights of the accounts
//
// To create roles it has to have their permissions too, or the verb escalate. Other state managers say themselves what they need; one that is a
// framework.RightsLister declares it.
package statemanagers
