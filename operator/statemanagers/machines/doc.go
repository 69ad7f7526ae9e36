// Package machines is a state manager that puts services onto machines: every service of a ServiceSet becomes a MachineService (see
// package operator/machines), and its state comes from there.
//
//	manager, err := machines.New(machines.Config{Client: d.Client, Namespaces: d.Namespaces, Logger: d.Logger})
//	frameworks, err := statemanagers.New(d, statemanagers.Config{Managers: []statemanagers.Manager{
//		{Provider: "machines", StateManager: manager, Watches: manager.Watches()},
//	}})
//
// The scheme of the client has to know v1alpha1.AddToScheme of package operator/machines/v1alpha1. The custom resource definitions
// have to be there before the operator starts, and the operator for machines has to run, in the same process or in another.
//
// # What a service becomes
//
// A ClusterDeployment stands for the Machines of its namespace: MachineServices are made there, and for sets without a cluster in the
// system namespace. A MachineService has the name of its service, whose namespace does not matter on machines. Of two
// services a/x and b/x, only one can have it: the other one fails, and tells who has it.
//
// The template has spec.resources with exactly one manifest, of kind MachineService, in a ConfigMap, a Secret or an archive. Many
// services can be made from one template, so its name and namespace count for nothing; labels and annotations are taken over.
// valuesFrom in their order, and values last, are merged over the spec of the manifest: maps are merged, null takes a field away,
// anything else is replaced.
//
//	files of the template                                     values of the service    becomes
//	kind: MachineService                                      replicas: 3              replicas: 3
//	spec: {replicas: 1, container: {image: "web:1"}}          container: {init: true}  container: {image: "web:1", init: true}
//
// Helm charts, kustomizations, and other kinds are errors, and so are the fields adopt, maxAttempts, serviceAccountName, patches,
// healthCheckExprs and ignoreDifferences of a service, and changeWindows of a set. So are fields that a MachineService does not have, and
// all other faults of its spec, before anything is written.
//
// # Promises
//
//   - A service is Deployed when its MachineService is Ready in the generation that there is, which a job is when it has completed; it is
//     Failed when that is Blocked, or was given up. While a template, a value or an archive can't be read, it stays Deployed if it is, as
//     long as its entry is the same. The fingerprint that is Deployed is in the annotation [FingerprintAnnotation], too.
//   - Sync modes: in Continuous what somebody has changed in a MachineService is told by the condition Drifted; in
//     ContinuousWithDriftDetection it is put right. In OneTime a MachineService stays as it was put there. In DryRun nothing is
//     written, and the plan is in the condition Planned. Fields that the template leaves out are left to whoever sets them.
//   - Services come after those that they depend on, and go before them, in whichever set of the cluster they are.
//   - What another set of the cluster lists changes hands without being deleted. A MachineService that was made by somebody else
//     is not touched.
//   - While the provider is suspended, MachineServices have the annotation operatorkit.io/paused, and stand still too.
//   - How far a deployment is stands in the MachineService. The set is written when it is begun, and when it has ended.
//   - [statemanager.LetGoAnnotation]: a service that is taken away, and waits for a machine that does not answer, counts as gone. Its
//     MachineService stays until its containers are removed, or until the Machine has spec.gone.
//   - Values from Secrets, secretEnv and the contents of configs are in no plan, state, error or log. In the MachineService they are as
//     its spec has them.
//
// The conditions of a service are those of package native.
//
// # Permissions
//
// In the namespaces of the ServiceSets, beside those of package statemanagers:
//
//	machineservices: get, list, watch, create, patch, delete
package machines
