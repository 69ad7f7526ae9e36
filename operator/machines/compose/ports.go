package compose

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// ports converts what is published to ports of machines, and takes those of the extension as they are.
func (c *converter) ports() {
	for _, p := range take(&c.in.Ports) {
		// The library makes several of one line: an index would be that of no line.
		part, was := "ports ("+portText(p)+")", p
		published, err := uint64(0), error(nil)
		if p.Published != "" {
			published, err = strconv.ParseUint(p.Published, 10, 16)
		}
		if err != nil || p.Target > math.MaxUint16 {
			// It is a range: engines pick from those, and nobody else could tell which port is taken.
			c.lacks(part)
			continue
		}
		port := api.PortSpec{Mode: api.PortModeHost, HostIP: take(&p.HostIP), Protocol: api.Protocol(take(&p.Protocol))}
		port.ContainerPort, port.PublishedPort = uint16(p.Target), uint16(published) //nolint:gosec // they were looked at
		c.svc.Spec.Ports = append(c.svc.Spec.Ports, port)
		if p.Target, p.Published = 0, ""; p.Mode == "host" || p.Mode == "ingress" {
			// Either is a port of the machine without Swarm.
			p.Mode = ""
		}
		leftIn(c.at(part), reflect.ValueOf(was), reflect.ValueOf(p), c.out.lacks)
	}
	for i, text := range c.texts("x-ports") {
		part := fmt.Sprintf("x-ports[%d]", i)
		port, err := api.ParsePort(text)
		if err != nil {
			c.fail(part, "%w", err)
			continue
		}
		if port.Hostname != "" && !strings.Contains(port.Hostname, ".") {
			c.remark(part, port.Hostname+" is no host name by itself: the domain of the operator is added to it, without which it is refused")
		}
		c.svc.Spec.Ports = append(c.svc.Spec.Ports, port)
	}
	c.allow("x-machines", c.texts("x-machines"))
}

// portText returns a port as it can be written in one line.
func portText(p types.ServicePortConfig) string {
	text := fmt.Sprintf("%d/%s", p.Target, p.Protocol)
	if p.Published != "" {
		text = p.Published + ":" + text
	}
	switch {
	case p.HostIP == "":
		return text
	case strings.Contains(p.HostIP, ":"):
		return "[" + p.HostIP + "]:" + text
	}
	return p.HostIP + ":" + text
}

// allow keeps only those machines that are among others, too. Without any, nothing is said about machines.
func (c *converter) allow(part string, names []string) {
	to := &c.svc.Spec.Placement.Machines
	before := *to
	for _, name := range names {
		if !slices.Contains(*to, name) && len(before) == 0 {
			*to = append(*to, name)
		}
	}
	if len(before) == 0 || len(names) == 0 {
		return
	}
	*to = slices.DeleteFunc(slices.Clone(before), func(name string) bool { return !slices.Contains(names, name) })
	if len(*to) == 0 {
		c.fail(part, "no machine is left of %s: what says where the service may be has to hold all at once", strings.Join(before, ", "))
		*to = before
	}
}

// texts returns those of an extension, and takes it out: one, or a list.
func (c *converter) texts(extension string) []string {
	value, ok := c.in.Extensions[extension]
	delete(c.in.Extensions, extension)
	list, several := value.([]any)
	if !several && ok && value != nil {
		list = []any{value}
	}
	var texts []string
	for _, v := range list {
		if kind := reflect.ValueOf(v).Kind(); v == nil || kind == reflect.Map || kind == reflect.Slice {
			c.fail(extension, "it is no list of texts")
			return nil
		}
		texts = append(texts, fmt.Sprint(v))
	}
	return texts
}
