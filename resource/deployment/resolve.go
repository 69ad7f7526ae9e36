package deployment

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// ErrNoClusterDomain is a port in mode ingress without a host name, or with one without a domain, in a cluster that has no domain to make
// a whole one with.
var ErrNoClusterDomain = errors.New("the cluster has no domain: give the port a whole hostname such as www.example.com, or publish it in mode host")

// ServiceSpecResolver transforms the specifications that people write into those that are deployed: with all defaults, a name,
// host names for ports in mode ingress, and, if there is an ImageResolver, an image with its digest. What is resolved already stays
// as it is. It is safe for concurrent use.
type ServiceSpecResolver struct {
	// ClusterDomain is the domain of which host names are made. Default: none, and a port that needs one is ErrNoClusterDomain.
	ClusterDomain string
	// ImageResolver pins images to digests. Default: they stay as they are.
	ImageResolver *ImageDigestResolver
}

// Resolve returns the specification in its resolved form, or every fault of it. The one given is not changed.
func (r *ServiceSpecResolver) Resolve(spec api.ServiceSpec) (api.ServiceSpec, error) {
	if err := spec.Validate(); err != nil {
		return api.ServiceSpec{}, fmt.Errorf("the specification of service %q is not valid: %w", spec.Name, err)
	}
	spec = spec.Clone()
	spec.SetDefaults()
	if spec.Name == "" {
		name, err := GenerateServiceName(spec.Container.Image)
		if err != nil {
			return api.ServiceSpec{}, err
		}
		spec.Name = name
	}
	for i := range spec.Ports {
		if err := r.resolvePort(spec.Name, &spec.Ports[i]); err != nil {
			return api.ServiceSpec{}, err
		}
	}
	if r.ImageResolver != nil {
		image, err := r.ImageResolver.Resolve(spec.Container.Image, string(spec.Container.PullPolicy))
		if err != nil {
			return api.ServiceSpec{}, fmt.Errorf("resolve the image of service %s: %w", spec.Name, err)
		}
		spec.Container.Image = image
	}
	// Names can be too long for what is made of them.
	if err := spec.Validate(); err != nil {
		return api.ServiceSpec{}, fmt.Errorf("the specification of service %s is not valid with its defaults: %w", spec.Name, err)
	}
	return spec, nil
}

// resolveNew is Resolve for a service that is new if it has no name: it gets one that no service of the state has.
func (r *ServiceSpecResolver) resolveNew(spec api.ServiceSpec, state *scheduler.ClusterState) (api.ServiceSpec, error) {
	// What is wrong with the image the resolver says with all the other faults.
	if _, err := api.ParseImageName(spec.Container.Image); spec.Name != "" || err != nil {
		return r.Resolve(spec)
	}
	for i := 0; ; i++ {
		name, err := generatedName(spec.Container.Image, i)
		if err != nil {
			return spec, err
		}
		taken, blind := state.HasService(name)
		if len(blind) > 0 {
			return spec, fmt.Errorf("give the service of image %s a name: whether %s is that of another one is not known, because %s can't be seen",
				spec.Container.Image, name, strings.Join(blind, ", "))
		}
		if !taken {
			spec.Name = name
			return r.Resolve(spec)
		}
	}
}

func (r *ServiceSpecResolver) resolvePort(service string, p *api.PortSpec) error {
	if p.Mode != api.PortModeIngress {
		return nil
	}
	if p.PublishedPort == 0 {
		p.PublishedPort = 443
		if p.Protocol == api.ProtocolHTTP {
			p.PublishedPort = 80
		}
	}
	if wholeName(p.Hostname) {
		return nil
	}
	if r.ClusterDomain == "" {
		return fmt.Errorf("port %s of service %s: %w", p, service, ErrNoClusterDomain)
	}
	p.Hostname = cmp.Or(p.Hostname, service) + "." + r.ClusterDomain
	return nil
}

// wholeName reports whether a host name needs no domain: localhost is one (RFC 6761).
func wholeName(hostname string) bool {
	return strings.Contains(hostname, ".") || hostname == "localhost"
}

// needsDomain tells whether resolving needs the domain of the cluster.
func needsDomain(spec *api.ServiceSpec) bool {
	for _, p := range spec.Ports {
		if (p.Mode == api.PortModeIngress || p.Mode == "") && !wholeName(p.Hostname) {
			return true
		}
	}
	return false
}
