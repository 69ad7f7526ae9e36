// Package operatorkit is a framework for Kubernetes operators that have to run for years.
//
// An operator is a list of small resources. Each says what is, what should be, and the patch between the two; the
// framework watches, queues, orders, retries, deletes safely and measures. Start with package framework, which has the
// engine, and package operator, which composes a program; examples/quickstart is a whole operator.
package operatorkit
