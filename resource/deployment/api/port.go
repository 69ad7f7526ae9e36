package api

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// PortMode says how a port is reached from outside.
type PortMode string

const (
	// PortModeIngress is through the proxy of a machine that is marked for it (Machine.Ingress), by the host name and the beginning of the
	// path. Protocols: http, https.
	PortModeIngress PortMode = "ingress"
	// PortModeHost is at a port of the machine. Protocols: tcp, udp, sctp.
	PortModeHost PortMode = "host"
)

// Protocol is what is spoken at a port.
type Protocol string

// The protocols.
const (
	ProtocolHTTP  Protocol = "http"
	ProtocolHTTPS Protocol = "https"
	ProtocolTCP   Protocol = "tcp"
	ProtocolUDP   Protocol = "udp"
	ProtocolSCTP  Protocol = "sctp"
)

// PortSpec is a port of a service that is reached from outside.
type PortSpec struct {
	// Mode is ingress or host. Default: ingress.
	// +kubebuilder:validation:Enum=ingress;host
	// +optional
	Mode PortMode `json:"mode,omitempty"`
	// Hostname is the name under which a proxy serves it, in mode ingress; one without a dot, such as www, is in the cluster's domain.
	// Default: the service's name. No other service of the cluster has the same name with the same path.
	// +optional
	Hostname string `json:"hostname,omitempty"`
	// Path is the beginning of the paths that are served, in mode ingress: /api is that and all below it, and comes before what is served
	// at / of the same host. The container is asked for the whole path. Default: all paths.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	Path string `json:"path,omitempty"`
	// HostIP is the address of the machine, in mode host, or a range such as 10.0.0.0/8 for those of its Addresses that are in it: a
	// machine without one is left out. Default: all addresses, as with 0.0.0.0 and ::.
	// +optional
	HostIP string `json:"hostIP,omitempty"`
	// PublishedPort is the port of the machine or of the proxy. Default: in mode host one that the engine picks, else that of the protocol,
	// 80 or 443, and no other one.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	PublishedPort uint16 `json:"publishedPort,omitempty"`
	// ContainerPort is the port in the container.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ContainerPort uint16 `json:"containerPort"`
	// Protocol is http or https in mode ingress, tcp, udp or sctp in mode host. Default: https or tcp.
	// +kubebuilder:validation:Enum=http;https;tcp;udp;sctp
	// +optional
	Protocol Protocol `json:"protocol,omitempty"`
}

func (p *PortSpec) setDefaults() {
	if p.Mode == "" {
		p.Mode = PortModeIngress
	}
	if p.Protocol == "" {
		p.Protocol = p.defaultProtocol()
	}
}

func (p *PortSpec) defaultProtocol() Protocol {
	if p.Mode == PortModeHost {
		return ProtocolTCP
	}
	return ProtocolHTTPS
}

// ingressPort is the port of a proxy for a protocol.
func (p PortSpec) ingressPort() uint16 {
	if p.Protocol == ProtocolHTTP {
		return 80
	}
	return 443
}

// Location returns the host name and the path under which a proxy serves the port, such as www.example.com/api. It is empty in mode host,
// and before the specification is resolved if Hostname is left to the default.
func (p PortSpec) Location() string {
	if p.Mode == PortModeHost || p.Hostname == "" {
		return ""
	}
	return p.Hostname + p.Path
}

// servedAs tells whether a proxy would serve two ports in one place.
func (p PortSpec) servedAs(other PortSpec) bool {
	p.setDefaults()
	other.setDefaults()
	return p.Mode == PortModeIngress && other.Mode == PortModeIngress && p.Protocol == other.Protocol && p.Hostname == other.Hostname && p.Path == other.Path
}

// HoldsHostPort tells whether a container with the port holds a fixed port of its machine.
func (p PortSpec) HoldsHostPort() bool {
	return p.Mode == PortModeHost && p.PublishedPort != 0
}

// ConflictsWith reports whether two containers with these ports can't run on one machine. An address that is not given is all addresses. So
// are 0.0.0.0 and ::, of both families, but each leaves the other its own.
func (p PortSpec) ConflictsWith(other PortSpec) bool {
	p.setDefaults()
	other.setDefaults()
	if !p.HoldsHostPort() || !other.HoldsHostPort() || p.PublishedPort != other.PublishedPort || p.Protocol != other.Protocol {
		return false
	}
	a, b := p.addresses(), other.addresses()
	if a.Addr().IsUnspecified() && b.Addr().IsUnspecified() && p.HostIP != "" && other.HostIP != "" {
		return a.Addr() == b.Addr()
	}
	return a.Addr().IsUnspecified() || b.Addr().IsUnspecified() || a.Overlaps(b)
}

// addresses are 0.0.0.0 for what is none too, which Validate refuses: what is not understood may be everything.
func (p PortSpec) addresses() netip.Prefix {
	if r, ok := p.HostRange(); ok {
		return r
	}
	a, err := netip.ParseAddr(p.HostIP)
	if err != nil {
		a = netip.IPv4Unspecified()
	}
	a = a.Unmap()
	return netip.PrefixFrom(a, a.BitLen())
}

// HostRange returns the range of addresses that HostIP is, or false if it is none.
func (p PortSpec) HostRange() (netip.Prefix, bool) {
	r, err := netip.ParsePrefix(p.HostIP)
	return r.Masked(), err == nil
}

// HostIPs returns the addresses of a machine with certain ones at which the port is published. It has HostIP alone, which may be empty,
// unless that is a range.
func (p PortSpec) HostIPs(machine []string) []string {
	r, ok := p.HostRange()
	if !ok {
		return []string{p.HostIP}
	}
	var in []string
	for _, text := range machine {
		if a, err := netip.ParseAddr(text); err == nil && r.Contains(a.Unmap()) {
			in = append(in, text)
		}
	}
	return in
}

// String returns the port as 127.0.0.1:80:8080/tcp, www.example.com:8080/https or www.example.com/api:8080/https.
func (p PortSpec) String() string {
	p.setDefaults()
	s := fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol)
	if p.PublishedPort != 0 {
		s = strconv.Itoa(int(p.PublishedPort)) + ":" + s
	}
	switch {
	case p.Mode == PortModeIngress && p.Hostname+p.Path != "":
		return p.Hostname + p.Path + ":" + s
	case p.Mode == PortModeHost && p.HostIP != "":
		address, bits, ranged := strings.Cut(p.HostIP, "/")
		if p.addresses().Addr().Is6() {
			address = "[" + address + "]"
		}
		if ranged {
			address += "/" + bits
		}
		return address + ":" + s
	}
	return s
}

// PortsConflict tells whether some port of one list conflicts with some of the other.
func PortsConflict(a, b []PortSpec) bool {
	return slices.ContainsFunc(a, func(p PortSpec) bool { return slices.ContainsFunc(b, p.ConflictsWith) })
}

// ParsePort reads a port as String writes it, such as 127.0.0.1:80:8080/tcp or www.example.com/api:8080/https: what comes before the port
// in the container is the published one, and before that the address of the machine, or the host name with the path. The protocol says
// the mode; without one it is that of a host name, https, or else tcp. The mode can be written after them, as in 80:8080@host.
func ParsePort(text string) (PortSpec, error) {
	wrong := func(format string, args ...any) (PortSpec, error) {
		return PortSpec{}, fmt.Errorf("port %q: %s: write [ADDRESS:][PUBLISHED:]PORT[/tcp|udp|sctp][@host] or "+
			"[HOSTNAME[/PATH]:][PUBLISHED:]PORT[/http|https][@ingress]", text, fmt.Sprintf(format, args...))
	}
	name, rest := "", text
	if bracketed, inside := strings.CutPrefix(text, "["); inside {
		address, after, closed := strings.Cut(bracketed, "]")
		bits, following, more := strings.Cut(after, ":")
		switch name, rest = address+bits, following; {
		case !closed:
			return wrong("there is no ] to the [")
		case bits != "" && bits[0] != '/' || !isAddress(name):
			return wrong("%q is not an address", "["+address+"]"+bits)
		case !more:
			return wrong("no port follows the address")
		}
	} else if strings.Count(text, ":") > 2 {
		return wrong("%q is not an address: one of IPv6 is written in brackets", beforePorts(text))
	} else if first, after, more := strings.Cut(text, ":"); more {
		if _, err := strconv.ParseUint(first, 10, 16); err != nil {
			name, rest = first, after
		}
	}
	published, last, both := strings.Cut(rest, ":")
	if !both {
		published, last = "0", rest
	}
	last, mode, saysMode := strings.Cut(last, "@")
	in, protocol, spoken := strings.Cut(last, "/")
	p := PortSpec{Protocol: Protocol(protocol)}
	for _, port := range []struct {
		text string
		to   *uint16
		min  uint64
	}{{published, &p.PublishedPort, 0}, {in, &p.ContainerPort, 1}} {
		n, err := strconv.ParseUint(port.text, 10, 16)
		if err != nil || n < port.min {
			return wrong("%q is not a port", port.text)
		}
		*port.to = uint16(n)
	}
	switch p.Protocol {
	case ProtocolHTTP, ProtocolHTTPS:
		p.Mode = PortModeIngress
	case ProtocolTCP, ProtocolUDP, ProtocolSCTP:
		p.Mode = PortModeHost
	default:
		if spoken {
			return wrong("the protocol is none of tcp, udp, sctp, http, https, but %q", protocol)
		}
	}
	switch {
	case saysMode && mode != string(PortModeHost) && mode != string(PortModeIngress):
		return wrong("%q is not a mode", mode)
	case saysMode && spoken && mode != string(p.Mode):
		return wrong("protocol %s is not for mode %s", protocol, mode)
	case saysMode:
		p.Mode = PortMode(mode)
	case spoken:
	case name != "" && !isAddress(name):
		p.Mode = PortModeIngress
	default:
		p.Mode = PortModeHost
	}
	switch {
	case p.Mode == PortModeHost && name != "" && !isAddress(name):
		return wrong("%q is not an address of a machine, which it has to be in mode host", name)
	case p.Mode == PortModeHost:
		p.HostIP = name
	default:
		if host, path, found := strings.Cut(name, "/"); found {
			name, p.Path = host, "/"+path
		}
		p.Hostname = name
	}
	p.setDefaults()
	return p, nil
}

// isAddress reports whether a text is an address of a machine or a range of them.
func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	_, ranged := PortSpec{HostIP: text}.HostRange()
	return err == nil || ranged
}

// beforePorts returns what is before the last two of the parts between colons, or before the last one if only that is an address.
func beforePorts(text string) string {
	one := text[:strings.LastIndex(text, ":")]
	two := one[:strings.LastIndex(one, ":")]
	if !isAddress(two) && isAddress(one) {
		return one
	}
	return two
}
