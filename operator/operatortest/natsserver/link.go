package natsserver

import (
	"net"
	"net/url"
	"sync"
	"testing"
)

// Link is a stretch of network between clients and a server: a TCP proxy that can be cut and frozen. All methods are safe
// for concurrent use.
type Link struct {
	t      testing.TB
	target string
	port   int

	mu       sync.Mutex
	listener net.Listener // nil while the link is cut
	conns    map[net.Conn]struct{}
	// open is closed while bytes pass, and is a new channel while the link is frozen.
	open chan struct{}
	work sync.WaitGroup
}

// NewLink returns a link to the server with that URL. It ends with the test.
func NewLink(t testing.TB, target string) *Link {
	t.Helper()
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatalf("link to %s: %v", target, err)
	}
	l := &Link{t: t, target: parsed.Host, conns: map[net.Conn]struct{}{}, open: make(chan struct{})}
	close(l.open)
	if err := l.listen(); err != nil {
		t.Fatalf("link to %s: %v", target, err)
	}
	t.Cleanup(func() {
		l.Cut()
		l.thaw()
		l.work.Wait()
	})
	return l
}

// URL is where clients connect to, in place of the server's.
func (l *Link) URL() string { return urlOf(l.port) }

// Cut resets every connection, and has new ones refused, until Restore.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		_ = l.listener.Close()
		l.listener = nil
	}
	for conn := range l.conns {
		reset(conn)
	}
}

// Freeze stops every byte on its way, and lets new connections hang, until Restore. Nobody is told.
func (l *Link) Freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
		l.open = make(chan struct{})
	default:
	}
}

// Restore mends what Cut and Freeze broke. Bytes that were stopped are delivered.
func (l *Link) Restore() {
	l.t.Helper()
	l.thaw()
	l.mu.Lock()
	cut := l.listener == nil
	l.mu.Unlock()
	if !cut {
		return
	}
	if err := l.listen(); err != nil {
		l.t.Errorf("restore link to %s: %v", l.target, err)
	}
}

func (l *Link) thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
	default:
		close(l.open)
	}
}

func (l *Link) listen() error {
	var listener net.Listener
	var err error
	if l.port == 0 {
		listener, err = own.listen()
	} else {
		listener, err = listen(l.port)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener, l.port = listener, portOf(listener)
	l.work.Go(func() { l.accept(listener) })
	return nil
}

func (l *Link) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		l.work.Go(func() { l.join(client) })
	}
}

// join carries bytes between a client and the server until either ends.
func (l *Link) join(client net.Conn) {
	if !l.enter(client) {
		return
	}
	defer l.leave(client)
	l.wait()
	server, err := net.Dial("tcp", l.target)
	if err != nil || !l.enter(server) {
		return
	}
	defer l.leave(server)

	var upstream sync.WaitGroup
	upstream.Go(func() { l.carry(server, client) })
	l.carry(client, server)
	upstream.Wait()
}

// carry copies what comes, and ends both connections when one has ended.
func (l *Link) carry(to, from net.Conn) {
	defer reset(to)
	defer reset(from)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.wait()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait returns when bytes may pass.
func (l *Link) wait() {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	<-open
}

// enter takes a connection into the link, or resets it when the link is cut.
func (l *Link) enter(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener == nil {
		reset(conn)
		return false
	}
	l.conns[conn] = struct{}{}
	return true
}

func (l *Link) leave(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
	reset(conn)
}

// reset ends a connection with a reset instead of a farewell.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
