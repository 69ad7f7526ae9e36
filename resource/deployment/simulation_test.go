package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// simulation is a model of a cluster of machines with engines, to prove what must hold whatever fails and whenever. It lets
// happen what real engines refuse, such as two containers with one port, and remembers it as a violation.
type simulation struct {
	mu       sync.Mutex
	machines []*simulatedMachine
	domain   string
	// digests are the images in the registry.
	digests map[string]string
	// drain is how long containers take to stop.
	drain time.Duration
	// next numbers containers.
	next int
	// calls counts the calls; faults says what becomes of some of them.
	calls  int
	faults map[int]fault
	// dead tells that the controller was killed: none of its calls arrives.
	dead bool
	// runs counts the starts of containers by their commands.
	runs map[string]int
	// log has the calls that changed something, if they arrived.
	log []string
	// invariants are looked at after each change.
	invariants []func(s *simulation) string
	violations []string

	reservations scheduler.Reservations
}

// Reservations implements scheduler.Reserver.
func (s *simulation) Reservations() *scheduler.Reservations { return &s.reservations }

// fault is what becomes of a call.
type fault int

const (
	// lost fails before anything happens.
	lost fault = iota
	// unanswered does what it should, and fails.
	unanswered
	// killed kills the controller before anything happens.
	killed
	// killedAfter kills the controller after it happened.
	killedAfter
	// partition makes the machine unreachable.
	partition
)

type simulatedMachine struct {
	api.Machine
	containers  []*simulatedContainer
	volumes     []api.Volume
	images      []api.Image
	unreachable bool
	// forgotten is a machine of which nothing is remembered when it is unreachable.
	forgotten bool
}

type simulatedContainer struct {
	api.Container
	started time.Time
	// ends is when it will have stopped, once it was told to.
	ends time.Time
}

var (
	errLost   = errors.New("connection reset by peer")
	errKilled = errors.New("the controller was killed")
	errAway   = errors.New("no route to host")
)

// healthAfter is how long containers take to become healthy, or to turn out not to be.
const healthAfter = 2 * time.Second

// endsAfter is how long containers run whose command is to end, or to fail.
const endsAfter = 4 * time.Second

// newSimulation has a number of machines m1, m2, …
func newSimulation(machines int) *simulation {
	s := &simulation{runs: map[string]int{}, digests: map[string]string{}, faults: map[int]fault{}, domain: "example.com"}
	for i := range machines {
		name := fmt.Sprintf("m%d", i+1)
		s.machines = append(s.machines, &simulatedMachine{Machine: api.Machine{ID: "id-" + name, Name: name}})
	}
	return s
}

func (s *simulation) machine(id string) *simulatedMachine {
	i := slices.IndexFunc(s.machines, func(m *simulatedMachine) bool { return m.ID == id || m.Name == id })
	if i < 0 {
		return nil
	}
	return s.machines[i]
}

// call does what a call does to a machine, unless it fails.
func (s *simulation) call(ctx context.Context, machineID, what string, change bool, f func(m *simulatedMachine) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.dead {
		return errKilled
	}
	s.calls++
	m := s.machine(machineID)
	fault, faulty := s.faults[s.calls]
	if faulty {
		switch fault {
		case lost:
			return errLost
		case killed:
			s.dead = true
			return errKilled
		case partition:
			m.unreachable = true
		}
	}
	if m.unreachable {
		return errAway
	}
	err := f(m)
	if change && err == nil {
		s.log = append(s.log, what+" on "+m.Name)
		s.check()
	}
	if faulty && fault == unanswered {
		return errLost
	}
	if faulty && fault == killedAfter {
		s.dead = true
		return errKilled
	}
	return err
}

func (s *simulation) check() {
	for _, invariant := range s.invariants {
		if v := invariant(s); v != "" && !slices.Contains(s.violations, v) {
			s.violations = append(s.violations, fmt.Sprintf("after %s: %s", s.log[len(s.log)-1], v))
		}
	}
}

func (m *simulatedMachine) find(container string) *simulatedContainer {
	i := slices.IndexFunc(m.containers, func(c *simulatedContainer) bool { return c.ID == container || c.Name == container })
	if i < 0 {
		return nil
	}
	return m.containers[i]
}

// bad tells whether containers of an image don't work.
func bad(image string) bool { return strings.Contains(image, "bad") }

// checked tells whether the container has a health check.
func (c *simulatedContainer) checked() bool {
	check := c.Spec.Container.HealthCheck
	return check != nil && !check.Disable
}

// settle lets time do its work.
func (c *simulatedContainer) settle() {
	switch command := strings.Join(c.Spec.Container.Command, " "); {
	case c.State != api.ContainerRunning || c.Hook || time.Since(c.started) < endsAfter:
	case command == "fail":
		c.State, c.ExitCode = api.ContainerExited, 1
	case strings.HasPrefix(command, "end"):
		c.State, c.ExitCode = api.ContainerExited, 0
	}
	if c.Active() && !c.ends.IsZero() && !time.Now().Before(c.ends) {
		c.State, c.Health, c.ends = api.ContainerExited, api.HealthNone, time.Time{}
	}
	if c.State != api.ContainerRunning || time.Since(c.started) < healthAfter {
		return
	}
	image := c.Spec.Container.Image
	switch {
	case !c.checked() && bad(image):
		c.State = api.ContainerExited
	case !c.checked():
	case bad(image):
		c.Health = api.HealthUnhealthy
	default:
		c.Health = api.HealthHealthy
	}
}

func (s *simulation) settle() {
	for _, m := range s.machines {
		for _, c := range m.containers {
			c.settle()
		}
	}
}

func (s *simulation) CreateContainer(ctx context.Context, machineID string, options api.CreateContainerOptions) (string, error) {
	var id string
	err := s.call(ctx, machineID, "create "+options.Name, true, func(m *simulatedMachine) error {
		if m.find(options.Name) != nil {
			return api.ErrExists
		}
		if !m.has(options.Spec.Container.Image) {
			return fmt.Errorf("image %s: %w", options.Spec.Container.Image, api.ErrNotFound)
		}
		s.next++
		id = fmt.Sprintf("c%d", s.next)
		m.containers = append(m.containers, &simulatedContainer{Container: api.Container{
			ID: id, Name: options.Name, ServiceID: options.ServiceID, ServiceName: options.Spec.Name, Spec: options.Spec.Clone(),
			Owner: api.OwnershipOf(ctx).Owner(options.Spec.Name),
			Hook:  options.Hook, Attempt: options.Attempt, State: api.ContainerCreated, Created: metav1.NewTime(time.Unix(int64(s.next), 0)),
		}})
		return nil
	})
	return id, err
}

func (m *simulatedMachine) has(image string) bool {
	name, err := api.ParseImageName(image)
	return err == nil && slices.ContainsFunc(m.images, func(i api.Image) bool { return i.Is(name) })
}

// change calls with a container.
func (s *simulation) change(ctx context.Context, machineID, what, container string, f func(m *simulatedMachine, c *simulatedContainer)) error {
	return s.call(ctx, machineID, what+" "+container, true, func(m *simulatedMachine) error {
		c := m.find(container)
		if c == nil {
			return fmt.Errorf("container %s: %w", container, api.ErrNotFound)
		}
		c.settle()
		f(m, c)
		return nil
	})
}

func (s *simulation) StartContainer(ctx context.Context, machineID, container string) error {
	return s.change(ctx, machineID, "start", container, func(_ *simulatedMachine, c *simulatedContainer) {
		if c.State != api.ContainerRunning {
			c.State, c.started = api.ContainerRunning, time.Now()
			if !c.Hook {
				s.runs[strings.Join(c.Spec.Container.Command, " ")]++
			}
			if c.checked() && !c.Hook {
				c.Health = api.HealthStarting
			}
		}
	})
}

// StopContainer goes on when nobody waits for it any more, as engines do.
func (s *simulation) StopContainer(ctx context.Context, machineID, container string, grace time.Duration) error {
	active := false
	err := s.change(ctx, machineID, fmt.Sprintf("stop (%s)", grace), container, func(_ *simulatedMachine, c *simulatedContainer) {
		if active = c.Active(); active && c.ends.IsZero() {
			c.ends = time.Now().Add(s.drain)
		}
		c.settle()
	})
	if err != nil || !active || s.drain == 0 {
		return err
	}
	select {
	case <-time.After(s.drain):
		s.look()
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// look checks the invariants now.
func (s *simulation) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	s.check()
}

func (s *simulation) RemoveContainer(ctx context.Context, machineID, container string) error {
	return s.change(ctx, machineID, "remove", container, func(m *simulatedMachine, c *simulatedContainer) {
		m.containers = slices.DeleteFunc(m.containers, func(o *simulatedContainer) bool { return o == c })
	})
}

func (s *simulation) SetAside(ctx context.Context, machineID, container string) error {
	return s.change(ctx, machineID, "set aside", container, func(_ *simulatedMachine, c *simulatedContainer) {
		if !c.Failed() {
			c.Name += api.FailedSuffix
		}
	})
}

func (s *simulation) UpdateContainer(ctx context.Context, machineID, container string, spec api.ServiceSpec) error {
	return s.change(ctx, machineID, "update", container, func(_ *simulatedMachine, c *simulatedContainer) {
		// As engines do: what is not given stays as it is.
		from, to := spec.DeepCopy().Container, &c.Spec.Container
		if from.Resources.CPU != nil {
			to.Resources.CPU = from.Resources.CPU
		}
		if from.Resources.Memory != nil {
			to.Resources.Memory = from.Resources.Memory
		}
		if from.Resources.MemoryReservation != nil {
			to.Resources.MemoryReservation = from.Resources.MemoryReservation
		}
		to.RestartPolicy = from.RestartPolicy
	})
}

func (s *simulation) InspectContainer(ctx context.Context, machineID, container string) (api.Container, error) {
	var out api.Container
	err := s.call(ctx, machineID, "inspect", false, func(m *simulatedMachine) error {
		c := m.find(container)
		if c == nil {
			return fmt.Errorf("container %s: %w", container, api.ErrNotFound)
		}
		c.settle()
		out = c.owned()
		return nil
	})
	return out, err
}

func (s *simulation) WaitContainerReady(ctx context.Context, machineID, container string, options api.WaitOptions) error {
	begin := time.Now()
	for {
		c, err := s.InspectContainer(ctx, machineID, container)
		switch {
		case err != nil:
			return err
		case c.Over() && c.ExitCode == 0:
			return nil
		case c.State != api.ContainerRunning || c.Health == api.HealthUnhealthy:
			return fmt.Errorf("it is %s %s: %w", c.State, c.Health, api.ErrUnhealthy)
		case c.Health == api.HealthHealthy, c.Health == api.HealthNone && time.Since(begin) >= options.Monitor:
			return nil
		case c.Health == api.HealthStarting && time.Since(begin) >= options.HealthTimeout:
			return fmt.Errorf("it is not healthy after %s: %w", options.HealthTimeout, api.ErrUnhealthy)
		}
		time.Sleep(time.Second)
	}
}

func (s *simulation) WaitContainerExit(ctx context.Context, machineID, container string) (int, error) {
	var code int
	for {
		exited := false
		err := s.call(ctx, machineID, "wait for exit", false, func(m *simulatedMachine) error {
			c := m.find(container)
			if c == nil {
				return fmt.Errorf("container %s: %w", container, api.ErrNotFound)
			}
			command := strings.Join(c.Spec.Container.Command, " ")
			if !c.Hook {
				c.settle()
				exited, code = c.State == api.ContainerExited, c.ExitCode
				return nil
			}
			if command == "fail" {
				code = 1
			}
			exited = command != "hang"
			if exited {
				c.State = api.ContainerExited
			}
			return nil
		})
		if err != nil || exited {
			return code, err
		}
		time.Sleep(time.Second)
	}
}

func (s *simulation) LastLines(ctx context.Context, machineID, container string) (string, error) {
	c, err := s.InspectContainer(ctx, machineID, container)
	return "last line of " + c.Spec.Container.Image, err
}

func (s *simulation) GetDomain(context.Context) (string, error) {
	if s.domain == "" {
		return "", api.ErrNotFound
	}
	return s.domain, nil
}

func (s *simulation) InspectImage(ctx context.Context, machineID, image string) (api.Image, error) {
	var out api.Image
	err := s.call(ctx, machineID, "inspect image", false, func(m *simulatedMachine) error {
		name, err := api.ParseImageName(image)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(m.images, func(i api.Image) bool { return i.Is(name) })
		if i < 0 {
			return fmt.Errorf("image %s: %w", image, api.ErrNotFound)
		}
		out = m.images[i]
		return nil
	})
	return out, err
}

func (s *simulation) PullImage(ctx context.Context, machineID, image string, progress func(api.PullProgress)) error {
	if progress != nil {
		progress(api.PullProgress{Current: 1, Total: 2})
	}
	return s.call(ctx, machineID, "pull "+image, true, func(m *simulatedMachine) error {
		if strings.Contains(image, "absent") {
			return fmt.Errorf("manifest of %s: %w", image, api.ErrNotFound)
		}
		if !m.has(image) {
			m.images = append(m.images, api.Image{ID: "sha-" + image, Tags: []string{image}})
		}
		return nil
	})
}

func (s *simulation) ResolveDigest(_ context.Context, image string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	digest, ok := s.digests[image]
	if !ok {
		return "", fmt.Errorf("image %s: %w", image, api.ErrNotFound)
	}
	return digest, nil
}

func (s *simulation) ListMachines(ctx context.Context) ([]api.Machine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return nil, errKilled
	}
	machines := make([]api.Machine, len(s.machines))
	for i, m := range s.machines {
		machines[i] = m.Machine
		if m.unreachable && m.State == "" {
			machines[i].State, machines[i].Reason = api.MachineUnknown, errAway.Error()
			if !m.forgotten {
				seen := m.inventory()
				machines[i].LastSeen = &seen
			}
		}
	}
	return machines, ctx.Err()
}

func (m *simulatedMachine) inventory() api.Inventory {
	inventory := api.Inventory{Volumes: slices.Clone(m.volumes), Images: slices.Clone(m.images)}
	for _, c := range m.containers {
		c.settle()
		inventory.Containers = append(inventory.Containers, c.owned())
	}
	return inventory
}

// owned returns the container. One of a service that was put there by hand is of those who work outside of a framework.
func (c *simulatedContainer) owned() api.Container {
	out := *c.DeepCopy()
	if out.ServiceName != "" && out.Owner == (api.Owner{}) {
		out.Owner = api.OwnershipOf(context.Background()).Owner(out.ServiceName)
	}
	return out
}

func (s *simulation) InspectMachine(ctx context.Context, machineID string) (api.Inventory, error) {
	var out api.Inventory
	err := s.call(ctx, machineID, "inspect", false, func(m *simulatedMachine) error {
		out = m.inventory()
		return nil
	})
	return out, err
}

func (s *simulation) InspectService(ctx context.Context, nameOrID string) (api.Service, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.machines {
		for _, c := range m.containers {
			if !m.unreachable && (c.ServiceName == nameOrID || c.ServiceID == nameOrID) {
				return api.Service{ID: c.ServiceID, Name: c.ServiceName, Mode: c.Spec.Mode}, ctx.Err()
			}
		}
	}
	return api.Service{}, fmt.Errorf("service %s: %w", nameOrID, api.ErrNotFound)
}

func (s *simulation) CreateVolume(ctx context.Context, machineID string, volume api.VolumeSpec) error {
	return s.call(ctx, machineID, "create volume "+volume.Name, true, func(m *simulatedMachine) error {
		if !slices.ContainsFunc(m.volumes, func(v api.Volume) bool { return v.Name == volume.Name }) {
			m.volumes = append(m.volumes, api.VolumeOf(volume, api.Owner{}))
		}
		return nil
	})
}

var _ deployment.Client = (*simulation)(nil)

// restart brings the controller and all machines back, and ends the faults.
func (s *simulation) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead, s.faults = false, map[int]fault{}
	for _, m := range s.machines {
		m.unreachable = false
	}
}

// of returns the containers of a service, hooks and those that are kept for their logs left out, as "machine/image/state", sorted.
func (s *simulation) of(service string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	var out []string
	for _, m := range s.machines {
		for _, c := range m.containers {
			if c.ServiceName == service && !c.Hook && !c.Failed() {
				state := string(c.State)
				if c.Health != api.HealthNone {
					state = string(c.Health)
				}
				out = append(out, fmt.Sprintf("%s/%s/%s", m.Name, c.Spec.Container.Image, state))
			}
		}
	}
	slices.Sort(out)
	return out
}

// working counts the containers of a service that work.
func (s *simulation) working(service string) int {
	n := 0
	for _, m := range s.machines {
		for _, c := range m.containers {
			c.settle()
			if c.ServiceName == service && !c.Hook && c.Ready() && !bad(c.Spec.Container.Image) {
				n++
			}
		}
	}
	return n
}

// neverOnePortTwice holds that no two containers of a machine hold one port.
func neverOnePortTwice(s *simulation) string {
	for _, m := range s.machines {
		for i, a := range m.containers {
			for _, b := range m.containers[:i] {
				if a.Active() && b.Active() && api.PortsConflict(a.HostPorts(), b.HostPorts()) {
					return fmt.Sprintf("%s and %s hold one port of %s", b.Name, a.Name, m.Name)
				}
			}
		}
	}
	return ""
}

// neverTwoVersionsOfAVolume holds that no two versions of a service share a volume: on any machines, or for global services on one.
// Those that did before, when the service had more containers, count once they don't any more.
func neverTwoVersionsOfAVolume(service string, global bool) func(*simulation) string {
	shared := twoVersionsOfAVolume(service, global)
	clean := false
	return func(s *simulation) string {
		v := shared(s)
		clean = clean || v == ""
		if !clean {
			return ""
		}
		return v
	}
}

func twoVersionsOfAVolume(service string, global bool) func(*simulation) string {
	return func(s *simulation) string {
		active := map[string]string{}
		for _, m := range s.machines {
			for _, c := range m.containers {
				if c.ServiceName != service || !c.Active() {
					continue
				}
				for _, v := range c.Spec.MountedVolumes(api.VolumeTypeVolume) {
					key := v.Name
					if global {
						key += " of " + m.Name
					}
					if other, ok := active[key]; ok && other != c.Spec.Container.Image {
						return fmt.Sprintf("%s and %s share volume %s", other, c.Spec.Container.Image, key)
					}
					active[key] = c.Spec.Container.Image
				}
			}
		}
		return ""
	}
}

// machinesWith counts the machines with a container of a service that works.
func (s *simulation) machinesWith(service string) int {
	n := 0
	for _, m := range s.machines {
		if slices.ContainsFunc(m.containers, func(c *simulatedContainer) bool {
			c.settle()
			return c.ServiceName == service && !c.Hook && c.Ready() && !bad(c.Spec.Container.Image)
		}) {
			n++
		}
	}
	return n
}

// neverFewerThan holds that a number of containers, or of machines with one, work.
func neverFewerThan(service string, n int, count func(*simulation, string) int) func(*simulation) string {
	return func(s *simulation) string {
		if have := count(s, service); have < n {
			return fmt.Sprintf("%d work, fewer than %d", have, n)
		}
		return ""
	}
}

// neverTwoCopiesOfAVolume holds that no volume is on two machines, those that can't be seen included.
func neverTwoCopiesOfAVolume(s *simulation) string {
	on := map[string]string{}
	for _, m := range s.machines {
		for _, v := range m.volumes {
			if other, ok := on[v.Name]; ok {
				return fmt.Sprintf("volume %s is on %s and on %s", v.Name, other, m.Name)
			}
			on[v.Name] = m.Name
		}
	}
	return ""
}
