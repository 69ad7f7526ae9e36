// Package v1alpha1 holds the API of deployments onto machines: the machines of a namespace, and the services that run on them.
//
//	apiVersion: deployment.operatorkit.io/v1alpha1
//	kind: Machine
//	metadata: {name: frankfurt-1, namespace: shop, labels: {disk: ssd}}
//	spec:
//	  address: ssh://deploy@10.0.0.7
//	  ssh: {secretName: frankfurt-1-ssh}
//	---
//	apiVersion: deployment.operatorkit.io/v1alpha1
//	kind: MachineService
//	metadata: {name: web, namespace: shop}
//	spec:
//	  replicas: 6
//	  container: {image: registry.example.com/web:1.4}
//	  envFrom: [{secretRef: {name: web}}, {name: LOG, configMapKeyRef: {name: settings, key: log}}]
//	  ports: [{mode: host, containerPort: 8080}]
//	  placement: {labels: {disk: ssd}}
//	  update: {failureAction: rollback}
//	  strategy: {type: canary, steps: [{percent: 20, pause: 2m}]}
//
// The machines of a namespace are one cluster, whose containers are told from those of others on the same engines. Who can create a
// Machine is root on the machine, if a socket or a Secret of the namespace allows it.
//
// # Secrets and ConfigMaps
//
// Environment variables and configs can have their values in Secrets and ConfigMaps of the namespace: envFrom and configsFrom. These
// values are in no status, plan, event or log. Another value is another version, which is rolled out as any other is. While an object
// or a key is missing, or can't be used, nothing is changed, and the condition Blocked says which; it goes on by itself. Who can create
// a MachineService can read what it names, as with Pods.
//
// Images are pulled with what the Secret registry-credentials of the namespace has for their registry, if it is there. It is of the type
// kubernetes.io/dockerconfigjson.
//
// # Jobs
//
// A service with mode: job has one container, which runs to its end once for each specification. Ready has the reason Completed then, and
// Blocked the reason Failed when it fails more often than container.restartPolicy allows. Services that name it in dependsOn wait for it.
//
// # What happens to what is not seen
//
// A machine that does not answer keeps its containers, as far as anybody knows, and none of them is made elsewhere. A person who knows
// that it won't come back says so in spec.gone, and its containers are made anew. What it had when it was seen last is in its status, so
// that everything else goes on: new services, and what is missing elsewhere. Only volumes that are on it, or may be, are waited for.
//
// # Maintenance
//
// A Machine with spec.unschedulable takes no new containers, and keeps those that it has. One that is being deleted takes none either,
// and its containers are replaced by others elsewhere, as the strategies of their services do it; it is deleted when none is left, or
// when it is gone. Containers for which there is no other machine stay, and with them the Machine: the condition Blocked of their
// service says why.
//
// # Failed updates
//
// When more containers fail than update.maxFailurePercent allows, update.failureAction is taken, and the version is not tried
// again by itself: the condition Blocked says why. It is tried again when the spec, a Secret or a ConfigMap that it names,
// or the annotation [RetryAnnotation] changes.
// A plan that fails because a machine does not answer, because it can't get what its containers share, or because somebody else has taken a
// port, a name or a volume, says nothing about the version, and is made again.
//
// A plan that waits, for a pause, a hold, a hook or a container, has one of the workers of the operator meanwhile. That each of these
// takes 24 hours at most does not keep a few services from holding up all others: the operator needs more workers than services that may
// wait at once.
//
// Another value of the annotation [RecreateAnnotation] has all containers made anew, as an update does it.
//
// +kubebuilder:object:generate=true
// +groupName=deployment.operatorkit.io
package v1alpha1
