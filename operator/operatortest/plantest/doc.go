// Package plantest proves that plans tell the truth: that planning writes nothing, and that a plan is what applying does
// then.
//
//	world := &plantest.Cluster{Client: user, Faults: faults, Namespace: namespace, Kinds: []client.Object{&corev1.ConfigMap{}}}
//	rapid.Check(t, func(rt *rapid.T) {
//		desired = anything(rt)
//		plantest.Update(rt, world, website, resource)
//	})
//
// A check plans, applies, and compares the plan with three things: the record of the requests that wrote something, in their
// order; the objects before and after, field by field; and those that the plan does not name, which must be the same.
//
// The world must be left alone by others while a check runs.
package plantest
