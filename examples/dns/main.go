// Command dns is a whole operator for an external system: it gives every Service with the label dns an address record of that host, in
// a zone whose API knows hosts and addresses, and nothing of owners. Which records are whose stands in a journal on the Services, and whether
// they are there in the condition DNSReady.
//
//	$ ZONE_URL=http://127.0.0.1:8053 go run ./examples/dns run
//	$ ZONE_URL=http://127.0.0.1:8053 go run ./examples/dns plan -A
package main

import (
	"context"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/operatorkit/operatorkit/examples/internal/zone"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/resource/keyedresource"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

func main() {
	os.Exit(command.Execute(context.Background(), newConfig(os.Getenv("ZONE_URL")), os.Args[1:], os.Stdout, os.Stderr))
}

// hostLabel names the host of a Service.
const hostLabel = "dns"

func newConfig(url string) command.Config {
	return command.Config{Name: "dns", New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
		return newFrameworks(d, &zone.Client{URL: url, HTTP: d.HTTPClient(nil)})
	}}
}

func newFrameworks(d *operator.Dependencies, z *zone.Client) ([]*framework.Framework, error) {
	labelled, err := labels.Parse(hostLabel)
	if err != nil {
		return nil, err
	}
	services, err := d.NewSource(&corev1.Service{}, operator.WithLabels(labelled))
	if err != nil {
		return nil, err
	}
	records, err := keyedresource.New(keyedresource.Config[*corev1.Service, zone.Record]{
		Name: "records", Logger: d.Logger, Journal: d.Client, Poll: time.Minute,
		Desired: func(_ context.Context, s *corev1.Service) ([]zone.Record, error) {
			if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone {
				return nil, nil
			}
			return []zone.Record{{Host: s.Labels[hostLabel], Address: s.Spec.ClusterIP}}, nil
		},
		Key: func(r zone.Record) string { return r.Host }, System: z,
	})
	if err != nil {
		return nil, err
	}
	status, err := statusresource.New(statusresource.Config[*corev1.Service]{Client: d.Client, Logger: d.Logger, Prefix: "DNS"})
	if err != nil {
		return nil, err
	}
	f, err := d.NewFramework(framework.Config{Source: services, Resources: []framework.Resource{records, status}})
	return []*framework.Framework{f}, err
}
