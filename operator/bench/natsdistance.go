package main

import (
	"net"
	"sync"
	"time"
)

// distantDialer makes connections as to a server that is a network away: what it says arrives later by a round trip.
// Servers in another zone, or ones that replicate before they acknowledge, are that far away.
type distantDialer struct{ roundTrip time.Duration }

// Dial implements nats.CustomDialer.
func (d distantDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	if err != nil || d.roundTrip == 0 {
		return conn, err
	}
	c := &distantConn{Conn: conn, roundTrip: d.roundTrip, arrived: make(chan packet, 1024), ended: make(chan struct{})}
	c.reading.Go(c.receive)
	return c, nil
}

// packet is what was read at once.
type packet struct {
	data []byte
	due  time.Time
	err  error
}

type distantConn struct {
	net.Conn
	roundTrip time.Duration
	arrived   chan packet
	reading   sync.WaitGroup
	ended     chan struct{}
	end       sync.Once

	// rest is what Read has not handed out yet. It has one reader.
	rest []byte
}

func (c *distantConn) receive() {
	for {
		buffer := make([]byte, 32<<10)
		n, err := c.Conn.Read(buffer)
		select {
		case c.arrived <- packet{buffer[:n], time.Now().Add(c.roundTrip), err}:
		case <-c.ended:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements net.Conn.
func (c *distantConn) Read(into []byte) (int, error) {
	if len(c.rest) == 0 {
		select {
		case p := <-c.arrived:
			time.Sleep(time.Until(p.due))
			if p.err != nil {
				return copy(into, p.data), p.err
			}
			c.rest = p.data
		case <-c.ended:
			return 0, net.ErrClosed
		}
	}
	n := copy(into, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Close implements net.Conn.
func (c *distantConn) Close() error {
	c.end.Do(func() { close(c.ended) })
	err := c.Conn.Close()
	c.reading.Wait()
	return err
}
