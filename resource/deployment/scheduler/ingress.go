package scheduler

import (
	"errors"
	"fmt"
	"slices"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// ErrNoIngress is a service with a port in mode ingress in a cluster without a machine for it, to be found with errors.Is.
var ErrNoIngress = errors.New("no machine of the cluster is for ports in mode ingress: mark one (Machine.Ingress), or publish the port in mode host")

// LocationError says that another service is served in a place that a service asks for.
type LocationError struct {
	Service string
	// Location is a host name with a path, as of api.PortSpec.Location.
	Location string
	// Other says which service that is, and whose.
	Other string
}

// Error says which one.
func (e *LocationError) Error() string {
	return fmt.Sprintf("service %s can't be served at %s: %s is there; give one of them another hostname or path", e.Service, e.Location, e.Other)
}

// checkIngress finds why the ports in mode ingress can't be served, wherever the containers are.
func (s *Scheduler) checkIngress() error {
	if s.spec.Mode != api.ServiceModeGlobal && s.spec.DesiredReplicas() == 0 {
		return nil
	}
	var locations []string
	for _, p := range s.spec.IngressPorts() {
		locations = append(locations, p.Location())
	}
	if len(locations) == 0 {
		return nil
	}
	if !slices.ContainsFunc(s.state.Machines, func(m *Machine) bool { return m.Ingress && m.State != api.MachineGone }) {
		return fmt.Errorf("port %s of service %s: %w", s.spec.IngressPorts()[0], s.spec.Name, ErrNoIngress)
	}
	for _, m := range s.state.sorted() {
		inventories := []*api.Inventory{&m.Inventory, &m.Coming}
		if m.Unknown() && m.LastSeen != nil {
			inventories = append(inventories, m.LastSeen)
		}
		for _, inventory := range inventories {
			for i := range inventory.Containers {
				other := &inventory.Containers[i]
				if s.state.Owns(s.spec.Name, other) {
					continue
				}
				if location, serves := other.Serves(locations); serves {
					return &LocationError{Service: s.spec.Name, Location: location, Other: nameOf(other)}
				}
			}
		}
	}
	return nil
}

// nameOf returns the service of a container, and whose it is if that is known.
func nameOf(c *api.Container) string {
	if c.Owner.Operator == "" {
		return "service " + c.ServiceName
	}
	return c.Owner.String()
}

// servedAs returns where both have containers that are served.
func (t Taking) servedAs(other Taking) string {
	var locations []string
	for _, inventory := range other {
		for i := range inventory.Containers {
			for _, p := range inventory.Containers[i].Ports {
				if at := p.Location(); at != "" {
					locations = append(locations, at)
				}
			}
		}
	}
	if len(locations) == 0 {
		return ""
	}
	for _, inventory := range t {
		for i := range inventory.Containers {
			if at, serves := inventory.Containers[i].Serves(locations); serves {
				return at
			}
		}
	}
	return ""
}
