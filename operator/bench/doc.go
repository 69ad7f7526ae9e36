// Command bench measures operatorkit against controller-runtime, both in one process and in turns, and prints ratios:
//
//	go run ./operator/bench                         # about four minutes on two cores
//	go run ./operator/bench -run empty -rounds 25   # one row, more often
//	go run ./operator/bench -json results.json      # every round's figures as well
//
// It uses the API server that the environment variable OPERATORTEST_KUBECONFIG names, and without it one of its own.
// What it makes there is in namespaces that it deletes at the end.
//
// A row is a piece of work. A contender is one way to do it: with controller-runtime, with operatorkit, and, where a
// real API server sets the pace, with a bare loop of requests. The contenders of a row take turns, in an order that
// changes from round to round, because a small machine is never equally fast for long. A table at the end has the medians
// of all rounds; a ratio is the median of the ratios of the single rounds. Every line says what is aimed at, and whether
// that is met.
//
// Processor time is that of the whole process, the collection of garbage included. It varies less than the time on the
// wall when the machine has other things to do, but it does not show what waits.
//
//   - empty: what a reconciliation costs that does nothing, from the queue through a worker.
//   - noop: what a reconciliation costs of three CRUD resources that find everything in order.
//   - coldstart: how fast an operator creates a child for each of its primaries, as percentage of a bare loop of as many
//     goroutines that creates the same children.
//   - cache: how much memory a cached ConfigMap takes.
package main
