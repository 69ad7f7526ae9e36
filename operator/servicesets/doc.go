// Package servicesets is the operator of service sets: it writes the ServiceSets of every cluster and tells how far they are.
package servicesets
