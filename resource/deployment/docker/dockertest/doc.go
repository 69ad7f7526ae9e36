// Package dockertest starts real Docker engines for tests and examples: each one is a machine.
//
//	func TestDeployment(t *testing.T) {
//		engines := dockertest.Start(t, 3)
//		for _, e := range engines {
//			if err := e.Load(t.Context(), dockertest.App("example.com/app:1", nil)); err != nil { … }
//		}
//		cli, err := docker.New(docker.Config{Machines: dockertest.Machines(engines)})
//		…
//		err = engines[0].Stop(ctx) // the machine is lost
//		err = engines[0].Start(ctx) // and back
//	}
//
// The tests of a package take engines from a [Pool], which starts them once. A program uses [Run] in the place of Start. It takes
// Linux, root, and the programs dockerd, containerd, runc, ip and iptables; [Check] says what is missing. Tests are skipped then, but fail where
// CI is true.
//
// Engines share nothing with each other, or with one that the machine has for other purposes: each has its own data, socket, and
// bridge, on addresses for benchmarks (198.18.0.0/15). Containers are reached at their published ports, and reach nothing but those on
// the same network of the engine: that takes a rule of the firewall for each engine, the only one, about these addresses. Ports for which no address is given are published on an address of the engine's own, of those
// for loopback (127.0.0.0/8), which api.Container.Ports has: so all ports are free on each machine. Images come from [Image] alone;
// nothing is pulled.
//
// Engines listen at sockets. [Engine.ListenTLS] makes one listen at a port, and [StartSSH] starts a server that leads to sockets.
//
// An engine ends with the program that started it, in whatever way that ends. What it leaves behind then (its bridge and its data)
// is taken away by the next one.
package dockertest
