// Package natslease keeps the lease of a leader election in a bucket of NATS, for operators without a Kubernetes API.
//
//	lock, err := natslease.New(natslease.Config{JetStream: js, Bucket: "leases", Key: "gateway-controller", Operator: "gateways"})
//	fence := operator.NewFence()
//	o, err := operator.New(operator.Config{
//		LeaderElection: operator.LeaderElectionConfig{Enabled: true, Lock: lock, Fence: fence},
//		...
//	})
//
// # Promises
//
//   - Every write of the lease is a compare-and-set on the revision of its entry: of two replicas that try to take it at the
//     same time, one succeeds.
//   - Clocks need not agree. A replica takes the lease over when it has seen the entry unchanged for the whole
//     LeaseDuration by its own clock, or when the holder has given it up. The times in the entry are for people.
//   - The entry names its operator. Another operator, which was given the same key, is told so, and never leads.
//   - A holder that was stopped and wakes up finds its operator.Fence closed, and its next renewal refused.
//
// The lease is as safe as its bucket: whoever deletes the entry, or the bucket, makes it free.
package natslease
