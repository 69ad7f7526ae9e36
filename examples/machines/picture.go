package machines

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// width is how wide a machine is drawn, in characters.
const width = 30

// Draw draws the machines of a service beside each other, with its containers on them, from their states.
func Draw(w io.Writer, machines []v1alpha1.Machine, service *v1alpha1.MachineService) error {
	on := map[string][]string{}
	height := 0
	for _, m := range service.Status.Machines {
		for i := range m.Containers {
			on[m.Name] = append(on[m.Name], describe(m.State, &m.Containers[i]))
		}
		if len(m.Containers) == 0 {
			on[m.Name] = []string{"? what is here is not known"}
		}
		height = max(height, len(on[m.Name]))
	}
	machines = slices.SortedFunc(slices.Values(machines), func(a, b v1alpha1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	lines := make([]string, height+3)
	add := func(i int, text string) { lines[i] += text + "  " }
	for i := range machines {
		m := &machines[i]
		head := "─ " + m.Name + " "
		for _, c := range m.Status.Conditions {
			head += "(" + strings.ToLower(c.Reason) + ") "
		}
		add(0, "┌"+head+strings.Repeat("─", max(0, width-len([]rune(head))))+"┐")
		for j := range height {
			text := ""
			if j < len(on[m.Name]) {
				text = on[m.Name][j]
			}
			add(j+1, fmt.Sprintf("│%-*s│", width, " "+text))
		}
		add(height+1, "└"+strings.Repeat("─", width)+"┘")
	}
	lines[height+2] = fmt.Sprintf("service %s: %d of %d containers work and are %s", service.Name, service.Status.UpToDate,
		service.Spec.DesiredReplicas(), service.Spec.Container.Image)
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// describe says how a container is: a sign, its image, and the port at which it is reached.
func describe(machine api.MachineState, c *v1alpha1.ContainerStatus) string {
	sign := "○"
	if machine == api.MachineUnknown {
		sign = "?"
	} else if c.State == api.ContainerRunning && (c.Health == api.HealthHealthy || c.Health == api.HealthNone) {
		sign = "●"
	}
	text := sign + " " + c.Name + " " + c.Image
	for _, port := range c.Ports {
		text += fmt.Sprintf(" :%d", port.PublishedPort)
	}
	return text
}
