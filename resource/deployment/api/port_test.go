package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

func TestAPortIsReadFromItsShortForm(t *testing.T) {
	for text, want := range map[string]api.PortSpec{
		"8080":                            {Mode: api.PortModeHost, ContainerPort: 8080, Protocol: api.ProtocolTCP},
		"80:8080":                         {Mode: api.PortModeHost, PublishedPort: 80, ContainerPort: 8080, Protocol: api.ProtocolTCP},
		"53:53/udp":                       {Mode: api.PortModeHost, PublishedPort: 53, ContainerPort: 53, Protocol: api.ProtocolUDP},
		"127.0.0.1:80:8080/tcp":           {Mode: api.PortModeHost, HostIP: "127.0.0.1", PublishedPort: 80, ContainerPort: 8080, Protocol: api.ProtocolTCP},
		"[::1]:80:8080":                   {Mode: api.PortModeHost, HostIP: "::1", PublishedPort: 80, ContainerPort: 8080, Protocol: api.ProtocolTCP},
		"10.0.0.0/8:80:8080":              {Mode: api.PortModeHost, HostIP: "10.0.0.0/8", PublishedPort: 80, ContainerPort: 8080, Protocol: api.ProtocolTCP},
		"[fd00::]/8:80:8080/udp":          {Mode: api.PortModeHost, HostIP: "fd00::/8", PublishedPort: 80, ContainerPort: 8080, Protocol: api.ProtocolUDP},
		"8080/http":                       {Mode: api.PortModeIngress, ContainerPort: 8080, Protocol: api.ProtocolHTTP},
		"www.example.com:8080":            {Mode: api.PortModeIngress, Hostname: "www.example.com", ContainerPort: 8080, Protocol: api.ProtocolHTTPS},
		"www.example.com:80:81/http":      {Mode: api.PortModeIngress, Hostname: "www.example.com", PublishedPort: 80, ContainerPort: 81, Protocol: api.ProtocolHTTP},
		"www.example.com/api:8080":        {Mode: api.PortModeIngress, Hostname: "www.example.com", Path: "/api", ContainerPort: 8080, Protocol: api.ProtocolHTTPS},
		"80:8080@host":                    {Mode: api.PortModeHost, PublishedPort: 80, ContainerPort: 8080, Protocol: api.ProtocolTCP},
		"53:53/udp@host":                  {Mode: api.PortModeHost, PublishedPort: 53, ContainerPort: 53, Protocol: api.ProtocolUDP},
		"127.0.0.1:80:8080@host":          {Mode: api.PortModeHost, HostIP: "127.0.0.1", PublishedPort: 80, ContainerPort: 8080, Protocol: api.ProtocolTCP},
		"8080@ingress":                    {Mode: api.PortModeIngress, ContainerPort: 8080, Protocol: api.ProtocolHTTPS},
		"www.example.com:80/http@ingress": {Mode: api.PortModeIngress, Hostname: "www.example.com", ContainerPort: 80, Protocol: api.ProtocolHTTP},
		"/api/v1:8080/http":               {Mode: api.PortModeIngress, Path: "/api/v1", ContainerPort: 8080, Protocol: api.ProtocolHTTP},
	} {
		got, err := api.ParsePort(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
		if again, err := api.ParsePort(got.String()); err != nil || again != got {
			t.Errorf("%s is written as %s, and read as %+v, %v", text, got, again, err)
		}
	}
	for text, want := range map[string]string{
		"": `"" is not a port`, "0": `"0" is not a port`, "70000": `"70000" is not a port`, "80:x": `"x" is not a port`, "80:80:80": `"80:80" is not a port`,
		"[::1:80:8080/tcp": "there is no ] to the [", "[::1]": "no port follows the address", "[::1]/8": "no port follows the address",
		"[::1]8:80": `"[::1]8" is not an address`, "[www]:80": `"[www]" is not an address`, "[::1]/999:80": `"[::1]/999" is not an address`,
		"2001:db8::1:80:8080": `"2001:db8::1" is not an address: one of IPv6 is written in brackets`, "::1:8080": `"::1" is not an address: one of IPv6`,
		"2001:db8::1:80:8080/tcp": `"2001:db8::1" is not an address`, "80:81:82:83": `"80:81" is not an address`,
		"8080/tcp/udp": `but "tcp/udp"`, "80:8080/tcp/udp": `but "tcp/udp"`, "10.0.0.1:80:8080/": `but ""`, "80:x/tcp": `"x" is not a port`,
		"80@far": `"far" is not a mode`, "80@": `"" is not a mode`, "80/udp@ingress": "protocol udp is not for mode ingress",
		"80/http@host": "protocol http is not for mode host", "www.example.com:80@host": `"www.example.com" is not an address`,
		"80/icmp": "the protocol is none of", "80/": "the protocol is none of", "www.example.com:80/tcp": `"www.example.com" is not an address`,
	} {
		if _, err := api.ParsePort(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "write [ADDRESS:]") {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
