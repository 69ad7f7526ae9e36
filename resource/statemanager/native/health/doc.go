// Package health reads expressions in CEL by which services say how objects of their own kinds are: healthCheckExprs, as Flux has them.
//
//	native.Config{HealthChecks: health.New(), …}
//
// It is a package of its own because of what it links: without it, services with healthCheckExprs are refused, and an operator has
// nothing of CEL.
//
// An expression sees the fields of the object at its top: apiVersion, kind, metadata, spec, status and data. One that is not there is empty,
// so that has(status.phase) can be asked before there is a status. Beside the language itself there are cel-go's extensions for strings,
// lists and sets, and optional fields (status.?phase).
//
//	current       the object is as it should be. Required
//	failed        it has failed
//	inProgress    it is getting there
//
// inProgress is asked first, then failed, then current; what none of them is true for is in progress. So is an object of which
// status.observedGeneration is another one than its generation, and one that is being deleted. An expression that can't be answered for an
// object, because a field is missing or of another type, counts as unknown: the service waits until its time-out, and says which
// expression it is.
//
// Expressions are bounded: in their length by the API, and in what they cost by [Cost], where texts and lists cost by their size. A text that
// replace, join or format makes has 4 MiB at most, and so has a list that flatten or + makes.
package health
