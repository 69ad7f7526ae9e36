// Package commandtest puts the operators of package command to the test:
//
//	s := commandtest.Scenario(t, website.Config)
//	s.Objects, s.Phases = …
//	operatortest.BreakAtEveryWrite(t, s)
//
//	o := commandtest.Operator(t, website.Config) // runs until the end of the test
//	err := o.User.Create(t.Context(), …)
//
// The operator runs in the test's process, with all that "run" gives it: the recorder, the fence, metrics, the definitions. For one
// that runs as a process of its own, see operatortest.StartReplica.
package commandtest
