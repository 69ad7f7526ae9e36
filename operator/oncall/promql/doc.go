// Package promql has the tests of the queries in docs/oncall by Prometheus' own parser, in a module of its own: who uses operatorkit never has
// Prometheus among the modules of a build. The test of package oncall runs them.
package promql
