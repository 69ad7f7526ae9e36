// Command bench measures operatorkit against controller-runtime, both in one process and in turns, and prints ratios:
//
//	go run ./operator/bench                         # about ten minutes on two cores
//	go run ./operator/bench -run empty -rounds 25   # one row, more often
//	go run ./operator/bench -json results.json      # every round's figures as well
//
// It uses the API server that the environment variable OPERATORTEST_KUBECONFIG names, and without it one of its own.
// What it makes there is in namespaces that it deletes at the end, but for the definitions of the kinds of service sets,
// which stay.
//
// A row is a piece of work. A contender is one way to do it: with controller-runtime, with operatorkit, and, where a
// real server sets the pace, with a bare loop of requests. The contenders of a row take turns, in an order that
// changes from round to round, because a small machine is never equally fast for long. A table at the end has the medians
// of all rounds; a ratio is the median of the ratios of the single rounds. Every line says what is aimed at, and whether
// that is met. What an operator's author can set is in docs/performance.md.
//
// Processor time is that of the whole process, the collection of garbage included. It varies less than the time on the
// wall when the machine has other things to do, but it does not show what waits.
//
//   - empty: what a reconciliation costs that does nothing, from the queue through a worker.
//   - noop: what a reconciliation costs of three CRUD resources that find everything in order. The ratio is that to a reconciliation
//     that does nothing.
//   - serviceset: how long it takes to work out which services a cluster gets now, of 200, 2,000 and 10,000 services with five
//     dependencies each. The ratio is that of 10,000 services to 200, of which there are as many more.
//   - upgradepaths: how long it takes to find out where 20 services can go, along chains of 128 templates each. The ratio is that to
//     working out what becomes of the same services.
//   - deployment: how long it takes to plan the update of 100, 1,000 and 10,000 containers on machines, and to update 30 containers
//     on three Docker engines, one, five and ten at once. The ratio is that of the many to the fewest. Without Docker, the update is
//     left out, and the table says so.
//   - staleplans: how many plans are stale when they are run.
//   - natscoldstart: how fast an operator creates an entry in a NATS bucket for each of 10,000 entries of another one, to a
//     bare loop that reads them and does the same writes from as many goroutines, without looking at what it wrote. The
//     server is in this process, with its store on disk, and takes its part of the processors. Once it answers a millisecond
//     later, as one in a network does that replicates; the aim is for that. Once it is at hand: then an acknowledged
//     write takes less processor time than hearing of the child and looking at both again. Where other work keeps the
//     processors busy, the ratios are worse than they are: the bare loop waits more, and computes less.
//   - natsentries: what a reconciliation costs that finds all entries of one primary in order. The ratio is that of 16,000 entries
//     to 4,000.
//   - natsstream: whether an operator keeps up with 1,000 changes a second for a minute: keys that were lost, and what is
//     on the heap at the end compared with what was there before. It runs once.
//   - shadow: what a shadow resource set costs the active one: in a cold start, and between the change of an object and
//     the creation of its child while other objects are compared. The ratio is that to operatorkit without a shadow.
//   - inspector: what it costs to record reconciliations for the inspector: in a cold start, where there is work, and
//     where there is nothing else to do. The ratio is that to operatorkit without an inspector.
//   - page: how long the page takes to search among 50,000 failing objects, and how much of its budget of memory what it remembers
//     of them takes. The ratio is that of 50,000 objects to 5,000.
//   - pagework: the slowest of many searches of the page at once, and the reconciliations meanwhile.
//   - coldstart: how fast an operator creates a child for each of its primaries, as percentage of a bare loop of as many
//     goroutines that creates the same children.
//   - serviceprovider: how much memory an object of a service provider takes, which keeps the metadata of its objects, to a
//     controller of controller-runtime that caches the same objects.
//   - cache: how much memory a cached ConfigMap takes.
//   - chartremoval: how much the native state manager reads and writes on a cluster in order to remove a chart of 61 objects.
//   - statemanager: how fast 20 services, two of them charts, come up on each of 50 clusters, and with how many requests; who
//     is asked for what when a service of one cluster changes; and how much longer a change takes on 49 clusters while
//     the 50th, where there is as much to do, takes requests and does not answer. The ratio is that to a 50th cluster
//     where there is nothing to do. The clusters are namespaces of the one API server, each with an identity that
//     may write nowhere else; the watches of each see the objects of all, so that services come up slower than they
//     would on clusters of their own. They come up once, however many rounds there are.
//   - steady, secrets, sharding: see docs/performance.md. Only with -long, or where -run picks them.
//   - graphs: how long it takes to draw a MultiClusterService of 20 services, counted on 250 and on 1,000 clusters. The ratio is that of
//     1,000 clusters to 250. Only with -long, or where -run picks it.
package main
