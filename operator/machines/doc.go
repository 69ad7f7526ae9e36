// Package machines is the operator for deployments onto machines (see package v1alpha1): it keeps up connections to the engines of
// Machines, puts the containers of MachineServices onto them, and writes into the status what there is.
//
//	New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
//		return machines.New(d, machines.Config{})
//	},
//
// # Promises
//
//   - What happens on an engine reconciles the services that it concerns; nothing is polled. A machine that does not answer is tried
//     again by itself, and when it is back the services are looked at that have something there, or are not as they should be.
//   - A machine of which the Secret is missing, or whose address can't be read, is unknown, not absent. While the API server does not
//     give out its Secret, a machine that is connected to stays so.
//   - Of Secrets and ConfigMaps only names and versions are kept. What is in those that Machines and services name is read each time that
//     it is needed, and told nowhere.
//   - With the pull policy always the tag of an image is followed: the registry is asked each time that the service is looked at, and
//     every Config.RegistryPeriod, which is the one thing that is polled. While it does not say, what runs stays.
//   - What does not work is kept, stopped, for its log until the next attempt. Its last lines are in the condition Ready.
//   - A specification, or an object that it names, that changes while its plan is carried out ends that plan, and the next one goes on
//     from there.
//   - With Config.Names containers of services on one machine reach each other by the names of the services, and only those that work: see
//     docker.Names. With Config.Ingress and mesh addresses, ports in mode ingress are reached by these names on other machines too; for
//     all else there is a network of the machines' own.
//   - With Config.Ingress a port in mode ingress is reached by its host name and path at the Machines that are marked for it, and no
//     request is lost in an update: see docker.Ingress. The proxy of a Machine comes with the first service that needs it, is put right
//     when somebody has taken it away, and goes with the last one. A service that can't be served is blocked: NoIngress, LocationTaken.
//   - While a plan is carried out, the messages of the conditions Ready and Progressing say how far it is, about once a second.
//   - A plan that fails because a machine does not answer, because it can't get what its containers share (the image of the server of
//     names, say), or because somebody else has taken a port, a name or a volume, is made again; a version is given up for what it does
//     itself, and only until all of its containers have worked once. The same plan waits for a pause, which grows to five minutes, while
//     a machine lacks what its containers share.
//   - A job is run once for each specification, also across restarts, crashes and pruned containers: status.deployed records that it has
//     completed. While it runs it has a worker.
//   - A service is deployed after those that it depends on (spec.dependsOn) are Ready, or have completed; it is not taken down with them.
//   - Services that come at once don't take one thing: what a plan takes that is being carried out is taken for the others. One that has
//     no machine for that alone is looked at again when a plan ends.
//   - A machine that can't be seen holds up only what may be on it. What was on it is in the status of the Machine, and where plans have
//     been begun since in those of the services, so that an operator that has just started knows it too. On a Machine that nobody has ever
//     seen are no containers.
//   - A version that was given up is not tried again before its spec, what that names, or its annotation changes, across restarts too.
//   - The containers of a MachineService are removed before it goes. A Machine goes when no containers of services are on it, or when
//     spec.gone says that it won't come back; while it is deleted, services move away from it if they can.
//   - A MachineService is one operator's, which the annotation operatorkit.io/claimed-by names: the first one that found it. Another one
//     does nothing for it, and says in an event whose it is. Who takes the annotation off gives the service to another operator,
//     provided that the first one does not run any more.
//   - Machines may be used by several operators. The same annotation names the one that writes a Machine's status: what the others
//     see of its engine is in their logs, and a Machine that is deleted waits for the containers of each.
//   - Containers carry the name of the operator (ServicesOf). Those of other operators are left alone, and don't keep a Machine. Those
//     of a renamed operator are taken over and not restarted, and go on with the network and the proxy that they have.
//   - Requests to engines are behind the fence of the operator. Pulls are not undone by it: an engine that was asked goes on.
//   - With Dependencies.PlanOnly nothing changes on machines; the status of each service says line by line what would.
//
// # Metrics
//
//	operatorkit_machines_machines{ready}                                        Machines, by the status of their condition Ready
//	operatorkit_machines_services{condition, status}                            MachineServices, by the status of each condition
//	operatorkit_machines_service_containers{namespace, service}                 containers that are seen,
//	operatorkit_machines_service_working_containers{namespace, service}         those of them that work,
//	operatorkit_machines_service_up_to_date_containers{namespace, service}      and those of these that are as the spec says
//	operatorkit_machines_operations_total{kind, result}                         operations of plans: success, failure or undone
//	operatorkit_machines_operation_duration_seconds{kind}                       and how long they take
//
// The labels namespace and service hold names of objects: there are three series for a MachineService.
//
// # Permissions
//
// In the namespaces that the operator looks at; the frameworks declare them, so that "manifests" prints them:
//
//	machines, machineservices, configmaps, secrets: get, list, watch
//	machines, machines/status, machineservices, machineservices/status: patch
//	events: create, patch
//
// Of ConfigMaps and Secrets it watches the metadata only, and reads those that are named.
package machines
