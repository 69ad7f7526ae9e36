// Package alerts tries the alerts and the dashboard of docs/oncall on operators in trouble and a real Prometheus. It has nothing but tests, which are not among
// those of package quickstart because they don't go with the race detector: a second of fifteen operators has to be one also where others work.
package alerts
