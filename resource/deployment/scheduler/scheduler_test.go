package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// cluster has machines m1, m2, … with inventories.
func cluster(inventories ...api.Inventory) *scheduler.ClusterState {
	state := &scheduler.ClusterState{}
	for i, inventory := range inventories {
		name := fmt.Sprintf("m%d", i+1)
		state.Machines = append(state.Machines, &scheduler.Machine{
			Machine: api.Machine{ID: "id-" + name, Name: name}, Inventory: inventory,
		})
	}
	return state
}

func service(change ...func(*api.ServiceSpec)) api.ServiceSpec {
	spec := api.ServiceSpec{Name: "web", Container: api.ContainerSpec{Image: "app:v1"}}
	for _, f := range change {
		f(&spec)
	}
	spec.SetDefaults()
	return spec
}

func volume(v api.VolumeSpec) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) {
		s.Volumes = append(s.Volumes, v)
		s.Container.VolumeMounts = append(s.Container.VolumeMounts, api.VolumeMount{Volume: v.Name, Path: "/" + v.Name})
	}
}

func port(ip string) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) {
		s.Ports = append(s.Ports, api.PortSpec{Mode: api.PortModeHost, HostIP: ip, PublishedPort: 80, ContainerPort: 80})
	}
}

func others(n int) api.Inventory {
	var inventory api.Inventory
	for i := range n {
		inventory.Containers = append(inventory.Containers, api.Container{ID: fmt.Sprint(i), Name: fmt.Sprintf("other-%d", i), State: api.ContainerRunning})
	}
	return inventory
}

func holding(state api.ContainerState, ip string) api.Inventory {
	return api.Inventory{Containers: []api.Container{{ID: "x", Name: "x", State: state,
		Ports: []api.PortSpec{{Mode: api.PortModeHost, HostIP: ip, PublishedPort: 80, ContainerPort: 80}}}}}
}

func with(volumes ...string) api.Inventory {
	var inventory api.Inventory
	for _, v := range volumes {
		inventory.Volumes = append(inventory.Volumes, api.Volume{Name: v, Driver: "local"})
	}
	return inventory
}

// place places containers and returns the names of the machines.
func place(t *testing.T, state *scheduler.ClusterState, spec api.ServiceSpec, n int) (string, error) {
	t.Helper()
	s, err := scheduler.New(state, spec)
	if err != nil {
		return "", err
	}
	var on []string
	for range n {
		m, err := s.Next()
		if err != nil {
			return strings.Join(on, " "), err
		}
		on = append(on, m.Name)
	}
	return strings.Join(on, " "), nil
}

func TestContainersAreSpread(t *testing.T) {
	for _, tc := range []struct {
		name  string
		state *scheduler.ClusterState
		want  string
	}{
		{"evenly, by name", cluster(others(0), others(0), others(0)), "m1 m2 m3 m1 m2"},
		{"first by containers of the service, then of all", cluster(others(3), others(0), others(1)), "m2 m3 m1 m2 m3"},
	} {
		if have, err := place(t, tc.state, service(), 5); have != tc.want || err != nil {
			t.Errorf("%s: %s, %v", tc.name, have, err)
		}
	}
}

func TestContainersAreSpreadEvenlyWhateverIsThere(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var inventories []api.Inventory
		for range rapid.IntRange(1, 8).Draw(r, "machines") {
			inventories = append(inventories, others(rapid.IntRange(0, 5).Draw(r, "others")))
		}
		s, err := scheduler.New(cluster(inventories...), service())
		if err != nil {
			r.Fatal(err)
		}
		count := map[string]int{}
		for range rapid.IntRange(0, 40).Draw(r, "containers") {
			m, err := s.Next()
			if err != nil {
				r.Fatal(err)
			}
			for _, n := range count {
				if n < count[m.Name] && len(count) == len(inventories) {
					r.Fatalf("%s gets one more: %v", m.Name, count)
				}
			}
			count[m.Name]++
		}
	})
}

// closed makes m1 take no new containers.
func closed(state *scheduler.ClusterState, drain bool) *scheduler.ClusterState {
	state.Machines[0].Unschedulable, state.Machines[0].Drain = "it is being deleted", drain
	return state
}

func TestMachinesThatTakeNoNewContainersHavePlaceForTheirs(t *testing.T) {
	s, err := scheduler.New(closed(cluster(others(0), others(0)), false), service(port("")))
	if err != nil {
		t.Fatal(err)
	}
	if s.Take("id-m1") || s.Open("id-m1") || !s.Allowed("id-m1") || s.Eligible() != 1 {
		t.Error("m1 takes a new one")
	}
	if !s.Resume("id-m1") || s.Resume("id-m1") {
		t.Error("m1 has not place for the one that it has, and only for that")
	}
	if want, got := "m1: it is being deleted, a container of the service has the port 80:80/tcp already\nm2: eligible\n", s.Report().String(); got != want {
		t.Errorf("the report is %q, want %q", got, want)
	}
}

func TestThePlaceOfAPlanDependsOnWhetherAMachineTakesContainers(t *testing.T) {
	seen := map[string]string{}
	for name, state := range map[string]*scheduler.ClusterState{
		"open": cluster(others(0)), "closed": closed(cluster(others(0)), false),
	} {
		fingerprint := state.Basis(service(), []scheduler.Place{{MachineID: "id-m1"}}).Fingerprint()
		if other, ok := seen[fingerprint]; ok {
			t.Errorf("%s is as %s", name, other)
		}
		seen[fingerprint] = name
	}
}

func TestConstraints(t *testing.T) {
	unknown := func(state *scheduler.ClusterState, last *api.Inventory) *scheduler.ClusterState {
		m := state.Machines[0]
		m.State, m.Reason, m.LastSeen = api.MachineUnknown, "no route to host", last
		return state
	}
	labelled := cluster(others(0), others(0))
	labelled.Machines[1].Labels = map[string]string{"disk": "fast"}
	gone := cluster(with("data"), others(0))
	gone.Machines[0].State = api.MachineGone
	image := api.Inventory{Images: []api.Image{{Tags: []string{"docker.io/library/app:v1"}}}}
	for _, tc := range []struct {
		name  string
		state *scheduler.ClusterState
		spec  api.ServiceSpec
		n     int
		want  string
		err   string
	}{
		{"named machines, by name and ID", cluster(others(0), others(0), others(0)),
			service(func(s *api.ServiceSpec) { s.Placement.Machines = []string{"id-m1", "m3"} }), 3, "m1 m3 m1", ""},
		{"a machine that is not there", cluster(others(0)),
			service(func(s *api.ServiceSpec) { s.Placement.Machines = []string{"m1", "m9"} }), 1, "", "not in the cluster: m9"},
		{"labels", labelled, service(func(s *api.ServiceSpec) { s.Placement.Labels = map[string]string{"disk": "fast"} }), 2, "m2 m2", ""},
		{"labels nobody has", labelled, service(func(s *api.ServiceSpec) { s.Placement.Labels = map[string]string{"disk": "slow"} }), 1, "",
			"m1, m2: it has no label disk=slow"},
		{"a port somebody holds", cluster(holding(api.ContainerRunning, ""), others(0)), service(port("")), 2, "m2", "container x holds port 80:80/tcp"},
		{"a port at all addresses, one wanted", cluster(holding(api.ContainerRunning, "0.0.0.0"), others(0)), service(port("10.0.0.1")), 1, "m2", ""},
		{"a port at all addresses of IPv6", cluster(holding(api.ContainerRunning, "::"), others(0)), service(port("10.0.0.1")), 1, "m2", ""},
		{"a port at one address, all wanted", cluster(holding(api.ContainerRunning, "10.0.0.1"), others(0)), service(port("::")), 1, "m2", ""},
		{"a port at another address", cluster(holding(api.ContainerRunning, "10.0.0.1")), service(port("10.0.0.2")), 1, "m1", ""},
		{"a port of what does not run", cluster(holding(api.ContainerExited, "")), service(port("")), 1, "m1", ""},
		{"one container with a port on each machine", cluster(others(0), others(0)), service(port("")), 3, "m1 m2",
			"m1, m2: a container of the service has the port 80:80/tcp already"},
		{"where the volume is", cluster(others(0), with("data"), others(0)), service(volume(api.VolumeSpec{Name: "data"})), 2, "m2 m2", ""},
		{"where both volumes are", cluster(with("a"), with("a", "b"), with("b")),
			service(volume(api.VolumeSpec{Name: "a"}), volume(api.VolumeSpec{Name: "b"})), 2, "m2 m2", ""},
		{"a volume on two machines", cluster(others(0), with("data"), with("data")), service(volume(api.VolumeSpec{Name: "data"})), 2, "m2 m3", ""},
		{"a new volume is made once", cluster(others(1), others(0)), service(volume(api.VolumeSpec{Name: "data"})), 3, "m2 m2 m2", ""},
		{"a volume where the service may not be", cluster(with("data"), others(0)),
			service(volume(api.VolumeSpec{Name: "data"}), func(s *api.ServiceSpec) { s.Placement.Machines = []string{"m2"} }), 1, "", "m2: volume data is on m1"},
		{"a volume of others that is nowhere", cluster(others(0)), service(volume(api.VolumeSpec{Name: "data", External: true})), 1, "", "is not ours to make"},
		{"a volume of another driver where the service can't be", cluster(with("data"), others(0)),
			service(volume(api.VolumeSpec{Name: "data", Driver: &api.VolumeDriver{Name: "nfs"}}), func(s *api.ServiceSpec) { s.Placement.Machines = []string{"m2"} }),
			1, "m2", ""},
		{"a volume of another driver", cluster(with("data")), service(volume(api.VolumeSpec{Name: "data", Driver: &api.VolumeDriver{Name: "nfs"}})), 1, "",
			"volume data is of driver local, not nfs"},
		{"a volume on a machine that can't be seen", unknown(cluster(others(0), others(0)), new(with("data"))),
			service(volume(api.VolumeSpec{Name: "data"})), 1, "", "m2: volume data is on m1, which can't be seen"},
		{"a volume that may be on a machine that can't be seen", unknown(cluster(others(0), others(0)), nil),
			service(volume(api.VolumeSpec{Name: "data"})), 1, "", "m2: volume data may be on m1, which can't be seen"},
		{"a volume that is not on a machine that can't be seen", unknown(cluster(others(0), others(0)), new(with("b"))),
			service(volume(api.VolumeSpec{Name: "data"})), 1, "m2", ""},
		{"a volume on a machine that is gone", gone, service(volume(api.VolumeSpec{Name: "data"})), 1, "m2", ""},
		{"an image that must not be pulled", cluster(others(0), image), service(func(s *api.ServiceSpec) { s.Container.PullPolicy = api.PullNever }), 2, "m2 m2", ""},
		{"an image that is nowhere", cluster(others(0)), service(func(s *api.ServiceSpec) { s.Container.PullPolicy = api.PullNever }), 1, "",
			"m1: image app:v1 is not there, and the pull policy is never"},
		{"a machine that can't be seen", unknown(cluster(others(0)), nil), service(), 1, "", "m1: can't be seen: no route to host"},
		{"a machine that takes no new containers", closed(cluster(others(0), others(0)), false), service(), 2, "m2 m2", ""},
		{"a machine that is drained", closed(cluster(others(0)), true), service(), 1, "", "m1: it is being deleted"},
		{"where the volume is, on a machine that takes no new containers", closed(cluster(with("data"), others(0)), false),
			service(volume(api.VolumeSpec{Name: "data"})), 1, "", "m1: it is being deleted; m2: volume data is on m1"},
		{"no machines", cluster(), service(), 1, "", "the cluster has no machines"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			have, err := place(t, tc.state, tc.spec, tc.n)
			if have != tc.want {
				t.Errorf("on %q, not %q", have, tc.want)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestTheReportSaysAllThatSpeaksAgainstAMachine(t *testing.T) {
	state := cluster(holding(api.ContainerRunning, ""), others(0), with("data"))
	s, err := scheduler.New(state, service(port(""), volume(api.VolumeSpec{Name: "data"})))
	if err != nil {
		t.Fatal(err)
	}
	want := "m1: volume data is on m3, container x holds port 80:80/tcp\nm2: volume data is on m3\nm3: eligible\n"
	if diff := cmp.Diff(want, s.Report().String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// seen is a client of which m2 does not answer.
type seen struct{ list error }

func (c seen) ListMachines(context.Context) ([]api.Machine, error) {
	return []api.Machine{{ID: "1", Name: "m1"}, {ID: "2", Name: "m2"}, {ID: "3", Name: "m3", State: api.MachineGone}}, c.list
}

func (c seen) InspectMachine(_ context.Context, id string) (api.Inventory, error) {
	switch id {
	case "1":
		return with("data"), nil
	case "2":
		return api.Inventory{}, errors.New("no route to host")
	}
	return api.Inventory{}, errors.New("asked for a machine that is gone")
}

func TestAMachineThatDoesNotAnswerIsUnknown(t *testing.T) {
	state, err := scheduler.Inspect(t.Context(), seen{})
	if err != nil {
		t.Fatal(err)
	}
	m1, m2, m3 := state.Machines[0], state.Machines[1], state.Machines[2]
	if !m1.Available() || len(m1.Inventory.Volumes) != 1 || !m2.Unknown() || !m2.Blind() || m2.Reason != "no route to host" || m3.Unknown() || m3.Available() {
		t.Errorf("got %+v, %+v, %+v", m1, m2, m3)
	}
	if _, err := scheduler.Inspect(t.Context(), seen{list: errors.New("forbidden")}); err == nil {
		t.Error("a list that can't be had is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := scheduler.Inspect(ctx, seen{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
