package docker

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

const (
	// holdPeriod is the time between two looks whether a container works for which a request waits.
	holdPeriod = "100ms"
	// askPeriod is how long the proxy goes by an answer of the server of names: less than leaveTime.
	askPeriod = "100ms"
)

// routes are what a proxy serves where: for each place the names of ports at which containers answer.
type routes map[place]map[target]bool

// place is where something is served.
type place struct {
	protocol   api.Protocol
	host, path string
}

// target is a port of the containers of a service.
type target struct {
	service string
	port    uint16
}

// name returns the name that the server of names knows: only the containers that have the port in mode ingress, whatever else there is of
// the service.
func (t target) name() string { return fmt.Sprintf("%d.%s.ingress", t.port, t.service) }

// add adds the ports of a container, and returns the names of them.
func (r routes) add(ports []api.PortSpec, service string) (added []string) {
	for _, p := range ports {
		at, to := place{p.Protocol, p.Hostname, p.Path}, target{service, p.ContainerPort}
		if r[at] == nil {
			r[at] = map[target]bool{}
		}
		r[at][to] = true
		if !slices.Contains(added, to.name()) {
			added = append(added, to.name())
		}
	}
	return added
}

// sorted returns the places of a protocol, of each host the longest path first.
func (r routes) sorted(protocol api.Protocol) []place {
	var places []place
	for at := range r {
		if at.protocol == protocol {
			places = append(places, at)
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(len(b.path), len(a.path)), cmp.Compare(a.path, b.path))
	})
	return places
}

// object is one of JSON.
type object = map[string]any

// configure returns the configuration of the proxy of a machine, which is JSON: https://caddyserver.com/docs/json.
func (i *Ingress) configure(found *neighbours, m Machine, resolver netip.Addr) ([]byte, error) {
	d := director{found: found, resolver: resolver, roots: found.roots(), hold: cmp.Or(i.Hold, DefaultHold)}
	servers := object{}
	if m.Ingress != nil {
		servers["plain"], servers["secure"] = d.outer()
	}
	d.named(servers)
	// With nobody to trust it would trust whom the system trusts.
	if len(d.roots) > 0 && (m.MeshAddress != "" || len(found.elsewhere) > 0) {
		servers["mesh"] = d.inner()
	}
	return json.Marshal(object{
		"admin": object{"listen": adminAddress, "config": object{"persist": false}},
		"apps": object{
			"pki": object{"certificate_authorities": object{"local": object{"install_trust": false}}},
			"tls": object{
				"certificates": object{"automate": []string{meshName}}, "automation": object{"policies": i.policies()},
			},
			// A configuration that is new waits for requests of the one before no longer than these wait for a container.
			"http": object{"servers": servers, "grace_period": d.hold.String(), "http_port": plainPort, "https_port": securePort},
		},
	})
}

// director makes the routes of a proxy.
type director struct {
	found    *neighbours
	resolver netip.Addr
	roots    []string
	hold     time.Duration
}

// outer are the servers for everybody, at ports 80 and 443.
func (d *director) outer() (plain, secure object) {
	places := routes{}
	for _, r := range []routes{d.found.routes, d.found.elsewhere} {
		for at, targets := range r {
			if places[at] == nil {
				places[at] = map[target]bool{}
			}
			maps.Copy(places[at], targets)
		}
	}
	var onPlain, onSecure []object
	for _, at := range places.sorted(api.ProtocolHTTP) {
		onPlain = append(onPlain, d.route(at, places[at]))
	}
	redirected := map[string]bool{}
	for _, at := range places.sorted(api.ProtocolHTTPS) {
		onSecure = append(onSecure, d.route(at, places[at]))
		if !redirected[at.host] {
			redirected[at.host] = true
			onPlain = append(onPlain, object{"match": []object{{"host": []string{at.host}}}, "terminal": true, "handle": []object{{
				"handler": "static_response", "status_code": 308, "headers": object{"Location": []string{"https://{http.request.host}{http.request.uri}"}},
			}}})
		}
	}
	server := func(port uint16, routes []object) object {
		return object{
			"listen": listening(port), "routes": append(routes, nothing), "automatic_https": object{"disable_redirects": true},
			// Only TCP is published.
			"protocols": []string{"h1", "h2"},
		}
	}
	return server(plainPort, onPlain), server(securePort, onSecure)
}

func listening(port uint16) []string { return []string{":" + strconv.Itoa(int(port))} }

// named adds the servers for containers on this machine, which ask for services of other machines by name, one for each port of these.
// Nothing of it is published.
func (d *director) named(servers object) {
	on := map[uint16][]object{}
	for _, to := range sorted(d.found.named) {
		on[to.port] = append(on[to.port], object{
			"match": []object{{"host": []string{to.service}}}, "terminal": true, "handle": []object{d.beyond(map[target]bool{to: true}, to.header())},
		})
	}
	for port, routes := range on {
		servers["named "+strconv.Itoa(int(port))] = object{
			"listen": listening(port), "routes": append(routes, nothing), "automatic_https": object{"disable": true}, "protocols": []string{"h1", "h2c"},
		}
	}
}

// nothing answers for places where nothing is.
var nothing = object{"handle": []object{{"handler": "static_response", "status_code": 404, "body": "no service is here\n"}}}

const (
	// meshName is in the certificates with which proxies know each other.
	meshName = "proxy.operatorkit.internal"
	// placeHeader tells another proxy which place, or which service, is asked for.
	placeHeader = "Operatorkit-Place"
)

// header is the value of placeHeader for who asks for a service by its name. No place is like it: its protocol is none.
func (t target) header() string { return "name " + t.name() }

// header is the value of placeHeader.
func (p place) header() string { return string(p.protocol) + " " + p.host + p.path }

// inner is the server for the proxies of other machines, and for this one. It leads to containers of this machine alone.
func (d *director) inner() object {
	var on []object
	lead := func(header string, targets map[target]bool) {
		handler := d.proxy(targets, target.name, 0)
		handler["headers"] = object{"request": object{"delete": []string{placeHeader}}}
		// It is a proxy that asks, which has said who asked it.
		handler["trusted_proxies"] = []string{"0.0.0.0/0", "::/0"}
		on = append(on, object{
			"match": []object{{"header": object{placeHeader: []string{header}}}}, "terminal": true, "handle": []object{handler},
		})
	}
	all := map[target]bool{}
	for _, protocol := range []api.Protocol{api.ProtocolHTTP, api.ProtocolHTTPS} {
		for _, at := range d.found.routes.sorted(protocol) {
			lead(at.header(), d.found.routes[at])
			maps.Copy(all, d.found.routes[at])
		}
	}
	for _, to := range sorted(all) {
		lead(to.header(), map[target]bool{to: true})
	}
	return object{
		"listen": listening(meshPort), "routes": append(on, nothing), "protocols": []string{"h1", "h2"},
		"automatic_https": object{"disable": true}, "strict_sni_host": false,
		"tls_connection_policies": []object{{"client_authentication": object{"mode": "require_and_verify", "trusted_ca_certs": d.roots}}},
	}
}

// roots are the authorities of the proxies that are known, as they are in configurations.
func (n *neighbours) roots() []string {
	roots := []string{}
	for _, o := range append(slices.Collect(maps.Values(n.others)), n.own) {
		if o == nil {
			continue
		}
		if block, _ := pem.Decode(o.Root); block != nil {
			roots = append(roots, base64.StdEncoding.EncodeToString(block.Bytes))
		}
	}
	slices.Sort(roots)
	return roots
}

// policies say who makes certificates.
func (i *Ingress) policies() []object {
	internal := []object{{"module": "internal"}}
	policies := []object{{"subjects": []string{meshName}, "issuers": internal}}
	switch {
	case i.Internal:
		return append(policies, object{"issuers": internal})
	case i.ACME.Directory == "" && i.ACME.Email == "" && len(i.ACME.Roots) == 0:
		return policies
	}
	issuer := object{"module": "acme"}
	if i.ACME.Directory != "" {
		issuer["ca"] = i.ACME.Directory
	}
	if i.ACME.Email != "" {
		issuer["email"] = i.ACME.Email
	}
	if len(i.ACME.Roots) > 0 {
		issuer["trusted_roots_pem_files"] = []string{rootsFile}
	}
	return append(policies, object{"issuers": []object{issuer}})
}

// route leads from a place to the containers that work, through the proxies of their machines if some are on another one.
func (d *director) route(at place, to map[target]bool) object {
	handler := d.proxy(to, target.name, 0)
	if len(d.found.elsewhere[at]) > 0 {
		handler = d.beyond(to, at.header())
	}
	match := object{"host": []string{at.host}}
	if at.path != "" {
		match["path"] = []string{at.path, at.path + "/*"}
	}
	return object{"match": []object{match}, "terminal": true, "handle": []object{handler}}
}

// beyond leads to the proxies of the machines on which targets work.
func (d *director) beyond(to map[target]bool, header string) object {
	handler := d.proxy(to, target.machines, meshPort)
	handler["headers"] = object{"request": object{"set": object{placeHeader: []string{header}}}}
	handler["transport"] = object{"protocol": "http", "tls": object{
		"root_ca_pool": d.roots, "server_name": meshName, "client_certificate_automate": meshName,
	}}
	// A machine that is lost is left alone for a while.
	handler["health_checks"] = object{"passive": object{"fail_duration": "5s"}}
	return handler
}

// sorted returns targets in an order that is always the same.
func sorted(to map[target]bool) []target {
	return slices.SortedFunc(maps.Keys(to), func(a, b target) int {
		return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.port, b.port))
	})
}

// proxy leads to the addresses of targets by their names, at a port or else at that of each.
func (d *director) proxy(targets map[target]bool, name func(target) string, port uint16) object {
	var sources []object
	for _, to := range sorted(targets) {
		sources = append(sources, object{
			"source": "a", "name": name(to) + ".", "port": strconv.Itoa(int(cmp.Or(port, to.port))), "refresh": askPeriod,
			"resolver": object{"addresses": []string{"udp/" + net.JoinHostPort(d.resolver.String(), "53")}},
		})
	}
	upstreams := sources[0]
	if len(sources) > 1 {
		upstreams = object{"source": "multi", "sources": sources}
	}
	return object{
		"handler": "reverse_proxy", "dynamic_upstreams": upstreams,
		"load_balancing": object{"try_duration": d.hold.String(), "try_interval": holdPeriod},
	}
}
