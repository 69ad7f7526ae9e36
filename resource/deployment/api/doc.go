// Package api has the values that deployments onto machines are about: what a service should be ([ServiceSpec]), what is on the
// machines ([Machine], [Inventory], [Container], [Volume], [Image]), and the interfaces through which machines are seen and
// changed.
//
//	spec := api.ServiceSpec{
//		Name:      "web",
//		Replicas:  ptr.To[int32](3),
//		Container: api.ContainerSpec{Image: "nginx:1.27", Env: map[string]string{"LOG": "info"}},
//		Ports:     []api.PortSpec{{Mode: api.PortModeHost, PublishedPort: 80, ContainerPort: 8080}},
//	}
//	if err := spec.Validate(); err != nil {
//		return err // every fault at once, each with the path of its field
//	}
//
// # Promises
//
//   - Values are data: nothing here talks to a machine. Methods don't change their receiver, [ServiceSpec.SetDefaults] excepted.
//   - [Hidden] texts print as "(hidden)" with every verb of fmt. They are in JSON, because records of what runs need them.
//   - What is valid is bounded: [MaxReplicas], [MaxItems], [MaxWait], and quantities that engines can count.
//   - The interfaces are idempotent: what is already as asked for is no error, what is not there is [ErrNotFound].
//
// +kubebuilder:object:generate=true
package api
