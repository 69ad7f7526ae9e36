package main

import (
	"context"
	"time"
)

// row is a piece of work and what is measured of it.
type row struct {
	name string
	run  func(ctx context.Context, e *environment) ([]line, error)
	// long tells that it takes minutes: it is measured with -long, or when it is picked.
	long bool
}

// rows are all rows, those that need no API server first. The one that leaves a large namespace behind is the last.
func rows() []row {
	return []row{
		{name: "empty", run: emptyReconciliations},
		{name: "noop", run: noopReconciliations},
		{name: "serviceset", run: serviceSets},
		{name: "upgradepaths", run: upgradePaths},
		{name: "deployment", run: deployments},
		{name: "staleplans", run: plansThatGoStale},
		{name: "natscoldstart", run: natsColdStarts},
		{name: "natsentries", run: natsEntries},
		{name: "natsstream", run: natsStreams},
		{name: "shadow", run: besideShadows},
		{name: "inspector", run: inspectedReconciliations},
		{name: "page", run: pageOfFailingObjects},
		{name: "pagework", run: searchedAtWork},
		{name: "coldstart", run: coldStarts},
		{name: "serviceprovider", run: providedObjects},
		{name: "cache", run: cachedObjects},
		{name: "chartremoval", run: chartRemovals},
		{name: "statemanager", run: stateManagers},
		{name: "steady", run: steadyStates, long: true},
		{name: "secrets", run: watchedSecrets, long: true},
		{name: "sharding", run: sharedByReplicas, long: true},
		{name: "graphs", run: graphsOfClusters, long: true},
	}
}

// rowNames are the names of all rows, in the order in which they are measured.
func rowNames() []string {
	var names []string
	for _, r := range rows() {
		names = append(names, r.name)
	}
	return names
}

// longRows are the names of those that take minutes.
func longRows() []string {
	var names []string
	for _, r := range rows() {
		if r.long {
			names = append(names, r.name)
		}
	}
	return names
}

// sizes is how much work each row is.
type sizes struct {
	// keys is how many keys are reconciled without doing anything.
	keys int
	// noops is how many objects are reconciled by three CRUD resources that find everything in order.
	noops int
	// services is how many services a cluster has, from few to many; each is a multiple of the first.
	services []int
	// upgrades are the chains along which services go.
	upgrades upgrades
	// primaries is how many objects get a child, by each of these numbers of workers.
	primaries int
	workers   []int
	// entries is how many entries of a bucket get a child, from a server that is as far away as this.
	entries   int
	roundTrip time.Duration
	// owned is how many entries of a bucket one primary has, from few to many; each is a multiple of the first, and divides the last.
	owned []int
	// stream is how the entries of a bucket change whose children have to keep up.
	stream stream
	// machines are the services on machines that are planned and updated.
	machines machineServices
	// plans are the services that are deployed at once.
	plans manyPlans
	// changes is how many objects are changed one after the other, beside a shadow.
	changes int
	// failing is how many objects fail that the page shows.
	failing int
	// provided is how many objects a service provider has.
	provided int
	// cached is how many objects are cached.
	cached int
	// steady is how primaries change that have what they should.
	steady steady
	// secrets is how many Secrets are watched, of which few are reconciled.
	secrets int
	// sharded is how primaries are shared by replicas.
	sharded sharded
	// graphs are the clusters on which the services of a graph are counted.
	graphs graphs
	// fleet is the clusters that services come up on.
	fleet fleet
	// chartObjects is how many objects the chart has that is removed.
	chartObjects int
}

func fullSizes() sizes {
	return sizes{
		keys:      200_000,
		noops:     20_000,
		services:  []int{200, 2_000, 10_000},
		upgrades:  upgrades{chains: 20, templates: 128},
		primaries: 2_000,
		workers:   []int{10, 32},
		entries:   10_000,
		roundTrip: time.Millisecond,
		owned:     []int{4_000, 16_000},
		stream:    stream{keys: 1_000, rate: 1_000, warmUp: 10 * time.Second, duration: time.Minute},
		machines:  machineServices{containers: []int32{100, 1_000, 10_000}, engines: 3, replicas: 30, parallelism: []int{1, 5, 10}},
		plans:     manyPlans{services: 200, workers: 10, machines: 10},
		changes:   600,
		failing:   50_000,
		provided:  2_000,
		cached:    20_000,
		steady:    steady{rate: 500, duration: 10 * time.Second},
		secrets:   50_000,
		sharded:   sharded{primaries: 20_000, namespaces: 200, wait: 20 * time.Millisecond},
		graphs:    graphs{services: 20, clusters: []int{250, 1_000}},
		fleet:     fleet{clusters: 50, services: 20, charts: 2, objects: 1},

		chartObjects: 61,
	}
}

// environment is what rows run in.
type environment struct {
	stopwatch
	sizes
	cluster *cluster
	// samples keeps what was measured by the name of what it was, for those who look closer than the table does.
	samples map[string]series
}

// longRounds is how often a contender of a long row is measured at most.
const longRounds = 3

// fewRounds is the environment of a long row.
func (e *environment) fewRounds() *environment {
	few := *e
	few.rounds = min(e.rounds, longRounds)
	return &few
}

// compare measures and keeps the samples.
func (e *environment) compare(ctx context.Context, what string, contenders ...contender) (series, error) {
	s, err := e.measure(ctx, what, contenders...)
	if err == nil {
		e.samples[what] = s
	}
	return s, err
}
