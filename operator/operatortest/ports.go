package operatortest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the ranges that systems use for the near end of
// outgoing connections: there, a client that dials a server which is being
// restarted could be given the server's own port.
const (
	firstPort = 20000
	lastPort  = 32000
	portTries = 200
)

// freePorts returns n ports on loopback that nobody listens on. Another process
// may take one before it is used: starting again with others is the caller's
// answer to that.
func freePorts(n int) ([]int, error) {
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	var ports []int
	var last error
	for range portTries {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // nothing secret
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		listeners = append(listeners, l)
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("find %d free ports on %s between %d and %d: %w", n, loopback, firstPort, lastPort, last)
}
