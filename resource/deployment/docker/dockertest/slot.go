package dockertest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// slot is a place for an engine, one of those that the machine has. It is held by a lock that ends with the program.
type slot struct {
	number int
	dir    string
	lock   *flock.Flock
}

const (
	// slots is how many engines the machine has place for.
	slots = 64
	// base is the folder of the slots. It is the same for all programs, whatever folder they have for temporary files, because bridges
	// belong to the machine.
	base = "/var/tmp/operatorkit-dockertest"
)

// take returns a slot that is free, without what an engine before has left there.
func take() (*slot, error) {
	if err := os.MkdirAll(base, 0o711); err != nil {
		return nil, err
	}
	for n := range slots {
		name := strconv.Itoa(n)
		s := &slot{number: n, dir: filepath.Join(base, name), lock: flock.New(filepath.Join(base, name+".lock"))}
		switch held, err := s.lock.TryLock(); {
		case err != nil:
			return nil, fmt.Errorf("take a place for an engine: %w", err)
		case !held:
			continue
		}
		if err := s.tidy(); err != nil {
			return nil, errors.Join(fmt.Errorf("tidy up place %d for an engine: %w", n, err), s.lock.Unlock())
		}
		// Users of containers need to reach what is mounted.
		if err := os.MkdirAll(s.dir, 0o711); err != nil {
			return nil, errors.Join(err, s.lock.Unlock())
		}
		return s, nil
	}
	return nil, fmt.Errorf("%d engines for tests run already", slots)
}

func (s *slot) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

func (s *slot) bridgeName() string { return "okit" + strconv.Itoa(s.number) }

// address is where the ports of containers are published: one of the loopback addresses, which no other engine has.
func (s *slot) address() string { return fmt.Sprintf("127.18.%d.1", s.number) }

// bridgeAddress is that of the engine's bridge.
func (s *slot) bridgeAddress() string { return fmt.Sprintf("198.18.%d.1", s.number) }

// arguments are those of dockerd. It must not read the configuration of the engine that the machine may have.
func (s *slot) arguments() []string {
	return []string{
		"--config-file", s.path("daemon.json"), "--data-root", s.path("data"), "--exec-root", s.path("exec"),
		"--pidfile", s.path("docker.pid"), "--host", "unix://" + s.path("docker.sock"), "--bridge", s.bridgeName(),
		"--ip", s.address(), "--default-address-pool", "base=" + s.networks() + ",size=28", "--iptables=false", "--ip-masq=false", "--ip-forward=false", "--log-level", "warn",
	}
}

// bridge makes the engine's bridge, if there is none, and the configuration.
func (s *slot) bridge() error {
	if err := os.WriteFile(s.path("daemon.json"), []byte("{}\n"), 0o600); err != nil {
		return err
	}
	if err := s.letThrough(); err != nil {
		return err
	}
	if _, err := os.Stat("/sys/class/net/" + s.bridgeName()); err == nil {
		return nil
	}
	for _, arguments := range [][]string{
		{"link", "add", "name", s.bridgeName(), "type", "bridge"},
		{"address", "add", s.bridgeAddress() + "/24", "dev", s.bridgeName()},
		{"link", "set", s.bridgeName(), "up"},
	} {
		if err := run("ip", arguments...); err != nil {
			return err
		}
	}
	return nil
}

// networks are the addresses of the networks that are made on the engine.
func (s *slot) networks() string { return fmt.Sprintf("198.19.%d.0/24", s.number) }

// rule is the one of the firewall, where an engine that the machine has for other purposes may let through only what is of its own.
func (s *slot) rule() []string {
	return []string{"FORWARD", "-s", s.networks(), "-d", s.networks(), "-j", "ACCEPT"}
}

// letThrough lets containers on networks of the engine reach each other.
func (s *slot) letThrough() error {
	if run("iptables", append([]string{"-w", "-C"}, s.rule()...)...) == nil {
		return nil
	}
	return run("iptables", append([]string{"-w", "-I"}, s.rule()...)...)
}

// takeNetworks takes away what an engine has left of its networks, and the rule.
func (s *slot) takeNetworks() error {
	for run("iptables", append([]string{"-w", "-C"}, s.rule()...)...) == nil {
		if err := run("iptables", append([]string{"-w", "-D"}, s.rule()...)...); err != nil {
			return err
		}
	}
	links, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, link := range links {
		addresses, err := link.Addrs()
		if err != nil {
			continue // it has gone
		}
		if slices.ContainsFunc(addresses, func(a net.Addr) bool { return strings.HasPrefix(a.String(), fmt.Sprintf("198.19.%d.", s.number)) }) {
			if err := run("ip", "link", "delete", link.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func run(name string, arguments ...string) error {
	program, err := find(name)
	if err != nil {
		return err
	}
	out, err := exec.Command(program, arguments...).CombinedOutput() //nolint:gosec // the program is found in the system's folders
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// release takes away all that is of the engine, which does not run any more, and lets go of the slot.
func (s *slot) release() error {
	return errors.Join(s.tidy(), s.lock.Unlock())
}

func (s *slot) tidy() error {
	if err := s.endAll(); err != nil {
		return err
	}
	if _, err := os.Stat("/sys/class/net/" + s.bridgeName()); err == nil {
		if err := run("ip", "link", "delete", s.bridgeName()); err != nil {
			return err
		}
	}
	if err := s.takeNetworks(); err != nil {
		return err
	}
	return os.RemoveAll(s.dir)
}

// lose ends what an engine that was killed has left running, its containers among them, and takes away what is mounted and what says what runs,
// as when a machine loses its power.
func (s *slot) lose() error {
	return errors.Join(s.endAll(), os.RemoveAll(s.path("exec")), os.RemoveAll(s.path("docker.pid")))
}

// endAll ends what runs on the slot, and unmounts what is mounted below it.
func (s *slot) endAll() error {
	if err := s.endLeftover(); err != nil {
		return err
	}
	for deadline := time.Now().Add(stopTimeout); ; time.Sleep(pollPeriod) {
		left, err := s.containers()
		switch {
		case err != nil:
			return err
		case len(left) == 0:
			return s.unmount()
		case time.Now().After(deadline):
			return fmt.Errorf("the processes %v of an earlier engine do not end", left)
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// containers are the processes that mind the containers of the slot, and those that are the containers, which end with all in them.
func (s *slot) containers() (pids []int, err error) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	parents := map[int]int{}
	for _, process := range processes {
		pid, _ := strconv.Atoi(filepath.Base(process)) // its name is a number
		status, err := os.ReadFile(filepath.Join(process, "stat"))
		if err != nil {
			continue // It has ended.
		}
		// The name of the program, which is in brackets, may be anything.
		fields := strings.Fields(string(status[strings.LastIndex(string(status), ")")+1:]))
		if len(fields) > 1 && fields[0] != "Z" {
			parents[pid], _ = strconv.Atoi(fields[1])
		}
	}
	for pid, parent := range parents {
		if s.runs(pid) || s.runs(parent) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// endLeftover ends an engine, and its containerd, that an earlier program has left.
func (s *slot) endLeftover() error {
	for _, file := range []string{s.path("docker.pid"), s.path("exec", "containerd", "containerd.pid")} {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			continue // It was killed between making the file and writing it.
		}
		for deadline := time.Now().Add(stopTimeout); s.runs(pid); time.Sleep(pollPeriod) {
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d of an earlier engine does not end", pid)
			}
			_ = syscall.Kill(pid, syscall.SIGTERM)
			_ = syscall.Kill(pid, syscall.SIGCONT) // A test may have paused it.
		}
	}
	return nil
}

// runs tells whether a process runs that is of this slot, and not one that has got the number of one that has ended.
func (s *slot) runs(pid int) bool {
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.Contains(string(command), s.dir+"/")
}

// unmount unmounts what is mounted below the slot, the last first.
func (s *slot) unmount() error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	lines := strings.Split(string(mounts), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		fields := strings.Fields(lines[i])
		if len(fields) < 5 || !strings.HasPrefix(fields[4], s.dir+"/") {
			continue
		}
		if err := detach(fields[4]); err != nil {
			return fmt.Errorf("unmount %s: %w", fields[4], err)
		}
	}
	return nil
}
