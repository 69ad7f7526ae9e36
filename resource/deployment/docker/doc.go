// Package docker is the client of deployments for machines with Docker engines.
//
//	cli, err := docker.New(docker.Config{
//		Machines: []docker.Machine{
//			{ID: "a", Name: "north-1", Endpoint: docker.Endpoint{Host: "unix:///var/run/docker.sock"}},
//			{ID: "b", Name: "north-2", Endpoint: docker.Endpoint{Host: "tcp://north-2:2376", TLS: &docker.TLS{CA: ca, Cert: cert, Key: key}}},
//			{ID: "c", Name: "south-1", Endpoint: docker.Endpoint{Host: "ssh://deploy@south-1", SSH: &docker.SSH{Key: key, KnownHosts: hosts}}},
//		},
//	})
//	if err != nil {
//		return err // every fault of the configuration
//	}
//	defer cli.Close()
//	defer cli.Subscribe(func(n docker.Notice) { … })() // the services of a machine, whenever something happened to them
//	plan, err := deployment.NewDeployment(cli, spec, nil).Plan(ctx)
//
// # Machines
//
// Each machine has a connection of its own that is kept up: it reads the engine's events, and asks every Config.Heartbeat whether
// the engine still answers. One that does not is unknown, with the reason; it is tried again with a backoff, and is available
// again as soon as it answers. Until then what is asked of it fails at once with [ErrUnreachable], and what is under way is ended.
// Machines don't hold up each other. What was on an unknown machine is known (api.Machine.LastSeen) if this client saw it, and
// nothing was put there since; a client that has just started knows nothing.
//
// An engine is never taken for two machines: the one with the greater ID is unknown then. The version of the API is negotiated with
// each engine, from 1.40 on.
//
// # Containers
//
// Labels are the record of what is whose: a container says of which operator, framework and resource it is (api.OwnershipOf the context
// that it was made with), of which service, and the specification that it was made from (see LabelForm and the others). What is secret in
// it is replaced by fingerprints (api.Fingerprint), which are enough to see whether it has changed. Containers with another
// Config.Cluster, and of another form, are those of others. Labels that a container has from its image say none of this.
//
// What is another's is seen, because it holds names, ports and volumes, and is never started, stopped, changed or removed: that is
// api.ErrOthers, and says whose it is. What carries a former name is one's own. Labels of a container can't be changed, so that it keeps
// that name for as long as it lives, and so does the network that containers share (Names). Volumes belong to a framework as a whole; those
// without labels may be used by everybody.
//
// Everything is done to the ID of a container that was seen, never to a name, which another one may have by then.
//
// Configs are read-only files from a volume of the container's own, which is filled before the container is created and removed
// with it: no container is ever there without its configs. Each has another name, also for containers of one name. What is left when that
// is cut off goes with the next removal, or with UpdateNames: a minute later if the container may come yet.
//
// Waiting for a container is waiting for its engine's events; nothing is polled.
package docker
