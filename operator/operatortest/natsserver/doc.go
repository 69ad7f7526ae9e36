// Package natsserver runs a real NATS server with JetStream on disk for tests and first steps, and breaks it on purpose.
//
// A test asks for one:
//
//	func TestGateways(t *testing.T) {
//		nats := natsserver.Start(t)
//		_, js := nats.Connect(t)
//		natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "gateways"})
//		nats.Restart(t) // clients reconnect, what is stored is there
//		...
//	}
//
// A program runs one for as long as it wants:
//
//	nats, err := natsserver.Run(ctx, natsserver.Config{Dir: "data"}) // or RunCluster, three of them
//	if err != nil {
//		return err
//	}
//	defer nats.Stop()
//
// A cluster keeps buckets on three servers, of which one may be killed:
//
//	func TestGatewaysOnACluster(t *testing.T) { // TestMain calls natsserver.Main
//		cluster := natsserver.StartCluster(t)
//		_, js := cluster.Connect(t)
//		natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "gateways", Replicas: 3})
//		killed := cluster.KillLeader(t, js, "gateways") // another one is elected
//		...
//		killed.Start(t)
//		cluster.AwaitCurrent(t, js, "gateways")
//	}
//
// There are three ways to break things. [Server] runs in the process of its test, and can be stopped and started again in
// good order. [Process], and each member of a [Cluster], is a process of its own that can be killed with SIGKILL. [Link] is a stretch of network
// between a client and a server that can be cut or frozen.
//
// There is bad company that any scenario can have: a [Server] with Config.Deny denies requests, [NewMirror] gives a bucket that looks like another
// one under its own name, and [Fill] leaves a bucket without room.
//
// Promises:
//
//   - Servers listen on loopback only, without authentication, and share nothing: any number run side by side.
//   - A server that is started again has the port and the store that it had: no other test takes the port meanwhile.
//   - Nothing is left after a test: no goroutine, no process (even if the test is killed), no file.
package natsserver
