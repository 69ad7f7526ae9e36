// Package commandtest puts the operators of package command to the test:
//
//	operatortest.BreakAtEveryWrite(t, operatortest.Scenario{
//		Name:  "website",
//		Start: commandtest.Start(website.Config),
//		…
//	})
//
// The operator runs in the test's process, with all that "run" gives it: the recorder, the fence, metrics, the definitions. For one
// that runs as a process of its own, see operatortest.StartReplica.
package commandtest
