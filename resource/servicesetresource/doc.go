// Package servicesetresource is a CRUD resource whose state is the ServiceSets of a cluster, entry by entry: a plan of it reads
// "cert-manager 1.14.2 → 1.15.0 (step 1 of 3 to 1.17.1)" and "kof-storage waits for cert-manager".
package servicesetresource
