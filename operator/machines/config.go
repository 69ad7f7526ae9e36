package machines

import (
	"time"

	"github.com/cenkalti/backoff/v4"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
)

// DefaultRegistrySecret is the default of Config.RegistrySecret.
const DefaultRegistrySecret = "registry-credentials"

// DefaultRegistryPeriod is the default of Config.RegistryPeriod.
const DefaultRegistryPeriod = 5 * time.Minute

// Config configures the frameworks. The zero value is good for production.
type Config struct {
	// Domain is the domain of which host names of ports in mode ingress are made. Default: none, and such ports need a hostname.
	Domain string
	// Names has containers of a namespace on one machine reach each other by the names of their services. Its image may be that of the
	// operator, with the command names of package commands. Default: they don't.
	Names *docker.Names
	// Ingress has ports in mode ingress reached on the Machines that are marked for it (spec.ingress), and needs Names. Default: no
	// Machine is for them, and services with such ports are blocked.
	Ingress *docker.Ingress
	// RegistrySecret is the name of the Secret with the credentials for registries, of the type kubernetes.io/dockerconfigjson. It is
	// looked for in the namespace of a service, each time that an image is pulled. Default: DefaultRegistrySecret.
	RegistrySecret string
	// RegistryPeriod is the time between two questions to the registry whether the tag of an image has moved, for services with the pull
	// policy always. Default: DefaultRegistryPeriod.
	RegistryPeriod time.Duration
	// ConnectTimeout is how long an engine may take to answer, and Heartbeat the time between two questions whether it does still.
	// Default: those of docker.Config.
	ConnectTimeout, Heartbeat time.Duration
	// BackOffFactory makes what decides how long is waited before a machine that does not answer is tried again. Default: that of
	// docker.Config.
	BackOffFactory func() backoff.BackOff
	// Progress is told what happens while the plan of a service is carried out, by one goroutine at a time for each service, and
	// holds it up. Default: nobody is.
	Progress func(service informer.Key, event deployment.ProgressEvent)
}

// complete fills in the defaults. The error is one for which framework.IsInvalidConfig holds.
func (c *Config) complete() error {
	if c.RegistrySecret == "" {
		c.RegistrySecret = DefaultRegistrySecret
	}
	if c.RegistryPeriod == 0 {
		c.RegistryPeriod = DefaultRegistryPeriod
	}
	if c.Progress == nil {
		c.Progress = func(informer.Key, deployment.ProgressEvent) {}
	}
	var wrong faults.List
	if msgs := validation.IsDNS1123Subdomain(c.RegistrySecret); len(msgs) > 0 {
		wrong.Add("RegistrySecret %q is not the name of a Secret: %s", c.RegistrySecret, msgs[0])
	}
	if msgs := validation.IsDNS1123Subdomain(c.Domain); c.Domain != "" && len(msgs) > 0 {
		wrong.Add("Domain %q is not a domain: %s", c.Domain, msgs[0])
	}
	wrong.If(c.Names != nil && c.Names.Image == "", "Names needs an Image")
	wrong.If(c.Ingress != nil && (c.Ingress.Image == "" || c.Names == nil), "Ingress needs an Image, and Names")
	wrong.If(c.RegistryPeriod < 0, "RegistryPeriod must not be negative, is %s", c.RegistryPeriod)
	wrong.If(c.ConnectTimeout < 0 || c.Heartbeat < 0, "ConnectTimeout and Heartbeat must not be negative, are %s and %s", c.ConnectTimeout, c.Heartbeat)
	return wrong.Of("machines.Config")
}
