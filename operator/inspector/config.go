package inspector

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/giantswarm/micrologger"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
)

// The defaults of a Config.
const (
	DefaultAddress          = "127.0.0.1:8082"
	DefaultRecordsPerObject = 20
	DefaultObjects          = 20_000
	DefaultMemory           = 64 << 20
	DefaultPlanTimeout      = 30 * time.Second
)

// Config configures an Inspector.
type Config struct {
	// Name is the name of the operator, as the page shows it. Required.
	Name string
	// Address is the host and port to listen on. On loopback everybody on the machine may look, which with kubectl
	// port-forward are those who may forward ports of the Pod. Elsewhere every request is authenticated and authorised,
	// see Authorizer. Default: DefaultAddress.
	Address string
	// Logger receives what goes wrong. Required.
	Logger micrologger.Logger
	// RESTConfig tells the API server that is asked about users, when Address is not on loopback and there is no
	// Authorizer. It is not changed.
	RESTConfig *rest.Config
	// Authorizer decides who may look, on loopback too. Default: a KubernetesAuthorizer when Address is not on loopback,
	// else none.
	Authorizer Authorizer
	// RecordsPerObject is how many reconciliations are kept of one object. Default: DefaultRecordsPerObject (20).
	RecordsPerObject int
	// Objects is how many objects reconciliations are kept of: those that were reconciled last, and before them those
	// that fail. Default: DefaultObjects (20,000).
	Objects int
	// Memory is about how many bytes all records may take. Default: DefaultMemory (64 MiB).
	Memory int
	// PlanTimeout ends a plan that takes longer, and the drawing of the graphs of an object. Default: DefaultPlanTimeout (30 s).
	PlanTimeout time.Duration
}

// complete fills in the defaults and returns an error for which framework.IsInvalidConfig holds.
func (c *Config) complete() error {
	if c.Address == "" {
		c.Address = DefaultAddress
	}
	orDefault(&c.RecordsPerObject, DefaultRecordsPerObject)
	orDefault(&c.Objects, DefaultObjects)
	orDefault(&c.Memory, DefaultMemory)
	orDefault(&c.PlanTimeout, DefaultPlanTimeout)

	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if c.Name == "" {
		fault("Name must not be empty")
	}
	if c.Logger == nil {
		fault("Logger must not be nil")
	}
	for name, limit := range map[string]int{"RecordsPerObject": c.RecordsPerObject, "Objects": c.Objects, "Memory": c.Memory, "PlanTimeout": int(c.PlanTimeout)} {
		if limit < 0 {
			fault("%s must not be negative", name)
		}
	}
	switch loopback, err := loopbackAddress(c.Address); {
	case err != nil:
		fault("Address %q: %s", c.Address, err)
	case !loopback && c.Authorizer == nil && c.RESTConfig == nil:
		fault("Address %q is not on loopback, which takes a RESTConfig or an Authorizer: listen on 127.0.0.1, or say who may look", c.Address)
	case !loopback && c.Authorizer == nil:
		authorizer, err := NewKubernetesAuthorizer(KubernetesAuthorizerConfig{RESTConfig: c.RESTConfig})
		if err != nil {
			fault("RESTConfig: %s", err)
		}
		c.Authorizer = authorizer
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: inspector.Config: %s", framework.ErrInvalidConfig, strings.Join(faults, "; "))
	}
	return nil
}

func orDefault[T int | time.Duration](value *T, otherwise T) {
	if *value == 0 {
		*value = otherwise
	}
}

// loopbackAddress tells whether only this machine can reach the address.
func loopbackAddress(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, err
	}
	return loopbackHost(host), nil
}

// loopbackHost tells whether a name or an IP address is that of loopback.
func loopbackHost(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
