package inspector

import (
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/giantswarm/micrologger"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/internal/faults"
)

// The defaults of a Config.
const (
	DefaultAddress          = "127.0.0.1:8082"
	defaultRecordsPerObject = 20
	defaultObjects          = 20_000
	DefaultMemory           = 64 << 20
	defaultPlanTimeout      = 30 * time.Second
)

// Config configures an Inspector.
type Config struct {
	// Name is the name of the operator, as the page shows it. Required.
	Name string
	// Address is the host and port to listen on. On loopback everybody on the machine may look, which with kubectl
	// port-forward are those who may forward ports of the Pod. Elsewhere every request is authenticated and authorised,
	// see Authorizer, and it takes a certificate. Default: DefaultAddress.
	Address string
	// CertFile and KeyFile have the certificate, with those of intermediate authorities, and the key for TLS, in PEM. They are read
	// again when they change, ten seconds later at most. Required when Address is not on loopback: users send tokens there.
	// Default: none, which is no TLS.
	CertFile, KeyFile string
	// Logger receives what goes wrong. Required.
	Logger micrologger.Logger
	// RESTConfig tells the API server that is asked about users, when Address is not on loopback and there is no
	// Authorizer. It is not changed.
	RESTConfig *rest.Config
	// Authorizer decides who may look, on loopback too. Default: a KubernetesAuthorizer when Address is not on loopback,
	// else none.
	Authorizer Authorizer
	// RecordsPerObject is how many reconciliations are kept of one object. Default: 20.
	RecordsPerObject int
	// Objects is how many objects reconciliations are kept of: those that were reconciled last, and before them those
	// that fail. Default: 20,000.
	Objects int
	// Memory is about how many bytes all records may take. Default: DefaultMemory (64 MiB).
	Memory int
	// PlanTimeout ends a plan that takes longer, and the drawing of the graphs of an object; the page of the object does not wait for
	// these for more than a second. Default: 30 s.
	PlanTimeout time.Duration
}

// complete fills in the defaults and returns an error for which framework.IsInvalidConfig holds.
func (c *Config) complete() error {
	if c.Address == "" {
		c.Address = DefaultAddress
	}
	orDefault(&c.RecordsPerObject, defaultRecordsPerObject)
	orDefault(&c.Objects, defaultObjects)
	orDefault(&c.Memory, DefaultMemory)
	orDefault(&c.PlanTimeout, defaultPlanTimeout)

	var wrong faults.List
	wrong.If(c.Name == "", "Name must not be empty")
	wrong.If(c.Logger == nil, "Logger must not be nil")
	for name, limit := range map[string]int{"RecordsPerObject": c.RecordsPerObject, "Objects": c.Objects, "Memory": c.Memory, "PlanTimeout": int(c.PlanTimeout)} {
		wrong.If(limit < 0, "%s must not be negative", name)
	}
	c.checkAccess(&wrong)
	return wrong.Of("inspector.Config")
}

// checkAccess checks who may look from where, and fills in the Authorizer.
func (c *Config) checkAccess(wrong *faults.List) {
	if (c.CertFile == "") != (c.KeyFile == "") {
		wrong.Add("CertFile and KeyFile must be given together")
	}
	loopback, err := loopbackAddress(c.Address)
	if err != nil {
		wrong.Add("Address %q: %s", c.Address, err)
	}
	if err != nil || loopback {
		return
	}
	if c.CertFile == "" {
		wrong.Add("Address %q is not on loopback, which takes a CertFile and a KeyFile, because users send tokens there: "+
			"give a certificate, or listen on 127.0.0.1", c.Address)
	}
	if c.Authorizer != nil {
		return
	}
	if c.RESTConfig == nil {
		wrong.Add("Address %q is not on loopback, which takes a RESTConfig or an Authorizer: listen on 127.0.0.1, or say who may look", c.Address)
		return
	}
	if c.Authorizer, err = NewKubernetesAuthorizer(KubernetesAuthorizerConfig{RESTConfig: c.RESTConfig}); err != nil {
		wrong.Add("RESTConfig: %s", err)
	}
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
