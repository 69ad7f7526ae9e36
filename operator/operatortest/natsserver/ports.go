package natsserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

const (
	loopback = "127.0.0.1"

	// Ports are taken from below the ranges that systems use for the near end of outgoing connections: there, a client
	// that dials a server which is being started again could be given the server's own port. Those of the control plane
	// are above.
	firstPort = 10000
	lastPort  = 20000
	// portsOfAProcess is how many ports a process has to itself.
	portsOfAProcess = 200
)

// ports are those of one process. They are no other process's, so that nobody takes the port of a server that is stopped,
// or of a link that is cut, before it is started again: packages are tested side by side. And they are taken in turn, so
// that the same holds within the process.
type ports struct {
	mu sync.Mutex
	// claim listens on the first of the ports until the process ends, which tells other processes that all are taken. It is
	// nil until ports are needed.
	claim net.Listener
	turn  int
}

// own are the ports of this process.
var own ports

// listen listens on a port that nobody listens on.
func (p *ports) listen() (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.stakeClaim(); err != nil {
		return nil, err
	}
	first := portOf(p.claim)
	var last error
	for range portsOfAProcess - 1 {
		p.turn = p.turn%(portsOfAProcess-1) + 1
		listener, err := listen(first + p.turn)
		if err == nil {
			return listener, nil
		}
		last = err
	}
	return nil, fmt.Errorf("find a free port on %s between %d and %d: %w", loopback, first+1, first+portsOfAProcess-1, last)
}

// stakeClaim finds ports that no other process has taken, unless it has been done before.
func (p *ports) stakeClaim() error {
	if p.claim != nil {
		return nil
	}
	var last error
	for _, i := range rand.Perm((lastPort - firstPort) / portsOfAProcess) {
		claim, err := listen(firstPort + i*portsOfAProcess)
		if err == nil {
			p.claim = claim
			return nil
		}
		last = err
	}
	return fmt.Errorf("find ports on %s that no other process has claimed between %d and %d: %w", loopback, firstPort, lastPort, last)
}

// free returns a port that nobody listens on.
func (p *ports) free() (int, error) {
	listener, err := p.listen()
	if err != nil {
		return 0, err
	}
	return portOf(listener), listener.Close()
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
}

func portOf(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }

func urlOf(port int) string { return "nats://" + net.JoinHostPort(loopback, strconv.Itoa(port)) }
