package main

import (
	"fmt"
	"io"
	"runtime"

	"go.etcd.io/etcd/api/v3/version"
	kubernetes "k8s.io/component-base/version"
)

func printVersions(out io.Writer) int {
	_, err := fmt.Fprintf(out, "kubernetes %s\netcd v%s\ngo %s\n",
		kubernetes.Get().GitVersion, version.Version, runtime.Version())
	if err != nil {
		return 1
	}
	return 0
}
