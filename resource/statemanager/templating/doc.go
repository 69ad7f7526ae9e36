// Package templating fills the values of services with the data of their clusters: those of a service that has a valuesTemplate are a
// Go template, the same for every state manager.
//
//	values: |
//	  title: {{ .Cluster.metadata.labels.region | quote }}
//	  zone: {{ index .Cluster.metadata.labels "topology.kubernetes.io/zone" }}
//	  tier: {{ dig "tier" "standard" .Cluster.metadata.labels }}
//	  subnet: {{ .Objects.network.data.subnet }}
//	valuesTemplate:
//	  objects:
//	  - {as: network, kind: ConfigMap, name: prod-network}
//
// A state manager renders them before anything else is made of them:
//
//	values, err := templating.Values(ctx, set, entry, read)
//
// # What a template sees
//
//	.Cluster   metadata.name, metadata.namespace, metadata.labels, metadata.annotations and spec of the ClusterDeployment, without its
//	           services. On the management cluster there are no name, labels and annotations, and the spec is empty
//	.Objects   the objects of the valuesTemplate, by their names there, as the API has them
//
// Objects are ConfigMaps, and those of kinds that the operator is configured for (statemanager.Set.ValueKinds), in the namespace of the
// ServiceSet. Values of Secrets come by valuesFrom, whose targetPath says where they go: they are in no plan then.
// What valuesFrom names is no template.
//
// A change of the labels, the annotations or the spec of the cluster, or of an object, rolls the service out anew where it changes the
// values.
//
// # What is missing
//
// A key that is not there is a permanent error that names it: .Cluster.metadata.labels.region, and index too. So is null. What
// may be missing is read by dig, which has a default, by get, which returns "", or asked for by hasKey. An object that does not exist is an
// error until it does.
//
// # Functions
//
// Those of Go's text/template, and those of sprig as Helm's charts have them, but for what reads the environment, the time or the
// network, or makes something up: a plan says what is going to be applied. keys and values return what they do in the order of the
// keys. From Helm there are toYaml, fromYaml and required; errors of the first two are errors. A rendering ends with an error after
// [MaxSteps] rounds of its loops and calls of its templates, and after [MaxSize] bytes, which is also as long as a text may be that a function
// makes. A list or a map may have 16 MiB with all that is in it, and what functions make in one rendering 256 MiB.
package templating
